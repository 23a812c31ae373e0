//! A testbed's delays around the passes: a queue of delayed packets.

use sluice_net::udp::Outbox;
use sluice_netem::DelayQueue;
use sluice_switch::Circulating;
use sluice_wire::{Endpoint, Nanos, Packet};

use crate::switch::Delays;

/// How many arrivals can be delayed at once.
const HELD_MAX: usize = 1 << 16;

/// Packets that are delayed by links and passes.
pub(super) struct Lag {
    delays: Delays,
    /// Whether there are no delays at all; computed once, since each packet asks.
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

    /// Whether there are no delays at all.
    pub(super) fn is_none(&self) -> bool {
        self.is_none
    }

    /// When the next delayed packet is due.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.held.next_due()
    }

    /// Delays an arrival by its link's delay. Returns false if the queue is full.
    pub(super) fn hold(&mut self, received: Nanos, from: Endpoint, packet: Packet, body: &[u8]) -> bool {
        self.held.put(received + self.delays.to_switch(&packet), Lagging::Arrival { from, packet }, body)
    }

    /// Delays a recirculated packet. Returns false if it must pass at once: there are no delays, or no
    /// room; a recirculated packet is never dropped.
    pub(super) fn again(&mut self, now: Nanos, again: Circulating) -> bool {
        let due = now + self.delays.pass + self.delays.recirculation;
        !self.is_none() && self.held.put(due, Lagging::Again(again), &[])
    }

    /// Sends a packet, at once or when a testbed's switch would send it.
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

    /// When a write to a server leaves; `None` for at once.
    pub(super) fn write_due(&self, now: Nanos) -> Option<Nanos> {
        (!self.is_none()).then(|| now + self.delays.pass + self.delays.worker)
    }
}
