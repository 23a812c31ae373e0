//! A world: time, events, packets and links.

use sluice_switch::{Cargo, Circulating};
use sluice_wire::{Nanos, Packet, Token};

use crate::address::Address;
use crate::engine::{EventEngine, LaneId, WorldEvent};
use crate::injector::{Copies, FaultInjector, Transit};
use crate::mail::{Mail, PacketId};
use crate::network::{Links, OneWay};
use crate::pool::Reused;

/// The time, the events and the links. `C` is the type of scheduled events, `W` the fault injector.
#[derive(Debug)]
pub struct World<C, W> {
    pub now: Nanos,
    /// The events under way.
    pub engine: EventEngine<C>,
    /// Packets that are under way or wait to be received.
    pub packets: Reused<Packet>,
    /// Packets that recirculate in switches.
    pub rounds: Reused<Circulating>,
    pub network: Links<W>,
}

impl<C, W: FaultInjector> World<C, W> {
    /// A world without nodes.
    pub fn new(injector: W) -> Self {
        Self {
            now: Nanos(0),
            engine: EventEngine::new(),
            packets: Reused::new(Packet::Token(Token::default())),
            rounds: Reused::new(Circulating { cargo: Cargo::Note, arrived: Nanos(0), memo: 0 }),
            network: Links::new(injector),
        }
    }

    /// Advances to the next event; returns its address and the event, or `None` if there is none.
    #[expect(clippy::inline_always, reason = "what it is needs no second look where it is handed on")]
    #[expect(clippy::should_implement_trait, reason = "what happens depends on what is done in between")]
    #[inline(always)]
    pub fn next(&mut self) -> Option<(Address, WorldEvent<C>)> {
        let (at, whom, what) = self.engine.take_next()?;
        debug_assert!(at >= self.now, "time goes back");
        self.now = at;
        Some((whom, what))
    }

    /// Makes links with this delay between all places of two nodes. `after` is the usual time between the
    /// event that made the sender send and the departure.
    pub fn join(&mut self, from: Address, to: Address, delay: Nanos, after: Nanos) {
        let lane = self.engine.lane(after + delay);
        self.network.join(from, to, OneWay { delay, lane, queue: None });
    }

    /// Sends a packet that leaves at `leaves`, unless a fault stops it. Returns how many copies will
    /// arrive.
    #[expect(clippy::inline_always, reason = "each packet pays for a call that stays one")]
    #[inline(always)]
    pub fn send(&mut self, from: Address, to: Address, leaves: Nanos, packet: PacketId) -> u32 {
        if self.network.injector.is_any() {
            return self.send_copies(from, to, leaves, packet).into_iter().flatten().count() as u32;
        }
        let packets = &self.packets;
        let Some((lane, at)) = self.network.leaves(from, to, leaves, || packets.get(packet)) else {
            debug_assert!(false, "no link leads from {from:?} to {to:?}");
            return 0;
        };
        self.engine.send(lane, at, to, Mail::Packet { from, packet });
        1
    }

    /// Sends as many copies of a packet as the fault injector says, and returns when they arrive.
    #[inline(never)]
    pub fn send_copies(&mut self, from: Address, to: Address, leaves: Nanos, packet: PacketId) -> Copies {
        let packet = self.packets.take(packet);
        let Some((lane, arrives)) = self.network.leaves(from, to, leaves, || &packet) else {
            debug_assert!(false, "no link leads from {from:?} to {to:?}");
            return [None, None];
        };
        let arrivals = self.network.injector.copies(&Transit { from, to, leaves, arrives }, &packet);
        for at in arrivals.into_iter().flatten() {
            let packet = self.packets.keep(&packet);
            self.engine.send(lane, at, to, Mail::Packet { from, packet });
        }
        arrivals
    }

    /// A switch recirculates a packet, which comes back at `at`.
    #[inline]
    pub fn send_round(&mut self, lane: LaneId, to: Address, at: Nanos, round: &Circulating) {
        let round = self.rounds.keep(round);
        self.engine.send(lane, at, to, Mail::Round(round));
    }
}
