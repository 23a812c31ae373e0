//! Which controller a switch obeys: the one with the highest *term*, a number that only grows.
//!
//! - **Claiming.** A controller that starts claims its switch with the next term, and so takes the switch
//!   over from the controller that had it; usually that was its own earlier process. It claims until a
//!   claim is granted.
//! - **Losing the switch.** Steps in the name of a lesser term are answered "superseded" and change
//!   nothing. A controller that gets this answer, or finds a higher term that it did not claim itself, is
//!   superseded for good. It writes nothing any more, tells hosts and people so, and never claims again.
//!   Two controllers that claimed again would take the switch from each other for ever.
//! - **Restarts of the switch.** The switch keeps the term on its disk. Its tables are empty after a
//!   restart, and the controller with that term claims it anew and fills them. If the term was lost with
//!   the disk, the last controller to claim has the switch.

use sluice_wire::tables::Shape;
use sluice_wire::{Epoch, Term};

/// What this controller has claimed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// The term that was granted to it last, and the epoch in which it was granted.
    held: Option<(Epoch, Term)>,
    /// The first and the last term that it has claimed, while it does not know whether one of them was
    /// granted.
    asked: Option<(Term, Term)>,
}

/// Its relation to a switch that was just found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Ours,
    Free(Term),
    Superseded,
}

impl Turn {
    pub(crate) fn term(&self) -> Term {
        self.held.map_or(Term(0), |(_, term)| term)
    }

    /// The claim was granted, in this epoch of the switch.
    pub(crate) fn claimed(&mut self, epoch: Epoch) {
        self.held = self.asked.take().map(|(_, last)| (epoch, last)).or(self.held);
    }

    pub(crate) fn asks(&mut self, term: Term) {
        let first = self.asked.map_or(term, |(first, _)| first);
        self.asked = Some((first, term));
    }

    /// Whether a claim for this term may have been granted to this controller, and the answer lost.
    fn may_hold(&self, term: Term) -> bool {
        self.asked.is_some_and(|(first, last)| (first..=last).contains(&term))
    }

    pub(crate) fn standing(&self, shape: &Shape) -> Standing {
        match self.held {
            Some(held) if held == (shape.epoch, shape.term) => Standing::Ours,
            Some((_, held)) if shape.term > held && !self.may_hold(shape.term) => Standing::Superseded,
            _ => shape.term.next().map_or(Standing::Superseded, Standing::Free),
        }
    }
}
