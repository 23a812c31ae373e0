//! `sluice doctor`: checks what this machine can do, and advises about the rest.

mod bmv2;
mod certificates;
mod check;
mod xdp;

use std::io::IsTerminal;
use std::path::Path;
use std::{fs, thread};

use serde_json::json;
use sluice_net::first::{FirstPacket, LINK_MTU_MIN};
use sluice_net::rdma::Mtu;
use sluice_report::table::Table;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::shared_memory::{IN_MEMORY, leftovers};
use sluice_support::{print, rocksdb};
use sluice_switchd::state::StateFolder;

use crate::args::DoctorArgs;
use check::{Check, Health, read};

/// The oldest kernel whose sockets support everything that the drivers use.
const KERNEL_MIN: (u32, u32) = (5, 4);
/// The number of cores on which a switch, a client and a few workers do not wait for each other.
const CORES_GOOD: usize = 4;
/// A socket buffer for a burst of a thousand full packets, in bytes.
const BUFFER_GOOD: u64 = 1_000 * 1_500;
/// The MTU of a link that passes packets of workers and clients with default settings.
const LINK_MTU_GOOD: u16 = 1_500;

/// Runs all checks; a failed check is a failure.
pub(crate) fn run(args: &DoctorArgs) -> Outcome<()> {
    let mut checks = vec![kernel(), cores(), buffer("rmem_max"), buffer("wmem_max")];
    checks.extend(interfaces());
    checks.extend([rocksdb(), terminal(), state(&args.state), shared_memory(Path::new(IN_MEMORY))]);
    checks.extend(xdp::checks());
    checks.extend(bmv2::checks());
    checks.extend(certificates::checks(args));
    if args.json {
        print::line(to_json(&checks))?;
    } else {
        print::line(table(&checks))?;
    }
    let failed: Vec<&str> =
        checks.iter().filter(|check| check.health == Health::Fail).map(|check| check.what).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::bad_input(format!("this machine fails: {}; see what next above", failed.join(", ")))
        .with_result_shown())
}

fn table(checks: &[Check]) -> Table {
    let mut table = Table::new(["", "what", "found", "what next"]);
    for check in checks {
        table.row([check.health.name(), check.what, &check.found, &check.next]);
    }
    table
}

fn to_json(checks: &[Check]) -> serde_json::Value {
    let checks = checks.iter().map(|check| {
        json!({ "what": check.what, "health": check.health.name(), "found": check.found, "next": check.next })
    });
    json!({ "schema": "sluice.doctor.v1", "checks": checks.collect::<Vec<_>>() })
}

fn kernel() -> Check {
    let Some(release) = read("/proc/sys/kernel/osrelease") else {
        return Check::fail("kernel", "not Linux", "run Sluice on Linux");
    };
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= KERNEL_MIN {
        return Check::ok("kernel", release);
    }
    Check::warn("kernel", release, format!("{}.{} or newer is tried out", KERNEL_MIN.0, KERNEL_MIN.1))
}

fn cores() -> Check {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let found = format!("{cores}");
    if cores >= CORES_GOOD {
        return Check::ok("cores", found);
    }
    Check::warn(
        "cores",
        found,
        "processes wait for each other: measure with dilation, such as dilation = 100",
    )
}

fn buffer(name: &'static str) -> Check {
    let what = if name == "rmem_max" { "receive buffer, most" } else { "send buffer, most" };
    match read(&format!("/proc/sys/net/core/{name}")).and_then(|text| text.parse::<u64>().ok()) {
        Some(bytes) if bytes >= BUFFER_GOOD => Check::ok(what, format!("{bytes} B")),
        Some(bytes) => Check::warn(
            what,
            format!("{bytes} B"),
            format!("bursts may be lost (and repeated): sysctl -w net.core.{name}={}", BUFFER_GOOD * 4),
        ),
        None => Check::warn(what, "unknown", "bursts may be lost, and repeated"),
    }
}

/// The interfaces that are up, with the largest first packet of a task on each.
fn interfaces() -> Vec<Check> {
    let Ok(entries) = fs::read_dir("/sys/class/net") else {
        return vec![Check::warn("MTU", "unknown", "make sure that packets of 1,500 B pass")];
    };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names.iter().filter_map(|name| interface(name)).collect()
}

fn interface(name: &str) -> Option<Check> {
    let folder = Path::new("/sys/class/net").join(name);
    let state = read(&folder.join("operstate").to_string_lossy())?;
    if state == "down" {
        return None;
    }
    let mtu: u32 = read(&folder.join("mtu").to_string_lossy())?.parse().ok()?;
    let link_mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
    let FirstPacket { bytes, limit, .. } = FirstPacket::fitting(link_mtu, Some(Mtu::default()));
    let rdma = Mtu::default().bytes();
    let found = format!(
        "{name}: MTU {mtu} B; a task's first packet brings {bytes} B with an RDMA MTU of {rdma} B ({limit} sets it)"
    );
    if link_mtu >= LINK_MTU_GOOD {
        return Some(Check::ok("MTU", found));
    }
    let next = format!("raise it to {LINK_MTU_GOOD}, or give it as link_mtu ({LINK_MTU_MIN} or more)");
    Some(Check::warn("MTU", found, next))
}

/// Only RocksDB's workers and measurements need this program.
fn rocksdb() -> Check {
    match rocksdb::version() {
        Ok(version) => Check::ok("RocksDB", version),
        Err(why) => Check::warn("RocksDB", "none", why.to_string()),
    }
}

fn terminal() -> Check {
    let stderr = std::io::stderr();
    if !stderr.is_terminal() {
        return Check::warn("terminal", "none", "no live view here, a line a second instead");
    }
    let size = ratatui::crossterm::terminal::size();
    match size {
        Ok((width, height)) if width >= 80 && height >= 24 => {
            Check::ok("terminal", format!("{width} x {height}"))
        }
        Ok((width, height)) => {
            Check::warn("terminal", format!("{width} x {height}"), "the live view wants 80 x 24")
        }
        Err(why) => Check::warn("terminal", format!("of unknown size: {why}"), "the live view wants 80 x 24"),
    }
}

/// Looks for leftovers of killed racks.
fn shared_memory(memory: &Path) -> Check {
    let what = "shared memory";
    let left = leftovers(memory);
    if left.is_empty() {
        return Check::ok(what, "nothing is left of dead racks");
    }
    let found: Vec<String> = left.iter().map(ToString::to_string).collect();
    let paths: Vec<String> = left.iter().map(|left| left.path().display().to_string()).collect();
    let next = format!("the next `sluice up` removes it, or you do: rm -r {}", paths.join(" "));
    Check::warn(what, found.join("; "), next)
}

fn state(path: &Path) -> Check {
    match StateFolder::open(path) {
        Ok(_) => Check::ok("state folder", path.display().to_string()),
        Err(why) => Check::fail("state folder", path.display().to_string(), why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use sluice_support::shared_memory::folder_name;

    use super::*;

    #[test]
    fn what_a_killed_rack_left_in_shared_memory_is_a_warning_with_its_place() {
        let memory = tempfile::tempdir().expect("a folder");
        assert_eq!(shared_memory(memory.path()).health, Health::Ok);
        let left = memory.path().join(folder_name(7));
        fs::create_dir(&left).expect("made");
        let found = shared_memory(memory.path());
        let path = left.display().to_string();
        assert!(found.health == Health::Warn && found.found.contains(&path), "{}", found.found);
        assert!(found.next.contains(&format!("rm -r {path}")), "{}", found.next);
    }
}
