"""What a task costs a client in Python, beside the client in Rust, and what one costs a service.

Prints one object of JSON. Both clients run against the same rack, one after the other, several times; a
ratio is between medians. A cost is the processor time of the client's process a task, its packet thread
included. Run it with the folder of the programs that cargo built.
"""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import racks
import sluice

#: Tasks of a measurement, how many are under way at once, and how often each way is measured.
TASKS = int(os.environ.get("SLUICE_BENCH_TASKS", "30000"))
AT_ONCE = 200
ROUNDS = int(os.environ.get("SLUICE_BENCH_ROUNDS", "5"))
TASK = b"stressed"
#: The services in both languages serve all its types.
PLAN = racks.CASES / "rack.toml"


async def gathered(client: sluice.Client) -> None:
    """A future for each task, and a gather for each batch."""
    for _ in range(TASKS // AT_ONCE):
        await asyncio.gather(*[client.submit_async(9, TASK, deadline=60) for _ in range(AT_ONCE)])


async def one_by_one(client: sluice.Client) -> None:
    """Coroutines that each await one task after the other."""

    async def work() -> None:
        for _ in range(TASKS // AT_ONCE):
            await client.submit_async(9, TASK, deadline=60)

    await asyncio.gather(*[work() for _ in range(AT_ONCE)])


async def many(client: sluice.Client) -> None:
    """A future for each batch."""
    for _ in range(TASKS // AT_ONCE):
        await client.submit_many_async(9, [TASK] * AT_ONCE, deadline=60)


def blocking_many(client: sluice.Client) -> None:
    """A call for each batch."""
    for _ in range(TASKS // AT_ONCE):
        client.submit_many(9, [TASK] * AT_ONCE, deadline=60)


WAYS: Dict[str, Callable[[sluice.Client], object]] = {
    "gathered": lambda client: asyncio.run(gathered(client)),
    "one_by_one": lambda client: asyncio.run(one_by_one(client)),
    "many": lambda client: asyncio.run(many(client)),
    "blocking_many": blocking_many,
}


def processor_s(of: int) -> float:
    used = resource.getrusage(of)
    return used.ru_utime + used.ru_stime


def measured(work: Callable[[], object], of: int) -> Tuple[float, float]:
    """Seconds, and processor seconds of this process or its children."""
    began, used = time.perf_counter(), processor_s(of)
    work()
    return time.perf_counter() - began, processor_s(of) - used


def clients(rack: racks.Rack, built: Path) -> Dict[str, Dict[str, float]]:
    """Tasks a second and processor time a task, by way."""
    rust = [str(built / "examples/many_client"), rack.controller, str(TASKS), str(AT_ONCE)]
    found: Dict[str, List[Tuple[float, float]]] = {}
    with rack.client() as client:
        racks.wait_until(lambda: racks.serves(client), "a worker serves")
        for _ in range(ROUNDS):

            def run_rust() -> object:
                return subprocess.run(rust, check=True, stdout=subprocess.DEVNULL)

            found.setdefault("rust", []).append(measured(run_rust, resource.RUSAGE_CHILDREN))
            for name, way in WAYS.items():
                found.setdefault(name, []).append(measured(lambda: way(client), resource.RUSAGE_SELF))
    return {
        name: {
            "per_s": TASKS / statistics.median(wall for wall, _ in times),
            "processor_ns": statistics.median(used for _, used in times) / TASKS * 1e9,
        }
        for name, times in found.items()
    }


def worker_s(pid: int) -> float:
    """Processor seconds of a process so far."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def service(folder: Path, start: Callable[[racks.Rack], int]) -> float:
    """Processor time of a worker a task, in nanoseconds."""
    with racks.Rack(folder, PLAN, workers=0) as rack:
        pid = start(rack)
        with rack.client() as client:
            racks.wait_until(lambda: racks.serves(client), "a worker serves")
            blocking_many(client)
            used = worker_s(pid)
            for _ in range(ROUNDS):
                blocking_many(client)
            return (worker_s(pid) - used) / (TASKS // AT_ONCE * AT_ONCE * ROUNDS) * 1e9


def main(built: Path, folder: Path) -> None:
    """Measures all."""

    def rust_worker(rack: racks.Rack) -> int:
        words = [str(built / "examples/cases_service"), "--controller", rack.controller, "--quiet"]
        worker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        rack.processes.append(worker)
        return worker.pid

    def python_worker(rack: racks.Rack) -> int:
        return rack.start_worker().pid

    with racks.Rack(folder, PLAN, workers=0) as rack:
        rust_worker(rack)
        by_way = clients(rack, built)
    of_rust, of_python = (service(folder, start) for start in (rust_worker, python_worker))
    rust = by_way["rust"]["processor_ns"]
    print(
        json.dumps(
            {
                "clients": by_way,
                "ratios": {name: way["processor_ns"] / rust for name, way in by_way.items() if name != "rust"},
                "service_rust_ns": of_rust,
                "service_python_ns": of_python,
                "service_ratio": of_python / of_rust,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
