//! RingLeader's NIC and cores, with the costs of the hardware between them (RingLeader §3 to §6).
//!
//! The state machines are those of `sluice_host::orchestrator`. A descriptor takes one way over PCIe to its
//! core, and costs that core time to take. Feedback takes the same way back, with the reply's descriptor. A
//! core pays for a switch when it continues another request than the one that yielded. If not all services
//! run on all cores, hints move cores (§4.4): a hint travels to its core and the allocator's decision
//! travels back, two ways over PCIe. The monitor looks as often as a core may move. A batch service may run
//! beside the others (`batch`). Left out: the time of the NIC's own pipeline (8 ns per decision at 125
//! MHz).

use core::net::{Ipv4Addr, SocketAddr};

use sluice_host::orchestrator::{
    AllocatorSettings, AssignedService, Assignment, CoreAllocator, CoreId, CoreScheduler, Descriptor, Hint,
    HostCall, LoadHint, Nic, NicSettings, OrchestratorError, OrchestratorSetupError, Priority, RequestHandle,
    RunSlice, SERVICES_MAX, ServiceId, Trigger,
};
use sluice_stats::Observer;
use sluice_testbed::CoreTimes;
use sluice_testbed::cores_layout::priorities;
use sluice_wire::Nanos;
use sluice_workload::Class;

use super::batch::{BATCH, BatchService};
use super::run::{Orchestrates, RequestId, ServerEvent, ServerRun};

/// The paper's interval (§4.4), if the testbed gives none.
const MOVES_EVERY: Nanos = Nanos::from_micros(5);
/// Bytes of a request on the NIC, with its headers.
const REQUEST_BYTES: u32 = 128;

#[derive(Debug)]
pub(super) struct RingLeader {
    nic: Nic,
    allocator: CoreAllocator,
    /// Calls of the allocator to the NIC; empty between hints.
    calls: Vec<HostCall>,
    /// Whether a look at the queues is scheduled.
    is_watching: bool,
    cores: Vec<CoreScheduler>,
    /// How long each core runs its present request.
    spans: Vec<Nanos>,
    times: CoreTimes,
    services: Vec<(ServiceId, Priority, SocketAddr)>,
    /// The batch service, if there is one.
    batch: Option<BatchService>,
}

impl RingLeader {
    pub(super) fn new(
        times: CoreTimes,
        classes: &[Class],
        settings: &NicSettings,
        assignment: Assignment,
    ) -> Result<Self, OrchestratorSetupError> {
        let mut nic = Nic::new(settings)?;
        let services: Vec<_> = priorities(classes).enumerate().filter_map(service).collect();
        let moves_every = if times.reallocate > Nanos(0) { times.reallocate } else { MOVES_EVERY };
        for (service, priority, address) in &services {
            nic.register_service(*service, *address, *priority).ok();
            if assignment != Assignment::CompleteShare {
                nic.enable_load_monitor(*service, Trigger::congestion(moves_every), Nanos(0)).ok();
            }
        }
        let mut calls = Vec::new();
        let of = |(service, priority, _): &(ServiceId, Priority, SocketAddr)| AssignedService {
            service: *service,
            priority: *priority,
            floor: 0,
        };
        let mut batch = times.batch.then(|| BatchService::new(services.len(), settings.cores)).flatten();
        let rest = batch.as_ref().map(BatchService::assigned);
        let assigned = AllocatorSettings {
            assignment,
            cores: settings.cores,
            services: services.iter().map(of).chain(rest).collect(),
            batch: rest.map(|rest| rest.service),
            moves_every,
        };
        let allocator = CoreAllocator::new(assigned, |call| calls.push(call))?;
        make_calls(&mut nic, &mut calls, &mut batch);
        let yields = if times.yields > Nanos(0) { times.yields } else { Nanos(u64::MAX >> 1) };
        let held = settings.balancing.held_max(settings.depth) + u32::from(times.batch);
        let core = |core: usize| CoreScheduler::new(CoreId(core as u16), held, yields);
        let cores: Vec<_> = (0..settings.cores).map(core).collect();
        let spans = vec![Nanos(0); cores.len()];
        Ok(Self { nic, allocator, calls, is_watching: false, spans, cores, times, services, batch })
    }

    /// Sends everything that can leave the NIC.
    fn dispatch<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        while let Some(Descriptor { core, request, hint }) = self.nic.dispatch(run.now) {
            if let Some(LoadHint { service, hint }) = hint {
                let (of, more) = (service.index() as u8, hint == Hint::ScaleUp);
                run.after(self.times.pcie.times(2), ServerEvent::Hinted { of, more });
            }
            let Some(request) = request else { continue };
            run.queued.leave(run.now);
            run.at_cores.enter(run.now);
            let request = request.handle.0 as RequestId;
            run.after(self.times.pcie, ServerEvent::Reaches { core: core.0, request });
        }
    }

    /// Schedules the next look at the queues.
    fn watch<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        if let Some(due) = self.nic.next_deadline().filter(|_| !self.is_watching) {
            self.is_watching = true;
            run.after(due.since(run.now), ServerEvent::Check);
        }
    }

    /// The allocator's decision on a hint arrives at the NIC.
    fn on_hint<O: Observer>(&mut self, of: u8, hint: Hint, run: &mut ServerRun<'_, O>) {
        let Some(service) = ServiceId::new(of.into()) else { return };
        let calls = &mut self.calls;
        self.allocator.hint(LoadHint { service, hint }, run.now, |call| calls.push(call));
        make_calls(&mut self.nic, &mut self.calls, &mut self.batch);
        self.bring_batch(run);
        self.dispatch(run);
    }

    /// Gives the batch service to the cores that should run it.
    fn bring_batch<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        for core in 0..self.cores.len() {
            if let Some(batch) = &mut self.batch {
                batch.deliver(&mut self.cores[core], core as u16);
                self.start(core as u16, run);
            }
        }
    }

    fn on_core_packet<O: Observer>(&mut self, core: u16, request: RequestId, run: &mut ServerRun<'_, O>) {
        let (service, priority, _) = self.services[usize::from(run.class(request))];
        let handle = RequestHandle(request.into());
        let request = sluice_host::orchestrator::ScheduledRequest { handle, service, priority };
        let descriptor = Descriptor { core: CoreId(core), request: Some(request), hint: None };
        let delivered = self.cores[usize::from(core)].deliver(&descriptor);
        debug_assert!(delivered.is_ok(), "the NIC keeps to the bound");
        self.start(core, run);
    }

    fn start<O: Observer>(&mut self, core: u16, run: &mut ServerRun<'_, O>) {
        if let Some(slice) = self.cores[usize::from(core)].start(run.now) {
            self.runs(core, slice, run);
        }
    }

    fn runs<O: Observer>(&mut self, core: u16, slice: RunSlice, run: &mut ServerRun<'_, O>) {
        if slice.request.handle.0 == u64::from(BATCH) {
            return self.runs_batch(core, slice.until, run);
        }
        let switch = if slice.is_switch { self.times.switch } else { Nanos(0) };
        let taken = if slice.is_resumed { Nanos(0) } else { self.times.descriptor };
        run.at_cores.leave(run.now);
        let most = slice.until.since(run.now);
        let request = slice.request.handle.0 as RequestId;
        self.spans[usize::from(core)] = run.runs(core, request, (switch + taken, most));
    }

    /// Runs the batch service until it yields, unless another service has the core by now.
    fn runs_batch<O: Observer>(&mut self, core: u16, until: Nanos, run: &mut ServerRun<'_, O>) {
        if self.batch.as_mut().is_some_and(|batch| batch.leaves(core)) {
            self.cores[usize::from(core)].finish(false).ok();
            return self.start(core, run);
        }
        run.batch_begins();
        run.after(until.since(run.now), ServerEvent::Ran { core });
    }

    fn ended<O: Observer>(&mut self, core: u16, running: RequestId, run: &mut ServerRun<'_, O>) {
        let at = usize::from(core);
        if running == BATCH {
            run.batch_ends();
            let next = self.cores[at].yields(run.now);
            return next.map_or((), |slice| self.runs(core, slice, run));
        }
        let class = run.class(running);
        if run.ran(running, self.spans[at]) {
            if self.cores[at].finish(true).is_ok() {
                run.after(self.times.pcie, ServerEvent::Told { core, of: class });
            }
            self.start(core, run);
        } else {
            run.at_cores.enter(run.now);
            if let Ok(slice) = self.cores[at].yields(run.now) {
                self.runs(core, slice, run);
            }
        }
    }
}

impl Orchestrates for RingLeader {
    fn begin<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        self.bring_batch(run);
    }

    fn arrive<O: Observer>(&mut self, request: RequestId, run: &mut ServerRun<'_, O>) {
        let (_, _, address) = self.services[usize::from(run.class(request))];
        let packet = (RequestHandle(request.into()), REQUEST_BYTES);
        run.queued.enter(run.now);
        let mut evicted = Vec::new();
        let received = self.nic.receive(&address, packet, run.now, |gone| evicted.push(gone.0 as RequestId));
        for dropped in evicted.into_iter().chain(received.err().map(|_| request)) {
            run.queued.leave(run.now);
            run.refuse(dropped);
        }
        self.dispatch(run);
        self.watch(run);
    }

    #[expect(clippy::inline_always, reason = "what it is needs no second look where it is handed on")]
    #[inline(always)]
    fn on_event<O: Observer>(&mut self, event: ServerEvent, run: &mut ServerRun<'_, O>) {
        match event {
            ServerEvent::Ran { core } => {
                if let Some(running) = self.cores[usize::from(core)].running() {
                    self.ended(core, running.handle.0 as RequestId, run);
                }
            }
            ServerEvent::Reaches { core, request } => self.on_core_packet(core, request, run),
            ServerEvent::Told { core, of } => {
                let (service, ..) = self.services[usize::from(of)];
                let told = self.nic.load_feedback(service, CoreId(core), 1);
                debug_assert!(told.is_ok(), "no more ends than was dispatched");
                self.dispatch(run);
            }
            ServerEvent::Check => {
                self.is_watching = false;
                self.nic.tick(run.now);
                self.dispatch(run);
                self.watch(run);
            }
            ServerEvent::Hinted { of, more } => {
                self.on_hint(of, if more { Hint::ScaleUp } else { Hint::ScaleDown }, run);
            }
            ServerEvent::Ready { .. } | ServerEvent::Given { .. } => {}
        }
    }
}

/// Passes the allocator's calls to the NIC, which knows all services and cores and so refuses none. Calls
/// about the batch service are handled here, since the NIC does not know it.
fn make_calls(nic: &mut Nic, calls: &mut Vec<HostCall>, batch: &mut Option<BatchService>) {
    let mut is_batch = |call: &HostCall| batch.as_mut().is_some_and(|batch| batch.on_hint(*call));
    for call in calls.drain(..).filter(|call| !is_batch(call)) {
        let made: Result<(), OrchestratorError> = match call {
            HostCall::EnableService(service, core) => nic.enable_service(service, core),
            HostCall::DisableService(service, core) => nic.disable_service(service, core),
            HostCall::RearmLoadMonitor(service) => nic.rearm_load_monitor(service),
        };
        debug_assert!(made.is_ok(), "{made:?}");
    }
}

fn service((number, priority): (usize, u8)) -> Option<(ServiceId, Priority, SocketAddr)> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9_000 + (number % SERVICES_MAX) as u16));
    Some((ServiceId::new(number)?, Priority::new(priority).ok()?, address))
}
