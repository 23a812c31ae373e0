"""The model of crates/sim/sim/benches/central.rs on simpy: one queue, 64 workers, Exp(10 us), load 0.8.

Written as simpy's users write it: a process a task, workers as a resource. Prints requests per second of processor time
and the 99th percentile, as one line of JSON.
"""

import json
import random
import time

import simpy

WORKERS, LOAD, MEAN_NS, TASKS, SEED = 64, 0.8, 10_000.0, 100_000, 1


def task(env, workers, service, latencies):
    came = env.now
    with workers.request() as worker:
        yield worker
        yield env.timeout(service)
    latencies.append(env.now - came)


def clients(env, workers, latencies):
    gaps, services = random.Random(SEED), random.Random(SEED + 1)
    gap_ns = MEAN_NS / LOAD / WORKERS
    for _ in range(TASKS):
        yield env.timeout(gaps.expovariate(1) * gap_ns)
        env.process(task(env, workers, services.expovariate(1) * MEAN_NS, latencies))


env, latencies = simpy.Environment(), []
env.process(clients(env, simpy.Resource(env, capacity=WORKERS), latencies))
begun = time.process_time()
env.run()
spent = time.process_time() - begun
latencies.sort()
p99 = latencies[int(len(latencies) * 0.99)]
print(json.dumps({"name": "simpy", "requests_per_s": round(TASKS / spent), "p99_ns": round(p99)}))
