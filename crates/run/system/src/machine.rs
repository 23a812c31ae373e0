//! What machine this is, for results that depend on it.

use std::fs;
use std::thread::available_parallelism;

/// The processor, how many of its cores this process may use, and the kernel.
pub fn machine() -> String {
    let cores = available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{}, {cores} cores, Linux {}", processor(), kernel.trim())
}

/// The processor's model, or, where Linux does not say it, the architecture.
pub fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
