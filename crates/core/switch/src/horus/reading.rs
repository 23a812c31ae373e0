//! What of Horus is read how, where its text leaves a choice.

use sluice_wire::{Nanos, RackNews};

use super::Average;
use super::affinity::{KEEPS_MAX, read_keeps};

/// How the text is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The idle list is as printed, with its holes (Algorithm 1).
    pub(super) as_published: bool,
    /// A task that goes round writes its node's load anew and clears its drift (A.1), where else it adds
    /// one to the load and leaves the drift (Algorithm 2).
    pub(super) writes: bool,
    /// An idle node's drift does not count the task that it gets (Algorithm 1, to the letter).
    pub(super) uncounted: bool,
    /// What of the policy schedules.
    pub(super) parts: PolicyParts,
    /// A task's later tries go where the one before went, if that is no longer ago than this (A.4).
    pub(super) affinity: Option<Nanos>,
}

/// What of the policy schedules (Horus Appendix C, Figure 17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyParts {
    /// Idle nodes first, else the shorter of two queues.
    #[default]
    Both,
    /// Idle nodes first, else any node.
    IdleOnly,
    /// The lesser of two loads as they were told last; nobody looks for idle nodes, and what was sent since
    /// is not seen (the paper's *delayed updates*).
    LoadsOnly,
}

impl PolicyParts {
    pub(super) const fn looks_for_idle(self) -> bool {
        !matches!(self, Self::LoadsOnly)
    }
}

/// How the text is read in a fabric of leaves and spines, where the authors' switch code and their simulator
/// differ from it. The default is the text's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricReading {
    /// Lists of idle nodes, and averages after losses and changes, are as printed, with their holes.
    pub as_published: bool,
    /// A task that goes round writes its node's load anew and clears its drift (A.1).
    pub resubmit_writes: bool,
    /// A task for an idle node is not counted there (Algorithm 1, to the letter).
    pub idle_uncounted: bool,
    /// A rack is idle from so many idle workers on: 1, and in the authors' code 2 or 5.
    pub idle_from: u16,
    /// Which idle rack a spine takes.
    pub idle_rack: IdleRack,
    /// When a leaf tells its load.
    pub told: LoadsTold,
    /// What of the policy schedules.
    pub parts: PolicyParts,
    /// A task's later tries go to the rack and the worker that the one before went to, if that is no longer
    /// ago than this (A.4); up to 500 s. A rack of Rain has no use for it.
    pub affinity: Option<Nanos>,
}

/// Which idle rack a spine takes.
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
    /// When its average has moved by one.
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
    /// How long an affinity table may keep its entries, as one writes it: 66 us to 500 s.
    pub fn keeps(text: &str) -> Option<Nanos> {
        read_keeps(text)
    }

    /// The same where all times are so many times as long; `None` if a table cannot keep its entries for
    /// that.
    pub fn dilated(self, factor: u32) -> Option<Self> {
        let affinity = self.affinity.map(|keeps| keeps.times(factor.into()));
        let fits = affinity.is_none_or(|keeps| keeps <= KEEPS_MAX);
        fits.then_some(Self { affinity, ..self })
    }

    /// The mean that a leaf's word implies, where loads are told when they are one off: none before its
    /// workers if some are idle, one before each if none is. Leaf and spine both reckon with it.
    pub(super) fn implied(self, news: RackNews) -> Option<Average> {
        let is_reckoned = !self.as_published && self.told == LoadsTold::ByOne;
        match news {
            RackNews::Idle if is_reckoned => Some(Average::default()),
            RackNews::Busy if is_reckoned => Some(Average::ONE),
            _ => None,
        }
    }

    /// What of it concerns one switch alone.
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
