"""Studies in process: the command's bytes, its words about bad input, and ends in the middle."""

import inspect
import json
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import pytest

import sluice
from labs import LOADS, PLAN, POLICIES, WORDS, command, of_one_commit, program, refusal, short
from racks import wait_until
from sluice import _ray
from sluice._lab import build
from sluice._sluice import StudyCore


def assert_same(study: sluice.Study, told: Dict[str, str], folder: Path) -> None:
    """A study is the command's, byte by byte: as text and as files."""
    study.write(folder)
    assert study.json() + "\n" == of_one_commit(told["stdout"], study)
    for name, text in (("study.json", study.json() + "\n"), ("study.csv", study.csv()), ("report.html", study.page())):
        assert text == of_one_commit(told[name], study), name
        assert (folder / name).read_text() == text, name
    assert (folder / "points.csv").read_text() == of_one_commit(told["points.csv"], study)


def test_each_study_has_the_bytes_of_the_command(tmp_path: Path) -> None:
    sweep = command(tmp_path / "sweep", *WORDS)
    assert_same(short(threads=1), sweep, tmp_path / "1")
    assert_same(short(threads=3, out=tmp_path / "kept"), sweep, tmp_path / "2")
    more = ["--tasks", "4000", "--replications", "2", "--workload", "get=0.9@exp:8us+scan=0.1@const:50us"]
    compared = sluice.compare(
        "rain:1 rain:2",
        "get=0.9@exp:8us+scan=0.1@const:50us",
        loads=[0.25, 0.5],
        tasks="4k",
        replications=2,
        slices="get=20,scan=12",
    )
    compare = ["compare", "rain:1", "rain:2", "--load", "0.25,0.5", "--slices", "get=20,scan=12", *more]
    assert_same(compared, command(tmp_path / "compare", *compare), tmp_path / "3")
    found = sluice.throughput(["central"], "p99<200us", workers=2, tasks=2_000, replications=2)
    throughput = ["throughput", "central", "--slo", "p99<200us", "--workers", "2", "--tasks", "2k"]
    assert_same(found, command(tmp_path / "t", *throughput, "--replications", "2"), tmp_path / "4")
    plan = tmp_path / "mine.toml"
    plan.write_text(PLAN)
    reproduced = sluice.reproduce(plan, seed=3)
    assert_same(reproduced, command(tmp_path / "r", "reproduce", str(plan), "--seed", "3"), tmp_path / "5")
    assert reproduced.complete and reproduced.outcome["expectations"]


def test_a_frame_has_intervals_as_columns() -> None:
    pytest.importorskip("pandas")
    study = short()
    frame = study.frame()
    assert list(frame["policy"].unique()) == POLICIES and set(frame["class"]) == {"all", "task"}
    whole = frame[frame["class"] == "all"]
    assert len(whole) == 4 and list(whole["load"].unique()) == [0.3, 0.6]
    assert (whole["latency_ns_p99_low"] <= whole["latency_ns_p99"]).all()
    assert (whole["latency_ns_p99"] <= whole["latency_ns_p99_high"].fillna(float("inf"))).all()
    first = study.outcome["panels"][0]["series"][0]["points"][0]
    assert whole["latency_ns_p99"].iloc[0] == first["overall"]["latency_ns"]["p99"]["value"]
    assert whole["throughput_per_s_low"].iloc[0] == first["throughput_per_s"]["low"]
    few = study.frame("latency_ns_p99")
    assert "latency_ns_p99_high" in few and "latency_ns_p50" not in few
    with pytest.raises(sluice.BadInput, match="no metric 'p99' in this study: it has throughput_per_s, latency_ns"):
        study.frame("p99")
    compared = sluice.compare("rain:1 rain:2", loads=0.5, tasks=4_000, replications=2).comparisons()
    assert compared["metric"][0] == "throughput_per_s" and "latency_ns_p99" in set(compared["metric"])
    assert (compared["difference_low"] <= compared["difference"]).all()
    searched = sluice.throughput("central", "p99<200us", workers=2, tasks=2_000, replications=2).searches()
    assert len(searched) == 1 and "rate_per_s_low" in searched.columns, searched.columns
    assert "sweep" in repr(study) and "4 points" in repr(study) and "rain:2" in study.summary()


def test_bad_input_has_the_words_of_the_command(tmp_path: Path) -> None:
    rack = tmp_path / "rack.toml"
    rack.write_text("[[slice]]\nname = 'a'\n")
    folder = tmp_path / "others"
    short(out=folder)
    asked: List[Tuple[Callable[[], object], List[str]]] = [
        (lambda: sluice.sweep("rian:2", loads=0.5), ["sweep", "rian:2", "--load", "0.5"]),
        (lambda: sluice.sweep("rain:2"), ["sweep", "rain:2"]),
        (lambda: sluice.sweep([], loads=0.5), ["sweep", "--load", "0.5"]),
        (lambda: sluice.sweep("rain:2", loads=1.5), ["sweep", "rain:2", "--load", "1.5"]),
        (lambda: sluice.sweep("rain:2", "exp:10", 0.5), ["sweep", "rain:2", "--load=0.5", "--workload=exp:10"]),
        (lambda: sluice.sweep("rain:2", loads=0.5, tasks="many"), ["sweep", "rain:2", "--load=0.5", "--tasks=many"]),
        (lambda: sluice.sweep("rain:2", loads=0.5, seed=-1), ["sweep", "rain:2", "--load=0.5", "--seed=-1"]),
        (lambda: sluice.sweep("rain:2", "trace:none.csv"), ["sweep", "rain:2", "--workload", "trace:none.csv"]),
        (lambda: sluice.sweep("rain:2", loads=0.5, testbed="mine"), ["sweep", "rain:2", "--load=.5", "--testbed=mine"]),
        (lambda: sluice.sweep("--json", loads=0.5), ["sweep", "--policy=--json", "--load=0.5"]),
        (lambda: sluice.compare("rain:2", loads=0.5), ["compare", "rain:2", "--load", "0.5"]),
        (
            lambda: sluice.compare("rain:1 rain:2", loads=0.5, replications=1),
            ["compare", "rain:1", "rain:2", "--load", "0.5", "--replications", "1"],
        ),
        (lambda: sluice.throughput("rain:2", "p98<1us"), ["throughput", "rain:2", "--slo", "p98<1us"]),
        (lambda: sluice.reproduce("rain-99"), ["reproduce", "rain-99"]),
        (lambda: sluice.reproduce(rack), ["reproduce", str(rack)]),
        (lambda: sluice.reproduce("rain-6b", cause="none"), ["reproduce", "rain-6b", "--cause", "none"]),
    ]
    for ask, words in asked:
        with pytest.raises(sluice.BadInput) as raised:
            ask()
        assert str(raised.value) == refusal(*words), words
    refused: List[Tuple[Callable[[], object], str]] = [
        (lambda: short(engine="dask"), "engine 'dask' is not known: give 'threads' or 'ray'"),
        (lambda: short(threads=0), "0 threads are none"),
        (lambda: sluice.reproduce("all"), "`all` is several figures: ask for each of them by its name"),
        (lambda: sluice.reproduce("rain-2"), "rain-2 is measured on this machine, not simulated: run `sluice repro"),
        (lambda: short(out=folder, tasks=5_000), "holds another run: its length is"),
        (lambda: short(out=Path("/proc/nowhere")), "results cannot be written there"),
    ]
    for ask, said in refused:
        with pytest.raises(sluice.BadInput) as raised:
            ask()
        assert said in str(raised.value) and "\n" not in str(raised.value)
    assert "rain-6b" in sluice.figures()


def test_an_argument_that_is_not_known_is_refused_by_name() -> None:
    asked: Dict[str, int] = {"task": 5}
    for ask in (sluice.sweep, sluice.compare):
        with pytest.raises(TypeError, match="unexpected keyword argument 'task'"):
            ask("rain:1 rain:2", loads=0.5, **asked)  # type: ignore[arg-type]
    assert inspect.signature(sluice.compare) == inspect.signature(sluice.sweep)
    assert "with two policies" in (sluice.compare.__doc__ or "")


def test_without_pandas_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    study = short()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(sluice.StudyFailed, match="needs pandas, which is not installed: pip install pandas"):
        study.frame()
    assert study.outcome["complete"]


def test_progress_is_told_in_the_callers_thread_and_what_it_raises_ends_the_study() -> None:
    told: List[sluice.Progress] = []
    threads = set()

    def note(progress: sluice.Progress) -> None:
        told.append(progress)
        threads.add(threading.get_ident())

    sluice.sweep("rain:2", loads=0.5, tasks=4_000, replications=3, progress=note)
    assert told[-1][:2] == (3, 3) and threads == {threading.get_ident()}
    assert [progress.done for progress in told] == sorted(progress.done for progress in told)
    assert str(told[-1]) == "3 of 3 runs"

    def enough(_: sluice.Progress) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sluice.sweep("rain:2", loads=0.5, tasks="1000M", replications=1, progress=enough)


def test_other_threads_of_python_go_on_while_a_study_runs() -> None:
    ended: List[sluice.Study] = []
    running = threading.Thread(target=lambda: ended.append(short(tasks=40_000)))
    running.start()
    turns = 0
    while running.is_alive():
        turns += 1
    running.join()
    # A study that held the interpreter would leave this thread no more than a switch or two.
    assert turns > 1_000 and ended[0].complete


#: A sweep that keeps its replications in a folder.
LONG = """
import sys
from pathlib import Path
import labs
labs.short(out=Path(sys.argv[1]), loads="0.3", tasks=int(sys.argv[2]), threads=1)
"""


def ended_in_the_middle(folder: Path, tasks: int, end: signal.Signals) -> Tuple[int, str]:
    """Starts that sweep, and ends it by a signal once a replication is kept. Returns how many lines its journal has, 7
    if it had run to its end by then, and what the program said."""
    running = program(LONG, folder, tasks)
    journal = folder / "journal.jsonl"
    wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 2, "a replication is kept")
    running.send_signal(end)
    _, said = running.communicate(timeout=120)
    kept = journal.read_bytes().count(b"\n")
    assert running.returncode == -end or kept == 7, said
    return kept, said


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_study_that_was_ended_in_the_middle_goes_on_from_there(tmp_path: Path, end: signal.Signals) -> None:
    # If this process does not run for a while, a short sweep ends by itself.
    for tasks in (300_000, 1_000_000, 4_000_000):
        folder = tmp_path / str(tasks)
        kept, said = ended_in_the_middle(folder, tasks, end)
        if kept < 7:
            break
    assert kept < 7, "it was not ended in the middle"
    if end == signal.SIGINT:
        assert "KeyboardInterrupt" in said
        assert not json.loads((folder / "study.json").read_text())["complete"]
    told: List[sluice.Progress] = []
    again = sluice.sweep(
        POLICIES, loads="0.3", tasks=tasks, replications=3, seed=7, out=folder, progress=told.append
    )
    assert told[-1].runs == 6 - (kept - 1), "what was kept does not run again"
    assert again.json() == short(loads="0.3", tasks=tasks).json()


def test_two_studies_in_one_folder_are_one_after_the_other(tmp_path: Path) -> None:
    refused: List[str] = []

    def another(_: sluice.Progress) -> None:
        for fresh in (False, True):
            with pytest.raises(sluice.BadInput) as raised:
                sluice.sweep("rain:1", loads=0.5, tasks=100, out=tmp_path, fresh=fresh)
            refused.append(str(raised.value))

    sluice.sweep(POLICIES, loads=LOADS, tasks=4_000, replications=3, seed=7, out=tmp_path, progress=another)
    assert refused and all("another run writes it now: wait for its end" in said for said in refused), refused
    assert short(out=tmp_path).complete


def test_a_worker_of_ray_looks_for_files_in_its_own_folder_and_in_the_drivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, drivers = tmp_path / "own", tmp_path / "driver"
    trace, another = ("".join(f"{turn * 10},{kind},5\n" for turn in range(100)) for kind in ("get", "scan"))
    for folder in (own, drivers):
        folder.mkdir()
        (folder / "tasks.csv").write_text(trace)
    words = ("sweep", "--policy=rain:2", "--workload=trace:tasks.csv", "--workers=2", "--replications=1")
    monkeypatch.chdir(drivers)
    core = StudyCore(list(words), build=build())
    asked = _ray._Asked(words, str(drivers), build(), core.fingerprint())
    # On the worker's machine.
    monkeypatch.chdir(own)
    (drivers / "tasks.csv").write_text(another)
    assert _ray._study(asked).fingerprint() == asked.fingerprint
    _ray._read.clear()
    (own / "tasks.csv").unlink()
    with pytest.raises(sluice.BadInput, match="a file that the study names .* is another one there: put the same"):
        _ray._study(asked)
    (drivers / "tasks.csv").write_text(trace)
    assert _ray._study(asked).fingerprint() == asked.fingerprint
    assert Path.cwd() == own


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    text = """
import resource, sys
from pathlib import Path
import labs, sluice
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    labs.short(out=Path(sys.argv[1]))
except sluice.StudyFailed as why:
    print(why)
"""
    ran = program(text, tmp_path / "kept")
    out, said = ran.communicate(timeout=120)
    assert ran.returncode == 0, said
    assert out.count("\n") == 1 and "File too large" in out, out
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_nothing_is_shown_where_nobody_looks() -> None:
    ran = program("import labs; labs.short()")
    assert ran.communicate(timeout=120) == ("", "")


def test_numbers_and_lists_are_told_as_flags_have_them() -> None:
    numpy = pytest.importorskip("numpy")
    study = sluice.sweep(
        ["rain:2"], loads=numpy.array([0.25, 0.5]), tasks=numpy.int64(2_000), replications=2, client_weights=[3, 1]
    )
    [again] = study.outcome["commands"]
    assert "--load 0.25,0.5" in again and "--client-weights 3,1" in again
    study = sluice.sweep("rain:2", rates=[500e3, 1_000_000.0], tasks="2k", replications=2, workers=32)
    assert "--rate 500000,1000000" in study.outcome["commands"][0]
    assert LOADS not in study.json()
