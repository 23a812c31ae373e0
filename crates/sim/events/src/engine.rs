//! What is under way, and what happens next.
//!
//! What takes the same time whenever it is sent comes in the order in which it left: a [`Lane`] keeps it, and
//! all links of one delay share a lane, so that an event costs the same however many links there are. A
//! place's timer (the end of a service) is one of a fixed number of times, of which a [`TimerTree`] knows the
//! first; a clock (the next request) is a timer for the few that expire all the time. What is left
//! (timers, packets that are late) an [`EventQueue`] sorts. The earliest of all is next: time first, then
//! order of entry. What comes to places is whatever their world sends: a small value, such as a packet's
//! number.

use sluice_wire::Nanos;

use crate::address::Address;
use crate::event_queue::{EventQueue, Moment};
use crate::heads::{EventSource, Heads, SOURCES_MAX, SourceKind};
use crate::lane::Lane;
use crate::mail::Mail;
use crate::timers::{TimerId, TimerTree};

/// What happens at a place.
#[derive(Clone, Copy, Debug)]
pub enum WorldEvent<C, M = Mail> {
    /// Something comes.
    Mail(M),
    /// Its timer expires, and stays until it is set again, or to never.
    Timer,
    /// Its node's clock strikes, and stays likewise.
    Clock,
    /// It is time for what it asked to be reminded of.
    Scheduled(C),
}

/// One of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneId(EventSource);

/// A place in the order of what is entered, taken before its time is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTurn(u64);

/// One of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockId(EventSource);

/// Virtual time: `C` is what callers want to be reminded of, `M` what comes to them.
#[derive(Debug)]
pub struct EventEngine<C, M = Mail> {
    /// When something first comes from the event queue, the timers, and then from each clock and lane, as
    /// they were asked for.
    heads: Heads,
    /// As many as there can be, so that the number in a key finds its source without a look at their count.
    sources: Box<[Source<M>; SOURCES_MAX]>,
    /// So many are used.
    used: usize,
    timers: TimerTree,
    /// Whose each timer is.
    timer_owners: Vec<Address>,
    event_queue: EventQueue<(Address, WorldEvent<C, M>)>,
    entered: u64,
}

/// Where things come from, and if it is a lane, how long they take and what is under way.
type Source<M> = (SourceKind, Nanos, Lane<(Address, M)>);

const EVENT_QUEUE: EventSource = EventSource::new(0, SourceKind::EventQueue);
const TIMERS: EventSource = EventSource::new(1, SourceKind::TimerTree);

impl<C, M: Copy> Default for EventEngine<C, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C, M: Copy> EventEngine<C, M> {
    /// Nothing under way, and nobody with a timer.
    pub fn new() -> Self {
        Self {
            heads: Heads::new(2),
            sources: Box::new(std::array::from_fn(|_| (SourceKind::EventQueue, Nanos(0), Lane::default()))),
            used: 2,
            timers: TimerTree::new(0),
            timer_owners: Vec::new(),
            event_queue: EventQueue::new(),
            entered: 0,
        }
    }

    /// The lane for what takes so long.
    pub fn lane(&mut self, delay: Nanos) -> LaneId {
        let fits = |(kind, of, _): &Source<M>| *kind == SourceKind::Lane && *of == delay;
        let known = self.sources[..self.used].iter().position(fits);
        let source = known.unwrap_or_else(|| self.source(SourceKind::Lane, delay));
        LaneId(EventSource::new(source, SourceKind::Lane))
    }

    /// A clock of this node's own.
    pub fn clock(&mut self, node: Address) -> ClockId {
        let source = self.source(SourceKind::Clock, Nanos(0));
        ClockId(EventSource::new(source, SourceKind::Clock).to_node(node.of_node()))
    }

    /// A timer for each of a node's places, so many from the first: theirs follow one another. Timers are
    /// asked for before any is set.
    pub fn timers(&mut self, node: Address, places: u32) -> TimerId {
        assert!(self.timers.first().0.at == Moment::NEVER.at, "timers are asked for too late");
        let first = TimerId(self.timer_owners.len() as u32);
        self.timer_owners.extend((0..places).map(|place| node.at(place)));
        self.timers = TimerTree::new(self.timer_owners.len() as u32);
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
    pub fn take_next(&mut self) -> Option<(Nanos, Address, WorldEvent<C, M>)> {
        let (at, source) = self.heads.first();
        if at == Nanos(u64::MAX) {
            return None;
        }
        let (whom, what) = match source.kind() {
            SourceKind::Lane => {
                let (to, mail) = self.pop(source);
                (to, WorldEvent::Mail(mail))
            }
            SourceKind::TimerTree => (self.ringing(), WorldEvent::Timer),
            SourceKind::Clock => (Address::node(source.node()), WorldEvent::Clock),
            SourceKind::EventQueue => self.take_due()?,
        };
        Some((at, whom, what))
    }

    /// Sends something that arrives then; over this lane, if it comes after all that the lane has.
    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    pub fn send(&mut self, lane: LaneId, at: Nanos, to: Address, mail: M) {
        let moment = self.moment(at);
        let LaneId(source) = lane;
        let (_, _, lane) = &mut self.sources[source.source()];
        if !lane.takes(at) {
            self.enter(moment, (to, WorldEvent::Mail(mail)));
        } else if lane.push(moment, (to, mail)) {
            self.heads.set(source.to_node(to.of_node()), moment);
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
        self.enter(Moment::new(at, order), (to, WorldEvent::Mail(mail)));
    }

    /// Reminds whoever is at this place then.
    pub fn schedule(&mut self, at: Nanos, whom: Address, schedule: C) {
        let moment = self.moment(at);
        self.enter(moment, (whom, WorldEvent::Scheduled(schedule)));
    }

    /// The timer expires then, and no sooner; never, if at the end of time.
    #[inline]
    pub fn timer(&mut self, timer: TimerId, at: Nanos) {
        let moment = self.moment(at);
        self.timers.set(timer, moment);
        self.heads.set(TIMERS, self.timers.first().0);
    }

    /// The same, but before all else that happens then; of several such timers the first one expires first.
    #[inline]
    pub fn alarm_before(&mut self, timer: TimerId, at: Nanos) {
        self.timers.set(timer, Moment::new(at, 0));
        self.heads.set(TIMERS, self.timers.first().0);
    }

    /// The clock strikes then; never, if at the end of time.
    #[inline]
    pub fn set(&mut self, clock: ClockId, at: Nanos) {
        let moment = self.moment(at);
        self.heads.set(clock.0, moment);
    }

    /// Takes what comes next out of a lane.
    #[inline]
    fn pop(&mut self, source: EventSource) -> (Address, M) {
        let (_, _, lane) = &mut self.sources[source.source()];
        let (to, mail) = lane.pop();
        match lane.first() {
            Some((moment, (next, _))) => self.heads.set(source.to_node(next.of_node()), *moment),
            None => self.heads.set(source, Moment::NEVER),
        }
        (Address::node(source.node()).at(to.place()), mail)
    }

    /// Whose timer expires next. It stays until it is set again, or to never.
    #[inline]
    fn ringing(&self) -> Address {
        let (_, TimerId(timer)) = self.timers.first();
        self.timer_owners[timer as usize]
    }

    /// Takes what is due next out of the event queue.
    fn take_due(&mut self) -> Option<(Address, WorldEvent<C, M>)> {
        let due = self.event_queue.take();
        self.heads.set(EVENT_QUEUE, self.event_queue.first());
        due.map(|(_, due)| due)
    }

    /// Apart from the lanes, which mostly take what is sent.
    #[inline(never)]
    fn enter(&mut self, moment: Moment, due: (Address, WorldEvent<C, M>)) {
        self.event_queue.enter(moment, due);
        self.heads.set(EVENT_QUEUE, self.event_queue.first());
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
        assert_eq!(engine.used, 5, "the event queue, the timers and three lanes");
    }
}
