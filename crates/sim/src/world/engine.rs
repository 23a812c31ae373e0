//! What is under way, and what happens next.
//!
//! What takes the same time whenever it is sent comes in the order in which it left: a [`Lane`] keeps it, and all links of one
//! delay share a lane, so that an event costs the same however many links there are. A place's alarm (the end of a
//! service, the next request) is one of a fixed number of times, of which a [`Tournament`] knows the first. What is left
//! (timers, packets that are late) an [`Agenda`] sorts. The earliest of all is next: time first, then order of entry. A
//! packet lies in one place from its departure to the end of its reception; what is passed on is its number.

use sluice_switch::Circulating;
use sluice_wire::{Nanos, Packet};

use super::address::Address;
use super::agenda::{Agenda, Moment};
use super::lane::Lane;
use super::pool::{Id, Pool};
use super::tournament::Tournament;

/// Names a packet that is under way or waits to be received.
pub(crate) type PacketId = Id<Packet>;

/// Something that comes to a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mail {
    /// A packet, from its sender.
    Packet { from: Address, packet: PacketId },
    /// What went round in a switch, by its place in the pool.
    Round(Id<Circulating>),
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening<C> {
    /// Something comes to a place.
    Mail(Address, Mail),
    /// A place's alarm goes off. It stays until it is set again, or to never.
    Alarm(AlarmId),
    /// A cue that somebody asked for.
    Cue(C),
}

/// One of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneId(u16);

/// One of the alarms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlarmId(pub(crate) u32);

/// An entry of the agenda.
#[derive(Clone, Copy, Debug)]
enum Due<C> {
    Mail(Address, Mail),
    Cue(C),
}

/// Virtual time: `C` is what callers want to be reminded of.
#[derive(Debug)]
pub(crate) struct Engine<C> {
    /// When something first comes from each source: the agenda, the alarms, then the lanes.
    heads: Tournament<u128>,
    lanes: Vec<(Nanos, Lane<(Address, Mail)>)>,
    alarms: Tournament<u128>,
    agenda: Agenda<Due<C>>,
    pub(crate) packets: Pool<Packet>,
    pub(crate) rounds: Pool<Circulating>,
    entered: u64,
}

/// Below a moment's order stand the source, or the alarm.
const SOURCE_BITS: u32 = 8;
const ALARM_BITS: u32 = 24;
const AGENDA: usize = 0;
const ALARMS: usize = 1;
const FIRST_LANE: usize = 2;

impl<C: Copy> Engine<C> {
    /// So many alarms, and nothing under way.
    pub(crate) fn new(alarms: u32) -> Self {
        Self {
            heads: Tournament::new(FIRST_LANE, NEVER),
            lanes: Vec::new(),
            alarms: Tournament::new(alarms as usize, NEVER),
            agenda: Agenda::new(),
            packets: Pool::default(),
            rounds: Pool::default(),
            entered: 0,
        }
    }

    /// The lane for what takes so long. Lanes are asked for before anything is sent.
    pub(crate) fn lane(&mut self, delay: Nanos) -> LaneId {
        let known = self.lanes.iter().position(|(of, _)| *of == delay);
        let lane = known.unwrap_or_else(|| {
            self.lanes.push((delay, Lane::default()));
            self.heads = Tournament::new(FIRST_LANE + self.lanes.len(), NEVER);
            self.lanes.len() - 1
        });
        debug_assert!(self.entered == 0 || known.is_some(), "a lane is asked for too late");
        LaneId(lane as u16)
    }

    /// When the next thing happens; at the end of time, if nothing does.
    #[inline]
    pub(crate) fn next_at(&self) -> Nanos {
        Nanos((self.heads.first() >> 64) as u64)
    }

    /// What happens next, and takes it out; there must be something.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Happening<C>> {
        match self.heads.first() as usize & ((1 << SOURCE_BITS) - 1) {
            AGENDA => self.take_due(),
            ALARMS => Some(Happening::Alarm(AlarmId(self.alarms.first() as u32 & ((1 << ALARM_BITS) - 1)))),
            source => {
                let (_, lane) = &mut self.lanes[source - FIRST_LANE];
                let mail = lane.pop();
                let first = lane.first();
                self.head(source, first);
                mail.map(|(to, mail)| Happening::Mail(to, mail))
            }
        }
    }

    fn take_due(&mut self) -> Option<Happening<C>> {
        let due = self.agenda.take();
        self.head(AGENDA, self.agenda.first());
        due.map(|(_, due)| match due {
            Due::Mail(to, mail) => Happening::Mail(to, mail),
            Due::Cue(cue) => Happening::Cue(cue),
        })
    }

    /// Sends something that arrives then; over this lane, if it comes after all that the lane has.
    #[inline]
    pub(crate) fn send(&mut self, lane: LaneId, at: Nanos, to: Address, mail: Mail) {
        let moment = self.moment(at);
        let (_, way) = &mut self.lanes[usize::from(lane.0)];
        if way.takes(at) {
            if way.push(moment, (to, mail)) {
                self.head(FIRST_LANE + usize::from(lane.0), moment);
            }
        } else {
            self.enter(moment, Due::Mail(to, mail));
        }
    }

    /// A packet has been received.
    #[inline]
    pub(crate) fn receive(&mut self, id: PacketId) -> Packet {
        let packet = *self.packets.get(id);
        self.packets.free(id);
        packet
    }

    /// What went round is back.
    #[inline]
    pub(crate) fn come_round(&mut self, id: Id<Circulating>) -> Circulating {
        let round = *self.rounds.get(id);
        self.rounds.free(id);
        round
    }

    /// Reminds the caller then.
    pub(crate) fn cue(&mut self, at: Nanos, cue: C) {
        let moment = self.moment(at);
        self.enter(moment, Due::Cue(cue));
    }

    /// The alarm goes off then, and no sooner; never, if at the end of time.
    #[inline]
    pub(crate) fn alarm(&mut self, alarm: AlarmId, at: Nanos) {
        let Moment { at, order } = if at == Moment::NEVER.at { Moment::NEVER } else { self.moment(at) };
        let key = Moment::new(at, order << ALARM_BITS | u64::from(alarm.0)).key();
        self.alarms.set(alarm.0 as usize, key);
        let first = self.alarms.first();
        self.head(ALARMS, Moment::new(Nanos((first >> 64) as u64), first as u64 >> ALARM_BITS));
    }

    fn enter(&mut self, moment: Moment, due: Due<C>) {
        self.agenda.enter(moment, due);
        self.head(AGENDA, self.agenda.first());
    }

    #[inline]
    fn head(&mut self, source: usize, Moment { at, order }: Moment) {
        self.heads.set(source, Moment::new(at, order << SOURCE_BITS | source as u64).key());
    }

    #[inline]
    fn moment(&mut self, at: Nanos) -> Moment {
        self.entered += 1;
        Moment::new(at, self.entered)
    }
}

const NEVER: u128 = Moment::NEVER.key();
