// What becomes of owners that are assigned: each frees what it owned at once. No rack is needed.
#include <cstdio>
#include <cstdlib>

#include <sluice.hpp>

static void must(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

static bool is_freed(sluice_queue queue) {
    int fd = -1;
    return sluice_queue_fd(queue, &fd) == SLUICE_NO_HANDLE;
}

static bool is_freed(sluice_worker worker) { return sluice_worker_stop(worker) == SLUICE_NO_HANDLE; }

static void queues() {
    sluice::queue queue, other;
    const sluice_queue before = queue.handle(), moved = other.handle();
    queue = std::move(other);
    must(is_freed(before) && queue.handle().id == moved.id && other.handle().id == 0, "a queue is assigned");
    sluice::queue &itself = queue;
    queue = std::move(itself);
    must(queue.handle().id == moved.id && !is_freed(moved), "a queue is assigned to itself");
}

static void outcomes() {
    sluice_outcome raw = sluice_outcome();
    raw.tag = 7;
    sluice::outcome outcome(raw), other;
    other = std::move(outcome);
    sluice::outcome &itself = other;
    other = std::move(itself);
    must(other.tag() == 7 && outcome.tag() == 0, "an outcome is assigned");
}

// Lives in a service, and looks at its end whether the worker that calls it has ended.
struct witness {
    sluice_worker worker = sluice_worker();
    ~witness() { must(worker.id == 0 || is_freed(worker), "a service ends before its worker"); }
};

static sluice::worker start(const std::shared_ptr<witness> &inside) {
    // Nobody is there: it goes on trying.
    const sluice::options options{{"controller", "127.0.0.1:1"}};
    return sluice::worker(options, {9, [inside](const sluice::task &, sluice::reply &) {}});
}

static void workers() {
    auto inside = std::make_shared<witness>();
    sluice::worker worker = start(inside);
    const sluice_worker before = worker.handle();
    inside->worker = before;
    inside.reset();
    sluice::worker other = start(nullptr);
    const sluice_worker moved = other.handle();
    worker = std::move(other);
    must(is_freed(before) && worker.handle().id == moved.id && other.handle().id == 0, "a worker is assigned");
}

int main() {
    queues();
    outcomes();
    workers();
    std::puts("well");
    return 0;
}
