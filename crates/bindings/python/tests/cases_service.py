"""The service of the conformance cases, and of a task that runs until a test lets it go (`racks.Gate`)."""

import os
import time
from pathlib import Path

import sluice


@sluice.service(9)
def reverse(task: bytes) -> bytes:
    return task[::-1]


@sluice.service(10)
def fail(task: bytes) -> bytes:
    raise sluice.ServiceFailure("told to fail: " + task.decode(errors="surrogateescape"))


@sluice.service(11)
def sleep(task: bytes) -> bytes:
    time.sleep(int(task) / 1000)
    return b"slept"


@sluice.service(12)
def long(task: bytes) -> bytearray:
    return bytearray(b"x" * int(task))


@sluice.service(13)
def panic(task: bytes) -> bytes:
    raise RuntimeError


@sluice.service(14)
def pid(task: bytes) -> memoryview:
    return memoryview(str(os.getpid()).encode())


@sluice.service(15)
def gate(task: bytes) -> bytes:
    folder = Path(os.fsdecode(task))
    (folder / "began").touch()
    until = time.monotonic() + 120.0
    while not (folder / "open").exists() and time.monotonic() < until:
        time.sleep(0.005)
    return b"passed"


if __name__ == "__main__":
    sluice.run_service()
