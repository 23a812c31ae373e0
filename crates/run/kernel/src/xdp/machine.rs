//! Checks what a machine needs to run the program on its links.

use std::path::{Path, PathBuf};

use aya::util::KernelVersion;
use rustix::fs::statfs;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{CapabilitySet, capabilities};

use crate::KernelError;
use crate::spaces::driver_of;

/// The oldest kernel with all functions that the program calls: it needs `bpf_loop`.
pub const KERNEL_MIN: &str = "5.17";

/// Where BPF file systems are mounted.
pub const BPF_FS: &str = "/sys/fs/bpf";

/// The number by which `statfs` identifies a BPF file system.
const BPF_FS_MAGIC: u32 = 0xcafe_4a11;

/// The capabilities for loading, for attaching, and for a program of this size.
const NEEDED: [(&str, CapabilitySet); 3] = [
    ("CAP_BPF", CapabilitySet::BPF),
    ("CAP_NET_ADMIN", CapabilitySet::NET_ADMIN),
    ("CAP_PERFMON", CapabilitySet::PERFMON),
];

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// The interface's index in the kernel.
    pub index: u32,
    /// Whether the interface's driver is veth.
    pub is_veth: bool,
}

impl Interface {
    /// Looks an interface up.
    ///
    /// # Errors
    /// [`KernelError::NoInterface`] if there is none of this name.
    pub fn named(name: &str) -> Result<Self, KernelError> {
        let any = socket(AddressFamily::INET, SocketType::DGRAM, None);
        match any.and_then(|any| name_to_index(any, name)) {
            Ok(index) => {
                let is_veth = driver_of(name).is_ok_and(|driver| driver == "veth");
                Ok(Self { name: name.to_owned(), index, is_veth })
            }
            Err(_) => Err(KernelError::NoInterface { name: name.to_owned() }),
        }
    }
}

/// Checks that the kernel is new enough.
///
/// # Errors
/// [`KernelError::XdpKernel`] if not.
pub fn check_kernel() -> Result<(), KernelError> {
    if KernelVersion::current().is_ok_and(|current| current >= KernelVersion::new(5, 17, 0)) {
        return Ok(());
    }
    let found = rustix::system::uname().release().to_string_lossy().into_owned();
    Err(KernelError::XdpKernel { needed: KERNEL_MIN, found })
}

/// Checks that this process may load programs and attach them to links.
///
/// # Errors
/// [`KernelError::XdpNotPermitted`] if not.
pub fn check_permission() -> Result<(), KernelError> {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let lacks = NEEDED.into_iter().filter(|(_, needed)| !held.contains(*needed)).map(|(name, _)| name);
    let lacks = lacks.collect::<Vec<_>>().join(", ");
    // The newer capabilities were split off these two.
    if lacks.is_empty() || held.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN) {
        return Ok(());
    }
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sluice"));
    Err(KernelError::XdpNotPermitted { lacks, program })
}

/// Checks that a folder, which need not exist yet, would be on a BPF file system.
///
/// # Errors
/// [`KernelError::NoBpfFs`] if not.
pub fn check_bpf_fs(folder: &Path) -> Result<(), KernelError> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    match statfs(there) {
        Ok(found) if found.f_type as u32 == BPF_FS_MAGIC => Ok(()),
        _ => Err(KernelError::NoBpfFs { path: folder.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_named_with_what_lists_them() {
        let missing = Interface::named("nowhere0").expect_err("nobody made it").to_string();
        assert!(missing.contains("nowhere0") && missing.contains("ip -brief link"), "{missing}");
        let name = "lo";
        assert_eq!(Interface::named(name).expect("always there").name, name);
    }

    #[test]
    fn a_folder_elsewhere_is_not_on_a_bpf_file_system_and_the_error_says_how_to_mount_one() {
        let folder = tempfile::tempdir().expect("there is room");
        let wrong = check_bpf_fs(&folder.path().join("sluice/demo")).expect_err("on a disk").to_string();
        assert!(wrong.contains("mount -t bpf bpf /sys/fs/bpf"), "{wrong}");
    }
}
