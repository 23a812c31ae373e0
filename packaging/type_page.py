"""Types the commands of a page: type_page.py PAGE INIT [SECTION]. INIT is the first process of a booted tree; SECTION is
the heading of the only section whose commands are typed.

A block `sh build` is typed on this machine; a block `sh` as root in the tree. Lines of a block `text` after one must be
in what it printed; it is typed again until they are. The lines `scp FILES machine:FOLDER` of a block `sh copy` are copies
into the tree."""

import glob
import pathlib
import shutil
import subprocess
import sys
import time

PATIENCE_S = 120
# What the page promises: ten minutes.
MOST_S = 600
ENV = ["env", "-i", "HOME=/root", "TERM=dumb", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
       "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]


def section(page, heading):
    found = [part for part in page.split("\n## ") if part.startswith(heading + "\n")]
    return found[0] if found else sys.exit(f"no section {heading}")


def blocks(page):
    for fenced in page.split("```")[1::2]:
        kind, _, text = fenced.partition("\n")
        yield kind.split(), text


def typed(shell, text, expected):
    end = time.monotonic() + PATIENCE_S
    while True:
        done = subprocess.run([*shell, text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        missing = [line for line in expected if line not in done.stdout]
        if done.returncode == 0 and not missing:
            print(f"$ {text}{done.stdout}")
            return
        if time.monotonic() > end or (done.returncode != 0 and not expected):
            sys.exit(f"exit code {done.returncode}, and lacks {missing}:\n{text}\n{done.stdout}")
        time.sleep(1)


def copied(text, tree):
    for line in text.splitlines():
        _, source, target = line.split()
        for file in glob.glob(source):
            shutil.copy(file, tree + target.removeprefix("machine:"))


def main(path, init, heading=None):
    tree = ["nsenter", "--target", init, "--all", *ENV, "bash", "-ec"]
    page = pathlib.Path(path).read_text(encoding="utf-8")
    all_blocks = list(blocks(page if heading is None else section(page, heading)))
    begun = time.monotonic()
    for at, (kind, text) in enumerate(all_blocks):
        after = all_blocks[at + 1] if at + 1 < len(all_blocks) else ([], "")
        expected = after[1].splitlines() if after[0] == ["text"] else []
        match kind:
            case ["sh", "build"]:
                typed(["bash", "-ec"], text, expected)
            case ["sh", "copy"]:
                copied(text, f"/proc/{init}/root")
            case ["sh"]:
                typed(tree, text, expected)
            case ["text"] | ["console"]:
                pass
            case other:
                sys.exit(f"what is a block `{' '.join(other)}`?")
    took = time.monotonic() - begun
    print(f"typed in {took:.0f} s")
    if took > MOST_S:
        sys.exit(f"the page takes {took:.0f} s to type: more than {MOST_S} s")


main(*sys.argv[1:])
