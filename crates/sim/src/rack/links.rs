//! What is under way, and what happens next.
//!
//! Every link has one delay, so that its packets arrive in the order in which they left: a [`Lane`] keeps them. Only
//! the ends of services, timers and the packets that faults delay are sorted, by an [`Agenda`]. The earliest of all
//! heads is next: time first, then order of entry.

use sluice_switch::Circulating;
use sluice_wire::{Nanos, Packet};

use super::fates::Fates;
use super::lane::Lane;
use crate::agenda::{Agenda, Moment};

/// Where something comes from that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Clients to switch.
    Submits,
    /// Workers to switch: tokens, probes.
    Tokens,
    /// Workers to switch: replies that the program is to see.
    Replies,
    /// Switch to workers.
    Workers,
    /// Switch to clients.
    Clients,
    /// Round in the switch.
    Rounds,
    /// Services, timers and delayed packets.
    Agenda,
    /// The next request.
    Request,
}

impl Source {
    const ALL: [Self; 8] = [
        Self::Submits,
        Self::Tokens,
        Self::Replies,
        Self::Workers,
        Self::Clients,
        Self::Rounds,
        Self::Agenda,
        Self::Request,
    ];
    const PACKETS: usize = 5;
}

/// Something that an agenda sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The worker's service ends.
    Ends(u32),
    /// The worker's machine has something to do.
    WorkerTick(u32),
    /// The client's machine has something to do.
    ClientTick(u32),
    /// A packet that is out of order on this link.
    Stray(Source, u32),
}

/// All links.
#[derive(Debug)]
pub(super) struct Links {
    heads: [u128; Source::ALL.len()],
    lanes: [Lane<Packet>; Source::PACKETS],
    rounds: Lane<Circulating>,
    agenda: Agenda<Due>,
    strays: Vec<Packet>,
    vacant: Vec<u32>,
    entered: u64,
    fates: Option<Box<Fates>>,
}

impl Links {
    pub(super) fn new(fates: Option<Fates>) -> Self {
        Self {
            heads: [Moment::NEVER.key(); _],
            lanes: Default::default(),
            rounds: Lane::default(),
            agenda: Agenda::new(),
            strays: Vec::new(),
            vacant: Vec::new(),
            entered: 0,
            fates: fates.map(Box::new),
        }
    }

    /// What is next, and when.
    #[inline]
    pub(super) fn next(&self) -> (Source, Nanos) {
        let pair = |a: usize, b: usize| if self.heads[b] < self.heads[a] { b } else { a };
        let quarters = [pair(0, 1), pair(2, 3), pair(4, 5), pair(6, 7)];
        let halves = [pair(quarters[0], quarters[1]), pair(quarters[2], quarters[3])];
        let first = pair(halves[0], halves[1]);
        (Source::ALL[first], Nanos((self.heads[first] >> 64) as u64))
    }

    /// Takes the next packet of a link.
    #[inline]
    pub(super) fn take(&mut self, link: Source) -> Option<Packet> {
        let lane = &mut self.lanes[link as usize];
        let packet = lane.pop();
        self.heads[link as usize] = lane.first().key();
        packet
    }

    #[inline]
    pub(super) fn take_round(&mut self) -> Option<Circulating> {
        let round = self.rounds.pop();
        self.heads[Source::Rounds as usize] = self.rounds.first().key();
        round
    }

    #[inline]
    pub(super) fn take_due(&mut self) -> Option<Due> {
        let due = self.agenda.take();
        self.heads[Source::Agenda as usize] = self.agenda.first().key();
        due.map(|(_, due)| due)
    }

    /// The packet of a [`Due::Stray`].
    pub(super) fn take_stray(&mut self, stray: u32) -> Packet {
        self.vacant.push(stray);
        self.strays[stray as usize]
    }

    /// The next request is due then; [`Nanos`] of `u64::MAX` if there is none.
    #[inline]
    pub(super) fn request_at(&mut self, at: Nanos) {
        self.heads[Source::Request as usize] = self.moment(at).key();
    }

    #[inline]
    pub(super) fn at(&mut self, at: Nanos, due: Due) {
        let moment = self.moment(at);
        self.agenda.enter(moment, due);
        self.heads[Source::Agenda as usize] = self.agenda.first().key();
    }

    #[inline]
    pub(super) fn send_round(&mut self, at: Nanos, round: Circulating) {
        let moment = self.moment(at);
        self.rounds.push(moment, round);
        self.heads[Source::Rounds as usize] = self.rounds.first().key();
    }

    /// Sends a packet that arrives then, unless a fault befalls it. Says how many copies arrive.
    #[inline]
    pub(super) fn send(&mut self, link: Source, at: Nanos, packet: Packet) -> u32 {
        let Some(fates) = &mut self.fates else {
            self.put(link, at, packet);
            return 1;
        };
        let copies = fates.copies(at, &packet);
        copies.into_iter().flatten().map(|at| self.put(link, at, packet)).count() as u32
    }

    #[inline]
    fn put(&mut self, link: Source, at: Nanos, packet: Packet) {
        let moment = self.moment(at);
        let lane = &mut self.lanes[link as usize];
        if lane.takes(at) {
            lane.push(moment, packet);
            self.heads[link as usize] = lane.first().key();
        } else {
            self.put_stray(link, moment, packet);
        }
    }

    #[cold]
    fn put_stray(&mut self, link: Source, moment: Moment, packet: Packet) {
        let stray = if let Some(stray) = self.vacant.pop() {
            self.strays[stray as usize] = packet;
            stray
        } else {
            self.strays.push(packet);
            self.strays.len() as u32 - 1
        };
        self.agenda.enter(moment, Due::Stray(link, stray));
        self.heads[Source::Agenda as usize] = self.agenda.first().key();
    }

    #[inline]
    fn moment(&mut self, at: Nanos) -> Moment {
        self.entered += 1;
        Moment::new(at, self.entered)
    }
}
