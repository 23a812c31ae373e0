"""A client of a rack: what needs no speed is here, the rest in the extension module."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, Type, Union

from ._sluice import ClientCore, note_fork

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Client", "connect"]

#: A path, as all functions that open files take it.
Path = Union[str, "os.PathLike[str]"]


class Client(ClientCore):
    """A registered client of a rack. :func:`connect` makes one.

    Any number of threads and event loops may submit through one client. As a context manager, with or
    without ``async``, it is closed at the end: tasks that are under way get their outcome first. If the
    block ends by an exception, it ends at once, and such tasks are unknown.

    A client belongs to the process that made it: after a fork, connect in the child.
    """

    def __new__(cls, controller: str, **how: Any) -> Self:
        """Registers with a controller; :func:`connect` says what the arguments are."""
        made = super().__new__(cls, controller, **how)
        _open.add(made)
        return made

    async def close_async(self) -> None:
        """Closes the client without holding up the event loop.

        Who cancels this, as Ctrl-C does, does not wait any more; the client then goes on ending behind it.
        """
        await _beside_the_loop(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await _beside_the_loop(self.close if error is None else self.abort)

    def __del__(self) -> None:
        try:
            is_open = not self.closed
        except AttributeError:
            # It was never connected.
            return
        if is_open:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)

    def __repr__(self) -> str:
        return f"<sluice.Client {'closed' if self.closed else 'open'}>"


async def _beside_the_loop(work: Callable[[], None]) -> None:
    """Awaits what a thread of its own does. One of the loop's executor would hold up the end of asyncio.run(),
    also after this was cancelled."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def end(error: Optional[BaseException]) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: Optional[BaseException] = None
        try:
            work()
        except Exception as why:
            error = why
        try:
            loop.call_soon_threadsafe(end, error)
        except RuntimeError:
            # The loop was closed: nobody waits any more.
            pass

    threading.Thread(target=run, name="sluice-close", daemon=True).start()
    await done


os.register_at_fork(after_in_child=note_fork)

_open: weakref.WeakSet[Client] = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    """Ends the registration of clients that are open when the interpreter ends, so that their names are
    free for the next one."""
    for client in list(_open):
        if not client.closed:
            client.abort()


def connect(
    controller: str = "127.0.0.1:7400",
    *,
    name: Optional[str] = None,
    ca: Optional[Path] = None,
    identity: Optional[Tuple[Path, Path]] = None,
    listen: str = "127.0.0.1:0",
    patience: float = 5.0,
    retry: bool = True,
    dilation: int = 1,
) -> Client:
    """Registers a client with the controller of a rack.

    :param controller: where it is, HOST:PORT or a URL. Its standbys, or the controllers of several spines,
        behind commas.
    :param name: the client's name, unlike all others; by default one of its own.
    :param ca: PEM file of the authority that signed the controller's certificate; turns TLS on.
    :param identity: PEM files of the certificate to show, and of its key.
    :param listen: an address of this machine that switch and workers can reach.
    :param patience: how many seconds to wait for the registration.
    :param retry: whether a task may be tried again; not for work that must not run twice.
    :param dilation: a factor for all times of the network, in a dilated rack.
    :raises NotConnected: nobody answered in time, or the controller refuses the client.
    :raises BadInput: an argument makes no sense, or a file is not what it should be.
    """
    return Client(
        controller,
        name=name,
        ca=ca,
        identity=identity,
        listen=listen,
        patience=patience,
        retry=retry,
        dilation=dilation,
    )
