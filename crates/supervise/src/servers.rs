//! A rack's servers: where each listens, and where its memory is.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use sluice_wire::roce::PORT;
use sluice_wire::sizes::ring_slots;

use sluice_ground::plan::Plan;
use sluice_ground::shared_memory::{IN_MEMORY, folder_name};

/// The folder in which a rack's servers keep their memory: in memory if there is room for all rings, and the
/// same for each run of a plan with this output.
pub(super) fn memory_folder(plan: &Plan) -> PathBuf {
    let in_memory = Path::new(IN_MEMORY);
    let room = statvfs(in_memory).map_or(0, |there| there.f_bavail.saturating_mul(there.f_frsize));
    if room < rings_bytes(plan) {
        return plan.state.join("memory");
    }
    let mut hasher = DefaultHasher::new();
    std::path::absolute(&plan.out).unwrap_or_else(|_| plan.out.clone()).hash(&mut hasher);
    in_memory.join(folder_name(hasher.finish()))
}

/// What the rings of all servers take at most.
fn rings_bytes(plan: &Plan) -> u64 {
    let switch = &plan.switch;
    let slots = ring_slots(switch.tasks_per_slice, switch.tokens_per_slice, plan.rdma.stall_tasks);
    let rings = plan.servers().len() * plan.slices.len() * usize::from(plan.program().classes());
    rings as u64 * u64::from(slots) * plan.rdma.mtu.bytes() as u64
}

/// Where a server listens: a loopback address of its own, unlike those of racks that other processes run, so
/// that all have the standard port.
pub(super) fn address(place: usize) -> SocketAddr {
    let process = std::process::id();
    let [_, b, c, d] = process.to_be_bytes();
    // Process numbers have 22 bits, servers of a rack 4: the first byte behind 127 holds what is left.
    let high = (place as u8 & 0x0f) << 3 | (b & 0x3) << 1 | 0x80;
    SocketAddr::from((Ipv4Addr::new(127, high, c, d), PORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_of_a_rack_has_an_address_of_its_own() {
        let mut all: Vec<SocketAddr> = (0..16).map(address).collect();
        assert!(all.iter().all(|at| at.ip().is_loopback() && at.port() == PORT));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 16);
    }
}
