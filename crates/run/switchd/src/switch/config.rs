//! The settings of a switch.

use std::net::{Ipv4Addr, SocketAddr};

use sluice_switch::horus::{FabricReading, Horus, Spine};
use sluice_switch::rain::RainLeaf;
use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};
use sluice_wire::tables::Feed;

use sluice_net::traces::Tracer;
use sluice_net::udp::{DATAGRAM_BYTES, Waiting};
use sluice_netem::FaultPlan;

use super::Delays;

/// The default of [`SwitchConfig::slab_bytes`].
pub const SLAB_BYTES: usize = 16 << 20;

/// The settings of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    pub at: SocketAddr,
    /// The scheduler. A spine always runs Horus. A leaf runs Rain if this program parks tokens, otherwise
    /// Horus.
    pub program: Choice,
    /// Alone, below a spine, or above leaves.
    pub place: SwitchPlace,
    /// The rack's switch, if this is a leaf on a server of the rack: all packets pass through that switch.
    pub behind: Option<SocketAddr>,
    /// The size of the program's tables, and the epoch of its registers.
    pub size: Config,
    /// The longest datagram that is received or sent, in bytes.
    pub datagram_max: usize,
    /// Memory for payloads that do not fit into queue entries, in bytes.
    pub slab_bytes: usize,
    /// The delays of a testbed that this machine stands for.
    pub delays: Delays,
    pub waiting: Waiting,
    /// The core to which the switch's thread is pinned.
    pub core: Option<usize>,
    /// The injected faults.
    pub faults: FaultPlan,
    /// Takes the spans of traced tasks; without it none is traced.
    pub traces: Option<Tracer>,
}

/// The place of a switch among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwitchPlace {
    #[default]
    Alone,
    /// A spine, above leaves (Horus §3.3).
    Spine(FabricReading),
    /// Below a spine.
    Leaf(FabricReading),
}

impl SwitchConfig {
    /// Rain of this size with all defaults, on a port of the loopback that the kernel chooses.
    pub fn new(size: Config) -> Self {
        Self {
            at: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            program: Choice::default(),
            place: SwitchPlace::Alone,
            behind: None,
            size,
            datagram_max: DATAGRAM_BYTES,
            slab_bytes: SLAB_BYTES,
            delays: Delays::NONE,
            waiting: Waiting::Adaptive,
            core: None,
            faults: FaultPlan::none(),
            traces: None,
        }
    }

    /// The program that the switch runs, with empty tables.
    ///
    /// # Panics
    /// If the size is invalid: see
    /// [`ProgramSettings::build`](sluice_switch::registry::ProgramSettings::build), and for a spine
    /// [`Spine::new`].
    pub(super) fn build(&self) -> Box<dyn Program> {
        match self.place {
            SwitchPlace::Alone => self.program.build(self.size),
            SwitchPlace::Spine(reading) => {
                Box::new(Spine::new(reading, self.size).expect("as many leaves as fit"))
            }
            // Each pool has one spine, at which the leaf has its own index.
            SwitchPlace::Leaf(reading) => match self.program.traits().feed {
                Feed::Tokens { .. } => {
                    let depth = self.program.traits().quota;
                    Box::new(RainLeaf::in_fabric(depth, reading, self.size, self.size.slices))
                }
                Feed::Pushed { .. } | Feed::Polls { .. } => {
                    Box::new(Horus::in_fabric(reading, self.size, self.size.slices))
                }
            },
        }
    }
}
