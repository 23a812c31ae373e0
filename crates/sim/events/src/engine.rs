//! Events under way, and the next event.
//!
//! Packets with the same delay arrive in the order in which they left. A [`Lane`] keeps them, and all links
//! of one delay share a lane; so an event costs the same however many links there are. A place's timer (the
//! end of a service) is one of a fixed number of times, of which a [`TimerTree`] knows the first. A clock
//! (the next request) is a timer for the few places whose time comes at nearly every event. An
//! [`EventQueue`] sorts everything else (scheduled events, packets that are late). The earliest of all is
//! the next event: by time, then by order of entry. What arrives at places is chosen by the world: a small
//! value, such as a packet's number.

use sluice_wire::Nanos;

use crate::address::Address;
use crate::event_queue::{EventQueue, Moment};
use crate::heads::{EventSource, Heads, SOURCES_MAX, SourceKind};
use crate::lane::Lane;
use crate::mail::Mail;
use crate::timers::{TimerId, TimerTree};

/// An event at a place.
#[derive(Clone, Copy, Debug)]
pub enum WorldEvent<C, M = Mail> {
    /// A packet or another message arrives.
    Mail(M),
    /// The place's timer expires. Its time stays until it is set again, or to never.
    Timer,
    /// The node's clock expires. Its time stays until it is set again, or to never.
    Clock,
    Scheduled(C),
}

/// The id of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneId(EventSource);

/// A position in the order of entry, taken before the time of the event is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTurn(u64);

/// The id of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockId(EventSource);

/// Virtual time. `C` is the type of scheduled events, `M` the type of messages that arrive.
#[derive(Debug)]
pub struct EventEngine<C, M = Mail> {
    /// The time of the next event of the event queue, of the timers, and of each clock and lane, in the
    /// order in which they were made.
    heads: Heads,
    /// As many as there can be, so that the number in a key finds its source without a bounds check.
    sources: Box<[Source<M>; SOURCES_MAX]>,
    /// How many sources are used.
    used: usize,
    timers: TimerTree,
    /// The place of each timer.
    timer_owners: Vec<Address>,
    event_queue: EventQueue<(Address, WorldEvent<C, M>)>,
    entered: u64,
}

/// A source of events: its kind; and for a lane its delay and the messages under way.
type Source<M> = (SourceKind, Nanos, Lane<(Address, M)>);

const EVENT_QUEUE: EventSource = EventSource::new(0, SourceKind::EventQueue);
const TIMERS: EventSource = EventSource::new(1, SourceKind::TimerTree);

impl<C, M: Copy> Default for EventEngine<C, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C, M: Copy> EventEngine<C, M> {
    /// An engine without events and timers.
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

    /// The lane for this delay.
    pub fn lane(&mut self, delay: Nanos) -> LaneId {
        let fits = |(kind, of, _): &Source<M>| *kind == SourceKind::Lane && *of == delay;
        let known = self.sources[..self.used].iter().position(fits);
        let source = known.unwrap_or_else(|| self.source(SourceKind::Lane, delay));
        LaneId(EventSource::new(source, SourceKind::Lane))
    }

    /// Makes a clock of this node's own.
    pub fn clock(&mut self, node: Address) -> ClockId {
        let source = self.source(SourceKind::Clock, Nanos(0));
        ClockId(EventSource::new(source, SourceKind::Clock).to_node(node.of_node()))
    }

    /// Makes a timer for each of a node's first `places` places; their ids follow one another. All timers
    /// must be made before any is set.
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

    /// Takes the next event, with its time and address; `None` if there is none.
    #[expect(clippy::inline_always, reason = "what it is needs no second look where it is handed on")]
    #[inline(always)]
    pub fn take_next(&mut self) -> Option<(Nanos, Address, WorldEvent<C, M>)> {
        let (at, source) = self.heads.first();
        if at == Nanos(u64::MAX) {
            return None;
        }
        // Asked first, since most events are messages.
        if source.kind() == SourceKind::Lane {
            let (to, mail) = self.pop(source);
            return Some((at, to, WorldEvent::Mail(mail)));
        }
        let (whom, what) = match source.kind() {
            SourceKind::TimerTree => (self.ringing(), WorldEvent::Timer),
            SourceKind::Clock => (Address::node(source.node()), WorldEvent::Clock),
            SourceKind::EventQueue | SourceKind::Lane => self.take_due(),
        };
        Some((at, whom, what))
    }

    /// Sends a message that arrives at `at`. It takes the lane if it arrives after all that the lane holds,
    /// else the event queue.
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

    /// The time of the next event; the end of time if there is none.
    #[inline]
    pub fn next_at(&self) -> Nanos {
        self.heads.first().0
    }

    /// The position in the order of entry for a message that is under way elsewhere, and whose arrival is
    /// not known yet.
    #[inline]
    pub const fn turn(&mut self) -> EventTurn {
        self.entered += 1;
        EventTurn(self.entered)
    }

    /// Sends a message that arrives at `at`. Of messages with the same time, it arrives before those that
    /// entered after its turn was taken.
    pub fn arrives(&mut self, EventTurn(order): EventTurn, at: Nanos, to: Address, mail: M) {
        self.enter(Moment::new(at, order), (to, WorldEvent::Mail(mail)));
    }

    /// Schedules an event at this place.
    pub fn schedule(&mut self, at: Nanos, whom: Address, schedule: C) {
        let moment = self.moment(at);
        self.enter(moment, (whom, WorldEvent::Scheduled(schedule)));
    }

    /// Sets a timer to expire at `at`; the end of time means never.
    #[inline]
    pub fn timer(&mut self, timer: TimerId, at: Nanos) {
        let moment = self.moment(at);
        self.timers.set(timer, moment);
        self.heads.set(TIMERS, self.timers.first().0);
    }

    /// Sets a timer to expire at `at`, before all other events of that time. Of several such timers the
    /// first one expires first.
    #[inline]
    pub fn alarm_before(&mut self, timer: TimerId, at: Nanos) {
        self.timers.set(timer, Moment::new(at, 0));
        self.heads.set(TIMERS, self.timers.first().0);
    }

    /// Sets a clock to expire at `at`; the end of time means never.
    #[inline]
    pub fn set(&mut self, clock: ClockId, at: Nanos) {
        let moment = self.moment(at);
        self.heads.set(clock.0, moment);
    }

    /// Takes the next message out of a lane.
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

    /// The place whose timer expires next. The timer stays until it is set again, or to never.
    #[inline]
    fn ringing(&self) -> Address {
        let (_, TimerId(timer)) = self.timers.first();
        self.timer_owners[timer as usize]
    }

    /// Takes the next event out of the event queue, which must not be empty.
    fn take_due(&mut self) -> (Address, WorldEvent<C, M>) {
        let (_, due) = self.event_queue.take().expect("the queue's head is an event");
        self.heads.set(EVENT_QUEUE, self.event_queue.first());
        due
    }

    /// Enters an event into the event queue. Kept apart from the lanes, which take most messages.
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
