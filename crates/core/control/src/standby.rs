//! A controller that waits for the lead: it answers no host and writes nothing until it is told to lead,
//! and forgets everything when it leads no more. So each time that it leads it begins like a controller
//! that was just started, with a new term, and reads the switch's tables back.

use alloc::vec::Vec;

use sluice_wire::tables::Shape;
use sluice_wire::{Nanos, Term};

use crate::controller::{Controller, Link};
use crate::message::Action;
use crate::note::Note;
use crate::plan::{Plan, PlanError};

impl Controller {
    /// A controller that leads only after [`Event::Lead`](crate::Event::Lead), until
    /// [`Event::StandBy`](crate::Event::StandBy) or until the switch obeys another controller.
    ///
    /// # Errors
    /// As [`Controller::new`].
    pub fn standby(plan: Plan, seed: [u8; 32]) -> Result<Self, PlanError> {
        let mut controller = Self::new(plan, seed)?;
        (controller.waits, controller.link) = (true, Link::Standby(None));
        Ok(controller)
    }

    /// Whether the controller waits for the lead.
    pub const fn is_standby(&self) -> bool {
        matches!(self.link, Link::Standby(_))
    }

    /// Whether the controller leads, or is about to, and has to stop once its lease is over.
    pub(crate) const fn may_lapse(&self) -> bool {
        self.waits && !self.is_standby()
    }

    /// Whether the controller leads only when it is told to.
    pub const fn waits_for_lead(&self) -> bool {
        self.waits
    }

    /// Takes the switch over from the controller of this term, if the switch can be reached.
    pub(crate) fn lead(&mut self, now: Nanos, term: Term, out: &mut Vec<Action>) {
        if let Link::Standby(Some(shape)) = self.link {
            self.link = Link::Down;
            self.switch_up(now, Shape { term, ..shape }, out);
        }
    }

    /// Waits for the lead from now on.
    pub(crate) fn stand_by(&mut self, out: &mut Vec<Action>) {
        self.stand_by_at(self.shape.filter(|_| !matches!(self.link, Link::Down)), out);
    }

    /// The same; the switch of this shape can be reached. Answers to steps that are still under way are
    /// ignored.
    pub(crate) fn stand_by_at(&mut self, seen: Option<Shape>, out: &mut Vec<Action>) {
        if !self.waits || self.is_standby() {
            return;
        }
        let led = self.turn.term() != Term(0);
        self.link = Link::Standby(seen);
        self.send_all_away(false, out);
        if led {
            out.push(Action::Note(Note::StandsBy));
        }
        let ledger = core::mem::take(&mut self.ledger);
        *self = Self::blank(self.plan.clone(), self.rng.clone());
        (self.ledger, self.waits, self.link) = (ledger, true, Link::Standby(seen));
    }

    /// How much longer than a lease hosts get whose rows were read back: while the lead changes, they may
    /// look for the controller at several addresses.
    pub(crate) fn grace(&self) -> Nanos {
        if self.waits { self.plan.lease } else { Nanos(0) }
    }
}
