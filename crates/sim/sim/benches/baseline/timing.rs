//! Measures the time of a thread.

use std::fs;
use std::time::Instant;

/// The result of `work`, and how many nanoseconds this thread had a processor for it; those of the wall
/// clock if the kernel does not tell.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (begun, on_cpu) = (Instant::now(), on_cpu_ns());
    let done = work();
    let spent = match (on_cpu, on_cpu_ns()) {
        (Some(from), Some(to)) => (to - from) as f64,
        _ => begun.elapsed().as_nanos() as f64,
    };
    (spent, done)
}

fn on_cpu_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}
