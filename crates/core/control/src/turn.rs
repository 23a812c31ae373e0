//! Whose turn it is: a switch obeys one controller, by a number that only grows.
//!
//! - **Claiming.** A controller that starts claims its switch with the next number, and so takes it over from
//!   whoever had it; usually that was its own earlier process. It claims until it is granted.
//! - **Losing it.** Steps in the name of a lesser number are answered "superseded" and change nothing. A
//!   controller that hears that, or finds a greater number that it did not claim itself, has had its turn: it
//!   writes nothing any more, tells hosts and people so, and never claims again. Two that did would take the
//!   switch from each other for ever.
//! - **Restarts of the switch.** The switch keeps the number on its disk. Its tables are empty then, and the
//!   controller with that number claims it anew and fills them. If the number was lost with the disk, whoever
//!   comes last has the switch.

use sluice_wire::tables::Shape;
use sluice_wire::{Epoch, Term};

/// What this controller has claimed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// What was granted to it last, and in which life of the switch.
    held: Option<(Epoch, Term)>,
    /// What it has asked for first and last, as long as it does not know whether any of that was granted.
    asked: Option<(Term, Term)>,
}

/// How it stands with a switch that was just found.
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

    /// The claim was granted, in this life of the switch.
    pub(crate) fn claimed(&mut self, epoch: Epoch) {
        self.held = self.asked.take().map(|(_, last)| (epoch, last)).or(self.held);
    }

    pub(crate) fn asks(&mut self, term: Term) {
        let first = self.asked.map_or(term, |(first, _)| first);
        self.asked = Some((first, term));
    }

    /// Whether a claim of its own may have been granted this, with an answer that was lost.
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
