//! The section `[rdma]`: servers for large waiting tasks.

use std::path::PathBuf;

use sluice_net::first::{LINK_MTU, LINK_MTU_MIN};
use sluice_net::rdma::Mtu;

use super::section::Section;
use crate::fail::Outcome;

/// The most servers.
pub const SERVERS_MAX: u16 = 16;
/// The largest link MTU: that of jumbo frames.
const LINK_MTU_MAX: u16 = 9_000;

/// The servers, and what is written into their memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdmaPlan {
    /// The number of servers, over which workers are distributed; if zero, the switch stores the bytes of
    /// waiting tasks.
    pub servers: u16,
    /// The MTU of all links.
    pub link_mtu: u16,
    /// The RDMA MTU: the largest number of bytes in one WRITE.
    pub mtu: Mtu,
    /// Whether queue pairs are reliable.
    pub reliable: bool,
    /// Whether WRITEs carry an iCRC, which must be right.
    pub icrc: bool,
    /// The largest number of servers to which each task is written; zero for all servers of its slice.
    pub copies: u16,
    /// How many tasks of a slice may pass while one of its workers is stopped.
    pub stall_tasks: u32,
    /// The number of slots in each ring, even below the required one. For tests.
    pub tiny_slots: Option<u32>,
    /// The folder of captures of servers' WRITEs.
    pub pcap: Option<PathBuf>,
}

impl Default for RdmaPlan {
    fn default() -> Self {
        Self {
            servers: 1,
            link_mtu: LINK_MTU,
            mtu: Mtu::B2048,
            reliable: false,
            icrc: true,
            copies: 0,
            stall_tasks: 1_024,
            tiny_slots: None,
            pcap: None,
        }
    }
}

/// Reads the section.
pub(super) fn read(section: Option<Section<'_>>) -> Outcome<RdmaPlan> {
    let mut plan = RdmaPlan::default();
    let Some(section) = section else { return Ok(plan) };
    let number = |key, from: u64, most: u64| section.whole(key, from..most + 1);
    if let Some(servers) = number("servers", 0, SERVERS_MAX.into())? {
        plan.servers = servers as u16;
    }
    if let Some(mtu) = number("link_mtu", LINK_MTU_MIN.into(), LINK_MTU_MAX.into())? {
        plan.link_mtu = mtu as u16;
    }
    if let Some(bytes) = number("mtu", 0, 1 << 16)? {
        let why = || section.complain_of("mtu", format!("{bytes} is none of 256, 512, 1024, 2048, 4096"));
        plan.mtu = Mtu::of_bytes(bytes as usize).ok_or_else(why)?;
    }
    if let Some(reliable) = section.parsed("transport", transport)? {
        plan.reliable = reliable;
    }
    plan.icrc = section.flag("icrc")?.unwrap_or(plan.icrc);
    if let Some(copies) = number("copies", 0, SERVERS_MAX.into())? {
        plan.copies = copies as u16;
    }
    if let Some(tasks) = number("stall_tasks", 0, 1 << 20)? {
        plan.stall_tasks = tasks as u32;
    }
    plan.tiny_slots = section.ring("tiny_slots")?;
    plan.pcap = section.text("pcap")?.map(PathBuf::from);
    section.finish()?;
    Ok(plan)
}

fn transport(text: &str) -> Result<bool, String> {
    match text {
        "uc" => Ok(false),
        "rc" => Ok(true),
        _ => Err(sluice_units::unknown("transport", text, &["uc", "rc"])),
    }
}

/// The word for queue pairs of this kind in plans.
pub(super) const fn transport_name(reliable: bool) -> &'static str {
    if reliable { "rc" } else { "uc" }
}
