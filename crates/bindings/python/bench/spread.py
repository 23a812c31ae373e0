"""What it costs to spread a study over Ray, on a cluster of two nodes of one core each on this machine.

Prints one object of JSON. `points_ratio` is the points a second on Ray, over those of two processes that each
run half of them, both in this run and by turns. `spread_ms` is what a point costs more on Ray than in this
process, with points that take next to nothing, by how many of them Ray has at once.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Dict, Iterator, List

import ray

import sluice
import sluice._ray

# Runs that name no engine are those that Ray is compared with.
os.environ.pop("SLUICE_ENGINE", None)
#: How long a point shall take, in seconds; how many points a measurement has; how often each way is measured.
POINT_S = float(os.environ.get("SLUICE_BENCH_POINT_S", "10"))
POINTS = int(os.environ.get("SLUICE_BENCH_POINTS", "6"))
ROUNDS = int(os.environ.get("SLUICE_BENCH_ROUNDS", "3"))
#: Nobody else reaches this cluster.
HERE = "127.0.0.1"
#: How long it may take to start, in seconds.
PATIENCE_S = 120.0
#: How many points Ray has at once.
IN_FLIGHT = (10, 100, 1_000)
#: The workload's policy, and its load.
POLICY = "rain:2"
LOAD = 0.5

HALF = """
import sys
import sluice
first, last, tasks = map(int, sys.argv[1:])
for seed in range(first, last):
    sluice.sweep("rain:2", loads=0.5, tasks=tasks, replications=1, seed=seed, threads=1, progress=False)
"""


def timed(work: Callable[[], object]) -> float:
    """How long it takes, in seconds."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def tasks_of_a_point() -> int:
    """How many tasks take as long as a point shall."""
    tasks = 20_000
    while True:
        took = timed(lambda: sluice.sweep(POLICY, loads=LOAD, tasks=tasks, replications=1, threads=1, progress=False))
        if took >= min(0.5, POINT_S):
            return max(1, int(tasks * POINT_S / took))
        tasks *= 4


def on_two_processes(tasks: int) -> None:
    """Half of the points in each of two processes."""
    words = [sys.executable, "-c", HALF]
    halves = [(0, POINTS // 2), (POINTS // 2, POINTS)]
    processes = [subprocess.Popen([*words, str(first), str(last), str(tasks)]) for first, last in halves]
    assert [process.wait() for process in processes] == [0, 0]


def on_ray(tasks: int) -> None:
    """The same number of points as tasks of Ray: the replications of one."""
    sluice.sweep(POLICY, loads=LOAD, tasks=tasks * POINTS, replications=POINTS, engine="ray", progress=False)


def small(engine: str, points: int) -> None:
    """Points that take next to nothing."""
    sluice.sweep(POLICY, loads=LOAD, tasks=points, replications=points, warm_up="0", engine=engine, progress=False)


def spread_ms(in_flight: int) -> float:
    """What a point costs more on Ray, in milliseconds."""
    sluice._ray._IN_FLIGHT = in_flight
    points = max(in_flight, 200)
    costs: List[float] = []
    for _ in range(ROUNDS):
        costs.append((timed(lambda: small("ray", points)) - timed(lambda: small("threads", points))) / points)
    return statistics.median(costs) * 1_000


@contextmanager
def two_nodes() -> Iterator[None]:
    """A Ray of two nodes of one core each, which nobody else reaches. This process is connected to it."""
    with socket.socket() as free:
        free.bind((HERE, 0))
        port = free.getsockname()[1]
    address = f"{HERE}:{port}"
    with ExitStack() as ends:
        ends.enter_context(node("--head", f"--port={port}", "--include-dashboard=false"))
        wait_until(lambda: answers(port), "the first node answers")
        ends.enter_context(node(f"--address={address}"))
        ray.init(address=address, log_to_driver=False, _node_ip_address=HERE)
        ends.callback(ray.shutdown)
        resources: Callable[[], Any] = ray.cluster_resources
        wait_until(lambda: resources().get("CPU") == 2, "both nodes are there")
        yield


@contextmanager
def node(*words: str) -> Iterator[None]:
    """A node, which ends with its process."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1"]
    # Ray's workers would give way to whatever else runs here, and the processes beside which they are measured do not.
    environment = {**os.environ, "RAY_worker_niceness": "0"}
    process = subprocess.Popen(
        [*command, f"--node-ip-address={HERE}", *words], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex((HERE, port)) == 0


def wait_until(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"bench-ray: not in {PATIENCE_S:.0f} s: {what}; Ray's logs are in /tmp/ray/session_latest/logs")
        time.sleep(0.1)


def main() -> None:
    with two_nodes():
        small("ray", 20)  # Ray has started its workers by then.
        tasks = tasks_of_a_point()
        ratios: List[float] = []
        for _ in range(ROUNDS):
            apart = timed(lambda: on_two_processes(tasks))
            ratios.append(apart / timed(lambda: on_ray(tasks)))
        costs: Dict[str, float] = {str(count): round(spread_ms(count), 3) for count in IN_FLIGHT}
    found = {
        "point_s": POINT_S,
        "points": POINTS,
        "points_ratio": round(statistics.median(ratios), 3),
        "points_ratios": [round(ratio, 3) for ratio in ratios],
        "spread_ms": costs,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
