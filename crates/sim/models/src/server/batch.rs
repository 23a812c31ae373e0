//! A batch service beside the other services on RingLeader's cores (RingLeader §2, §4.4).
//!
//! It always has work. To a core it is one request of the lowest priority that never ends. It runs where no
//! other request waits, yields like the others, and leaves a core that is taken from it at its next yield.
//! The NIC does not know of it.

use sluice_host::orchestrator::{
    AssignedService, CoreId, CoreScheduler, Descriptor, HostCall, Priority, RequestHandle, ScheduledRequest,
    ServiceId,
};

use super::run::RequestId;

/// The id of its request, which no request of the server has.
pub(super) const BATCH: RequestId = RequestId::MAX;

#[derive(Debug)]
pub(super) struct BatchService {
    request: ScheduledRequest,
    cores: Vec<BatchOnCore>,
}

#[derive(Clone, Copy, Debug, Default)]
struct BatchOnCore {
    /// Whether the core should run it.
    is_wanted: bool,
    /// Whether the core has it; the core may be running another request.
    is_held: bool,
}

impl BatchService {
    /// The batch service with this number; `None` if there are too many services.
    pub(super) fn new(number: usize, cores: usize) -> Option<Self> {
        let (handle, priority) = (RequestHandle(BATCH.into()), Priority::new(0).ok()?);
        let request = ScheduledRequest { handle, service: ServiceId::new(number)?, priority };
        Some(Self { request, cores: vec![BatchOnCore::default(); cores] })
    }

    /// Its assignment: it gets the cores that the others leave, and keeps none.
    pub(super) fn assigned(&self) -> AssignedService {
        let ScheduledRequest { service, priority, .. } = self.request;
        AssignedService { service, priority, floor: 0 }
    }

    /// Handles a call if it is about the batch service; returns whether it was.
    pub(super) fn on_hint(&mut self, call: HostCall) -> bool {
        let (service, core, is_wanted) = match call {
            HostCall::EnableService(service, core) => (service, core, true),
            HostCall::DisableService(service, core) => (service, core, false),
            HostCall::RearmLoadMonitor(_) => return false,
        };
        let is_mine = service == self.request.service;
        if is_mine {
            self.cores[core.index()].is_wanted = is_wanted;
        }
        is_mine
    }

    /// Gives it to a core that should run it and does not have it.
    pub(super) fn deliver(&mut self, core: &mut CoreScheduler, at: u16) {
        let here = &mut self.cores[usize::from(at)];
        if here.is_wanted && !here.is_held {
            let descriptor = Descriptor { core: CoreId(at), request: Some(self.request), hint: None };
            here.is_held = core.deliver(&descriptor).is_ok();
            debug_assert!(here.is_held, "a core has room for it beside what the NIC sends");
        }
    }

    /// Takes it from a core that should not run it any more; returns whether it did.
    pub(super) fn leaves(&mut self, at: u16) -> bool {
        let here = &mut self.cores[usize::from(at)];
        here.is_held &= here.is_wanted;
        !here.is_held
    }
}
