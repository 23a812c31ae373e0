//! What is under way, and what happens next.
//!
//! What takes the same time whenever it is sent comes in the order in which it left: a [`Lane`] keeps it, and
//! all links of one delay share a lane, so that an event costs the same however many links there are. A
//! place's alarm (the end of a service) is one of a fixed number of times, of which a [`Tournament`] knows
//! the first; a clock (the next request) is an alarm for the few that go off all the time. What is left
//! (timers, packets that are late) an [`Agenda`] sorts. The earliest of all is next: time first, then order
//! of entry. A packet lies in one place from its departure to the end of its reception; what is passed on is
//! its number.

use sluice_switch::Circulating;
use sluice_wire::{Nanos, Packet};

use super::address::Address;
use super::agenda::{Agenda, Moment};
use super::heads::Heads;
use super::lane::Lane;
use super::pool::{Id, Reused};
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

/// Where something comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceId(usize);

/// One of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneId(u32);

/// One of the alarms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlarmId(pub(crate) u32);

/// One of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockId(u32);

/// An entry of the agenda.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due<C> {
    Mail(Address, Mail),
    Cue(C),
}

/// Virtual time: `C` is what callers want to be reminded of.
#[derive(Debug)]
pub(crate) struct EventEngine<C> {
    /// When something first comes from the agenda, the alarms, and then from each clock and lane, as they
    /// were asked for.
    heads: Heads,
    sources: Vec<Source>,
    alarms: Tournament<u128>,
    agenda: Agenda<Due<C>>,
    pub(crate) packets: Reused<Packet>,
    pub(crate) rounds: Reused<Circulating>,
    entered: u64,
}

/// Kinds of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    Agenda,
    Alarms,
    Clock,
    Lane,
}

/// Where things come from, and if it is a lane, how long they take and what is under way.
type Source = (SourceKind, Nanos, Lane<(Address, Mail)>);

/// Below a moment's order stands the alarm.
const ALARM_BITS: u32 = 24;
const AGENDA: usize = 0;
const ALARMS: usize = 1;

impl<C: Copy> EventEngine<C> {
    /// So many alarms, and nothing under way.
    pub(crate) fn new(alarms: u32) -> Self {
        Self {
            heads: Heads::new(2),
            sources: [SourceKind::Agenda, SourceKind::Alarms]
                .map(|kind| (kind, Nanos(0), Lane::default()))
                .into(),
            alarms: Tournament::new(alarms as usize, Moment::NEVER.key()),
            agenda: Agenda::new(),
            packets: Reused::default(),
            rounds: Reused::default(),
            entered: 0,
        }
    }

    /// The lane for what takes so long. Lanes and clocks are asked for before anything is sent.
    pub(crate) fn lane(&mut self, delay: Nanos) -> LaneId {
        let fits = |(kind, of, _): &Source| *kind == SourceKind::Lane && *of == delay;
        let known = self.sources.iter().position(fits);
        LaneId(known.unwrap_or_else(|| self.source(SourceKind::Lane, delay)) as u32)
    }

    /// A clock of the caller's own.
    pub(crate) fn clock(&mut self) -> ClockId {
        ClockId(self.source(SourceKind::Clock, Nanos(0)) as u32)
    }

    fn source(&mut self, kind: SourceKind, delay: Nanos) -> usize {
        assert!(self.entered == 0, "a source is asked for too late");
        self.sources.push((kind, delay, Lane::default()));
        self.heads = Heads::new(self.sources.len());
        self.sources.len() - 1
    }

    /// When the next thing happens, and where it comes from; at the end of time, if nothing does.
    #[inline]
    pub(crate) fn next(&self) -> (Nanos, SourceId) {
        let (at, source) = self.heads.first();
        (at, SourceId(source))
    }

    /// What kind of source it is.
    #[inline]
    pub(crate) fn kind(&self, SourceId(source): SourceId) -> SourceKind {
        self.sources[source].0
    }

    /// Takes what comes next out of a lane.
    #[inline]
    pub(crate) fn pop(&mut self, SourceId(source): SourceId) -> Option<(Address, Mail)> {
        let (_, _, lane) = &mut self.sources[source];
        let mail = lane.pop();
        let first = lane.first();
        self.heads.set(source, first);
        mail
    }

    /// The alarm that goes off next. It stays until it is set again, or to never.
    #[inline]
    pub(crate) fn ringing(&self) -> AlarmId {
        AlarmId(self.alarms.first() as u32 & ((1 << ALARM_BITS) - 1))
    }

    /// The clock that strikes next; it stands still until it is set again.
    #[inline]
    pub(crate) fn strike(&mut self, SourceId(source): SourceId) -> ClockId {
        self.heads.set(source, Moment::NEVER);
        ClockId(source as u32)
    }

    /// Takes what is due next out of the agenda.
    pub(crate) fn take_due(&mut self) -> Option<Due<C>> {
        let due = self.agenda.take();
        self.heads.set(AGENDA, self.agenda.first());
        due.map(|(_, due)| due)
    }

    /// Sends something that arrives then; over this lane, if it comes after all that the lane has.
    #[inline]
    pub(crate) fn send(&mut self, lane: LaneId, at: Nanos, to: Address, mail: Mail) {
        let moment = self.moment(at);
        let source = lane.0 as usize;
        let (_, _, lane) = &mut self.sources[source];
        if !lane.takes(at) {
            self.enter(moment, Due::Mail(to, mail));
        } else if lane.push(moment, (to, mail)) {
            self.heads.set(source, moment);
        }
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
        self.heads.set(ALARMS, Moment::new(Nanos((first >> 64) as u64), first as u64 >> ALARM_BITS));
    }

    /// The clock strikes then; never, if at the end of time.
    #[inline]
    pub(crate) fn set(&mut self, clock: ClockId, at: Nanos) {
        let moment = self.moment(at);
        self.heads.set(clock.0 as usize, moment);
    }

    fn enter(&mut self, moment: Moment, due: Due<C>) {
        self.agenda.enter(moment, due);
        self.heads.set(AGENDA, self.agenda.first());
    }

    #[inline]
    fn moment(&mut self, at: Nanos) -> Moment {
        self.entered += 1;
        Moment::new(at, self.entered)
    }
}
