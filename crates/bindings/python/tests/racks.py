"""Racks on this machine: a switch and workers, as processes that a test starts and ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, List, Optional, Sequence, Type
from types import TracebackType

import sluice

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
SLUICE = Path(os.environ.get("SLUICE", ROOT / "target/debug/sluice"))
CASES = Path(os.environ.get("SLUICE_CASES", ROOT / "crates/bindings/cases"))
PLAN = HERE / "rack.toml"
SERVICE = HERE / "cases_service.py"
#: How long a test waits for a state before it gives up.
PATIENCE_S = 120.0


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Waits for a state."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, f"not in {PATIENCE_S} s: {what}"
        time.sleep(0.005)


def serves(client: sluice.Client) -> bool:
    """Whether a worker answers, be it that it does not know the task."""
    try:
        client.submit(9, b"")
    except sluice.Failed:
        return True
    except (sluice.Refused, sluice.Unknown):
        return False
    return True


class Gate:
    """Tasks of type 15 that run until a test opens their gate, however slow this machine is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self.task = os.fsencode(folder)

    def wait(self) -> None:
        """Waits until a worker runs one."""
        wait_until((self._folder / "began").exists, "a task is at the gate")

    def open(self) -> None:
        """Lets all of them end."""
        (self._folder / "open").touch()


class Rack:
    """A switch with its controller, and workers."""

    def __init__(
        self, folder: Path, plan: Path, faults: str = "", workers: int = 2, more: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self.processes: List["subprocess.Popen[str]"] = []
        self.workers: List["subprocess.Popen[str]"] = []
        words: List[object] = [SLUICE, "switch", plan, "--json", "--quiet", "--state", folder / "state"]
        words += ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
        words += ["--faults", faults] if faults else []
        words += more
        switch = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True, cwd=folder)
        self.processes.append(switch)
        assert switch.stdout is not None
        said = switch.stdout.readline()
        assert said, f"{SLUICE} does not start: build it with cargo build -p sluice-cli"
        self.controller = str(json.loads(said)["control"])
        for _ in range(workers):
            self.start_worker()

    def start_worker(self, program: Path = SERVICE, more: Sequence[str] = ()) -> "subprocess.Popen[str]":
        """Starts a worker, whose service is a Python program."""
        words = [sys.executable, str(program), "--controller", self.controller, "--quiet", *more]
        worker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(worker)
        self.workers.append(worker)
        return worker

    def client(self, *, retry: bool = True, name: Optional[str] = None) -> sluice.Client:
        """A client of this rack, whose workers serve by then, if it has some."""
        client = sluice.connect(self.controller, patience=PATIENCE_S, retry=retry, name=name)
        wait_until(lambda: not self.workers or serves(client), "a worker serves")
        return client

    def kill(self, pid: int) -> None:
        """Kills a worker."""
        worker = next(worker for worker in self.workers if worker.pid == pid)
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def __enter__(self) -> "Rack":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.communicate()
