//! How a switch is set up.

use std::net::{Ipv4Addr, SocketAddr};

use sluice_switch::Config;
use sluice_switch::registry::Choice;

use sluice_net::faults::FaultPlan;
use sluice_net::udp::{DATAGRAM_BYTES, Waiting};

use super::Delays;

/// Bytes of payload that may wait beside the queue entries, by default.
pub const SLAB_BYTES: usize = 16 << 20;

/// How a switch is set up.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Where it listens.
    pub at: SocketAddr,
    /// The scheduler.
    pub program: Choice,
    /// The program's size, and the life of its registers.
    pub size: Config,
    /// The longest datagram taken or sent, bytes.
    pub datagram_max: usize,
    /// Bytes of payload that may wait beside the queue entries.
    pub slab_bytes: usize,
    /// Delays of a testbed.
    pub delays: Delays,
    /// How to wait.
    pub waiting: Waiting,
    /// The core to stay on.
    pub core: Option<usize>,
    /// What goes wrong on purpose.
    pub faults: FaultPlan,
}

impl SwitchConfig {
    /// Rain at this size on a port of the loopback that the kernel chooses, with all defaults.
    pub fn new(size: Config) -> Self {
        Self {
            at: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            program: Choice::default(),
            size,
            datagram_max: DATAGRAM_BYTES,
            slab_bytes: SLAB_BYTES,
            delays: Delays::NONE,
            waiting: Waiting::Adaptive,
            core: None,
            faults: FaultPlan::none(),
        }
    }
}
