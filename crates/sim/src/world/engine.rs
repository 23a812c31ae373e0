//! What is under way, and what happens next.
//!
//! What takes the same time whenever it is sent comes in the order in which it left: a [`Lane`] keeps it, and
//! all links of one delay share a lane, so that an event costs the same however many links there are. A
//! place's alarm (the end of a service) is one of a fixed number of times, of which [`Alarms`] know the
//! first; a clock (the next request) is an alarm for the few that go off all the time. What is left
//! (timers, packets that are late) an [`Agenda`] sorts. The earliest of all is next: time first, then order
//! of entry. A packet lies in one place from its departure to the end of its reception; what is passed on is
//! its number.

use sluice_switch::{Cargo, Circulating};
use sluice_wire::{Nanos, Packet, Token};

use super::address::Address;
use super::agenda::{Agenda, Moment};
use super::alarms::{AlarmId, Alarms};
use super::heads::{Heads, SourceKind, Whence};
use super::lane::Lane;
use super::pool::{Id, Reused};

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

/// One of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneId(Whence);

/// One of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockId(Whence);

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
    alarms: Alarms,
    agenda: Agenda<Due<C>>,
    pub(crate) packets: Reused<Packet>,
    pub(crate) rounds: Reused<Circulating>,
    entered: u64,
}

/// Where things come from, and if it is a lane, how long they take and what is under way.
type Source = (SourceKind, Nanos, Lane<(Address, Mail)>);

const AGENDA: Whence = Whence::new(0, SourceKind::Agenda);
const ALARMS: Whence = Whence::new(1, SourceKind::Alarms);

impl<C: Copy> EventEngine<C> {
    /// So many alarms, and nothing under way.
    pub(crate) fn new(alarms: u32) -> Self {
        Self {
            heads: Heads::new(2),
            sources: [SourceKind::Agenda, SourceKind::Alarms]
                .map(|kind| (kind, Nanos(0), Lane::default()))
                .into(),
            alarms: Alarms::new(alarms),
            agenda: Agenda::new(),
            packets: Reused::new(Packet::Token(Token::default())),
            rounds: Reused::new(Circulating { cargo: Cargo::Note, arrived: Nanos(0), memo: 0 }),
            entered: 0,
        }
    }

    /// The lane for what takes so long. Lanes and clocks are asked for before anything is sent.
    pub(crate) fn lane(&mut self, delay: Nanos) -> LaneId {
        let fits = |(kind, of, _): &Source| *kind == SourceKind::Lane && *of == delay;
        let known = self.sources.iter().position(fits);
        let source = known.unwrap_or_else(|| self.source(SourceKind::Lane, delay));
        LaneId(Whence::new(source, SourceKind::Lane))
    }

    /// A clock of the caller's own.
    pub(crate) fn clock(&mut self) -> ClockId {
        ClockId(Whence::new(self.source(SourceKind::Clock, Nanos(0)), SourceKind::Clock))
    }

    fn source(&mut self, kind: SourceKind, delay: Nanos) -> usize {
        assert!(self.entered == 0, "a source is asked for too late");
        self.sources.push((kind, delay, Lane::default()));
        self.heads = Heads::new(self.sources.len());
        self.sources.len() - 1
    }

    /// When the next thing happens, and where it comes from; at the end of time, if nothing does.
    #[inline]
    pub(crate) fn next(&self) -> (Nanos, Whence) {
        self.heads.first()
    }

    /// Takes what comes next out of a lane.
    #[inline]
    pub(crate) fn pop(&mut self, whence: Whence) -> Option<(Address, Mail)> {
        let (_, _, lane) = &mut self.sources[whence.source()];
        let (to, mail) = lane.pop()?;
        match lane.first() {
            Some((moment, (next, _))) => self.heads.set(whence.to_node(next.of_node()), *moment),
            None => self.heads.set(whence, Moment::NEVER),
        }
        Some((Address::node(whence.node()).at(to.place()), mail))
    }

    /// The alarm that goes off next. It stays until it is set again, or to never.
    #[inline]
    pub(crate) const fn ringing(&self) -> AlarmId {
        self.alarms.first().1
    }

    /// The clock that this source is.
    #[inline]
    pub(crate) const fn striking(whence: Whence) -> ClockId {
        ClockId(whence)
    }

    /// Takes what is due next out of the agenda.
    pub(crate) fn take_due(&mut self) -> Option<Due<C>> {
        let due = self.agenda.take();
        self.heads.set(AGENDA, self.agenda.first());
        due.map(|(_, due)| due)
    }

    /// Sends something that arrives then; over this lane, if it comes after all that the lane has.
    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    pub(crate) fn send(&mut self, lane: LaneId, at: Nanos, to: Address, mail: Mail) {
        let moment = self.moment(at);
        let LaneId(whence) = lane;
        let (_, _, lane) = &mut self.sources[whence.source()];
        if !lane.takes(at) {
            self.enter(moment, Due::Mail(to, mail));
        } else if lane.push(moment, (to, mail)) {
            self.heads.set(whence.to_node(to.of_node()), moment);
        }
    }

    /// What went round is back.
    #[inline]
    pub(crate) fn come_round(&mut self, id: Id<Circulating>) -> Circulating {
        self.rounds.take(id)
    }

    /// Reminds the caller then.
    pub(crate) fn cue(&mut self, at: Nanos, cue: C) {
        let moment = self.moment(at);
        self.enter(moment, Due::Cue(cue));
    }

    /// The alarm goes off then, and no sooner; never, if at the end of time.
    #[inline]
    pub(crate) fn alarm(&mut self, alarm: AlarmId, at: Nanos) {
        let moment = self.moment(at);
        self.alarms.set(alarm, moment);
        self.heads.set(ALARMS, self.alarms.first().0);
    }

    /// The clock strikes then; never, if at the end of time.
    #[inline]
    pub(crate) fn set(&mut self, clock: ClockId, at: Nanos) {
        let moment = self.moment(at);
        self.heads.set(clock.0, moment);
    }

    /// Apart from the lanes, which mostly take what is sent.
    #[inline(never)]
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
