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

/// When something first comes from each source: a winner tree whose changes cost no guessed branch.
#[derive(Debug)]
struct Heads {
    each: [u128; 8],
    of_two: [u128; 4],
    of_four: [u128; 2],
    first: u128,
}

/// Below a moment's order stands the source.
const SOURCE_BITS: u32 = 3;

impl Heads {
    fn new() -> Self {
        let never = Moment::NEVER.key();
        let mut heads = Self { each: [never; _], of_two: [never; _], of_four: [never; _], first: never };
        for source in Source::ALL {
            heads.set(source, Moment::NEVER);
        }
        heads
    }

    #[inline]
    fn set(&mut self, source: Source, Moment { at, order }: Moment) {
        let at_source = source as usize & 7;
        let key = Moment::new(at, order << SOURCE_BITS | source as u64).key();
        self.each[at_source] = key;
        let of_two = key.min(self.each[at_source ^ 1]);
        self.of_two[at_source / 2] = of_two;
        let of_four = of_two.min(self.of_two[(at_source / 2) ^ 1]);
        self.of_four[at_source / 4] = of_four;
        self.first = of_four.min(self.of_four[(at_source / 4) ^ 1]);
    }

    #[inline]
    fn first(&self) -> (Source, Nanos) {
        (Source::ALL[self.first as usize & 7], Nanos((self.first >> 64) as u64))
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
    /// The worker's running task may be near its end.
    WorkerEarly(u32),
    /// The client's machine has something to do.
    ClientTick(u32),
    /// The agent's interval ends.
    Adapts,
    /// A worker that moves is let in again.
    Opens(u32),
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

    /// The worker whose service ends next. The end stays in its place until the worker's next is told, or that it has
    /// none: most workers begin their next task at once.
    #[inline]
    pub(super) fn next_end(&self) -> u32 {
        self.ends.first_worker()
    }

    /// The worker serves no task.
    #[inline]
    pub(super) fn ends_never(&mut self, worker: u32) {
        self.ends.set(worker, Moment::NEVER);
        self.heads.set(Source::Ends, self.ends.first());
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
