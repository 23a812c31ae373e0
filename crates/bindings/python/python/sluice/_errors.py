"""The exceptions of this package. Each says what was wrong, why, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._sluice import Reply

__all__ = [
    "BadInput",
    "Busy",
    "Closed",
    "Error",
    "Failed",
    "NotConnected",
    "Refused",
    "StudyFailed",
    "TooLong",
    "Unknown",
]


class Error(Exception):
    """What all exceptions of this package are."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Failed(Error):
    """A worker ran the task, and its service failed."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message, reply)

    @property
    def reply(self) -> Reply:
        """The reply, whose bytes are the service's text."""
        reply: Reply = self.args[1]
        return reply

    @property
    def text(self) -> str:
        """What the service said."""
        return self.reply.bytes.decode(errors="replace")


class Refused(Error):
    """The task certainly did not run."""

    def __init__(self, message: str, why: str, retry_after: Optional[float] = None) -> None:
        super().__init__(message, why, retry_after)

    @property
    def why(self) -> str:
        """Why, as a word: queue-full, no-room, no-workers, stale-tokens, unserved, no-slice, busy,
        never-sent, late, long-budget, too-long, unknown-label or no-class."""
        return str(self.args[1])

    @property
    def retry_after(self) -> Optional[float]:
        """If it was refused as busy: the seconds after which another task has a chance."""
        seconds: Optional[float] = self.args[2]
        return seconds


class Unknown(Error):
    """The task may have run."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message, why)

    @property
    def why(self) -> str:
        """Why nobody knows, as a word: deadline, reply-gone or too-old."""
        return str(self.args[1])


class Busy(Error):
    """There is no room for another task of this type now. Nothing was submitted."""


class TooLong(Error):
    """The task is longer than any task may be. Nothing was submitted."""


class Closed(Error):
    """The client was closed, or belongs to another process. Nothing was submitted."""


class BadInput(Error, ValueError):
    """An argument makes no sense."""


class NotConnected(Error, ConnectionError):
    """The client could not register, or lost its socket."""


class StudyFailed(Error):
    """A study ended early: a full disk, a Ray that cannot be reached, a worker with another build."""
