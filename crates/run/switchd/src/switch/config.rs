//! How a switch is set up.

use std::net::{Ipv4Addr, SocketAddr};

use sluice_switch::horus::{FabricReading, Horus, Spine};
use sluice_switch::rain::RainLeaf;
use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};
use sluice_wire::tables::Feed;

use sluice_net::udp::{DATAGRAM_BYTES, Waiting};
use sluice_netem::FaultPlan;

use super::Delays;

/// Bytes of payload that may wait beside the queue entries, by default.
pub const SLAB_BYTES: usize = 16 << 20;

/// How a switch is set up.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    pub at: SocketAddr,
    /// The scheduler; a spine runs Horus, and a leaf below it Rain if this has tokens parked, else Horus.
    pub program: Choice,
    /// Where the switch stands.
    pub place: SwitchPlace,
    /// The rack's switch, if this is a leaf on a server of the rack: all packets come and go through that.
    pub behind: Option<SocketAddr>,
    /// The program's size, and the life of its registers.
    pub size: Config,
    /// The longest datagram taken or sent, bytes.
    pub datagram_max: usize,
    /// Bytes of payload that may wait beside the queue entries.
    pub slab_bytes: usize,
    /// Delays of a testbed.
    pub delays: Delays,
    pub waiting: Waiting,
    /// The core to stay on.
    pub core: Option<usize>,
    /// What goes wrong on purpose.
    pub faults: FaultPlan,
}

/// Where a switch stands among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwitchPlace {
    /// Alone.
    #[default]
    Alone,
    /// Above leaves (Horus §3.3).
    Spine(FabricReading),
    /// Below a spine.
    Leaf(FabricReading),
}

impl SwitchConfig {
    /// Rain at this size on a port of the loopback that the kernel chooses, with all defaults.
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
        }
    }

    /// The program that the switch runs, empty.
    ///
    /// # Panics
    /// If its size is not sound: see
    /// [`ProgramSettings::build`](sluice_switch::registry::ProgramSettings::build), and for a spine
    /// [`Spine::new`].
    pub(super) fn build(&self) -> Box<dyn Program> {
        match self.place {
            SwitchPlace::Alone => self.program.build(self.size),
            SwitchPlace::Spine(reading) => {
                Box::new(Spine::new(reading, self.size).expect("as many leaves as fit"))
            }
            // A pool has one spine, and a leaf a number there for each pool.
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
