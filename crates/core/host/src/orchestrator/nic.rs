//! The NIC: it receives, buffers, schedules and balances requests, and tells the host about load
//! (RingLeader §3.2, §5).

use core::net::SocketAddr;
use core::num::NonZeroU8;

use sluice_wire::Nanos;

use super::balancer::{Balancing, CoreBalancer, Lambda};
use super::buffer::{Buffered, RequestBuffer, words_of};
use super::classifier::Classifier;
use super::error::{OrchestratorError, OrchestratorSetupError, RefusedCalls};
use super::ids::{CoreId, PRIORITIES, Priority, RequestHandle, SERVICES_MAX, ServiceId, services};
use super::monitor::{LoadHint, LoadMonitor, Trigger};
use super::ranking::{FirstEligibleOut, Ranked, Ranking};

/// How a NIC is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicSettings {
    /// The number of cores behind the NIC.
    pub cores: usize,
    /// How many requests of one priority a core has room for.
    pub depth: u32,
    /// The rule that chooses a core.
    pub balancing: Balancing,
    /// The order in which services are served.
    pub ranking: Ranking,
    /// What happens when the first service in order has no room on any core.
    pub order: SchedulingOrder,
    /// The size in bytes of the buffer that all services share.
    pub buffer_bytes: u32,
    /// How many hints a core may leave un-ACKed.
    pub unacked_hints: NonZeroU8,
}

impl NicSettings {
    /// The paper's settings (§6, §7.1): depth 4, λ 1/5, 800 KB, services by priority, one hint at a time
    /// for each core.
    pub fn paper(cores: usize) -> Result<Self, OrchestratorSetupError> {
        Ok(Self {
            cores,
            depth: 4,
            balancing: Balancing::Jbsrq(Lambda::new(1, 5)?),
            ranking: Ranking::ByPriority,
            order: SchedulingOrder::FirstEligibleOut,
            buffer_bytes: 800 * 1_024,
            unacked_hints: NonZeroU8::MIN,
        })
    }
}

/// What happens when the first service in order has no room on any core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingOrder {
    /// The first service that has room goes (FEO).
    FirstEligibleOut,
    /// All services wait for the first one (PIFO).
    PushInFirstOut,
}

/// A request that the NIC assigns to a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledRequest {
    /// The driver's name for the request.
    pub handle: RequestHandle,
    pub service: ServiceId,
    pub priority: Priority,
}

/// What the NIC sends to a core: a request, a hint, or a request with a hint in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub core: CoreId,
    /// `None` in a descriptor that only brings a hint.
    pub request: Option<ScheduledRequest>,
    /// The seventh call of table 1.
    pub hint: Option<LoadHint>,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicCounts {
    /// Requests that the buffer accepted, even if they were evicted later.
    pub received: u64,
    /// Requests that left for a core.
    pub dispatched: u64,
    /// Requests that were evicted in favour of more important ones.
    pub evicted: u64,
    /// Hints that left.
    pub hints: u64,
    /// Hints that left in a descriptor of their own.
    pub hints_alone: u64,
    pub refused: RefusedCalls,
}

/// The NIC as a state machine. Inputs are packets, calls and the time; outputs are descriptors.
///
/// After every packet, call and tick, the driver calls [`dispatch`](Self::dispatch) until it returns
/// `None`.
#[derive(Clone, Debug)]
pub struct Nic {
    classifier: Classifier,
    priorities: [Option<Priority>; SERVICES_MAX],
    of_priority: [u64; PRIORITIES],
    buffer: RequestBuffer,
    scheduler: FirstEligibleOut,
    order: SchedulingOrder,
    balancer: CoreBalancer,
    monitor: LoadMonitor,
    counts: NicCounts,
    /// The latest time that a call named.
    clock: Nanos,
}

impl Nic {
    /// A NIC without services, whose cores are idle. Nothing is allocated after this call.
    pub fn new(settings: &NicSettings) -> Result<Self, OrchestratorSetupError> {
        Ok(Self {
            classifier: Classifier::new(),
            priorities: [None; SERVICES_MAX],
            of_priority: [0; PRIORITIES],
            buffer: RequestBuffer::new(settings.buffer_bytes)?,
            scheduler: FirstEligibleOut::new(&settings.ranking)?,
            order: settings.order,
            balancer: CoreBalancer::new(settings.balancing, settings.depth, settings.cores)?,
            monitor: LoadMonitor::new(settings.cores, settings.unacked_hints),
            counts: NicCounts::default(),
            clock: Nanos(0),
        })
    }

    /// Takes a request that came for `address`. It waits, and may evict less important requests, which go
    /// to `evicted`.
    ///
    /// # Errors
    /// [`OrchestratorError::BufferFull`] if the buffer is full of requests that are at least as important:
    /// then the request itself is dropped.
    pub fn receive(
        &mut self,
        address: &SocketAddr,
        (handle, bytes): (RequestHandle, u32),
        now: Nanos,
        evicted: impl FnMut(RequestHandle),
    ) -> Result<ServiceId, OrchestratorError> {
        self.clock = self.clock.max(now);
        let service = self.classifier.service(address);
        let received = service.and_then(|service| {
            self.try_receive(service, (handle, bytes), now, evicted)?;
            Ok(service)
        });
        self.counts.refused.count(received)
    }

    /// Like [`Self::receive`], for a request whose service is known without its address.
    pub fn receive_of(
        &mut self,
        service: ServiceId,
        (handle, bytes): (RequestHandle, u32),
        now: Nanos,
        evicted: impl FnMut(RequestHandle),
    ) -> Result<(), OrchestratorError> {
        self.clock = self.clock.max(now);
        let known = self.balancer.check_service(service);
        let received = known.and_then(|()| self.try_receive(service, (handle, bytes), now, evicted));
        self.counts.refused.count(received)
    }

    /// The next descriptor that leaves for a core; `None` if nothing that waits has room.
    pub fn dispatch(&mut self, now: Nanos) -> Option<Descriptor> {
        self.clock = self.clock.max(now);
        let eligible = self.balancer.eligible();
        let next = match self.order {
            SchedulingOrder::FirstEligibleOut => self.scheduler.first(eligible, now),
            SchedulingOrder::PushInFirstOut => self.scheduler.front(eligible, now),
        };
        next.and_then(|service| self.dispatch_first_of(service, now)).or_else(|| self.hint_alone())
    }

    /// Makes the load checks that are due.
    pub fn tick(&mut self, now: Nanos) {
        self.clock = self.clock.max(now);
        for service in services(self.monitor.to_check(now)) {
            let oldest = self.buffer.first(service).map(|request| request.arrived);
            let seen = (oldest, self.buffer.length(service));
            self.monitor.check(service, seen, self.balancer.least_loaded(service), now);
        }
    }

    /// When to call `tick` and `dispatch` next if nothing else happens; `None` for never.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let sent = self.scheduler.next_transmission(self.balancer.eligible(), self.clock);
        [self.monitor.next_check(), sent].into_iter().flatten().min()
    }

    /// The rank of a service's next request, its rate, and when it may be transmitted; `None` without a rank.
    pub fn ranked(&self, service: ServiceId) -> Option<Ranked> {
        self.scheduler.ranked(service)
    }

    /// Requests of a service that wait on the NIC.
    pub fn waiting(&self, service: ServiceId) -> u32 {
        self.buffer.length(service)
    }

    /// Whether a service has room on at least one core: its bit in the mask of eligible services.
    pub fn is_eligible(&self, service: ServiceId) -> bool {
        self.balancer.eligible() & service.bit() != 0
    }

    /// The balancer, for inspection.
    pub fn balancer(&self) -> &CoreBalancer {
        &self.balancer
    }

    /// The NIC's counters.
    pub fn counts(&self) -> &NicCounts {
        &self.counts
    }

    fn try_receive(
        &mut self,
        service: ServiceId,
        (handle, bytes): (RequestHandle, u32),
        now: Nanos,
        evicted: impl FnMut(RequestHandle),
    ) -> Result<(), OrchestratorError> {
        let room = self.buffer.bytes();
        if bytes > room {
            return Err(OrchestratorError::TooLarge { bytes, room });
        }
        self.make_room(service, words_of(bytes), evicted)?;
        self.buffer.push(service, Buffered { handle, bytes, arrived: now });
        self.scheduler.enter(service);
        self.monitor.grown(service, self.buffer.length(service));
        self.counts.received += 1;
        Ok(())
    }

    /// Evicts the newest requests of the least important services, if enough of them are less important
    /// than this one.
    fn make_room(
        &mut self,
        service: ServiceId,
        words: u32,
        mut evicted: impl FnMut(RequestHandle),
    ) -> Result<(), OrchestratorError> {
        if words <= self.buffer.words_free() {
            return Ok(());
        }
        let priority = self.priorities[service.index()].map_or(0, Priority::index);
        let below = self.of_priority[..priority].iter().fold(0, |below, of| below | of);
        let droppable: u32 = services(below).map(|service| self.buffer.words(service)).sum();
        if self.buffer.words_free() + droppable < words {
            return Err(OrchestratorError::BufferFull(service));
        }
        while words > self.buffer.words_free() {
            let Some(dropped) = self.drop_least_important() else { break };
            self.counts.evicted += 1;
            evicted(dropped.handle);
        }
        Ok(())
    }

    /// Removes the newest request of the lowest priority. Among several services, takes the one that fills
    /// the buffer most.
    fn drop_least_important(&mut self) -> Option<Buffered> {
        let waiting = self.scheduler.waiting();
        let lowest = self.of_priority.iter().map(|of| of & waiting).find(|of| *of != 0)?;
        let service = services(lowest).max_by_key(|service| self.buffer.words(*service))?;
        let dropped = self.buffer.pop_last(service);
        self.forget_if_empty(service);
        dropped
    }

    fn dispatch_first_of(&mut self, service: ServiceId, now: Nanos) -> Option<Descriptor> {
        let core = self.balancer.dispatch(service)?;
        let request = self.buffer.pop(service)?;
        self.scheduler.taken(service, request.bytes, now);
        self.forget_if_empty(service);
        self.counts.dispatched += 1;
        let hint = self.monitor.ride(core);
        self.counts.hints += u64::from(hint.is_some());
        let priority = self.priorities[service.index()]?;
        let request = Some(ScheduledRequest { handle: request.handle, service, priority });
        Some(Descriptor { core, request, hint })
    }

    fn hint_alone(&mut self) -> Option<Descriptor> {
        let (hint, core) = self.monitor.ride_alone()?;
        self.counts.hints += 1;
        self.counts.hints_alone += 1;
        Some(Descriptor { core, request: None, hint: Some(hint) })
    }

    fn forget_if_empty(&mut self, service: ServiceId) {
        if self.buffer.length(service) == 0 {
            self.scheduler.leave(service);
        }
    }
}

/// The six calls from the host to the NIC (RingLeader, table 1); the seventh is [`LoadHint`].
impl Nic {
    /// Registers a service, and the address to which its requests go.
    pub fn register_service(
        &mut self,
        service: ServiceId,
        address: SocketAddr,
        priority: Priority,
    ) -> Result<(), OrchestratorError> {
        let registered = self.try_register(service, Some(address), priority);
        self.counts.refused.count(registered)
    }

    /// Registers a service whose requests are identified without an address ([`Self::receive_of`]).
    pub fn register_service_without_address(
        &mut self,
        service: ServiceId,
        priority: Priority,
    ) -> Result<(), OrchestratorError> {
        let registered = self.try_register(service, None, priority);
        self.counts.refused.count(registered)
    }

    /// Lets a core run the service from now on.
    pub fn enable_service(&mut self, service: ServiceId, core: CoreId) -> Result<(), OrchestratorError> {
        let enabled = self.balancer.enable(service, core);
        self.counts.refused.count(enabled)
    }

    /// Stops a service on a core. Requests that the core already has are still finished.
    pub fn disable_service(&mut self, service: ServiceId, core: CoreId) -> Result<(), OrchestratorError> {
        let disabled = self.balancer.disable(service, core);
        self.counts.refused.count(disabled)
    }

    /// Takes the feedback that `count` requests of a service are finished on a core.
    pub fn load_feedback(
        &mut self,
        service: ServiceId,
        core: CoreId,
        count: u32,
    ) -> Result<(), OrchestratorError> {
        let taken = self.balancer.feedback(service, core, count);
        self.counts.refused.count(taken)
    }

    /// Starts to watch a service's load.
    pub fn enable_load_monitor(
        &mut self,
        service: ServiceId,
        trigger: Trigger,
        now: Nanos,
    ) -> Result<(), OrchestratorError> {
        let waiting = self.buffer.length(service);
        let known = self.balancer.check_service(service);
        let enabled = known.and_then(|()| self.monitor.enable(service, trigger, waiting, now));
        self.counts.refused.count(enabled)
    }

    /// Acknowledges the last hint for the service, and allows the next one.
    pub fn rearm_load_monitor(&mut self, service: ServiceId) -> Result<(), OrchestratorError> {
        let rearmed = self.monitor.rearm(service);
        self.counts.refused.count(rearmed)
    }

    fn try_register(
        &mut self,
        service: ServiceId,
        address: Option<SocketAddr>,
        priority: Priority,
    ) -> Result<(), OrchestratorError> {
        if let Some(address) = address.filter(|address| self.classifier.service(address).is_ok()) {
            return Err(OrchestratorError::AddressTaken(address));
        }
        if self.priorities[service.index()].is_some() {
            return Err(OrchestratorError::ServiceTaken(service));
        }
        if !self.scheduler.admit(service, priority) {
            return Err(OrchestratorError::Unranked(service));
        }
        self.balancer.register(service, priority)?;
        address.map_or(Ok(()), |address| self.classifier.install(address, service))?;
        self.priorities[service.index()] = Some(priority);
        self.of_priority[priority.index()] |= service.bit();
        Ok(())
    }
}
