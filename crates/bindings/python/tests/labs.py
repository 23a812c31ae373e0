"""What tests of studies share: short settings, and the command that runs the same."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Optional

import sluice
from racks import SLUICE

#: A short sweep, as arguments and as the command's words.
POLICIES = ["rain:2", "racksched:2,tracked"]
LOADS = "0.3,0.6"
WORDS = ["sweep", *POLICIES, "--load", LOADS, "--tasks", "4000", "--replications", "3", "--seed", "7"]
#: A plan with a search, a statement and a cause.
PLAN = """
name = "mine"
title = "A plan for tests"
source = "nowhere"
ours = true
testbed = "ideal"
workers = 4
seed = 1
tasks = 2_000
replications = 2
[tolerance]
value = 0.1
ratio = 0.03
change = 0.03
rate = 0.1
order = 0.25
[[policy]]
run = ["central", "jbsq:1"]
[[case]]
id = "exp"
title = "Exponential service"
workload = "exp:10us"
rates = "200k"
[[claim]]
id = "limit"
says = "A central queue carries this much"
place = "here"
case = "exp"
keeps = "p99<100us"
policy = "central"
value = "10k"
[[cause]]
id = "servers"
of = ["limit"]
says = "the number of workers"
workers = 2
"""


def short(
    engine: Optional[str] = None,
    out: Optional[Path] = None,
    loads: str = LOADS,
    tasks: int = 4_000,
    threads: Optional[int] = None,
) -> sluice.Study:
    """The short sweep."""
    return sluice.sweep(
        POLICIES, loads=loads, tasks=tasks, replications=3, seed=7, engine=engine, out=out, threads=threads
    )


#: What a study leaves behind, without its journal.
FILES = ("study.json", "study.csv", "points.csv", "report.html")


def command(folder: Path, *words: str) -> Dict[str, str]:
    """What the command prints as JSON, and its files."""
    ran = subprocess.run(
        [SLUICE, *words, "--json", "--quiet", "--out", str(folder)], capture_output=True, text=True, check=False
    )
    assert ran.returncode in (0, 3, 5), ran.stderr
    files = {name: (folder / name).read_text() for name in FILES}
    return {"stdout": ran.stdout, **files}


def refusal(*words: str) -> str:
    """The command's line about bad input."""
    ran = subprocess.run([SLUICE, *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 2, ran.stderr
    return ran.stderr.removeprefix("sluice: ").rstrip("\n")


def of_one_commit(command_text: str, study: sluice.Study) -> str:
    """What the command told, as this library's commit would have told it: while somebody works on the sources,
    cargo may have built one of them before a change and the other one after it."""
    theirs = re.search(r'"commit": ?"([^"]*)"', command_text) or re.search(r"commit ([0-9a-f]+(?:-dirty)?)", command_text)
    ours = json.loads(study.json())["commit"]
    return command_text if theirs is None else command_text.replace(theirs[1], ours)


def program(text: str, *words: object, environment: Optional[Dict[str, str]] = None) -> "subprocess.Popen[str]":
    """A Python program of its own."""
    folder = str(Path(__file__).resolve().parent)
    paths: List[str] = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
