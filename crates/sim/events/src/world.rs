//! Time goes on, and packets go over links.

use sluice_switch::{Cargo, Circulating};
use sluice_wire::{Nanos, Packet, Token};

use crate::address::Address;
use crate::engine::{EventEngine, LaneId, WorldEvent};
use crate::injector::{Copies, FaultInjector, Transit};
use crate::mail::{Mail, PacketId};
use crate::network::{Links, OneWay};
use crate::pool::Reused;

/// The time, what happens next, and the links. `C` is what nodes want to be reminded of, `W` what befalls
/// packets.
#[derive(Debug)]
pub struct World<C, W> {
    pub now: Nanos,
    /// What is under way, and what happens next.
    pub engine: EventEngine<C>,
    /// Packets that are under way or wait to be received.
    pub packets: Reused<Packet>,
    /// What goes round in switches.
    pub rounds: Reused<Circulating>,
    pub network: Links<W>,
}

impl<C, W: FaultInjector> World<C, W> {
    /// A world with nobody in it.
    pub fn new(injector: W) -> Self {
        Self {
            now: Nanos(0),
            engine: EventEngine::new(),
            packets: Reused::new(Packet::Token(Token::default())),
            rounds: Reused::new(Circulating { cargo: Cargo::Note, arrived: Nanos(0), memo: 0 }),
            network: Links::new(injector),
        }
    }

    /// Time goes on to what happens next. Gives where, and what; nothing, if nothing does any more.
    #[expect(clippy::inline_always, reason = "what it is needs no second look where it is handed on")]
    #[expect(clippy::should_implement_trait, reason = "what happens depends on what is done in between")]
    #[inline(always)]
    pub fn next(&mut self) -> Option<(Address, WorldEvent<C>)> {
        let (at, whom, what) = self.engine.take_next()?;
        debug_assert!(at >= self.now, "time goes back");
        self.now = at;
        Some((whom, what))
    }

    /// All places of one node reach all of another in so long. Packets usually leave `after` that long from
    /// what made their sender send.
    pub fn join(&mut self, from: Address, to: Address, delay: Nanos, after: Nanos) {
        let lane = self.engine.lane(after + delay);
        self.network.join(from, to, OneWay { delay, lane, queue: None });
    }

    /// Sends a packet that leaves then, unless something befalls it. Says how many copies will arrive.
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

    /// The same, told exactly: sends as many copies as the injector says, and says when they arrive.
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

    /// A switch sends something round, to come back to it then.
    #[inline]
    pub fn send_round(&mut self, lane: LaneId, to: Address, at: Nanos, round: &Circulating) {
        let round = self.rounds.keep(round);
        self.engine.send(lane, at, to, Mail::Round(round));
    }
}
