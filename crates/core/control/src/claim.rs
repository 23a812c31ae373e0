//! The controller claims its switch, or stands back because another one has it (`turn`).

use alloc::vec::Vec;

use sluice_wire::tables::{Shape, TableOp};
use sluice_wire::{Nanos, Term};

use crate::controller::{Controller, Link};
use crate::ledger::Expect;
use crate::message::Action;
use crate::note::Note;
use crate::turn::Standing;

impl Controller {
    /// A switch that fits was found: goes on if it obeys, else claims it, or stands back.
    pub(crate) fn take_turn(&mut self, now: Nanos, shape: Shape, out: &mut Vec<Action>) {
        match self.turn.standing(&shape) {
            Standing::Ours => self.begin_reading(now, out),
            Standing::Free(term) => {
                self.turn.asks(term);
                self.link = Link::Claiming;
                self.ledger.ask(TableOp::Claim(term), Expect::Claim, out);
            }
            Standing::Superseded => self.superseded(shape.term, out),
        }
    }

    /// Someone was there first. That may have been nobody who still lives: a controller that died, or a claim
    /// of our own that came late.
    pub(crate) fn claim_refused(&mut self, now: Nanos, by: Term, out: &mut Vec<Action>) {
        if let Some(shape) = self.shape {
            self.take_turn(now, Shape { term: by, ..shape }, out);
        }
    }

    /// Another controller has taken the switch over.
    pub(crate) fn superseded(&mut self, by: Term, out: &mut Vec<Action>) {
        self.link = Link::Superseded;
        self.send_all_away(true, out);
        out.push(Action::Note(Note::Superseded { by, ours: self.turn.term() }));
    }
}
