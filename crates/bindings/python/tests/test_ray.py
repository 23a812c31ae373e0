"""The engine ``ray``, on a Ray of this machine: the same bytes as without it, also after a worker was killed, and
one line about whatever is wrong. Where Ray is not installed these tests are skipped."""

import json
import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any, List, Set

import pytest

import sluice
import sluice._ray
from labs import POLICIES, command, of_one_commit, program, short
from racks import PATIENCE_S, wait_until

pytest.importorskip("ray", reason="Ray is not installed: scripts/test-python --ray installs it")
#: How many tasks a run takes that is still going on when a test looks.
LONG = 300_000


def workers() -> Set[int]:
    """The processes in which Ray runs replications now."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_text() if entry.name.isdigit() else ""
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1] if words else ""
        except OSError:
            continue
        if words.startswith("ray::_replicate") and int(parent) in raylets():
            found.add(int(entry.name))
    return found


def raylets() -> Set[int]:
    """The processes that are descendants of this one and start Ray's workers."""
    own = {os.getpid()}
    tree = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                tree[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    while more := {child for child, parent in tree.items() if parent in own and child not in own}:
        own |= more
    return own


def test_a_sweep_on_ray_has_the_bytes_of_the_command(cluster: str, tmp_path: Path) -> None:
    told: List[sluice.Progress] = []
    study = sluice.sweep(POLICIES, loads=[0.3, 0.6], tasks=4_000, replications=3, engine="ray", progress=told.append)
    words = ["sweep", *POLICIES, "--load", "0.3,0.6", "--tasks", "4000", "--replications", "3"]
    assert study.json() + "\n" == of_one_commit(command(tmp_path / "own", *words)["stdout"], study)
    assert told[0].done == 0 and told[-1][:2] == (12, 12)
    # A search asks for points round by round.
    found = sluice.throughput("central", "p99<200us", workers=2, tasks=2_000, replications=2, engine="ray")
    assert found.json() == sluice.throughput("central", "p99<200us", workers=2, tasks=2_000, replications=2).json()


def test_the_bytes_are_the_same_after_a_worker_was_killed_in_the_middle(cluster: str, tmp_path: Path) -> None:
    killed: List[int] = []

    def kill_one(progress: sluice.Progress) -> None:
        # The first call is before anything runs.
        if progress.done >= 1 and not killed:
            wait_until(lambda: bool(workers()), "a worker runs a replication")
            killed.append(workers().pop())
            os.kill(killed[0], signal.SIGKILL)

    asked: Any = {"loads": "0.3", "tasks": LONG, "replications": 4, "seed": 7}
    study = sluice.sweep(POLICIES, engine="ray", progress=kill_one, out=tmp_path / "kept", **asked)
    assert killed and study.json() == sluice.sweep(POLICIES, **asked).json()
    assert sluice.sweep(POLICIES, out=tmp_path / "kept", **asked).json() == study.json()


def test_what_ends_a_study_ends_its_tasks_and_the_next_study_runs(cluster: str) -> None:
    def interrupt() -> None:
        wait_until(lambda: bool(workers()), "a worker runs a replication")
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        interrupter.start()
        sluice.sweep("rain:2", loads=0.5, tasks="1000M", replications=4, engine="ray")
    interrupter.join()
    wait_until(lambda: not workers(), "nobody runs what is for nobody")
    assert short(engine="ray").json() == short().json()


def test_a_worker_with_another_build_is_one_line(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sluice._ray, "build", lambda: "0.0.1 (0123456789abcdef)")
    with pytest.raises(sluice.StudyFailed) as raised:
        short(engine="ray")
    said = str(raised.value)
    assert "has another build of sluice, " in said and "not 0.0.1 (0123456789abcdef): install the same" in said
    assert "\n" not in said


def test_a_workers_other_file_is_noticed(cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "tasks.csv"
    trace.write_text("".join(f"{turn * 10},get,5\n" for turn in range(1_000)))
    monkeypatch.chdir(tmp_path)
    asked: Any = {"workers": 2, "replications": 1}
    here = sluice.sweep("rain:2", "trace:tasks.csv", **asked)
    assert sluice.sweep("rain:2", "trace:tasks.csv", engine="ray", **asked).json() == here.json()
    # A worker's machine has another trace by this name.
    real = sluice._ray._Asked

    def other(*fields: Any) -> Any:
        asked = real(*fields)
        return asked._replace(fingerprint="0" * 16)

    monkeypatch.setattr(sluice._ray, "_Asked", other)
    with pytest.raises(sluice.BadInput, match="a file that the study names .* is another one there: put the same"):
        sluice.sweep("rain:2", "trace:tasks.csv", engine="ray", **asked)


def test_a_notebook_runs_on_ray_as_it_is(cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat: Any = pytest.importorskip("nbformat")
    nbclient: Any = pytest.importorskip("nbclient")
    pytest.importorskip("pandas")
    monkeypatch.setenv("SLUICE_ENGINE", "ray")
    monkeypatch.setenv("RAY_ADDRESS", cluster)
    monkeypatch.setenv("SLUICE_REPLICATIONS", "2")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = Path(__file__).resolve().parents[1] / "notebooks" / "first-curve.ipynb"
    book = nbformat.read(notebook, as_version=4)
    seen: Set[int] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            seen.update(workers())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        nbclient.NotebookClient(book, timeout=PATIENCE_S, resources={"metadata": {"path": str(tmp_path)}}).execute()
    finally:
        over.set()
        looking.join()
    assert seen, "Ray's workers ran its replications"


def test_an_engine_that_the_environment_misspells_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ENGINE", "dask")
    with pytest.raises(sluice.BadInput, match="^SLUICE_ENGINE='dask' is not known: give 'threads' or 'ray'$"):
        short()
    assert json.loads(short(engine="threads").json())["complete"], "what a call asks for goes first"


def test_an_unreachable_ray_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        text = """
import labs, sluice
try:
    labs.short(engine="ray")
except sluice.StudyFailed as why:
    print(why)
"""
        for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
            ran = program(text, environment={"RAY_ADDRESS": address})
            out, said = ran.communicate(timeout=120)
            assert ran.returncode == 0, said
            assert out.startswith(f"no Ray can be reached at {address} (RAY_ADDRESS)") and out.count("\n") == 1, out


def test_without_ray_there_is_one_line() -> None:
    text = """
import sys
sys.modules["ray"] = None
import labs, sluice
try:
    labs.short(engine="ray")
except sluice.StudyFailed as why:
    print(why)
"""
    out, said = program(text).communicate(timeout=120)
    assert out == "the engine ray needs Ray, which is not installed: pip install ray\n", said
    assert json.loads(short().json())["complete"]
