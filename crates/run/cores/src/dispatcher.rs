//! The dispatcher: the NIC's logic in front of the cores' rings.
//!
//! It stands on the thread of whoever owns the socket. What the NIC would send over PCIe goes into a ring
//! here, and a hint to the core allocator, which stands on the same thread: it needs no ride on a descriptor.

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

/// What a descriptor takes of the NIC's buffer: requests' bytes lie in the host's memory.
const DESCRIPTOR_BYTES: u32 = 64;

/// How a dispatcher is built.
#[derive(Clone, Debug)]
pub struct CoreDispatcherSettings {
    /// The logic; its buffer has room for all places, whatever is said here.
    pub nic: NicSettings,
    /// The services behind it.
    pub services: Vec<ServiceOfCores>,
    /// Which services run on which cores.
    pub assignment: Assignment,
    /// The threads that share the cores: core n is run by thread n mod threads.
    pub threads: usize,
    /// A core moves from service to service once in so long, at most.
    pub moves_every: Nanos,
}

/// A service behind a dispatcher.
#[derive(Clone, Copy, Debug)]
pub struct ServiceOfCores {
    pub service: ServiceId,
    /// How important its requests are.
    pub priority: Priority,
    /// Cores that it keeps, where cores are not all shared.
    pub floor: usize,
    /// When its load is worth a hint; none if it never is.
    pub trigger: Option<Trigger>,
}

/// A core's end of everything, for the thread that will run it.
#[derive(Debug)]
pub struct CoreSeat {
    pub(crate) core: CoreId,
    pub(crate) capacity: u32,
    pub(crate) ends: CoreEnds<AtomicU64>,
    pub(crate) watch: Arc<CoreWatch>,
    pub(crate) bell: Arc<CoreBell>,
}

/// A request that has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedRequest {
    /// Its place, which is free afterwards.
    pub place: u32,
    pub service: ServiceId,
    pub core: CoreId,
    /// When that began it, in the core's time.
    pub began: Nanos,
    /// When that was done with it.
    pub ended: Nanos,
}

/// The logic, and its ends of all rings.
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
    /// Idle cores without requests, and their seats.
    pub fn new(
        settings: &CoreDispatcherSettings,
        requests: RequestTable<R>,
    ) -> Result<(Self, Vec<CoreSeat>), CoresError> {
        let cores = settings.nic.cores;
        let capacity = settings.nic.balancing.held_max(settings.nic.depth);
        let places = requests.places().min(PLACES_MAX) as u32;
        // All places fit, so that nobody's request is dropped for another's.
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

    /// A place for a request that has come, which the caller fills before it is offered.
    pub fn place(&mut self) -> Result<u32, CoresError> {
        self.free.pop().ok_or_else(|| CoresError::Full(self.requests.places()))
    }

    /// The request in `place` waits for a core from now on. If it is refused, its place is free again.
    pub fn offer(&mut self, service: ServiceId, place: u32, now: Nanos) -> Result<(), CoresError> {
        let handle = (RequestHandle(place.into()), DESCRIPTOR_BYTES);
        let offered = self.nic.receive_of(service, handle, now, |_| debug_assert!(false, "all places fit"));
        if offered.is_err() {
            self.free.push(place);
        }
        Ok(offered?)
    }

    /// Gives cores what there is room for, and wakes those that sleep.
    pub fn dispatch(&mut self, now: Nanos) -> Result<(), CoresError> {
        while let Some(descriptor) = self.nic.dispatch(now) {
            if let Some(hint) = descriptor.hint {
                self.heed(hint, now)?;
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

    /// Hears what has ended: `ended` is told of each request before its place is free. Call
    /// [`Self::dispatch`] afterwards.
    pub fn collect(
        &mut self,
        mut ended: impl FnMut(&RequestTable<R>, EndedRequest),
    ) -> Result<(), CoresError> {
        for (core, end) in self.cores.iter_mut().enumerate() {
            if end.hearer.listen() == 0 {
                continue;
            }
            let core = CoreId(core as u16);
            while let Some(request) = end.hearer.hear().and_then(request) {
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

    /// Looks at the queues whose time has come.
    pub fn tick(&mut self, now: Nanos) {
        self.nic.tick(now);
    }

    /// When to tick and dispatch next, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.nic.next_deadline()
    }

    /// How many more requests of a service its cores would take now if there were room for so many more
    /// there, those that wait already counted.
    pub fn room(&self, service: ServiceId, beyond: u32) -> u32 {
        (self.nic.balancer().room(service) + beyond).saturating_sub(self.nic.waiting(service))
    }

    /// Coroutines that have run for longer than this without a yield.
    pub fn overdue(&self, longest: Nanos, now: Nanos) -> impl Iterator<Item = Overdue> {
        let cores = self.cores.iter().enumerate();
        cores.filter_map(move |(core, end)| end.watch.overdue(CoreId(core as u16), longest, now))
    }

    /// What the batch service got of all cores' time so far.
    pub fn batch_time(&self) -> Nanos {
        self.cores.iter().fold(Nanos(0), |sum, core| sum + core.watch.batch_time())
    }

    /// Requests that are here, waiting or on a core.
    pub fn held(&self) -> usize {
        self.requests.places() - self.free.len()
    }

    /// The requests.
    pub const fn requests(&self) -> &RequestTable<R> {
        &self.requests
    }

    /// What the logic counted.
    pub fn counts(&self) -> &NicCounts {
        self.nic.counts()
    }

    /// How often a core changed hands.
    pub fn moves(&self) -> u64 {
        self.allocator.moves()
    }

    fn heed(&mut self, hint: LoadHint, now: Nanos) -> Result<(), CoresError> {
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
            // All of them: a flag that stays would ring for nothing later.
            if own.by_ref().fold(false, |any, core| std::mem::take(&mut core.was_given) | any) {
                bell.ring();
            }
        }
    }
}

fn joined(core: usize, capacity: u32, bell: Arc<CoreBell>) -> (CoreEnd, CoreSeat) {
    let ((giver, hearer), ends) = rings(capacity as usize);
    let watch = Arc::new(CoreWatch::default());
    let seat = CoreSeat { core: CoreId(core as u16), capacity, ends, watch: Arc::clone(&watch), bell };
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
