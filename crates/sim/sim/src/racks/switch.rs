//! Spines and leaves, or a rack's only switch: their programs, and the ports for their recirculating
//! packets. What happens to them is in `effects`.

use sluice_events::Port;
use sluice_switch::horus::{Horus, HorusError, RackSize, Spine, SpineLink};
use sluice_switch::racksched::RackSched;
use sluice_switch::rain::RainLeaf;
use sluice_switch::{Config, KnownClients, Mirror, Program};
use sluice_testbed::SwitchTimes;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Epoch, Generation, Serial, SliceId, WorkerId};

use crate::system::System;

/// How many queues RackSched compares; with 1 the choice is random.
const SAMPLES: u8 = 2;
const ANY: u8 = 1;

/// A switch; it may be down.
#[derive(Debug)]
pub(super) struct SwitchNode {
    pub(super) scheduler: SwitchProgram,
    /// The port of recirculating packets.
    pub(super) port: Port,
    pub(super) epoch: Epoch,
    /// The clients that a leaf below spines has learned, in fault runs.
    pub(super) clients: Option<KnownClients>,
    /// Whether the switch is up: packets arrive and leave.
    pub(super) lives: bool,
}

#[derive(Debug)]
pub(super) enum SwitchProgram {
    HorusSpine(Box<Spine>),
    HorusLeaf(Box<Horus>),
    RackSched(Box<RackSched>),
    RainLeaf(Box<RainLeaf>),
    /// The program of a rack's only switch.
    Alone(Box<dyn Program>),
}

impl SwitchNode {
    pub(super) fn new(scheduler: SwitchProgram, epoch: Epoch, times: &SwitchTimes) -> Self {
        Self { scheduler, port: Port::new(times.recirculation_gbps), epoch, clients: None, lives: true }
    }

    #[inline]
    pub(super) fn program(&mut self) -> &mut dyn Program {
        match &mut self.scheduler {
            SwitchProgram::Alone(program) => &mut **program,
            below => below.below_spines(),
        }
    }

    /// Carries out an operation of its controller.
    pub(super) fn table(&mut self, op: TableOp) {
        let answer = self.program().table(op);
        assert_eq!(answer, TableAnswer::Done, "the switch is laid out for all: {op:?}");
    }
}

impl SwitchProgram {
    /// The program of a spine or a leaf. Kept apart, so that a rack without spines does not pay for it.
    #[inline(never)]
    fn below_spines(&mut self) -> &mut dyn Program {
        match self {
            Self::HorusSpine(spine) => &mut **spine,
            Self::HorusLeaf(leaf) => &mut **leaf,
            Self::RackSched(switch) => &mut **switch,
            Self::RainLeaf(leaf) => &mut **leaf,
            Self::Alone(program) => &mut **program,
        }
    }

    pub(super) fn spine(system: System, config: Config) -> Result<Self, HorusError> {
        Ok(match system {
            System::Horus(reading) | System::Rain { reading, .. } => {
                Self::HorusSpine(Box::new(Spine::new(reading, config)?))
            }
            System::Hierarchy { by_size: true, .. } => {
                Self::RackSched(Box::new(RackSched::spine_by_size(SAMPLES, config)))
            }
            System::Hierarchy { .. } => Self::RackSched(Box::new(RackSched::spine(SAMPLES, config))),
            System::Balanced { flows: 0 } => Self::RackSched(Box::new(RackSched::spine(ANY, config))),
            System::Balanced { flows } => Self::RackSched(Box::new(RackSched::spine_of_flows(flows, config))),
        })
    }

    /// A leaf with room for so many spines.
    pub(super) fn leaf(system: System, config: Config, spines: u16) -> Self {
        match system {
            System::Horus(reading) => Self::HorusLeaf(Box::new(Horus::in_fabric(reading, config, spines))),
            System::Rain { tokens, reading } => {
                Self::RainLeaf(Box::new(RainLeaf::in_fabric(tokens, reading, config, spines)))
            }
            System::Hierarchy { .. } | System::Balanced { .. } => {
                Self::RackSched(Box::new(RackSched::in_fabric(SAMPLES, config, spines)))
            }
        }
    }

    /// Tells the spine how many workers of a pool are below a leaf.
    pub(super) fn set_workers(
        &mut self,
        pool: SliceId,
        leaf: (WorkerId, Generation),
        workers: u32,
    ) -> Result<(), HorusError> {
        let size = RackSize::new(workers)?;
        match self {
            Self::HorusSpine(spine) => spine.set_workers(pool, leaf, Some(size)),
            Self::RackSched(spine) => {
                spine.set_workers(pool, leaf.0, workers);
                Ok(())
            }
            Self::HorusLeaf(_) | Self::RainLeaf(_) | Self::Alone(_) => Ok(()),
        }
    }

    /// Tells the leaf about a spine, or that the spine is gone.
    pub(super) fn set_spine(
        &mut self,
        spine: u16,
        row: Option<(SpineLink, Serial)>,
    ) -> Result<(), HorusError> {
        match self {
            Self::HorusLeaf(leaf) => leaf.set_spine(spine, row),
            Self::RackSched(leaf) => leaf.set_spine(spine, row),
            Self::RainLeaf(leaf) => leaf.set_spine(spine, row),
            Self::HorusSpine(_) | Self::Alone(_) => Ok(()),
        }
    }

    /// Tells the leaf which spine gets a pool's UPDATEs; returns the UPDATE that the spine has to get
    /// first.
    pub(super) fn link(&mut self, pool: SliceId, spine: u16) -> Result<Option<Mirror>, HorusError> {
        match self {
            Self::HorusLeaf(leaf) => leaf.link(pool, Some(spine)),
            Self::RackSched(leaf) => leaf.link(pool, Some(spine)).map(|()| None),
            Self::RainLeaf(leaf) => leaf.link(pool, Some(spine)),
            Self::HorusSpine(_) | Self::Alone(_) => Ok(None),
        }
    }
}
