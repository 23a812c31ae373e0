//! A testbed's delays around the passes: what they hold, and when it goes on.

use sluice_net::udp::Outbox;
use sluice_netem::DelayQueue;
use sluice_switch::Circulating;
use sluice_wire::{Endpoint, Nanos, Packet};

use crate::switch::Delays;

/// Arrivals that are held at most.
const HELD_MAX: usize = 1 << 16;

/// What is held for as long as links and passes take; nothing where they take none.
pub(super) struct Lag {
    delays: Delays,
    /// Whether nothing is ever held: asked for each packet, so it is found once.
    is_none: bool,
    pub(super) held: DelayQueue<Lagging>,
}

pub(super) enum Lagging {
    Arrival { from: Endpoint, packet: Packet },
    Again(Circulating),
}

impl Lag {
    pub(super) fn new(delays: Delays) -> Self {
        Self { delays, is_none: delays.is_none(), held: DelayQueue::new(HELD_MAX) }
    }

    /// Whether nothing is ever held.
    pub(super) fn is_none(&self) -> bool {
        self.is_none
    }

    /// When something goes on.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.held.next_due()
    }

    /// Holds an arrival for its link's delay; says whether there was room.
    pub(super) fn hold(&mut self, received: Nanos, from: Endpoint, packet: Packet, body: &[u8]) -> bool {
        self.held.put(received + self.delays.to_switch(&packet), Lagging::Arrival { from, packet }, body)
    }

    /// Holds what goes round; says whether it does. It is never dropped: without a place to wait it goes at
    /// once.
    pub(super) fn again(&mut self, now: Nanos, again: Circulating) -> bool {
        let due = now + self.delays.pass + self.delays.recirculation;
        !self.is_none() && self.held.put(due, Lagging::Again(again), &[])
    }

    /// Sends a packet, at once or when a testbed's switch would have.
    pub(super) fn send(
        &self,
        now: Nanos,
        to: Endpoint,
        packet: &Packet,
        outbox: &mut Outbox,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) {
        if self.is_none() {
            outbox.send_with(to, write);
        } else {
            outbox.send_at(now + self.delays.pass + self.delays.from_switch(packet), to, write);
        }
    }

    /// When a write to a server leaves, if not at once.
    pub(super) fn write_due(&self, now: Nanos) -> Option<Nanos> {
        (!self.is_none()).then(|| now + self.delays.pass + self.delays.worker)
    }
}
