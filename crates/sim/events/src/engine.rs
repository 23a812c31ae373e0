//! What is under way, and what happens next.
//!
//! What takes the same time whenever it is sent comes in the order in which it left: a [`Lane`] keeps it, and
//! all links of one delay share a lane, so that an event costs the same however many links there are. A
//! place's alarm (the end of a service) is one of a fixed number of times, of which [`Alarms`] know the
//! first; a clock (the next request) is an alarm for the few that go off all the time. What is left
//! (timers, packets that are late) an [`Agenda`] sorts. The earliest of all is next: time first, then order
//! of entry. What comes to places is whatever their world sends: a small value, such as a packet's number.

use sluice_wire::Nanos;

use crate::address::Address;
use crate::agenda::{Agenda, Moment};
use crate::alarms::{AlarmId, Alarms};
use crate::heads::{Heads, SOURCES_MAX, SourceKind, Whence};
use crate::lane::Lane;
use crate::mail::Mail;

/// What happens at a place.
#[derive(Clone, Copy, Debug)]
pub enum Happens<C, M = Mail> {
    /// Something comes.
    Mail(M),
    /// Its alarm goes off, and stays until it is set again, or to never.
    Alarm,
    /// Its node's clock strikes, and stays likewise.
    Clock,
    /// It is time for what it asked to be reminded of.
    Cue(C),
}

/// One of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneId(Whence);

/// A place in the order of what is entered, taken before its time is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTurn(u64);

/// One of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockId(Whence);

/// Virtual time: `C` is what callers want to be reminded of, `M` what comes to them.
#[derive(Debug)]
pub struct EventEngine<C, M = Mail> {
    /// When something first comes from the agenda, the alarms, and then from each clock and lane, as they
    /// were asked for.
    heads: Heads,
    /// As many as there can be, so that the number in a key finds its source without a look at their count.
    sources: Box<[Source<M>; SOURCES_MAX]>,
    /// So many are used.
    used: usize,
    alarms: Alarms,
    /// Whose each alarm is.
    alarmed: Vec<Address>,
    agenda: Agenda<(Address, Happens<C, M>)>,
    entered: u64,
}

/// Where things come from, and if it is a lane, how long they take and what is under way.
type Source<M> = (SourceKind, Nanos, Lane<(Address, M)>);

const AGENDA: Whence = Whence::new(0, SourceKind::Agenda);
const ALARMS: Whence = Whence::new(1, SourceKind::Alarms);

impl<C, M: Copy> Default for EventEngine<C, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C, M: Copy> EventEngine<C, M> {
    /// Nothing under way, and nobody with an alarm.
    pub fn new() -> Self {
        Self {
            heads: Heads::new(2),
            sources: Box::new(std::array::from_fn(|_| (SourceKind::Agenda, Nanos(0), Lane::default()))),
            used: 2,
            alarms: Alarms::new(0),
            alarmed: Vec::new(),
            agenda: Agenda::new(),
            entered: 0,
        }
    }

    /// The lane for what takes so long.
    pub fn lane(&mut self, delay: Nanos) -> LaneId {
        let fits = |(kind, of, _): &Source<M>| *kind == SourceKind::Lane && *of == delay;
        let known = self.sources[..self.used].iter().position(fits);
        let source = known.unwrap_or_else(|| self.source(SourceKind::Lane, delay));
        LaneId(Whence::new(source, SourceKind::Lane))
    }

    /// A clock of this node's own.
    pub fn clock(&mut self, node: Address) -> ClockId {
        let source = self.source(SourceKind::Clock, Nanos(0));
        ClockId(Whence::new(source, SourceKind::Clock).to_node(node.of_node()))
    }

    /// An alarm for each of a node's places, so many from the first: theirs follow one another. Alarms are
    /// asked for before any is set.
    pub fn alarms(&mut self, node: Address, places: u32) -> AlarmId {
        assert!(self.alarms.first().0.at == Moment::NEVER.at, "alarms are asked for too late");
        let first = AlarmId(self.alarmed.len() as u32);
        self.alarmed.extend((0..places).map(|place| node.at(place)));
        self.alarms = Alarms::new(self.alarmed.len() as u32);
        first
    }

    fn source(&mut self, kind: SourceKind, delay: Nanos) -> usize {
        let source = self.used;
        self.used += 1;
        self.heads.make_room(self.used);
        self.sources[source] = (kind, delay, Lane::default());
        source
    }

    /// What happens next: when, where, and what. Nothing, if nothing does any more.
    #[expect(clippy::inline_always, reason = "what it is needs no second look where it is handed on")]
    #[inline(always)]
    pub fn take_next(&mut self) -> Option<(Nanos, Address, Happens<C, M>)> {
        let (at, whence) = self.heads.first();
        if at == Nanos(u64::MAX) {
            return None;
        }
        let (whom, what) = match whence.kind() {
            SourceKind::Lane => {
                let (to, mail) = self.pop(whence);
                (to, Happens::Mail(mail))
            }
            SourceKind::Alarms => (self.ringing(), Happens::Alarm),
            SourceKind::Clock => (Address::node(whence.node()), Happens::Clock),
            SourceKind::Agenda => self.take_due()?,
        };
        Some((at, whom, what))
    }

    /// Sends something that arrives then; over this lane, if it comes after all that the lane has.
    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    pub fn send(&mut self, lane: LaneId, at: Nanos, to: Address, mail: M) {
        let moment = self.moment(at);
        let LaneId(whence) = lane;
        let (_, _, lane) = &mut self.sources[whence.source()];
        if !lane.takes(at) {
            self.enter(moment, (to, Happens::Mail(mail)));
        } else if lane.push(moment, (to, mail)) {
            self.heads.set(whence.to_node(to.of_node()), moment);
        }
    }

    /// When something happens next; at the end of time, if nothing does any more.
    #[inline]
    pub fn next_at(&self) -> Nanos {
        self.heads.first().0
    }

    /// The turn of something that is under way elsewhere, and comes at a time that is not known yet.
    #[inline]
    pub const fn turn(&mut self) -> EventTurn {
        self.entered += 1;
        EventTurn(self.entered)
    }

    /// It arrives then: before all that arrives at the same time and was entered after it got its turn.
    pub fn arrives(&mut self, EventTurn(order): EventTurn, at: Nanos, to: Address, mail: M) {
        self.enter(Moment::new(at, order), (to, Happens::Mail(mail)));
    }

    /// Reminds whoever is at this place then.
    pub fn cue(&mut self, at: Nanos, whom: Address, cue: C) {
        let moment = self.moment(at);
        self.enter(moment, (whom, Happens::Cue(cue)));
    }

    /// The alarm goes off then, and no sooner; never, if at the end of time.
    #[inline]
    pub fn alarm(&mut self, alarm: AlarmId, at: Nanos) {
        let moment = self.moment(at);
        self.alarms.set(alarm, moment);
        self.heads.set(ALARMS, self.alarms.first().0);
    }

    /// The same, but before all else that happens then; of several such alarms the first one goes off first.
    #[inline]
    pub fn alarm_before(&mut self, alarm: AlarmId, at: Nanos) {
        self.alarms.set(alarm, Moment::new(at, 0));
        self.heads.set(ALARMS, self.alarms.first().0);
    }

    /// The clock strikes then; never, if at the end of time.
    #[inline]
    pub fn set(&mut self, clock: ClockId, at: Nanos) {
        let moment = self.moment(at);
        self.heads.set(clock.0, moment);
    }

    /// Takes what comes next out of a lane.
    #[inline]
    fn pop(&mut self, whence: Whence) -> (Address, M) {
        let (_, _, lane) = &mut self.sources[whence.source()];
        let (to, mail) = lane.pop();
        match lane.first() {
            Some((moment, (next, _))) => self.heads.set(whence.to_node(next.of_node()), *moment),
            None => self.heads.set(whence, Moment::NEVER),
        }
        (Address::node(whence.node()).at(to.place()), mail)
    }

    /// Whose alarm goes off next. It stays until it is set again, or to never.
    #[inline]
    fn ringing(&self) -> Address {
        let (_, AlarmId(alarm)) = self.alarms.first();
        self.alarmed[alarm as usize]
    }

    /// Takes what is due next out of the agenda.
    fn take_due(&mut self) -> Option<(Address, Happens<C, M>)> {
        let due = self.agenda.take();
        self.heads.set(AGENDA, self.agenda.first());
        due.map(|(_, due)| due)
    }

    /// Apart from the lanes, which mostly take what is sent.
    #[inline(never)]
    fn enter(&mut self, moment: Moment, due: (Address, Happens<C, M>)) {
        self.agenda.enter(moment, due);
        self.heads.set(AGENDA, self.agenda.first());
    }

    #[inline]
    fn moment(&mut self, at: Nanos) -> Moment {
        let EventTurn(order) = self.turn();
        Moment::new(at, order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_one_delay_share_a_lane_however_many_there_are() {
        let mut engine = EventEngine::<()>::new();
        let lanes: Vec<LaneId> = (0..10_000).map(|link| engine.lane(Nanos(link % 3))).collect();
        assert!(lanes.iter().zip(&lanes[3..]).all(|(one, other)| one == other));
        assert_eq!(engine.used, 5, "the agenda, the alarms and three lanes");
    }
}
