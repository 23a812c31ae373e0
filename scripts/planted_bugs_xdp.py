"""Plants each bug of targets/ebpf/planted.txt, one at a time, and runs the tests of the XDP program until it is found.

Prints a table for targets/ebpf/README.md; exit 1 if one is not found, 2 if one cannot be planted. Takes root.
With arguments, only the bugs of these names: `scripts/planted_bugs_xdp.py "ages are rounded down"`.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "targets" / "ebpf"


def bugs():
    """Each bug's name, file, and the text that is replaced by the other."""
    for line in (SOURCE / "planted.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            parts = re.split(r"(?<!\\)\|", line)
            name, file, old, new = (part.replace("\\|", "|") for part in parts)
            yield name.strip(), file.strip(), *(text[1:].removesuffix(" ").replace("\\n", "\n") for text in (old, new))


def build(folder):
    command = ["make", "-sC", str(folder / "ebpf"), f"OUT={folder}"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def tests():
    """The built tests of the XDP program."""
    command = ["cargo", "test", "-q", "-p", "sluice-kernel", "--test", "xdp", "--no-run", "--message-format=json"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return re.findall(r'"executable":"([^"]*/xdp-[^"]*)"', out)[-1]


def found(binary, folder, crowd):
    """What the tests say of the planted bug; nothing if they pass."""
    longer = {"XDP_CROWD": "1000000"} if crowd else {"XDP_SEEDS": "300"}
    environment = {**os.environ, **longer, "XDP_OBJECTS": str(folder), "RUST_BACKTRACE": "0"}
    command = [binary, "many_at_once"] if crowd else [binary]
    try:
        ran = subprocess.run(
            command, cwd=ROOT / "crates" / "run" / "net", env=environment, capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired:
        return "it does not end within a minute"
    if ran.returncode == 0:
        return None
    said = re.findall(r"panicked at [^\n]*:\n([^\n]*)", ran.stdout + ran.stderr)
    return said[0] if said else "?"


def main():
    binary, missed = tests(), 0
    folder = ROOT / "target" / "planted-xdp"
    print("| planted bug | what finds it |\n|---|---|")
    only = set(sys.argv[1:])
    if unknown := only - {name for name, *_ in bugs()}:
        sys.exit(f"targets/ebpf/planted.txt has no bug of the name {', '.join(sorted(unknown))}")
    for name, file, old, new in bugs():
        if only and name not in only:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(SOURCE, folder / "ebpf")
        path = folder / "ebpf" / file
        text = path.read_text()
        if old not in text:
            print(f"{name}: `{old}` is not in {file}", file=sys.stderr)
            sys.exit(2)
        path.write_text(text.replace(old, new, 1))
        built = build(folder)
        # A bug that does not build would show nothing.
        what = f"does not build: {built.stderr.splitlines()[0]}" if built.returncode else found(binary, folder, name.startswith("crowd:"))
        missed += what is None or built.returncode != 0
        print(f"| {name} | {(what or '**nothing**')[:110]} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
