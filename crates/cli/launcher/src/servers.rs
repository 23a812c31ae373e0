//! A rack's servers: their addresses, and the folder of their memory.

use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};
use rustix::process::geteuid;
use sluice_wire::roce::PORT;
use sluice_wire::sizes::ring_slots;

use sluice_support::fail::{Failure, Outcome};
use sluice_support::plan::Plan;
use sluice_support::seed::random_bits;
use sluice_support::shared_memory::{IN_MEMORY, folder_name};

/// How often addresses are drawn before the search is given up.
const DRAWS: usize = 16;

/// The folder of the servers' memory: in a file system in memory if it has room for all rings and is
/// writable, otherwise on disk. Each run of a plan with the same output folder gets the same folder. Two
/// containers may have output folders of the same name, so the name has a hash of the output folder's path,
/// device and inode.
pub(super) fn memory_folder(plan: &Plan) -> PathBuf {
    let in_memory = Path::new(IN_MEMORY);
    let mut hasher = DefaultHasher::new();
    std::path::absolute(&plan.out).unwrap_or_else(|_| plan.out.clone()).hash(&mut hasher);
    fs::metadata(&plan.out).ok().map(|out| (out.dev(), out.ino())).hash(&mut hasher);
    let folder = in_memory.join(folder_name(hasher.finish()));
    let room = statvfs(in_memory).map_or(0, |there| there.f_bavail.saturating_mul(there.f_frsize));
    let takes = rings_bytes(plan);
    if takes == 0 || room >= takes && may_be_ours(&folder) { folder } else { plan.state.join("memory") }
}

/// Whether the folder may be used: no other user made it, and its file system is writable.
fn may_be_ours(folder: &Path) -> bool {
    let made = DirBuilder::new().mode(0o700).create(folder);
    let there = || {
        let found =
            fs::symlink_metadata(folder).is_ok_and(|is| is.is_dir() && is.uid() == geteuid().as_raw());
        found && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    };
    // The folder is created for good when it is locked: an unlocked one looks like a leftover.
    made.map_or_else(|_| there(), |()| fs::remove_dir(folder).is_ok())
}

/// The largest size of all servers' rings together.
fn rings_bytes(plan: &Plan) -> u64 {
    let switch = &plan.switch;
    let slots = ring_slots(switch.tasks_per_slice, switch.tokens_per_slice, plan.rdma.stall_tasks);
    let rings = plan.servers().len() * plan.slices.len() * usize::from(plan.program().traits().classes);
    rings as u64 * u64::from(slots) * plan.rdma.mtu.bytes() as u64
}

/// Free addresses for a rack's servers on the loopback of `home`'s family. On IPv4 each server has an
/// address of its own and the standard port. IPv6 has a single loopback address, so each server has a port
/// of its own.
///
/// Racks in containers may share a network without knowing each other, even by process numbers. So
/// addresses are drawn at random and tested.
pub(super) fn addresses(count: usize, home: IpAddr) -> Outcome<Vec<SocketAddr>> {
    let mut taken = None;
    for _ in 0..DRAWS {
        let held: io::Result<Vec<_>> = drawn(count, home)?.into_iter().map(UdpSocket::bind).collect();
        match held {
            Ok(held) => {
                let at = held.iter().map(UdpSocket::local_addr).collect::<io::Result<_>>();
                return at.map_err(|why| no_address(&why));
            }
            Err(why) if why.kind() == io::ErrorKind::AddrInUse => taken = Some(why),
            Err(why) => return Err(no_address(&why)),
        }
    }
    Err(no_address(&taken.unwrap_or_else(|| io::ErrorKind::AddrInUse.into())))
}

fn drawn(count: usize, home: IpAddr) -> Outcome<Vec<SocketAddr>> {
    if home.is_ipv6() {
        return Ok(vec![SocketAddr::new(home, 0); count]);
    }
    // Consecutive addresses in 127.128.0.0/9, which few other programs use.
    let first = random_bits()? as u32;
    let address = |place: u32| Ipv4Addr::from(0x7f80_0000 | (first.wrapping_add(place) & 0x007f_ffff));
    Ok((0..count as u32).map(|place| (address(place), PORT).into()).collect())
}

fn no_address(why: &io::Error) -> Failure {
    Failure::broken(format!(
        "no address of the loopback for the rack's servers: {why}; end other racks here, or set \
         `servers = 0` in [rdma]"
    ))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn memory_that_is_a_link_or_cannot_be_written_is_not_ours() {
        let folder = tempfile::tempdir().expect("there is room");
        let own = folder.path().join("own");
        assert!(may_be_ours(&own), "it can be made");
        fs::create_dir(&own).expect("it is not there any more");
        assert!(may_be_ours(&own), "found again");
        let linked = folder.path().join("linked");
        symlink(&own, &linked).expect("a link");
        assert!(!may_be_ours(&linked), "somebody else chose where it leads");
        // Folders cannot be created here, as on a read-only file system.
        assert!(!may_be_ours(Path::new("/proc/sluice")));
    }

    #[test]
    fn each_server_of_each_rack_has_an_address_of_its_own() {
        for home in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            // Two racks that do not know each other, in one process or in two with the same number.
            let one = addresses(16, home).expect("there are some");
            let _held: Vec<_> = one.iter().map(|at| UdpSocket::bind(at).expect("it was free")).collect();
            let other = addresses(16, home).expect("there are some");
            let mut all: Vec<SocketAddr> = one.into_iter().chain(other).collect();
            assert!(all.iter().all(|at| at.ip().is_loopback() && at.is_ipv4() == home.is_ipv4()));
            assert!(all.iter().all(|at| at.is_ipv6() || at.port() == PORT));
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 32);
        }
    }
}
