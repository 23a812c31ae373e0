//! Virtual time for one server: arrivals, and the events that its policy scheduled.

use core::sync::atomic::{AtomicBool, Ordering};

use sluice_events::{Address, EventEngine, SpanLanes, TimerId, WorldEvent};
use sluice_stats::{Gauges, Level, Mark, Observer, Outcome, Replied};
use sluice_wire::Nanos;
use sluice_workload::Request;

/// How many requests may be in the server; further ones are refused, so that no load takes all memory.
const REQUESTS_MAX: u64 = 1 << 22;
/// The stop flag is read after so many arrivals, at the latest.
const STOP_EVERY: u64 = 1 << 12;
/// There is one server; each core is a place of it.
const SERVER: Address = Address::node(0);

/// The id of a request in the server.
pub(super) type RequestId = u32;

/// A request in the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestInServer {
    pub(super) at: Nanos,
    pub(super) service: Nanos,
    /// The rest of the request's service.
    pub(super) left: Nanos,
    pub(super) class: u8,
}

/// An event that a policy scheduled. Of events at the same time, the ends of cores' runs come first, in the
/// order of the cores, as in the references; the others come in the order in which they were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerEvent {
    /// A core has run for the time that its policy set.
    Ran { core: u16 },
    /// A request reaches a core.
    Reaches { core: u16, request: RequestId },
    /// Feedback of a core reaches the orchestrator.
    Told { core: u16, of: u8 },
    /// A core is ready again.
    Ready { core: u16 },
    /// The policy looks at its queues.
    Check,
    /// A hint about a service's load has reached a core, and the decision on it has come back.
    Hinted { of: u8, more: bool },
    /// A core has been given to the batch service.
    Given { core: u16 },
}

/// Decides which core serves a request, and when.
pub(super) trait Orchestrates {
    /// Called before the first request: starts a batch service.
    fn begin<O: Observer>(&mut self, _: &mut ServerRun<'_, O>) {}

    /// A request arrives.
    fn arrive<O: Observer>(&mut self, request: RequestId, run: &mut ServerRun<'_, O>);

    /// A scheduled event happens.
    fn on_event<O: Observer>(&mut self, event: ServerEvent, run: &mut ServerRun<'_, O>);
}

/// A server in virtual time, without its policy.
pub(super) struct ServerRun<'o, O> {
    pub(super) now: Nanos,
    /// Requests that no core has yet.
    pub(super) queued: Level,
    /// Requests that a core has and does not run.
    pub(super) at_cores: Level,
    /// Cores that run a request.
    pub(super) busy: Level,
    /// Cores that are switching between requests.
    pub(super) switching: Level,
    /// Cores that run a batch service; `None` if there is none.
    pub(super) batch: Option<Level>,
    requests: Vec<RequestInServer>,
    free: Vec<RequestId>,
    engine: EventEngine<ServerEvent, ServerEvent>,
    /// The timers of the cores' runs.
    ran: TimerId,
    /// The core whose run has just ended, until it runs another request.
    rang: Option<u16>,
    lanes: SpanLanes,
    observer: &'o mut O,
    cores: usize,
    distance: Nanos,
}

impl<'o, O: Observer> ServerRun<'o, O> {
    pub(super) fn new(observer: &'o mut O, cores: usize, distance: Nanos, has_batch: bool) -> Self {
        let (level, mut engine) = (Level::default(), EventEngine::new());
        Self {
            ran: engine.timers(SERVER, cores as u32),
            engine,
            rang: None,
            lanes: SpanLanes::default(),
            now: Nanos(0),
            queued: level,
            at_cores: level,
            busy: level,
            switching: level,
            batch: has_batch.then_some(level),
            requests: Vec::new(),
            free: Vec::new(),
            observer,
            cores,
            distance,
        }
    }

    /// Serves requests until there are no more, the observer is complete, or the run is told to stop.
    /// Events at the time of an arrival happen before it.
    pub(super) fn drive(
        &mut self,
        policy: &mut impl Orchestrates,
        requests: impl IntoIterator<Item = Request>,
        stop: &AtomicBool,
    ) -> Gauges {
        let mut requests = requests.into_iter();
        let mut next = requests.next();
        let (mut gauges, mut arrived) = (None, 0_u64);
        policy.begin(self);
        while !self.observer.is_complete() {
            if let Some(request) = next.filter(|request| request.at < self.engine.next_at()) {
                self.now = request.at;
                match self.observer.sent(self.now) {
                    Mark::None => {}
                    Mark::Opened => self.open(),
                    Mark::Closed => gauges = Some(self.gauges()),
                }
                self.arrive(policy, &request);
                next = requests.next();
                arrived += 1;
                if arrived.is_multiple_of(STOP_EVERY) && stop.load(Ordering::Relaxed) {
                    break;
                }
            } else if self.in_server() > 0 || next.is_some() {
                if !self.step(policy) {
                    break;
                }
            } else {
                break;
            }
        }
        gauges.unwrap_or_else(|| self.gauges())
    }

    /// Schedules an event after a wait. All waits except those for looks at the queues are the testbed's,
    /// so there are only a few different ones.
    pub(super) fn after(&mut self, wait: Nanos, event: ServerEvent) {
        let at = self.now + wait;
        if matches!(event, ServerEvent::Check) {
            return self.engine.schedule(at, SERVER, event);
        }
        let lane = self.lanes.of(&mut self.engine, wait);
        self.engine.send(lane, at, SERVER, event);
    }

    /// Advances to the next event and passes it to the policy; returns whether there was one.
    #[inline]
    fn step(&mut self, policy: &mut impl Orchestrates) -> bool {
        let Some((at, whom, what)) = self.engine.take_next() else { return false };
        self.now = at;
        let event = match what {
            WorldEvent::Mail(event) | WorldEvent::Scheduled(event) => event,
            WorldEvent::Timer | WorldEvent::Clock => {
                let core = whom.place() as u16;
                self.rang = Some(core);
                ServerEvent::Ran { core }
            }
        };
        policy.on_event(event, self);
        if let Some(core) = self.rang.take() {
            self.engine.alarm_before(self.ran.of_place(core.into()), Nanos(u64::MAX));
        }
        true
    }

    pub(super) fn request(&mut self, id: RequestId) -> &mut RequestInServer {
        &mut self.requests[id as usize]
    }

    /// The index of a request's class.
    pub(super) fn class(&self, id: RequestId) -> u8 {
        self.requests[id as usize].class
    }

    /// A core begins to run a request, for `most` at most, after it spent `first` on something else.
    /// Returns how long it will run.
    pub(super) fn runs(&mut self, core: u16, id: RequestId, (first, most): (Nanos, Nanos)) -> Nanos {
        let span = self.requests[id as usize].left.min(most);
        self.busy.enter(self.now);
        self.rang = self.rang.filter(|rang| *rang != core);
        self.engine.alarm_before(self.ran.of_place(core.into()), self.now + first + span);
        span
    }

    /// A core begins to run the batch service.
    pub(super) fn batch_begins(&mut self) {
        let now = self.now;
        self.batch.iter_mut().for_each(|batch| batch.enter(now));
    }

    /// A core's run of the batch service ends.
    pub(super) fn batch_ends(&mut self) {
        let now = self.now;
        self.batch.iter_mut().for_each(|batch| batch.leave(now));
    }

    /// A request has run for so long; returns whether its service has ended.
    pub(super) fn ran(&mut self, id: RequestId, span: Nanos) -> bool {
        self.busy.leave(self.now);
        let request = self.request(id);
        request.left = request.left - span;
        let is_served = request.left == Nanos(0);
        if is_served {
            self.reply(id);
        }
        is_served
    }

    /// Refuses a request, and tells its client.
    pub(super) fn refuse(&mut self, id: RequestId) {
        let at = self.requests[id as usize].at;
        self.free.push(id);
        self.observer.failed(at, Outcome::Refused);
    }

    fn arrive(&mut self, policy: &mut impl Orchestrates, request: &Request) {
        if self.in_server() >= REQUESTS_MAX {
            return self.observer.failed(request.at, Outcome::Refused);
        }
        let Request { at, service, class, .. } = *request;
        // A service of zero length would never be seen to run.
        let left = service.max(Nanos(1));
        let entry = RequestInServer { at, service, left, class };
        let id = self.free.pop().unwrap_or(self.requests.len() as u32);
        match self.requests.get_mut(id as usize) {
            Some(place) => *place = entry,
            None => self.requests.push(entry),
        }
        policy.arrive(id, self);
        debug_assert_eq!(
            self.in_server(),
            self.queued.now() + self.at_cores.now() + self.busy.now(),
            "a request is queued, at a core, or runs"
        );
    }

    fn reply(&mut self, id: RequestId) {
        let RequestInServer { at, service, class, .. } = self.requests[id as usize];
        self.free.push(id);
        let waited = Nanos(self.now.since(at).0.saturating_sub(service.0));
        let replied =
            Replied { class, intended: at, at: self.now + self.distance, service, served: service, waited };
        self.observer.done(&replied);
    }

    fn in_server(&self) -> u64 {
        (self.requests.len() - self.free.len()) as u64
    }

    fn open(&mut self) {
        let now = self.now;
        let levels = [&mut self.queued, &mut self.at_cores, &mut self.busy, &mut self.switching];
        levels.into_iter().chain(&mut self.batch).for_each(|level| level.open(now));
    }

    fn gauges(&self) -> Gauges {
        let cores = self.cores as f64;
        let batch = self.batch.map(|batch| batch.mean(self.now));
        let at_work = self.busy.mean(self.now) + self.switching.mean(self.now) + batch.unwrap_or(0.0);
        Gauges {
            switch_queue_mean: Some(self.queued.mean(self.now)),
            switch_queue_max: Some(self.queued.max() as f64),
            worker_queue_mean: Some(self.at_cores.mean(self.now) / cores),
            idle_share: Some(1.0 - at_work / cores),
            batch_share: batch.map(|batch| batch / cores),
            ..Gauges::default()
        }
    }
}
