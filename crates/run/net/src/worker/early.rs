//! Early tokens on a real socket: what a service says of its end, and the token that leaves before it.
//!
//! In real time a service's own word, said while it works, sends the token: its thread is the only one there
//! is. Under dilation, and where a service holds its worker, the token leaves while the worker is taken. The
//! first word counts then, said before the work: later ones would be said in the little real time, when all
//! is over.

use std::cell::RefCell;

use sluice_host::worker::{Action, Outlook, Worker, WorkerSettings};
use sluice_wire::{Endpoint, Nanos, encode};

use crate::clock::Clock;
use crate::udp::Outbox;

/// Where a running service's words go.
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
    /// Whether a word sends a token at once.
    at_once: bool,
    first: Option<Nanos>,
    actions: Vec<Action>,
}

impl<'a> Listener<'a> {
    /// Listens to the run `slot`. In real time (`at_once`) words send tokens.
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

    /// The service says that this is left.
    pub(super) fn left(&self, left: Nanos) {
        // A word within a word, which no service can say, would be lost.
        let Ok(mut inner) = self.inner.try_borrow_mut() else { return };
        inner.first.get_or_insert(left);
        if inner.at_once {
            inner.say(self.clock.now(), left);
        }
    }

    /// What the service said first, if anything.
    pub(super) fn first(self) -> Option<Nanos> {
        self.inner.into_inner().first
    }
}

impl Inner<'_> {
    fn say(&mut self, now: Nanos, left: Nanos) {
        self.machine.expect(now, self.slot, Outlook::Left(left));
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
