"""Plants the bugs of a data plane's planted.txt, one at a time: what planted_bugs_xdp.py and planted_bugs_p4.py share."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def bugs(source):
    """Each bug's name, file, and the text that is replaced by the other."""
    for line in (source / "planted.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            parts = re.split(r"(?<!\\)\|", line)
            name, file, old, new = (part.replace("\\|", "|") for part in parts)
            yield name.strip(), file.strip(), *(text[1:].removesuffix(" ").replace("\\n", "\n") for text in (old, new))


def built(package, test):
    """The built program of a package's test."""
    command = ["cargo", "test", "-q", "-p", package, "--test", test, "--no-run", "--message-format=json"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return re.findall(rf'"executable":"([^"]*/{test}-[^"]*)"', out)[-1]


def complaint(command, limit_s, **more):
    """What a test complains of, and what it printed; no complaint if it passes."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, **more)
    except subprocess.TimeoutExpired:
        return f"it does not end within {limit_s} seconds", ""
    said = ran.stdout + ran.stderr
    if ran.returncode == 0:
        return None, said
    panics = re.findall(r"panicked at [^\n]*:\n([^\n]*)", said)
    return panics[0] if panics else "?", said


def plant_all(target, find):
    """Plants each bug of targets/TARGET in a copy, and prints a table of what `find(folder, name)` says: what found it
    (None if nothing did), and whether the bug could be built. Exits."""
    source, folder, missed = ROOT / "targets" / target, ROOT / "target" / f"planted-{target}", 0
    print("| planted bug | what finds it |\n|---|---|")
    only = set(sys.argv[1:])
    if unknown := only - {name for name, *_ in bugs(source)}:
        sys.exit(f"targets/{target}/planted.txt has no bug of the name {', '.join(sorted(unknown))}")
    for name, file, old, new in bugs(source):
        if only and name not in only:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder / target)
        path = folder / target / file
        text = path.read_text()
        if old not in text:
            print(f"{name}: `{old}` is not in {file}", file=sys.stderr)
            sys.exit(2)
        path.write_text(text.replace(old, new, 1))
        what, is_built = find(folder, name)
        missed += what is None or not is_built
        print(f"| {name} | {(what or '**nothing**')[:110]} |", flush=True)
    sys.exit(1 if missed else 0)
