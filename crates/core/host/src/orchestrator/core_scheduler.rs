//! A core: a short priority queue, and coroutines that yield (RingLeader §3.1, §4.2).
//!
//! The most important request runs. It yields after an interval; then the most important waiting request
//! continues, which may be the same one. Requests of one priority take turns. Feedback travels with the
//! reply, or by itself if there is no reply. Left out: the coroutines themselves, which the driver runs.

use alloc::vec;
use alloc::vec::Vec;

use sluice_wire::Nanos;

use super::error::{OrchestratorError, RefusedCalls};
use super::ids::{CoreId, PRIORITIES, RequestHandle, ServiceId};
use super::monitor::LoadHint;
use super::nic::{Descriptor, ScheduledRequest};

/// A core's queue and the request that runs.
#[derive(Clone, Debug)]
pub struct CoreScheduler {
    core: CoreId,
    yields_after: Nanos,
    /// A ring for each priority.
    rings: [Ring; PRIORITIES],
    entries: Vec<Entry>,
    capacity: usize,
    held: usize,
    running: Option<Running>,
    refused: RefusedCalls,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    request: ScheduledRequest,
    is_resumed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    first: usize,
    length: usize,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    request: ScheduledRequest,
    since: Nanos,
}

/// The next stretch of work on a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSlice {
    pub request: ScheduledRequest,
    /// When the request must yield at the latest.
    pub until: Nanos,
    /// Whether the request ran before.
    pub is_resumed: bool,
    /// Whether another request ran just before, so that the core pays for a context switch.
    pub is_switch: bool,
}

/// The report to the NIC that a request has ended ([`load_feedback`](super::Nic::load_feedback)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadFeedback {
    pub service: ServiceId,
    pub core: CoreId,
    pub count: u32,
    /// Whether the feedback travels in the reply's descriptor; if not, it is a register write of its own.
    pub rides: bool,
}

impl CoreScheduler {
    /// An idle core with room for `capacity` requests
    /// ([`Balancing::held_max`](super::Balancing::held_max)), whose coroutines yield after `yields_after`.
    pub fn new(core: CoreId, capacity: u32, yields_after: Nanos) -> Self {
        let capacity = capacity as usize;
        let lowest = ScheduledRequest {
            handle: RequestHandle(0),
            service: ServiceId::FIRST,
            priority: super::ids::Priority::LOWEST,
        };
        Self {
            core,
            yields_after,
            rings: [Ring::default(); PRIORITIES],
            entries: vec![Entry { request: lowest, is_resumed: false }; capacity * PRIORITIES],
            capacity,
            held: 0,
            running: None,
            refused: RefusedCalls::default(),
        }
    }

    /// Takes a descriptor from the NIC. Returns the hint in it, if any, for the allocator.
    pub fn deliver(&mut self, descriptor: &Descriptor) -> Result<Option<LoadHint>, OrchestratorError> {
        let delivered = self.try_deliver(descriptor);
        self.refused.count(delivered)
    }

    /// Starts the most important request, if the core is idle and has one.
    pub fn start(&mut self, now: Nanos) -> Option<RunSlice> {
        if self.running.is_some() {
            return None;
        }
        self.run_next(None, now)
    }

    /// The running request yields to the most important one, which may be itself.
    pub fn yields(&mut self, now: Nanos) -> Result<RunSlice, OrchestratorError> {
        let yielded = self.running.take().ok_or(OrchestratorError::NothingRuns(self.core));
        let request = self.refused.count(yielded)?.request;
        self.push(Entry { request, is_resumed: true });
        let next = self.run_next(Some(request), now).ok_or(OrchestratorError::NothingRuns(self.core));
        self.refused.count(next)
    }

    /// The running request has ended. If `replies`, a reply leaves and carries the feedback.
    pub fn finish(&mut self, replies: bool) -> Result<(ScheduledRequest, LoadFeedback), OrchestratorError> {
        let ended = self.running.take().ok_or(OrchestratorError::NothingRuns(self.core));
        let request = self.refused.count(ended)?.request;
        self.held -= 1;
        let (service, core) = (request.service, self.core);
        Ok((request, LoadFeedback { service, core, count: 1, rides: replies }))
    }

    /// The service whose coroutine has run for `intervals` intervals without yielding, if there is one, so
    /// that an operator can be told.
    pub fn overdue(&self, intervals: u32, now: Nanos) -> Option<ServiceId> {
        let running = self.running?;
        let long = self.yields_after.times(u64::from(intervals));
        (now.since(running.since) > long).then_some(running.request.service)
    }

    /// The running request.
    pub fn running(&self) -> Option<ScheduledRequest> {
        self.running.map(|running| running.request)
    }

    /// How many requests the core holds, including the running one.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Whether no request runs.
    pub fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// Calls that were refused.
    pub fn refused(&self) -> &RefusedCalls {
        &self.refused
    }

    fn try_deliver(&mut self, descriptor: &Descriptor) -> Result<Option<LoadHint>, OrchestratorError> {
        if descriptor.core != self.core {
            return Err(OrchestratorError::OtherCore(self.core, descriptor.core));
        }
        if let Some(request) = descriptor.request {
            if self.held == self.capacity {
                return Err(OrchestratorError::CoreQueueFull(self.core));
            }
            self.held += 1;
            self.push(Entry { request, is_resumed: false });
        }
        Ok(descriptor.hint)
    }

    fn run_next(&mut self, before: Option<ScheduledRequest>, now: Nanos) -> Option<RunSlice> {
        let Entry { request, is_resumed } = self.pop()?;
        self.running = Some(Running { request, since: now });
        let is_switch = before.is_some_and(|before| before != request);
        Some(RunSlice { request, until: now + self.yields_after, is_resumed, is_switch })
    }

    /// Each ring has room for all requests that a core may hold.
    fn push(&mut self, entry: Entry) {
        let priority = entry.request.priority.index();
        let ring = &mut self.rings[priority];
        let place = (ring.first + ring.length) % self.capacity;
        ring.length += 1;
        self.entries[priority * self.capacity + place] = entry;
    }

    fn pop(&mut self) -> Option<Entry> {
        let priority = self.rings.iter().rposition(|ring| ring.length > 0)?;
        let ring = &mut self.rings[priority];
        let entry = self.entries[priority * self.capacity + ring.first];
        *ring = Ring { first: (ring.first + 1) % self.capacity, length: ring.length - 1 };
        Some(entry)
    }
}
