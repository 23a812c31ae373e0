//! Whose turn it is: a switch obeys one controller, by a number that only grows.
//!
//! A controller that starts claims its switch with a greater number than the switch has seen, and so takes it over from
//! whoever had it: a restart is the usual case. Steps of a lesser number are answered "superseded" and change nothing. Who
//! hears that, or finds a number in a life of the switch that it did not claim itself, has had its turn: it writes nothing
//! any more, tells hosts and people so, and never claims again, since two that did would take the switch from each other for
//! ever. A switch that comes up empty has seen no number: the controller that had it before claims it again, unless another
//! was there first.

use alloc::vec::Vec;

use sluice_wire::tables::{Shape, TableOp};
use sluice_wire::{Epoch, Nanos, Term};

use crate::controller::{Controller, Link};
use crate::ledger::Expect;
use crate::message::Action;
use crate::note::Note;

/// What this controller has claimed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// What was granted to it last, and in which life of the switch.
    held: Option<(Epoch, Term)>,
    /// What it has asked for, as long as it does not know whether that was granted.
    asked: Option<(Epoch, Term)>,
}

/// How it stands with a switch that was just found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Ours,
    Free(Term),
    Superseded,
}

impl Turn {
    pub(crate) fn term(&self) -> Term {
        self.held.map_or(Term(0), |(_, term)| term)
    }

    /// The claim was granted.
    pub(crate) fn claimed(&mut self) {
        self.held = self.asked.take().or(self.held);
    }

    fn standing(&self, shape: &Shape) -> Standing {
        let found = (shape.epoch, shape.term);
        match self.held {
            Some(held) if held == found => Standing::Ours,
            Some((epoch, _)) if epoch == shape.epoch => Standing::Superseded,
            // A claim of ours whose answer was lost is claimed once more.
            Some(_) if shape.term != Term(0) && self.asked != Some(found) => Standing::Superseded,
            _ => Standing::Free(Term(shape.term.max(self.term()).0.saturating_add(1))),
        }
    }
}

impl Controller {
    /// A switch that fits was found: goes on if it obeys, else claims it, or stands back.
    pub(crate) fn take_turn(&mut self, now: Nanos, shape: Shape, out: &mut Vec<Action>) {
        match self.turn.standing(&shape) {
            Standing::Ours => self.begin_reading(now, out),
            Standing::Free(term) => {
                self.turn.asked = Some((shape.epoch, term));
                self.link = Link::Claiming;
                self.ledger.ask(TableOp::Claim(term), Expect::Claim, out);
            }
            Standing::Superseded => self.superseded(shape.term, out),
        }
    }

    /// Another controller has taken the switch over.
    pub(crate) fn superseded(&mut self, by: Term, out: &mut Vec<Action>) {
        self.send_all_away(true, out);
        out.push(Action::Note(Note::Superseded { by, ours: self.turn.term() }));
        self.link = Link::Superseded;
    }
}
