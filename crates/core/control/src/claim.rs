//! How the controller claims its switch, or stands back because another controller has it (`turn`).

use alloc::vec::Vec;

use sluice_wire::tables::{Shape, TableOp};
use sluice_wire::{Nanos, Term};

use crate::controller::{Controller, Link};
use crate::ledger::Expect;
use crate::message::Action;
use crate::note::Note;
use crate::turn::Standing;

impl Controller {
    /// A switch that fits was found. Reads its tables if it obeys this controller already, else claims it,
    /// or stands back.
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

    /// Another claim came first. Its controller may be dead, or it may be a late claim of our own; so this
    /// claims the next term, or stands back.
    pub(crate) fn claim_refused(&mut self, now: Nanos, by: Term, out: &mut Vec<Action>) {
        if self.waits {
            // Whoever holds that term leads, or its lease will end.
            return self.stand_by_at(self.shape, out);
        }
        if let Some(shape) = self.shape {
            self.take_turn(now, Shape { term: by, ..shape }, out);
        }
    }

    /// Another controller has taken the switch over.
    pub(crate) fn superseded(&mut self, by: Term, out: &mut Vec<Action>) {
        if self.waits {
            return self.stand_by_at(self.shape, out);
        }
        self.link = Link::Superseded;
        self.send_all_away(true, out);
        out.push(Action::Note(Note::Superseded { by, ours: self.turn.term() }));
    }
}
