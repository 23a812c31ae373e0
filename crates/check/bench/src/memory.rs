//! The memory of a full switch and of 64 workers as the kernel reports it, and the size of an idle host's
//! state.

use std::env;
use std::fs;
use std::hint::black_box;
use std::mem::size_of;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use sluice_host::client::Client;
use sluice_host::worker::{Worker, WorkerSettings};
use sluice_switch::Config;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{Nanos, WorkerId};

use crate::error::BenchError;
use crate::hosts::{EPOCH, GENERATION, KEY, Rig, WORKERS};
use crate::print;
use crate::report::{Bound, Report};

const RESIDENT_BYTES_MAX: f64 = 64e6;
const IDLE_WORKER_BYTES: f64 = 200.0;

/// What the child process reports about itself, in resident bytes.
#[derive(Serialize, Deserialize)]
struct Resident {
    at_start: u64,
    once_around: u64,
}

/// Measures a child process, so that nothing else is in it.
pub(crate) fn measure(report: &mut Report) -> Result<(), BenchError> {
    print::aside("bench: memory of a full switch");
    let this = env::current_exe().map_err(|why| BenchError::program("bench", &why))?;
    let ended = Command::new(this)
        .arg("memory")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| BenchError::program("bench memory", &why))?;
    if !ended.status.success() {
        return Err(BenchError::program("bench memory", &ended.status));
    }
    let resident: Resident =
        serde_json::from_slice(&ended.stdout).map_err(|why| BenchError::output("bench memory", &why))?;
    let megabytes = resident.once_around as f64 / 1e6;
    let whole = "switch, 128 Ki entries and 64 workers, resident";
    report.add(whole, megabytes, "MB", Bound::Below(RESIDENT_BYTES_MAX / 1e6));
    report.add("  of it before there was a switch", resident.at_start as f64 / 1e6, "MB", Bound::None);
    report.add("idle worker's state", size_of::<Worker>() as f64, "B", Bound::Below(IDLE_WORKER_BYTES));
    report.add("idle client's state", size_of::<Client>() as f64, "B", Bound::None);
    Ok(())
}

/// The child: a full-size switch in which every ring cell, replay cell and row was used at least once.
pub(crate) fn hold_a_full_switch() -> Result<(), BenchError> {
    let at_start = resident_bytes()?;
    let config = Config::full(EPOCH);
    let mut rig = Rig::new(config.slices, 8)?;
    let workers = registered_workers();
    let round = u32::from(WORKERS);
    let entries = u32::from(config.slices) * config.tasks_per_slice;
    assert_eq!(entries, 128 * 1024);
    let replay_rounds = config.replay_cells / round;
    for client in 0..config.clients {
        for _ in 0..replay_rounds {
            rig.send_tasks(client);
            rig.switch(usize::from(WORKERS))?;
        }
    }
    for _ in 0..entries / round {
        rig.send_tokens();
        rig.switch(usize::from(WORKERS))?;
        rig.collect(usize::from(WORKERS))?;
    }
    for _ in 0..u32::from(config.slices) * config.tokens_per_slice / round {
        rig.send_tokens();
        rig.send_tasks(0);
        rig.switch(2 * usize::from(WORKERS))?;
        rig.collect(usize::from(WORKERS))?;
    }
    let resident = Resident { at_start, once_around: resident_bytes()? };
    black_box((&rig, &workers));
    print::line(serde_json::to_string(&resident).expect("two numbers"))
}

/// The workers' own state, with all tokens out.
fn registered_workers() -> Vec<Worker> {
    let register = |index| {
        let grant = WorkerRegistration {
            worker: WorkerId(index),
            key: KEY,
            epoch: EPOCH,
            generation: GENERATION,
            quota: 8,
            ..WorkerRegistration::default()
        };
        let mut worker = Worker::new();
        worker.grant(Nanos(0), &WorkerSettings::default(), grant, &mut Vec::new());
        worker
    };
    (0..WORKERS).map(register).collect()
}

/// The resident memory of this process, from the file that adds it up exactly; `statm` may lag by some
/// pages.
fn resident_bytes() -> Result<u64, BenchError> {
    let file = Path::new("/proc/self/smaps_rollup");
    let text = fs::read_to_string(file).map_err(|why| BenchError::file(file, why))?;
    resident_of(&text).ok_or_else(|| BenchError::output("/proc/self/smaps_rollup", &"no resident size"))
}

fn resident_of(rollup: &str) -> Option<u64> {
    let kib = rollup.lines().find_map(|line| line.strip_prefix("Rss:"))?.trim().strip_suffix("kB")?;
    Some(kib.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_size_is_read_in_bytes() {
        assert_eq!(resident_of("55 [rollup]\nRss:                1520 kB\nPss: 3 kB\n"), Some(1_556_480));
        assert_eq!(resident_of("Pss: 3 kB\n"), None);
    }

    #[test]
    fn the_kernel_says_what_this_process_takes() {
        assert!(resident_bytes().expect("this is Linux") > 100_000);
    }
}
