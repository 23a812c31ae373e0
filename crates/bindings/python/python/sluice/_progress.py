"""How a run shows how far it is: a line in a notebook, or on a terminal."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, Union

if TYPE_CHECKING:
    from ._lab import Progress

_Told = Callable[["Progress"], object]


@contextmanager
def shown_here(asked: Union[_Told, bool, None]) -> Iterator[_Told]:
    """What is told of progress: the caller's function, or whatever can be shown here."""
    if callable(asked):
        yield asked
    elif asked is False:
        yield _nothing
    elif _is_notebook():
        yield _NotebookLine()
    elif sys.stderr is not None and sys.stderr.isatty():
        line = _TerminalLine()
        try:
            yield line
        finally:
            line.end()
    else:
        yield _nothing


def _nothing(_: Progress) -> None:
    pass


def _is_notebook() -> bool:
    """Whether a notebook's kernel runs this. IPython is looked for, and not imported."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class _NotebookLine:
    """A line of the cell's output, which is written again and again."""

    def __init__(self) -> None:
        display: Any = importlib.import_module("IPython.display").display
        self._handle = display({"text/plain": "begins"}, raw=True, display_id=True)

    def __call__(self, progress: Progress) -> None:
        self._handle.update({"text/plain": str(progress)}, raw=True)


class _TerminalLine:
    """The terminal's last line."""

    def __init__(self) -> None:
        self._shown = 0

    def __call__(self, progress: Progress) -> None:
        text = str(progress)
        self._write(f"\r{text.ljust(self._shown)}")
        self._shown = len(text)

    def end(self) -> None:
        if self._shown:
            self._write(f"\r{' ' * self._shown}\r")

    @staticmethod
    def _write(text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            # A terminal that was closed ends no study.
            pass
