"""Studies of policies: what the commands ``sluice sweep``, ``compare``, ``throughput`` and ``reproduce`` run,
in this process."""

from __future__ import annotations

import csv
import functools
import hashlib
import inspect
import io
import json
import os
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _sluice
from ._errors import BadInput, StudyFailed
from ._progress import shown_here
from ._sluice import StudyCore, figure_names

if TYPE_CHECKING:
    import pandas
    from typing_extensions import ParamSpec

    _Arguments = ParamSpec("_Arguments")

_Path = Union[str, "os.PathLike[str]"]
_Many = Union[str, float, Sequence[Union[str, float]]]

#: How many columns the tables of :meth:`Study.summary` have by default.
_COLUMNS = 110


class Progress(NamedTuple):
    """How far a run is."""

    #: The replications that have ended in this run.
    done: int
    #: The replications that are known so far to be needed: a search asks for more as it goes on.
    runs: int
    #: The seconds since the beginning.
    seconds: float
    #: The replications that an earlier run had left in the folder, and that do not run again.
    kept: int = 0

    def __str__(self) -> str:
        left = self.seconds * (self.runs - self.done) / self.done if self.done else 0.0
        kept = f" beside {self.kept} that were kept" if self.kept else ""
        return f"{self.done} of {self.runs} runs{kept}" + (f", about {left:.0f} s left" if left >= 1.0 else "")


Told = Callable[[Progress], object]


class Study:
    """What a study came to. Times are in nanoseconds, rates in tasks a second."""

    def __init__(self, core: StudyCore) -> None:
        self._core = core

    def json(self) -> str:
        """The result as JSON: the bytes that the command prints with ``--json``, but for the line's end."""
        return self._core.json()

    def csv(self) -> str:
        """The result as CSV, a row for each point, class and metric: the bytes of ``study.csv``."""
        return self._core.csv()

    def page(self) -> str:
        """The result as a page of HTML: the bytes of ``report.html``."""
        return self._core.page()

    def summary(self, columns: int = _COLUMNS) -> str:
        """The tables that the command prints."""
        return self._core.summary(columns)

    def write(self, folder: _Path) -> None:
        """Writes ``study.json``, ``study.csv``, ``points.csv`` and ``report.html``, as the command does."""
        self._core.write(folder)

    @property
    def outcome(self) -> Dict[str, Any]:
        """The result as plain values, as schemas/study.v1.json describes them."""
        outcome: Dict[str, Any] = json.loads(self.json())
        return outcome

    @property
    def complete(self) -> bool:
        """Whether all points that were asked for are there."""
        return bool(self.outcome["complete"])

    def frame(self, *metrics: str) -> pandas.DataFrame:
        """A row for each point and class of tasks (``all`` is all tasks), a column for each metric.

        ``latency_ns_p99`` is the value; ``latency_ns_p99_low`` and ``latency_ns_p99_high`` are the ends of its
        95 % interval, where it has one (``high`` is empty where the data give no upper end).

        :param metrics: which, such as ``latency_ns_p99``; by default all that docs/manual/reports.md names.
        """
        told = csv.DictReader(io.StringIO(self.csv()))
        rows = [row for row in told if row["source"] and row["offered_per_s"]]
        known = list(dict.fromkeys(row["metric"] for row in rows))
        for metric in metrics:
            if metric not in known:
                raise BadInput(f"there is no metric {metric!r} in this study: it has {', '.join(known)}")
        points: Dict[Tuple[Any, ...], Dict[str, Any]] = {}
        for row in rows:
            key = tuple(_point_cell(column, row[column]) for column in _POINT)
            point = points.setdefault(key, dict(zip(_POINT, key)))
            metric = row["metric"]
            if metrics and metric not in metrics:
                continue
            point[metric] = _number(row["value"])
            if row["method"] != "none":
                point[f"{metric}_low"] = _number(row["low"])
                point[f"{metric}_high"] = _number(row["high"])
        return _frame(list(points.values()))

    def statements(self) -> pandas.DataFrame:
        """A row for each of a paper's statements: its number, ours with its interval, and the verdict."""
        rows = []
        for found in self.outcome["expectations"]:
            cause = found["cause"]
            row = {key: found[key] for key in ("id", "claim", "place", "ours", "unit", "paper")}
            row.update(_interval("measured", found["measured"]))
            row.update({"verdict": found["verdict"], "why": found["why"], "cause": cause and cause["says"]})
            rows.append(row)
        return _frame(rows)

    def comparisons(self) -> pandas.DataFrame:
        """A row for each pair of policies that was compared on the same tasks."""
        return self._rows("comparisons")

    def searches(self) -> pandas.DataFrame:
        """A row for each search of the highest rate within a limit."""
        return self._rows("searches")

    def _rows(self, what: str) -> pandas.DataFrame:
        rows = []
        for found in self.outcome[what]:
            row: Dict[str, Any] = {}
            for key, value in found.items():
                if isinstance(value, dict) and "low" in value:
                    row.update(_interval(key, value))
                elif key == "metric":
                    row[key] = f"{value['measure']}_{value['part']}" if value else "throughput_per_s"
                else:
                    row[key] = value
            rows.append(row)
        return _frame(rows)

    def __repr__(self) -> str:
        outcome = self.outcome
        points = sum(len(series["points"]) for panel in outcome["panels"] for series in panel["series"])
        state = "" if outcome["complete"] else ", not complete"
        return f"<sluice.Study {outcome['name']}: {outcome['title']}; {points} points{state}>"


#: What names a row of :meth:`Study.frame`.
_POINT = (
    "panel",
    "workload",
    "policy",
    "series",
    "slices",
    "source",
    "offered_per_s",
    "load",
    "sustained",
    "class",
)


def _point_cell(column: str, text: str) -> Union[str, float, bool, None]:
    """What stands in a column of :data:`_POINT`."""
    if not text:
        return None
    if column in ("offered_per_s", "load"):
        return float(text)
    return text == "true" if column == "sustained" else text


def _number(text: str) -> float:
    """A number to its last digit; nothing is not a number."""
    return float(text) if text else float("nan")


def sweep(
    policies: Union[str, Sequence[str]],
    workload: str = "exp:10us",
    loads: Optional[_Many] = None,
    *,
    rates: Optional[_Many] = None,
    testbed: Optional[_Path] = None,
    workers: Optional[int] = None,
    clients: Optional[int] = None,
    client_weights: Optional[Sequence[int]] = None,
    large: Optional[float] = None,
    slices: Optional[str] = None,
    within: Optional[str] = None,
    budget: Optional[str] = None,
    tasks: Optional[Union[int, str]] = None,
    replications: Optional[int] = None,
    warm_up: Optional[str] = None,
    seed: Optional[int] = None,
    transient: bool = False,
    threads: Optional[int] = None,
    out: Optional[_Path] = None,
    fresh: bool = False,
    progress: Union[Told, bool, None] = None,
    engine: Optional[str] = None,
) -> Study:
    """Simulates several policies under several loads, each on the same tasks.

    The arguments are the flags of ``sluice sweep``, and mean the same.

    :param policies: their names, such as ``["rain:2", "central"]`` or ``"rain:2 central"``.
    :param workload: how long tasks take, such as ``exp:10us``, or a trace, such as ``trace:tasks.csv``.
    :param loads: shares of the capacity: a number, several, or a range with its step (``0.3..0.9/0.1``).
    :param rates: tasks a second instead: ``2000k``, several, or a range.
    :param tasks: how many to measure at each point, all replications together.
    :param threads: how many threads to use; results do not depend on it.
    :param out: a folder, where each replication is kept when it ends: after an interrupt, or if the kernel
        dies, the same call goes on from there. Without it nothing is written.
    :param fresh: whether to run all of it anew, instead of going on from what is in ``out``.
    :param progress: a function that is called with a :class:`Progress` now and then; ``False`` for nothing;
        by default a line in the notebook, or on a terminal.
    :param engine: ``"threads"`` for this process, ``"ray"`` for the cluster of Ray; by default that of the
        environment's ``SLUICE_ENGINE``, else threads.
    :raises BadInput: something makes no sense; the line is the command's.
    :raises StudyFailed: the study ended early.
    """
    return _curves("sweep", dict(locals()))


def _with_arguments_of(
    other: Callable[_Arguments, Study],
) -> Callable[[Callable[..., Study]], Callable[_Arguments, Study]]:
    """Gives a function the arguments of another one, also where notebooks and help() look for them."""
    signature = inspect.signature(other)

    def decorate(function: Callable[..., Study]) -> Callable[_Arguments, Study]:
        @functools.wraps(function)
        def asked(*positional: _Arguments.args, **named: _Arguments.kwargs) -> Study:
            given = signature.bind(*positional, **named)
            given.apply_defaults()
            return function(**given.arguments)

        asked.__signature__ = signature  # type: ignore[attr-defined]
        return asked

    return decorate


@_with_arguments_of(sweep)
def compare(**given: Any) -> Study:
    """Simulates two policies on the same tasks, and tests whether they differ (:meth:`Study.comparisons`).

    The arguments are those of :func:`sweep`, with two policies.
    """
    return _curves("compare", given)


def throughput(
    policies: Union[str, Sequence[str]],
    slo: str,
    workload: str = "exp:10us",
    *,
    testbed: Optional[_Path] = None,
    workers: Optional[int] = None,
    clients: Optional[int] = None,
    client_weights: Optional[Sequence[int]] = None,
    large: Optional[float] = None,
    slices: Optional[str] = None,
    within: Optional[str] = None,
    budget: Optional[str] = None,
    tasks: Optional[Union[int, str]] = None,
    replications: Optional[int] = None,
    warm_up: Optional[str] = None,
    seed: Optional[int] = None,
    transient: bool = False,
    threads: Optional[int] = None,
    out: Optional[_Path] = None,
    fresh: bool = False,
    progress: Union[Told, bool, None] = None,
    engine: Optional[str] = None,
) -> Study:
    """Finds the highest rate at which policies keep a limit (:meth:`Study.searches`).

    :param slo: the limit, such as ``p99<100us``, ``slowdown_p99<10`` or, of one type, ``get.p999<1ms``.

    The other arguments are those of :func:`sweep`.
    """
    return _curves("throughput", dict(locals()))


def reproduce(
    plan: _Path,
    *,
    tasks: Optional[Union[int, str]] = None,
    replications: Optional[int] = None,
    seed: Optional[int] = None,
    paper_length: bool = False,
    cause: Optional[str] = None,
    threads: Optional[int] = None,
    out: Optional[_Path] = None,
    fresh: bool = False,
    progress: Union[Told, bool, None] = None,
    engine: Optional[str] = None,
) -> Study:
    """Runs a paper's figure, or a plan of your own, and holds it against the paper's numbers
    (:meth:`Study.statements`).

    :param plan: a name of :func:`figures`, or the path of a TOML file.
    :param paper_length: whether to run each point as long as the paper did.
    :param cause: runs only what shows this cause of a difference.

    The other arguments are those of :func:`sweep`.
    """
    given = dict(locals())
    words = ["reproduce", *_flags(given, ("tasks", "replications", "seed", "paper_length", "cause"))]
    return _run([*words, "--", os.fspath(plan)], given)


def figures() -> List[str]:
    """The names of the papers' figures."""
    return figure_names()


#: The flags of the command that decide the result, by the names of arguments.
_SETTING = (
    "rates",
    "loads",
    "slo",
    "workload",
    "testbed",
    "workers",
    "clients",
    "client_weights",
    "large",
    "slices",
    "within",
    "budget",
    "tasks",
    "replications",
    "warm_up",
    "seed",
    "transient",
)
#: Flags whose names differ from those of arguments.
_CALLED = {"rates": "rate", "loads": "load"}


def _curves(command: str, given: Dict[str, Any]) -> Study:
    policies = given["policies"]
    listed = policies.split() if isinstance(policies, str) else list(policies)
    words = [command, *(f"--policy={policy}" for policy in listed)]
    return _run([*words, *_flags(given, _SETTING)], given)


def _flags(given: Dict[str, Any], names: Sequence[str]) -> List[str]:
    """Arguments as flags, each with its value in one word: no value can be taken for a flag."""
    words = []
    for name in names:
        value = given.get(name)
        flag = "--" + _CALLED.get(name, name).replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words.append(f"{flag}={_text(value)}")
    return words


def _text(value: Any) -> str:
    """A value as a flag has it: a list with commas, a number without `.0`."""
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    try:
        return ",".join(_text(one) for one in value)
    except TypeError:
        pass
    # Numbers of numpy are told as Python's.
    value = value.item() if hasattr(value, "item") else value
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return str(int(value)) if is_whole else str(value)


def _run(words: List[str], given: Dict[str, Any]) -> Study:
    out = given["out"]
    asked, of_environment = given["engine"], os.environ.get("SLUICE_ENGINE") or "threads"
    engine = of_environment if asked is None else asked
    if engine not in ("threads", "ray"):
        where = "SLUICE_ENGINE=" if asked is None else "engine "
        raise BadInput(f"{where}{engine!r} is not known: give 'threads' or 'ray'")
    if given["threads"] is not None and given["threads"] < 1:
        raise BadInput(f"{given['threads']} threads are none: give at least 1")
    core = StudyCore(words, build=build(), out=out, fresh=given["fresh"], threads=given["threads"])
    study = Study(core)
    with shown_here(given["progress"]) as told:
        began, kept = time.monotonic(), core.kept()

        def tell(done: int, runs: int) -> None:
            told(Progress(done, runs, time.monotonic() - began, kept))

        try:
            if engine == "ray":
                from ._ray import run_on_ray

                run_on_ray(core, words, tell)
            else:
                core.run(tell)
        finally:
            # A traceback may hold the study for long, and what it has found can be looked at even then.
            core.close()
            if out is not None:
                study.write(out)
    return study


#: This build, once it was asked for.
_build: List[str] = []


def build() -> str:
    """This build of the library: its version, and a fingerprint of its code, which is read once."""
    if not _build:
        with open(_sluice.__file__, "rb") as file:
            digest = hashlib.blake2b(digest_size=8)
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        _build.append(f"{_sluice.__version__} ({digest.hexdigest()})")
    return _build[0]


def _interval(name: str, estimate: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    if estimate is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    high = None if estimate.get("open_above") else estimate["high"]
    return {name: estimate["value"], f"{name}_low": estimate["low"], f"{name}_high": high}


def _frame(rows: List[Dict[str, Any]]) -> pandas.DataFrame:
    frame: pandas.DataFrame = _pandas().DataFrame(rows)
    return frame


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise StudyFailed("a DataFrame needs pandas, which is not installed: pip install pandas") from None
    return pandas
