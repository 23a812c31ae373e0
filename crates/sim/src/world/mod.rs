//! A world in virtual time: an engine that knows what happens next, and addressed places that packets go
//! between.
//!
//! Who lives there is not the world's affair. A node (a switch, a group of workers) has an [`Address`], takes
//! what comes to one of its places, and sends packets to other addresses through [`World::send`]; the
//! [`Links`] says over which link, and so when and whether they arrive. Nodes also set alarms and ask for
//! cues. Whoever is [`Inhabited`] hands what happens to the node that it is for: `rack` does so for one rack.

mod address;
mod agenda;
mod alarms;
mod engine;
mod fates;
mod group;
mod heads;
mod lane;
mod network;
mod pool;

use sluice_switch::Circulating;
use sluice_wire::Nanos;

pub(crate) use address::Address;
pub(crate) use agenda::Agenda;
pub(crate) use alarms::AlarmId;
pub(crate) use engine::{ClockId, EventEngine, LaneId, Mail, PacketId};
pub(crate) use fates::Fates;
pub(crate) use network::{LinkQueue, Links, OneWay, Port};

use engine::Due;
use heads::SourceKind;

/// The time, what happens next, and the links. `C` is what nodes want to be reminded of.
#[derive(Debug)]
pub(crate) struct World<C> {
    pub(crate) now: Nanos,
    pub(crate) engine: EventEngine<C>,
    pub(crate) network: Links,
}

impl<C: Copy> World<C> {
    /// A world with so many alarms, and nobody in it.
    pub(crate) fn new(alarms: u32) -> Self {
        Self { now: Nanos(0), engine: EventEngine::new(alarms), network: Links::default() }
    }

    /// All places of one node reach all of another in so long. Packets usually leave `after` that long from
    /// what made their sender send.
    pub(crate) fn join(&mut self, from: Address, to: Address, delay: Nanos, after: Nanos) {
        let lane = self.engine.lane(after + delay);
        self.network.join(from, to, OneWay { delay, lane, queue: None });
    }

    /// Sends a packet that leaves then, unless a fault befalls it. Says how many copies will arrive.
    pub(crate) fn send(&mut self, from: Address, to: Address, leaves: Nanos, packet: PacketId) -> u32 {
        let packets = &self.engine.packets;
        let Some((lane, at)) = self.network.leaves(from, to, leaves, packets.get(packet)) else {
            debug_assert!(false, "no link leads from {from:?} to {to:?}");
            return 0;
        };
        if self.network.fates.is_some() {
            return self.send_copies(lane, from, to, at, packet);
        }
        self.engine.send(lane, at, to, Mail::Packet { from, packet });
        1
    }

    /// Sends as many copies as the packet's fates say.
    #[inline(never)]
    fn send_copies(&mut self, lane: LaneId, from: Address, to: Address, at: Nanos, packet: PacketId) -> u32 {
        let Some(fates) = &mut self.network.fates else { return 0 };
        let packet = self.engine.packets.take(packet);
        let mut sent = 0;
        for at in fates.copies(at, &packet).into_iter().flatten() {
            let packet = self.engine.packets.keep(&packet);
            self.engine.send(lane, at, to, Mail::Packet { from, packet });
            sent += 1;
        }
        sent
    }

    /// A switch sends something round, to come back to it then.
    #[inline]
    pub(crate) fn send_round(&mut self, lane: LaneId, to: Address, at: Nanos, round: &Circulating) {
        let round = self.engine.rounds.keep(round);
        self.engine.send(lane, at, to, Mail::Round(round));
    }
}

/// A world with its nodes: says to which of them something happens.
pub(crate) trait Inhabited<C: Copy> {
    /// The world.
    fn world(&mut self) -> &mut World<C>;

    /// Something comes to a place.
    fn mail(&mut self, to: Address, mail: Mail);

    /// An alarm goes off. It stays until it is set again, or to never.
    fn alarm(&mut self, alarm: AlarmId);

    /// A clock strikes. It stays until it is set again, or to never.
    fn clock(&mut self, clock: ClockId);

    /// It is time for what somebody asked to be reminded of.
    fn cue(&mut self, cue: C);

    /// Time goes on to what happens next, and it happens. Says whether there was anything.
    #[inline]
    fn step(&mut self) -> bool {
        let world = self.world();
        let (at, whence) = world.engine.next();
        if at == Nanos(u64::MAX) {
            return false;
        }
        debug_assert!(at >= world.now, "time goes back");
        world.now = at;
        match whence.kind() {
            SourceKind::Lane => {
                if let Some((to, mail)) = world.engine.pop(whence) {
                    self.mail(to, mail);
                }
            }
            SourceKind::Alarms => {
                let alarm = world.engine.ringing();
                self.alarm(alarm);
            }
            SourceKind::Clock => {
                self.clock(EventEngine::<C>::striking(whence));
            }
            SourceKind::Agenda => match world.engine.take_due() {
                Some(Due::Mail(to, mail)) => self.mail(to, mail),
                Some(Due::Cue(cue)) => self.cue(cue),
                None => {}
            },
        }
        true
    }
}
