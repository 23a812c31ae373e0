//! The dispatcher: the NIC's logic in front of the cores' rings.
//!
//! It runs on the thread that owns the socket. A descriptor that the NIC would send over PCIe goes into a
//! ring. A hint goes straight to the core allocator, which runs on the same thread, so it needs no
//! descriptor.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sluice_host::orchestrator::{
    AllocatorSettings, AssignedService, Assignment, CoreAllocator, CoreId, HostCall, LoadHint, Nic,
    NicCounts, NicSettings, OrchestratorError, Priority, RequestHandle, ServiceId, Trigger,
};
use sluice_wire::Nanos;

use crate::bell::CoreBell;
use crate::descriptor::{PLACES_MAX, request, word};
use crate::error::CoresError;
use crate::requests::RequestTable;
use crate::rings::{CoreEnds, NoticeReceiver, RingSender, rings};
use crate::watch::{CoreWatch, Overdue};

/// The space of a descriptor in the NIC's buffer. The bytes of requests stay in the host's memory.
const DESCRIPTOR_BYTES: u32 = 64;

/// The settings of a dispatcher.
#[derive(Clone, Debug)]
pub struct CoreDispatcherSettings {
    /// The NIC's settings. Its buffer size is ignored: the buffer has room for all places.
    pub nic: NicSettings,
    /// The services that the cores run.
    pub services: Vec<ServiceOfCores>,
    /// Which services run on which cores.
    pub assignment: Assignment,
    /// How many threads share the cores: thread n mod `threads` runs core n.
    pub threads: usize,
    /// The shortest time between two moves of one core.
    pub moves_every: Nanos,
}

/// A service behind a dispatcher.
#[derive(Clone, Copy, Debug)]
pub struct ServiceOfCores {
    pub service: ServiceId,
    /// The priority of the service's requests.
    pub priority: Priority,
    /// How many cores the service always keeps, unless all cores are shared.
    pub floor: usize,
    /// When the service's load triggers a hint; `None` for never.
    pub trigger: Option<Trigger>,
}

/// A core's ends of its rings, for the thread that will run it.
#[derive(Debug)]
pub struct CoreRings {
    pub(crate) core: CoreId,
    pub(crate) capacity: u32,
    pub(crate) ends: CoreEnds<AtomicU64>,
    pub(crate) watch: Arc<CoreWatch>,
    pub(crate) bell: Arc<CoreBell>,
}

/// A request that a core has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedRequest {
    /// The request's place, which becomes free afterwards.
    pub place: u32,
    pub service: ServiceId,
    pub core: CoreId,
    /// When the core began the request, in the core's time.
    pub began: Nanos,
    /// When the core finished the request, in the core's time.
    pub ended: Nanos,
}

/// The NIC's logic, and the dispatcher's ends of all rings.
#[derive(Debug)]
pub struct CoreDispatcher<R> {
    nic: Nic,
    allocator: CoreAllocator,
    requests: RequestTable<R>,
    free: Vec<u32>,
    cores: Vec<CoreEnd>,
    bells: Vec<Arc<CoreBell>>,
    calls: Vec<HostCall>,
}

#[derive(Debug)]
struct CoreEnd {
    giver: RingSender<AtomicU64>,
    hearer: NoticeReceiver<AtomicU64>,
    watch: Arc<CoreWatch>,
    was_given: bool,
}

impl<R> CoreDispatcher<R> {
    /// A dispatcher with idle cores, and the cores' ends.
    pub fn new(
        settings: &CoreDispatcherSettings,
        requests: RequestTable<R>,
    ) -> Result<(Self, Vec<CoreRings>), CoresError> {
        let cores = settings.nic.cores;
        let capacity = settings.nic.balancing.held_max(settings.nic.depth);
        let places = requests.places().min(PLACES_MAX) as u32;
        // The buffer has room for all places, so no request is ever evicted.
        let mut nic =
            Nic::new(&NicSettings { buffer_bytes: places * DESCRIPTOR_BYTES, ..settings.nic.clone() })?;
        let mut calls = Vec::new();
        let allocator = CoreAllocator::new(allocation(settings, cores), |call| calls.push(call))?;
        for of in &settings.services {
            nic.register_service_without_address(of.service, of.priority)?;
            if let Some(trigger) = of.trigger {
                nic.enable_load_monitor(of.service, trigger, Nanos(0))?;
            }
        }
        let bells: Vec<_> = (0..settings.threads.max(1)).map(|_| Arc::new(CoreBell::default())).collect();
        let bell = |core: usize| Arc::clone(&bells[core % bells.len()]);
        let (cores, seats) = (0..cores).map(|core| joined(core, capacity, bell(core))).unzip();
        let free = (0..places).rev().collect();
        let mut dispatcher = Self { nic, allocator, requests, free, cores, bells, calls };
        dispatcher.make_calls()?;
        Ok((dispatcher, seats))
    }

    /// Reserves a place for a new request. The caller fills the place before it calls [`Self::offer`].
    pub fn place(&mut self) -> Result<u32, CoresError> {
        self.free.pop().ok_or_else(|| CoresError::Full(self.requests.places()))
    }

    /// Lets the request in `place` wait for a core. If it is refused, its place becomes free.
    pub fn offer(&mut self, service: ServiceId, place: u32, now: Nanos) -> Result<(), CoresError> {
        let handle = (RequestHandle(place.into()), DESCRIPTOR_BYTES);
        let offered = self.nic.receive_of(service, handle, now, |_| debug_assert!(false, "all places fit"));
        if offered.is_err() {
            self.free.push(place);
        }
        Ok(offered?)
    }

    /// Gives waiting requests to cores with room, and wakes sleeping threads.
    pub fn dispatch(&mut self, now: Nanos) -> Result<(), CoresError> {
        while let Some(descriptor) = self.nic.dispatch(now) {
            if let Some(hint) = descriptor.hint {
                self.on_hint(hint, now)?;
            }
            if let Some(request) = descriptor.request {
                let core = &mut self.cores[descriptor.core.index()];
                core.giver.give(word(&request, now))?;
                core.was_given = true;
            }
        }
        self.wake();
        Ok(())
    }

    /// Collects finished requests; calls `ended` for each before its place becomes free. Call
    /// [`Self::dispatch`] afterwards.
    pub fn collect(
        &mut self,
        mut ended: impl FnMut(&RequestTable<R>, EndedRequest),
    ) -> Result<(), CoresError> {
        for (core, end) in self.cores.iter_mut().enumerate() {
            if end.hearer.refresh() == 0 {
                continue;
            }
            let core = CoreId(core as u16);
            while let Some(request) = end.hearer.take_ended().and_then(request) {
                end.giver.returned();
                let (place, service) = (request.handle.0 as u32, request.service);
                self.nic.load_feedback(service, core, 1)?;
                let (began, until) = self.requests.times(place);
                ended(&self.requests, EndedRequest { place, service, core, began, ended: until });
                self.free.push(place);
            }
        }
        Ok(())
    }

    /// Makes the load checks that are due.
    pub fn tick(&mut self, now: Nanos) {
        self.nic.tick(now);
    }

    /// When to tick and dispatch next, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.nic.next_deadline()
    }

    /// How many more requests of a service its cores would take if they had room for `beyond` more, minus
    /// those that wait already.
    pub fn room(&self, service: ServiceId, beyond: u32) -> u32 {
        (self.nic.balancer().room(service) + beyond).saturating_sub(self.nic.waiting(service))
    }

    /// Coroutines that have run for longer than `longest` without a yield.
    pub fn overdue(&self, longest: Nanos, now: Nanos) -> impl Iterator<Item = Overdue> {
        let cores = self.cores.iter().enumerate();
        cores.filter_map(move |(core, end)| end.watch.overdue(CoreId(core as u16), longest, now))
    }

    /// How much time of all cores the batch service has got.
    pub fn batch_time(&self) -> Nanos {
        self.cores.iter().fold(Nanos(0), |sum, core| sum + core.watch.batch_time())
    }

    /// How many requests wait or are on a core.
    pub fn held(&self) -> usize {
        self.requests.places() - self.free.len()
    }

    /// The requests.
    pub const fn requests(&self) -> &RequestTable<R> {
        &self.requests
    }

    /// The NIC's counters.
    pub fn counts(&self) -> &NicCounts {
        self.nic.counts()
    }

    /// How many times a core changed its use.
    pub fn moves(&self) -> u64 {
        self.allocator.moves()
    }

    fn on_hint(&mut self, hint: LoadHint, now: Nanos) -> Result<(), CoresError> {
        let calls = &mut self.calls;
        self.allocator.hint(hint, now, |call| calls.push(call));
        Ok(self.make_calls()?)
    }

    fn make_calls(&mut self) -> Result<(), OrchestratorError> {
        for call in self.calls.drain(..) {
            match call {
                HostCall::EnableService(service, core) => self.nic.enable_service(service, core),
                HostCall::DisableService(service, core) => self.nic.disable_service(service, core),
                HostCall::RearmLoadMonitor(service) => self.nic.rearm_load_monitor(service),
            }?;
        }
        Ok(())
    }

    fn wake(&mut self) {
        let threads = self.bells.len();
        for (thread, bell) in self.bells.iter().enumerate() {
            let mut own = self.cores.iter_mut().skip(thread).step_by(threads);
            // Clears all flags: a flag left set would wake the thread for nothing later.
            if own.by_ref().fold(false, |any, core| std::mem::take(&mut core.was_given) | any) {
                bell.ring();
            }
        }
    }
}

fn joined(core: usize, capacity: u32, bell: Arc<CoreBell>) -> (CoreEnd, CoreRings) {
    let ((giver, hearer), ends) = rings(capacity as usize);
    let watch = Arc::new(CoreWatch::default());
    let seat = CoreRings { core: CoreId(core as u16), capacity, ends, watch: Arc::clone(&watch), bell };
    (CoreEnd { giver, hearer, watch, was_given: false }, seat)
}

fn allocation(settings: &CoreDispatcherSettings, cores: usize) -> AllocatorSettings {
    let assigned =
        |of: &ServiceOfCores| AssignedService { service: of.service, priority: of.priority, floor: of.floor };
    AllocatorSettings {
        assignment: settings.assignment,
        cores,
        services: settings.services.iter().map(assigned).collect(),
        batch: None,
        moves_every: settings.moves_every,
    }
}
