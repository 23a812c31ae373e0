//! Checks what `sluice switch --io xdp` needs. No other command needs it, so a missing part is only a
//! warning.

use std::path::Path;

use sluice_kernel::KernelError;
use sluice_kernel::xdp::{embedded, machine, map_bytes};
use sluice_switch::Config;
use sluice_wire::Epoch;

use super::check::{Check, read};

/// All checks of XDP.
pub(super) fn checks() -> Vec<Check> {
    let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![
        check_of("XDP: program", "built in", embedded().map(drop)),
        check_of(
            "XDP: kernel",
            &format!("{kernel}, of {} or newer", machine::KERNEL_MIN),
            machine::check_kernel(),
        ),
        check_of("XDP: permission", "programs may be loaded and put on links", machine::check_permission()),
        check_of("XDP: BPF file system", machine::BPF_FS, machine::check_bpf_fs(Path::new(machine::BPF_FS))),
        memory(),
    ]
}

fn check_of(what: &'static str, found: &str, check: Result<(), KernelError>) -> Check {
    match check {
        Ok(()) => Check::ok(what, found),
        Err(why) => Check::warn(what, "--io xdp will not work", why.to_string()),
    }
}

/// Since Linux 5.11 maps count against the control group's memory, not against the user's locked memory.
fn memory() -> Check {
    let what = "XDP: memory for maps";
    let needed = map_bytes(&Config::full(Epoch(0)));
    let limit = read("/proc/self/cgroup").as_deref().and_then(limit_of);
    let found = |limit: &str| {
        format!("{} MiB for a switch of full size; the control group's limit: {limit}", needed >> 20)
    };
    match limit {
        Some(limit) if limit < needed => Check::warn(
            what,
            found(&format!("{} MiB", limit >> 20)),
            "raise it (systemctl set-property UNIT MemoryMax=), or lower tasks_per_slice in plans",
        ),
        Some(limit) => Check::ok(what, found(&format!("{} MiB", limit >> 20))),
        None => Check::ok(what, found("none")),
    }
}

/// The memory limit of this process's control group, in bytes.
fn limit_of(groups: &str) -> Option<u64> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let file = Path::new("/sys/fs/cgroup").join(group.trim_start_matches('/')).join("memory.max");
    read(&file.to_string_lossy())?.parse().ok()
}
