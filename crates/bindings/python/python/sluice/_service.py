"""Services: functions that a worker calls, each for the tasks of one type."""

from __future__ import annotations

import inspect
import logging
import signal
import sys
import threading
from typing import Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, Tuple, TypeVar, Union

from ._sluice import run_worker

__all__ = ["Function", "Answer", "ServiceFailure", "run_service", "service"]

#: What a function may return.
Answer = Union[bytes, bytearray, memoryview]
#: A service's function: gets a task's bytes, and returns the reply's.
Function = Callable[[bytes], Answer]

_F = TypeVar("_F", bound=Function)
_log = logging.getLogger("sluice")
_decorated: Dict[int, Function] = {}


class ServiceFailure(Exception):
    """Raise this in a service to fail a task with exactly this text."""


def service(task_type: int) -> Callable[[_F], _F]:
    """Makes a function the service for tasks of this type, the number in the rack's plan::

        @sluice.service(9)
        def reverse(task: bytes) -> bytes:
            return task[::-1]

    :func:`run_service` without functions runs all that were made so.
    """

    _check_type(task_type)

    def decorate(function: _F) -> _F:
        if task_type in _decorated:
            raise ValueError(f"type {task_type} has a service already: {_decorated[task_type]!r}")
        _check(task_type, function)
        _decorated[task_type] = function
        return function

    return decorate


def run_service(
    functions: Optional[Mapping[int, Function]] = None, words: Optional[Sequence[str]] = None
) -> NoReturn:
    """Runs a worker until SIGTERM or Ctrl-C: the whole main of a service. Never returns; the process's exit
    code is as that of all workers.

    It takes the command line of all workers (``--help`` shows it), so a plan can start it. A signal drains
    it: it takes no more tasks, and finishes those that it has. A second one ends it at once.

    Functions run one at a time, in this thread. An exception in a function is a failed reply with the
    exception's text; its traceback goes to the logger ``sluice`` at level DEBUG.

    :param functions: each with the type of its tasks; by default those with the decorator :func:`service`.
    :param words: the command line; by default this process's, with the program's name first.
    """
    chosen = _decorated if functions is None else functions
    if not chosen:
        raise ValueError("there is no function to run: give some, or decorate them with @sluice.service(TYPE)")
    pairs: List[Tuple[int, Function]] = []
    for task_type, function in chosen.items():
        _check(task_type, function)
        pairs.append((task_type, function))
    if threading.current_thread() is threading.main_thread():
        # The worker has its own way with both. Without this, Python would raise KeyboardInterrupt in
        # whichever function runs next.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    sys.exit(run_worker(list(sys.argv if words is None else words), pairs, _text_of))


def _check_type(task_type: int) -> None:
    if not isinstance(task_type, int) or not 0 <= task_type <= 0xFFFF:
        raise ValueError(f"the type of a service's tasks is a number from 0 to 65535, not {task_type!r}")


def _check(task_type: int, function: Function) -> None:
    _check_type(task_type)
    if not callable(function):
        raise TypeError(f"the service of type {task_type} is a function, not {function!r}")
    if inspect.iscoroutinefunction(function):
        raise TypeError(
            f"the service of type {task_type} is a plain function: a coroutine like {function!r} would need an "
            "event loop; call asyncio.run() in it"
        )


def _text_of(task_type: int, error: BaseException) -> str:
    """What a client is told of an exception."""
    trace = (type(error), error, error.__traceback__)
    _log.debug("a task of type %d failed", task_type, exc_info=trace)
    if isinstance(error, ServiceFailure):
        return str(error)
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name
