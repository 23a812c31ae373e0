//! What is under way, and what happens next.
//!
//! Every link has one delay, so that its packets arrive in the order in which they left: a [`Lane`] keeps them. Services
//! end in an order of their own ([`Ends`]); timers, and packets that faults delay, are sorted by an [`Agenda`]. The
//! earliest of all heads is next: time first, then order of entry. A packet lies in one place from its departure to the
//! end of its reception; what is passed on is its number.

use sluice_switch::Circulating;
use sluice_wire::{Nanos, Packet};

use super::ends::Ends;
use super::fates::Fates;
use super::lane::Lane;
use crate::agenda::{Agenda, Moment};

/// Where something comes from that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The next request.
    Request,
    /// Clients to switch.
    Submits,
    /// Workers to switch: tokens, and replies if the program is to see them.
    Tokens,
    /// Switch to workers.
    Workers,
    /// Switch to clients.
    Clients,
    /// Round in the switch.
    Rounds,
    /// Services.
    Ends,
    /// Timers and delayed packets.
    Agenda,
}

impl Source {
    /// Requests first: their head is hardly ever at the end of time, and so seldom like another.
    const ALL: [Self; 8] = [
        Self::Request,
        Self::Submits,
        Self::Tokens,
        Self::Workers,
        Self::Clients,
        Self::Rounds,
        Self::Ends,
        Self::Agenda,
    ];
}

/// When something first comes from each source, times and orders apart: times alone nearly always decide.
#[derive(Debug)]
struct Heads {
    at: [Nanos; Source::ALL.len()],
    order: [u64; Source::ALL.len()],
}

impl Heads {
    const fn new() -> Self {
        let Moment { at, order } = Moment::NEVER;
        Self { at: [at; _], order: [order; _] }
    }

    #[inline]
    fn set(&mut self, source: Source, moment: Moment) {
        self.at[source as usize] = moment.at;
        self.order[source as usize] = moment.order;
    }

    #[inline]
    fn first(&self) -> (Source, Nanos) {
        let (mut first, mut at, mut is_tie) = (0, self.at[0], false);
        for source in 1..self.at.len() {
            let other = self.at[source];
            is_tie |= other == at;
            if other < at {
                (first, at) = (source, other);
            }
        }
        if is_tie { self.first_by_order() } else { (Source::ALL[first], at) }
    }

    #[cold]
    fn first_by_order(&self) -> (Source, Nanos) {
        let moment = |source: Source| (self.at[source as usize], self.order[source as usize]);
        let first = Source::ALL.into_iter().min_by_key(|source| moment(*source)).unwrap_or(Source::Request);
        (first, self.at[first as usize])
    }
}

/// Names a packet that is under way or waits to be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketId(u32);

/// Something that an agenda sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The worker gets its registration.
    WorkerStarts(u32),
    /// The worker's machine has something to do.
    WorkerTick(u32),
    /// The client's machine has something to do.
    ClientTick(u32),
    /// A packet arrives over this link, out of order.
    Stray(Source, PacketId),
}

/// All links, and the packets on them.
#[derive(Debug)]
pub(super) struct Links {
    heads: Heads,
    /// One for each source; those that are no links stay empty.
    lanes: [Lane<PacketId>; Source::ALL.len()],
    rounds: Lane<Circulating>,
    ends: Ends,
    agenda: Agenda<Due>,
    packets: Vec<Packet>,
    vacant: Vec<PacketId>,
    entered: u64,
    fates: Option<Box<Fates>>,
}

impl Links {
    pub(super) fn new(workers: u32, fates: Option<Fates>) -> Self {
        Self {
            heads: Heads::new(),
            lanes: Default::default(),
            rounds: Lane::default(),
            ends: Ends::new(workers),
            agenda: Agenda::new(),
            packets: Vec::new(),
            vacant: Vec::new(),
            entered: 0,
            fates: fates.map(Box::new),
        }
    }

    /// What is next, and when.
    #[inline]
    pub(super) fn next(&self) -> (Source, Nanos) {
        self.heads.first()
    }

    /// Takes the next packet of a link.
    #[inline]
    pub(super) fn take(&mut self, link: Source) -> Option<PacketId> {
        let lane = &mut self.lanes[link as usize];
        let packet = lane.pop();
        self.heads.set(link, lane.first());
        packet
    }

    #[inline]
    pub(super) fn take_round(&mut self) -> Option<Circulating> {
        let round = self.rounds.pop();
        self.heads.set(Source::Rounds, self.rounds.first());
        round
    }

    /// Takes the worker whose service ends.
    #[inline]
    pub(super) fn take_end(&mut self) -> u32 {
        let worker = self.ends.take();
        self.heads.set(Source::Ends, self.ends.first());
        worker
    }

    pub(super) fn take_due(&mut self) -> Option<Due> {
        let due = self.agenda.take();
        self.heads.set(Source::Agenda, self.agenda.first());
        due.map(|(_, due)| due)
    }

    #[inline]
    pub(super) fn packet(&self, packet: PacketId) -> &Packet {
        &self.packets[packet.0 as usize]
    }

    /// The packet has been received: its place is free.
    #[inline]
    pub(super) fn free(&mut self, packet: PacketId) {
        self.vacant.push(packet);
    }

    /// The next request is due then; never, if at the end of time.
    #[inline]
    pub(super) fn request_at(&mut self, at: Nanos) {
        let moment = self.moment(at);
        self.heads.set(Source::Request, moment);
    }

    /// The worker's service ends then.
    #[inline]
    pub(super) fn ends_at(&mut self, at: Nanos, worker: u32) {
        let moment = self.moment(at);
        self.ends.set(worker, moment);
        self.heads.set(Source::Ends, self.ends.first());
    }

    pub(super) fn at(&mut self, at: Nanos, due: Due) {
        let moment = self.moment(at);
        self.agenda.enter(moment, due);
        self.heads.set(Source::Agenda, self.agenda.first());
    }

    #[inline]
    pub(super) fn send_round(&mut self, at: Nanos, round: Circulating) {
        let moment = self.moment(at);
        if self.rounds.push(moment, round) {
            self.heads.set(Source::Rounds, moment);
        }
    }

    /// Sends a packet that arrives then, unless a fault befalls it. Says how many copies arrive.
    #[inline]
    pub(super) fn send(&mut self, link: Source, at: Nanos, packet: &Packet) -> u32 {
        let Some(fates) = &mut self.fates else {
            self.put(link, at, packet);
            return 1;
        };
        let copies = fates.copies(at, packet);
        copies.into_iter().flatten().map(|at| self.put(link, at, packet)).count() as u32
    }

    #[inline]
    fn put(&mut self, link: Source, at: Nanos, packet: &Packet) {
        let id = if let Some(id) = self.vacant.pop() {
            self.packets[id.0 as usize] = *packet;
            id
        } else {
            self.packets.push(*packet);
            PacketId(self.packets.len() as u32 - 1)
        };
        let moment = self.moment(at);
        let lane = &mut self.lanes[link as usize];
        if lane.takes(at) {
            if lane.push(moment, id) {
                self.heads.set(link, moment);
            }
        } else {
            self.agenda.enter(moment, Due::Stray(link, id));
            self.heads.set(Source::Agenda, self.agenda.first());
        }
    }

    #[inline]
    fn moment(&mut self, at: Nanos) -> Moment {
        self.entered += 1;
        Moment::new(at, self.entered)
    }
}
