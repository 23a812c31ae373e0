"""Plants each bug of targets/p4/planted.txt, one at a time, and plays the vectors on BMv2 until one finds it.

Prints a table for targets/p4/README.md; exit 1 if one is not found, 2 if one cannot be planted. Needs the P4 tools
(P4_TOOLS). With arguments, only the bugs of these names.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "targets" / "p4"


def bugs():
    """Each bug's name, file, and the text that is replaced by the other."""
    for line in (SOURCE / "planted.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            parts = re.split(r"(?<!\\)\|", line)
            name, file, old, new = (part.replace("\\|", "|") for part in parts)
            yield name.strip(), file.strip(), *(text[1:].removesuffix(" ").replace("\\n", "\n") for text in (old, new))


def tests():
    """The built tests of the P4 program."""
    command = ["cargo", "test", "-q", "-p", "sluice-bmv2", "--test", "vectors", "--no-run", "--message-format=json"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return re.findall(r'"executable":"([^"]*/vectors-[^"]*)"', out)[-1]


def found(binary, folder):
    """What the vectors say of the planted bug; nothing if they pass."""
    environment = {**os.environ, "P4_SOURCES": str(folder), "RUST_BACKTRACE": "0"}
    command = [binary, "the_program_does_what_the_vectors_say", "--nocapture"]
    try:
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return "it does not end within ten minutes"
    if skipped := re.search(r"skipped: .*", ran.stderr):
        sys.exit(skipped[0])
    if ran.returncode == 0:
        return None
    said = re.findall(r"panicked at [^\n]*:\n([^\n]*)", ran.stdout + ran.stderr)
    return said[0] if said else "?"


def main():
    binary, missed = tests(), 0
    folder = ROOT / "target" / "planted-p4"
    print("| planted bug | what finds it |\n|---|---|")
    only = set(sys.argv[1:])
    if unknown := only - {name for name, *_ in bugs()}:
        sys.exit(f"targets/p4/planted.txt has no bug of the name {', '.join(sorted(unknown))}")
    for name, file, old, new in bugs():
        if only and name not in only:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(SOURCE, folder)
        path = folder / file
        text = path.read_text()
        if old not in text:
            print(f"{name}: `{old}` is not in {file}", file=sys.stderr)
            sys.exit(2)
        path.write_text(text.replace(old, new, 1))
        what = found(binary, folder)
        missed += what is None or "refuses" in what
        print(f"| {name} | {(what or '**nothing**')[:110]} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
