"""What tests share: a rack without faults, and a client of it."""

import os
import signal
from pathlib import Path
from typing import Any, Iterator, List

import pytest

import sluice
from racks import PLAN, Gate, Rack, wait_until

# Whoever runs the tests in the background of a shell ignores Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Tests name the engine that they mean.
os.environ.pop("SLUICE_ENGINE", None)


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """A rack with two workers, which all tests use that kill nothing."""
    with Rack(tmp_path_factory.mktemp("rack"), PLAN) as started:
        yield started


@pytest.fixture
def client(rack: Rack) -> Iterator[sluice.Client]:
    """A client of that rack."""
    with rack.client() as connected:
        yield connected


@pytest.fixture
def own_rack(tmp_path: Path) -> Iterator[Rack]:
    """A rack without workers that one test has for itself."""
    with Rack(tmp_path, PLAN, workers=0) as started:
        yield started


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A gate, which is open once the test has ended."""
    made = Gate(tmp_path / "gate")
    yield made
    made.open()


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """A Ray with two cores, which only this machine reaches; its address."""
    ray: Any = pytest.importorskip("ray", reason="Ray is not installed")
    started: List[Any] = []

    def starts() -> bool:
        """Ray gives its processes half a minute, which a busy machine may exceed."""
        try:
            here: Any = {"address": "local", "_node_ip_address": "127.0.0.1"}
            started.append(ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, **here))
        except Exception as why:
            print(f"Ray does not start: {why}")
            ray.shutdown()
        return bool(started)

    wait_until(starts, "Ray starts")
    yield str(started[0].address_info["gcs_address"])
    ray.shutdown()
