"""What `sluice` is built on. Its users import `sluice`."""

import builtins
import os
from asyncio import Future
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union, final

from typing_extensions import Self, disjoint_base

from . import Outcome

_Bytes = Union[bytes, bytearray, memoryview]
_Path = Union[str, os.PathLike[str]]

__all__ = [
    "ClientCore",
    "LoopTasks",
    "Reply",
    "StudyCore",
    "__version__",
    "figure_names",
    "note_fork",
    "run_worker",
]

__version__: str

@final
class Reply:
    """A worker's answer to a task.

    Times are in nanoseconds. ``bytes(reply)`` and ``reply.bytes`` are the service's answer.
    """

    def __new__(
        cls,
        bytes: builtins.bytes,
        worker: int = 0,
        attempts: int = 1,
        received_ns: int = 0,
        switch_wait_ns: int = 0,
        worker_wait_ns: int = 0,
        service_ns: int = 0,
    ) -> Self: ...
    @property
    def bytes(self) -> builtins.bytes:
        """The service's answer."""

    @property
    def worker(self) -> int:
        """The number of the worker that ran the task."""

    @property
    def attempts(self) -> int:
        """How many times the task was sent."""

    @property
    def received_ns(self) -> int:
        """When the answer came, on the clock of ``time.monotonic_ns()``."""

    @property
    def switch_wait_ns(self) -> int:
        """How long the task waited in the switch."""

    @property
    def worker_wait_ns(self) -> int:
        """How long the task waited at its worker."""

    @property
    def service_ns(self) -> int:
        """How long its service ran."""

    def __bytes__(self) -> builtins.bytes: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __reduce__(self) -> tuple[type[Reply], tuple[Any, ...]]: ...

@disjoint_base
class ClientCore:
    """A registered client of a rack: what ``sluice.Client`` is built on."""

    def __new__(
        cls,
        controller: str,
        *,
        name: str | None,
        ca: _Path | None,
        identity: tuple[_Path, _Path] | None,
        listen: str,
        patience: float,
        retry: bool,
        dilation: int,
    ) -> Self: ...
    def submit(
        self,
        task_type: int | str,
        data: _Bytes,
        *,
        deadline: float | None = None,
        budget: float | None = None,
        priority: int | None = None,
        work: float | None = None,
        labels: Iterable[str] | None = None,
        wait_for_room: bool = True,
    ) -> Reply:
        """Submits a task and waits for its reply.

        Other threads of Python go on meanwhile, and Ctrl-C ends the wait (the task may still run).

        :param task_type: its number, or its name in the rack's plan.
        :param data: the task's bytes, up to 64 KiB.
        :param deadline: seconds after which it is given up, from when there is room for it; by default
            ``deadline_default``.
        :param budget: seconds for which it is worth beginning, at most 0.067.
        :param priority: its class; class 0 goes first.
        :param work: seconds that it is expected to take, instead of a priority.
        :param labels: what its worker must have.
        :param wait_for_room: whether to wait where there is no room for another task of this type.
        :raises Failed: its service failed, and says why.
        :raises Refused: it certainly did not run.
        :raises Unknown: it may have run.
        :raises Busy: there is no room, and ``wait_for_room`` is off.
        :raises TooLong: it has more bytes than any task may have.
        :raises Closed: the client was closed.
        """

    def submit_many(
        self,
        task_type: int | str,
        tasks: Iterable[_Bytes],
        *,
        deadline: float | None = None,
        budget: float | None = None,
        priority: int | None = None,
        work: float | None = None,
        labels: Iterable[str] | None = None,
    ) -> list[Outcome]:
        """Submits many tasks of one type, as there is room, and waits for all outcomes.

        They come in the order of the tasks: a ``Reply``, or the exception that ``submit`` would raise, as a
        value. Each task's deadline and budget begin when there is room for it.
        """

    def submit_async(
        self,
        task_type: int | str,
        data: _Bytes,
        *,
        deadline: float | None = None,
        budget: float | None = None,
        priority: int | None = None,
        work: float | None = None,
        labels: Iterable[str] | None = None,
        wait_for_room: bool = True,
    ) -> Future[Reply]:
        """Submits a task, and returns a future of the loop that runs for its reply.

        The arguments are those of ``submit``, and ``await`` raises what ``submit`` raises. The task is on its
        way when this returns, if there is room; otherwise it waits behind others of its type. If the future
        is cancelled, a task that is on its way may still run; one that waits for room does not.
        """

    def submit_many_async(
        self,
        task_type: int | str,
        tasks: Iterable[_Bytes],
        *,
        deadline: float | None = None,
        budget: float | None = None,
        priority: int | None = None,
        work: float | None = None,
        labels: Iterable[str] | None = None,
    ) -> Future[list[Outcome]]:
        """Like ``submit_many``, as a future of the loop that runs: the cheapest way for many tasks."""

    @property
    def types(self) -> dict[str, int]:
        """The names of task types in the rack's plan, with their numbers."""

    @property
    def deadline_default(self) -> float:
        """The deadline of a task that states none, in seconds."""

    @property
    def closed(self) -> bool:
        """Whether the client takes no more tasks."""

    def close(self) -> None:
        """Takes no more tasks, waits until each has its outcome, and ends the registration.

        Ctrl-C ends the wait; the client then goes on ending behind it.
        """

    def abort(self) -> None:
        """Ends at once: tasks that are under way end as unknown, because they may have run."""

@final
class LoopTasks:
    """A client's tasks on one loop. All its functions run in the loop's thread."""

    def _take(self) -> None:
        """Resolves the futures of all tasks that have ended. The loop calls this."""

def note_fork() -> None:
    """Called by the interpreter in the child of a fork."""

def run_worker(
    words: Sequence[str],
    functions: Sequence[tuple[int, Callable[[bytes], _Bytes]]],
    failed: Callable[[int, BaseException], str],
) -> int:
    """Runs a worker whose service calls `functions`, as the words of a command line say, until a signal ends
    it. Returns the exit code.
    """

@final
class StudyCore:
    """A study: what was asked for, and what is known of it."""

    def __new__(
        cls,
        words: Sequence[str],
        *,
        build: str,
        out: _Path | None = None,
        fresh: bool = False,
        threads: int | None = None,
    ) -> Self: ...
    def run(self, told: Callable[[int, int], object]) -> None:
        """Runs all that is missing. Calls `told` with the replications done and known so far to be needed."""

    def kept(self) -> int:
        """How many replications an earlier run had left in the folder."""

    def round(self) -> list[str]:
        """The replications that are missing now, each as a text; none if everything is known."""

    def replicate(self, job: str) -> str:
        """Runs one replication, wherever it is needed, and returns its result as a text."""

    def take(self, job: str, result: str) -> None:
        """Takes a replication's result from wherever it ran."""

    def close(self) -> None:
        """Lets go of the folder, so that another study may go on from there."""

    def fingerprint(self) -> str:
        """A fingerprint of all that decides the results, also of files."""

    def json(self) -> str: ...
    def csv(self) -> str: ...
    def page(self) -> str: ...
    def summary(self, columns: int) -> str: ...
    def write(self, folder: _Path) -> None: ...
    @property
    def commit(self) -> str: ...

def figure_names() -> list[str]:
    """The names of the papers' figures, for `reproduce`."""
