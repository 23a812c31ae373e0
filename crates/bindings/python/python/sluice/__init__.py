"""Sluice for Python: a client of a rack, services that its workers run, and studies of policies.

A client::

    import sluice

    with sluice.connect("127.0.0.1:7400") as client:
        print(client.submit(9, b"stressed").bytes)

A service::

    import sluice

    @sluice.service(9)
    def reverse(task: bytes) -> bytes:
        return task[::-1]

    if __name__ == "__main__":
        sluice.run_service()

A study::

    import sluice

    print(sluice.sweep("rain:2 central", loads="0.3..0.9/0.2").frame())
"""

from typing import Union

from ._client import Client, connect
from ._errors import (
    BadInput,
    Busy,
    Closed,
    Error,
    Failed,
    NotConnected,
    Refused,
    StudyFailed,
    TooLong,
    Unknown,
)
from ._lab import Progress, Study, compare, figures, reproduce, sweep, throughput
from ._service import Answer, Function, ServiceFailure, run_service, service
from ._sluice import Reply, __version__

#: How a task of many ended: a reply, or an exception as a value.
Outcome = Union[Reply, Error]

__all__ = [
    "Answer",
    "BadInput",
    "Busy",
    "Client",
    "Closed",
    "Error",
    "Failed",
    "Function",
    "NotConnected",
    "Outcome",
    "Progress",
    "Refused",
    "Reply",
    "ServiceFailure",
    "Study",
    "StudyFailed",
    "TooLong",
    "Unknown",
    "__version__",
    "compare",
    "connect",
    "figures",
    "reproduce",
    "run_service",
    "service",
    "sweep",
    "throughput",
]
