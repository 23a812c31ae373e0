//! The section `[rdma]`: servers for large waiting tasks.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sluice_net::first::{LINK_MTU, LINK_MTU_MAX, LINK_MTU_MIN};
use sluice_net::rdma::Mtu;

use super::keys;

/// The most servers.
pub const SERVERS_MAX: u16 = 16;
/// As [`SERVERS_MAX`], for keys.
const SERVERS: u64 = SERVERS_MAX as u64;

/// The servers, and what is written into their memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RdmaPlan {
    /// How many servers the workers are dealt out to; with none the switch itself keeps the bytes of what
    /// waits.
    #[serde(deserialize_with = "keys::whole::<_, _, 0, SERVERS>")]
    pub servers: u16,
    /// The MTU of all links.
    #[serde(deserialize_with = "keys::whole::<_, _, { LINK_MTU_MIN as u64 }, { LINK_MTU_MAX as u64 }>")]
    pub link_mtu: u16,
    /// The RDMA MTU: the most bytes of one WRITE.
    #[serde(with = "keys::mtu")]
    pub mtu: Mtu,
    /// Whether queue pairs are reliable.
    #[serde(rename = "transport", with = "keys::transport")]
    pub reliable: bool,
    /// Whether WRITEs carry an iCRC, which must be right.
    pub icrc: bool,
    /// The largest number of servers of its slice to which a task is written; zero means all of them.
    #[serde(deserialize_with = "keys::whole::<_, _, 0, SERVERS>")]
    pub copies: u16,
    /// Tasks of a slice that may pass while one of its workers is stopped.
    #[serde(deserialize_with = "keys::whole::<_, _, 0, { 1 << 20 }>")]
    pub stall_tasks: u32,
    /// Slots of each ring, against the rule. For tests.
    #[serde(deserialize_with = "keys::some_ring", skip_serializing_if = "Option::is_none")]
    pub tiny_slots: Option<u32>,
    /// The folder of captures of what is written into servers' memory.
    #[serde(serialize_with = "keys::some_path", skip_serializing_if = "Option::is_none")]
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
