//! The readings of Horus, where its text leaves a choice.

use sluice_wire::{Nanos, RackNews};

use super::Average;
use super::affinity::{KEEPS_MAX, read_keeps};

/// How one switch reads the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The idle list is as printed, with its holes (Algorithm 1).
    pub(super) as_published: bool,
    /// A recirculating task writes its node's load anew and clears its drift (A.1). Otherwise it adds one
    /// to the load and leaves the drift (Algorithm 2).
    pub(super) writes: bool,
    /// A task for an idle node does not count in the node's drift (Algorithm 1, to the letter).
    pub(super) uncounted: bool,
    /// Which parts of the policy schedule.
    pub(super) parts: PolicyParts,
    /// For how long a task's next attempt goes to the same place as the attempt before (A.4).
    pub(super) affinity: Option<Nanos>,
}

/// Which parts of the policy schedule (Horus Appendix C, Figure 17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyParts {
    /// Idle nodes first, then the shorter of two queues.
    #[default]
    Both,
    /// Idle nodes first, then any node.
    IdleOnly,
    /// The smaller of two loads as they were told last. No idle node is looked for, and tasks sent since
    /// are not counted (the paper's *delayed updates*).
    LoadsOnly,
}

impl PolicyParts {
    pub(super) const fn looks_for_idle(self) -> bool {
        !matches!(self, Self::LoadsOnly)
    }
}

/// How a fabric of leaves and spines reads the text. The authors' switch code and their simulator differ
/// from the text in these points; the default is the text's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricReading {
    /// Lists of idle nodes are as printed, with their holes, and so are averages after losses and changes.
    pub as_published: bool,
    /// A recirculating task writes its node's load anew and clears its drift (A.1).
    pub resubmit_writes: bool,
    /// A task for an idle node is not counted there (Algorithm 1, to the letter).
    pub idle_uncounted: bool,
    /// From how many idle workers on a rack is idle: 1 in the text, 2 or 5 in the authors' code.
    pub idle_from: u16,
    /// Which idle rack a spine chooses.
    pub idle_rack: IdleRack,
    /// When a leaf tells its load.
    pub told: LoadsTold,
    /// Which parts of the policy schedule.
    pub parts: PolicyParts,
    /// A task's later try goes to the rack and the worker of the try before, if that was sent no longer ago
    /// than this (A.4), at most 500 s. A rack of Rain makes no use of it.
    pub affinity: Option<Nanos>,
}

/// Which idle rack a spine chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleRack {
    /// The one that became idle last.
    Newest,
    /// Any of them, at random.
    Random,
}

/// When a leaf tells its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadsTold {
    /// When its average has changed by one task.
    ByOne,
    /// After as many replies as it has workers.
    ByReplies,
    /// With every reply.
    Always,
}

impl Default for FabricReading {
    fn default() -> Self {
        Self {
            as_published: false,
            resubmit_writes: false,
            idle_uncounted: false,
            idle_from: 1,
            idle_rack: IdleRack::Newest,
            told: LoadsTold::ByOne,
            parts: PolicyParts::Both,
            affinity: None,
        }
    }
}

impl FabricReading {
    /// Reads how long an affinity table keeps its entries, such as `10ms`: 66 µs to 500 s.
    pub fn keeps(text: &str) -> Option<Nanos> {
        read_keeps(text)
    }

    /// The same reading with all times multiplied by `factor`; `None` if a table cannot keep its entries
    /// for so long.
    pub fn dilated(self, factor: u32) -> Option<Self> {
        let affinity = self.affinity.map(|keeps| keeps.times(factor.into()));
        let fits = affinity.is_none_or(|keeps| keeps <= KEEPS_MAX);
        fits.then_some(Self { affinity, ..self })
    }

    /// The mean queue that a leaf's UPDATE implies, where loads are told when they are one task off: 0 if
    /// some workers are idle, 1 if none is. Leaf and spine both compute with it.
    pub(super) fn implied(self, news: RackNews) -> Option<Average> {
        let is_reckoned = !self.as_published && self.told == LoadsTold::ByOne;
        match news {
            RackNews::Idle if is_reckoned => Some(Average::default()),
            RackNews::Busy if is_reckoned => Some(Average::ONE),
            _ => None,
        }
    }

    /// The part of the reading that concerns one switch alone.
    pub(super) const fn of_a_rack(self) -> Reading {
        Reading {
            as_published: self.as_published,
            writes: self.resubmit_writes,
            uncounted: self.idle_uncounted,
            parts: self.parts,
            affinity: self.affinity,
        }
    }
}
