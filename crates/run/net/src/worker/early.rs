//! Early tokens on a real socket: a service states its remaining time, and the token leaves before the
//! service ends.
//!
//! In real time, the service's call of [`Task::left`](crate::service::Task::left) sends the token itself:
//! there is no other thread. Under dilation, and if a service holds its worker, the token leaves while the
//! worker is held. Then only the first statement counts, made before the work; later statements come within
//! the short real time, when they say almost nothing.

use std::cell::RefCell;

use sluice_host::worker::{Action, RemainingTime, Worker, WorkerSettings};
use sluice_wire::{Endpoint, Nanos, encode};

use crate::clock::Clock;
use crate::udp::Outbox;

/// Takes the statements of a running service.
pub(super) struct Listener<'a> {
    inner: RefCell<Inner<'a>>,
    clock: &'a Clock,
}

struct Inner<'a> {
    machine: &'a mut Worker,
    settings: &'a WorkerSettings,
    outbox: &'a mut Outbox,
    switch: Option<Endpoint>,
    slot: u64,
    /// Whether a statement may send a token at once.
    at_once: bool,
    first: Option<Nanos>,
    actions: Vec<Action>,
}

impl<'a> Listener<'a> {
    /// A listener for the run `slot`. In real time (`at_once`), statements send tokens.
    pub(super) fn new(
        clock: &'a Clock,
        (machine, settings): (&'a mut Worker, &'a WorkerSettings),
        (outbox, switch): (&'a mut Outbox, Option<Endpoint>),
        slot: u64,
        at_once: bool,
    ) -> Self {
        let (first, actions) = (None, Vec::new());
        let inner = Inner { machine, settings, outbox, switch, slot, at_once, first, actions };
        Self { inner: RefCell::new(inner), clock }
    }

    /// Takes a statement that this much time is left.
    pub(super) fn left(&self, left: Nanos) {
        // A statement inside another one, which no service can make, would be lost.
        let Ok(mut inner) = self.inner.try_borrow_mut() else { return };
        inner.first.get_or_insert(left);
        if inner.at_once {
            inner.expect_left(self.clock.now(), left);
        }
    }

    /// The time of the service's first statement, if the service made any.
    pub(super) fn first(self) -> Option<Nanos> {
        self.inner.into_inner().first
    }
}

impl Inner<'_> {
    fn expect_left(&mut self, now: Nanos, left: Nanos) {
        self.machine.expect(now, self.slot, RemainingTime::Left(left));
        self.machine.early(now, self.settings, &mut self.actions);
        let is_due = !self.actions.is_empty();
        for action in self.actions.drain(..) {
            if let (Action::ToSwitch(packet), Some(switch)) = (action, self.switch) {
                self.outbox.send_with(switch, |out| encode(&packet, &[], out).unwrap_or(0));
            }
        }
        if is_due {
            self.outbox.flush();
        }
    }
}
