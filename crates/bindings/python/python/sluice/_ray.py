"""The engine ``ray``: each replication is a task of Ray's, on whichever machine has a core for it.

A replication depends on the study and its own number alone, so that one which is run again, because its
worker died, has the same result. Results are taken in any order, and the study is the same."""

from __future__ import annotations

import importlib
import logging
import os
import socket
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from ._errors import BadInput, Error, StudyFailed
from ._lab import build
from ._sluice import StudyCore

#: How many tasks Ray has at once: enough for any cluster's cores, and little for its scheduler.
_IN_FLIGHT = 1_000
#: How long a look at what has ended waits, in seconds. Signals are handled between two looks.
_LOOK_S = 0.1
#: How often Ray runs a task again whose worker died.
_RETRIES = 5
#: How long a cluster's address may take to answer, in seconds; Ray itself would try for a minute.
_PATIENCE_S = 5.0
#: How many characters of an error of Ray's are told.
_LINE_MOST = 300


class _Asked(NamedTuple):
    """The study that a worker takes part in."""

    words: Tuple[str, ...]
    #: Where relative paths begin, if the worker's machine has that folder.
    folder: str
    build: str
    fingerprint: str


def run_on_ray(core: StudyCore, words: List[str], tell: Callable[[int, int], None]) -> None:
    """Runs all that is missing of a study as tasks of Ray."""
    ray = _connected()
    asked = _Asked(tuple(words), os.getcwd(), build(), core.fingerprint())
    replicate = ray.remote(num_cpus=1, max_retries=_RETRIES)(_replicate)
    done = runs = 0
    while jobs := core.round():
        runs += len(jobs)
        tell(done, runs)
        jobs.reverse()
        running: Dict[Any, str] = {}
        try:
            while running or jobs:
                while jobs and len(running) < _IN_FLIGHT:
                    job = jobs.pop()
                    running[replicate.remote(asked, job)] = job
                ended = _ended(ray, list(running))
                for reference in ended:
                    core.take(running[reference], _result(ray, reference, asked))
                    del running[reference]
                    done += 1
                if ended:
                    tell(done, runs)
        finally:
            # After an interrupt or a failure, what still runs is for nobody.
            for reference in running:
                _cancel(ray, reference)


def _ended(ray: Any, running: List[Any]) -> List[Any]:
    """Waits a moment for what ends first, and returns all that has ended: Ray looks at each task anew each time
    that it is asked."""
    ended, left = ray.wait(running, num_returns=1, timeout=_LOOK_S)
    if ended and left:
        ended += ray.wait(left, num_returns=len(left), timeout=0)[0]
    return list(ended)


class _Replicated(NamedTuple):
    """What a worker says of a replication."""

    result: str
    #: What was wrong, and whether it was the input.
    error: str
    is_input: bool
    build: str
    node: str


def _replicate(asked: _Asked, job: str) -> _Replicated:
    """Runs in a worker of Ray."""
    told = _Replicated("", "", False, build(), socket.gethostname())
    if told.build != asked.build:
        return told
    try:
        return told._replace(result=_study(asked).replicate(job))
    except Error as why:
        return told._replace(error=str(why), is_input=isinstance(why, BadInput))


#: The study that this worker read last.
_read: Dict[_Asked, StudyCore] = {}


def _study(asked: _Asked) -> StudyCore:
    """The study in this worker, which reads it once."""
    if asked not in _read:
        core = _study_somewhere(asked)
        _read.clear()
        _read[asked] = core
    return _read[asked]


def _study_somewhere(asked: _Asked) -> StudyCore:
    """The study with the files of the worker's own folder, which Ray may have filled (`working_dir`), or with those
    of the folder by the driver's name."""
    own = os.getcwd()
    try:
        return _study_in(own, asked)
    except Error:
        if not os.path.isdir(asked.folder):
            raise
    try:
        return _study_in(asked.folder, asked)
    finally:
        os.chdir(own)


def _study_in(folder: str, asked: _Asked) -> StudyCore:
    """The study with the files of a folder."""
    os.chdir(folder)
    core = StudyCore(list(asked.words), build=asked.build, threads=1)
    if core.fingerprint() != asked.fingerprint:
        raise BadInput(
            "a file that the study names (a trace, testbed or plan) is another one there: put the same files on "
            "each node, or give ray.init() a runtime_env with a working_dir"
        )
    return core


def _result(ray: Any, reference: Any, asked: _Asked) -> str:
    """A replication's result, or one line about why there is none."""
    try:
        told = _Replicated(*ray.get(reference))
    except ray.exceptions.RayTaskError as why:
        # An error of ours is in the result: this is about the worker's Python.
        raise StudyFailed(
            f"a Ray worker cannot run sluice ({_line(why.cause or why)}): install sluice {asked.build} on each node"
        ) from None
    except ray.exceptions.RayError as why:
        raise StudyFailed(
            f"Ray gave a run up ({type(why).__name__}: {_line(why)}): with out=FOLDER the same call goes on from what "
            "was done"
        ) from None
    if told.build != asked.build:
        raise StudyFailed(
            f"the Ray worker on {told.node} has another build of sluice, {told.build} and not {asked.build}: install "
            "the same one on each node"
        )
    if told.error:
        raise (BadInput if told.is_input else StudyFailed)(f"the Ray worker on {told.node}: {told.error}")
    return told.result


def _cancel(ray: Any, reference: Any) -> None:
    try:
        ray.cancel(reference, force=True)
    except (ValueError, ray.exceptions.RayError):
        # It has ended meanwhile, or Ray has.
        pass


def _connected() -> Any:
    """Ray, connected to a cluster: the one that the program is connected to, that of RAY_ADDRESS, one that runs
    on this machine, or one that is started here."""
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise StudyFailed("the engine ray needs Ray, which is not installed: pip install ray") from None
    if ray.is_initialized():
        return ray
    address = os.environ.get("RAY_ADDRESS", "")
    _try(address)
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as why:  # Ray raises any class, also this one.
        where = f"at {address} (RAY_ADDRESS)" if address else "on this machine"
        raise StudyFailed(
            f"no Ray can be reached {where}: {_line(why)}; start one with `ray start --head`, or set RAY_ADDRESS"
        ) from None
    return ray


def _try(address: str) -> None:
    """Tries a cluster's address: Ray itself would try one that is wrong for a minute, and say little."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE_S).close()
    except (OSError, ValueError) as why:
        raise StudyFailed(
            f"no Ray can be reached at {address} (RAY_ADDRESS): {why}; start one there with `ray start --head`, or "
            "correct RAY_ADDRESS"
        ) from None


def _line(why: BaseException) -> str:
    """An error as one line. Ray's are of several, of which the first may say nothing."""
    line = " ".join(str(why).split())
    if not line:
        return type(why).__name__
    return line if len(line) <= _LINE_MOST else f"{line[:_LINE_MOST]}..."
