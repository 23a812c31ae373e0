"""The model of crates/sim/sim/benches/central.rs as a plain loop over heapq: one queue, 64 workers, Exp(10 us), load 0.8.

Prints requests per second of processor time and the 99th percentile, as one line of JSON.
"""

import heapq
import json
import random
import time
from collections import deque

WORKERS, LOAD, MEAN_NS, TASKS, SEED = 64, 0.8, 10_000.0, 300_000, 1


def serve():
    gaps, services = random.Random(SEED), random.Random(SEED + 1)
    gap_ns = MEAN_NS / LOAD / WORKERS
    idle, waiting, latencies = WORKERS, deque(), []
    # (time, when the task came); what has not come yet came never.
    events = [(gaps.expovariate(1) * gap_ns, None)]
    while len(latencies) < TASKS:
        now, came = heapq.heappop(events)
        if came is None:
            service = services.expovariate(1) * MEAN_NS
            if idle:
                idle -= 1
                heapq.heappush(events, (now + service, now))
            else:
                waiting.append((now, service))
            heapq.heappush(events, (now + gaps.expovariate(1) * gap_ns, None))
            continue
        latencies.append(now - came)
        if waiting:
            came, service = waiting.popleft()
            heapq.heappush(events, (now + service, came))
        else:
            idle += 1
    return latencies


begun = time.process_time()
latencies = serve()
spent = time.process_time() - begun
latencies.sort()
p99 = latencies[int(len(latencies) * 0.99)]
print(json.dumps({"name": "heapq", "requests_per_s": round(TASKS / spent), "p99_ns": round(p99)}))
