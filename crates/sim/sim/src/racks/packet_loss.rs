//! The fault injector of curves: loss, duplication and reordering, with rates for each kind of packet.
//!
//! Each pool has a stream of its own, so that the packets of one pool do not affect the faults of
//! another's.

use sluice_events::dice::Dice;
use sluice_events::{Copies, FaultInjector, Transit};
use sluice_testbed::{Faults, Rates};
use sluice_wire::{Nanos, Packet};

/// The fault injectors of all pools.
#[derive(Debug)]
pub(super) struct PoolLoss {
    each: Vec<PacketLoss>,
    /// The pool whose packet is sent next.
    pool: usize,
}

impl PoolLoss {
    /// For pools with these seeds; `None` if there are no faults.
    pub(super) fn new(
        faults: &Faults,
        seeds: impl Iterator<Item = u64>,
        replication: u32,
    ) -> Option<Box<Self>> {
        let each: Option<_> = seeds.map(|seed| PacketLoss::new(faults, seed, replication)).collect();
        each.map(|each| Box::new(Self { each, pool: 0 }))
    }

    /// The next packets are those of this pool.
    pub(super) const fn turn_to(&mut self, pool: usize) {
        self.pool = pool;
    }
}

impl FaultInjector for PoolLoss {
    fn is_any(&self) -> bool {
        true
    }

    fn copies(&mut self, transit: &Transit, packet: &Packet) -> Copies {
        self.each[self.pool].copies(transit.arrives, packet)
    }
}

/// Draws the fate of each packet.
#[derive(Debug)]
struct PacketLoss {
    dice: Dice,
    rates: [Rates; KINDS],
    delay_max: Nanos,
}

/// Kinds of packets with rates of their own.
const KINDS: usize = 8;

impl PacketLoss {
    /// `None` if there are no faults.
    fn new(faults: &Faults, seed: u64, replication: u32) -> Option<Self> {
        if faults.are_none() {
            return None;
        }
        let rates = [
            faults.submit,
            faults.dispatch,
            faults.reply,
            faults.token,
            faults.reject,
            faults.probe,
            faults.answer,
            faults.update,
        ];
        let dice = Dice::named(seed, "network", replication);
        Some(Self { dice, rates, delay_max: faults.reorder_by })
    }

    fn copies(&mut self, at: Nanos, packet: &Packet) -> Copies {
        let rates = self.rates[kind(packet)];
        let kept = !self.dice.happens(rates.loss);
        let first = kept.then(|| self.arrival(at, rates));
        let second = self.dice.happens(rates.duplicate).then(|| self.arrival(at, rates));
        [first, second]
    }

    fn arrival(&mut self, at: Nanos, rates: Rates) -> Nanos {
        let late = self.dice.happens(rates.reorder);
        if late { at + Nanos(self.dice.below(self.delay_max.0 + 1)) } else { at }
    }
}

/// Rare kinds share the rates of a similar kind.
const fn kind(packet: &Packet) -> usize {
    match packet {
        Packet::Submit(_) | Packet::Job(_) => 0,
        Packet::Dispatch(_) => 1,
        Packet::Reply(_) | Packet::Need(_) | Packet::Part(_) => 2,
        Packet::Token(_) => 3,
        Packet::Reject(_) | Packet::Notice(_) => 4,
        Packet::Probe(_) | Packet::Sweep(_) => 5,
        Packet::Answer(_) | Packet::Empty(_) => 6,
        Packet::Update(_) => 7,
    }
}
