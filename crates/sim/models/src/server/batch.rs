//! A batch service beside the others on RingLeader's cores (RingLeader §2, §4.4).
//!
//! It is always ready. To a core it is one request, less important than all others, that never ends: it runs
//! where nothing else waits, yields like the others, and leaves a core that is taken from it when it yields
//! next. The NIC knows nothing of it.

use sluice_host::orchestrator::{
    AssignedService, CoreId, CoreScheduler, Descriptor, HostCall, Priority, RequestHandle, ScheduledRequest,
    ServiceId,
};

use super::run::RequestId;

/// Its request, which is none of the server's.
pub(super) const BATCH: RequestId = RequestId::MAX;

#[derive(Debug)]
pub(super) struct BatchService {
    request: ScheduledRequest,
    cores: Vec<BatchOnCore>,
}

#[derive(Clone, Copy, Debug, Default)]
struct BatchOnCore {
    /// The core is to run it.
    is_wanted: bool,
    /// The core has it, and may be running something else.
    is_held: bool,
}

impl BatchService {
    /// The service of that number; none if there are too many.
    pub(super) fn new(number: usize, cores: usize) -> Option<Self> {
        let (handle, priority) = (RequestHandle(BATCH.into()), Priority::new(0).ok()?);
        let request = ScheduledRequest { handle, service: ServiceId::new(number)?, priority };
        Some(Self { request, cores: vec![BatchOnCore::default(); cores] })
    }

    /// Who gets what cores the others leave; it keeps none.
    pub(super) fn assigned(&self) -> AssignedService {
        let ScheduledRequest { service, priority, .. } = self.request;
        AssignedService { service, priority, floor: 0 }
    }

    /// Takes note of a call that is about it; says whether it was.
    pub(super) fn heeds(&mut self, call: HostCall) -> bool {
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

    /// Brings it to a core that is to run it and has it not.
    pub(super) fn comes(&mut self, core: &mut CoreScheduler, at: u16) {
        let here = &mut self.cores[usize::from(at)];
        if here.is_wanted && !here.is_held {
            let descriptor = Descriptor { core: CoreId(at), request: Some(self.request), hint: None };
            here.is_held = core.deliver(&descriptor).is_ok();
            debug_assert!(here.is_held, "a core has room for it beside what the NIC sends");
        }
    }

    /// Whether a core runs it no more: what it runs of it is to end.
    pub(super) fn leaves(&mut self, at: u16) -> bool {
        let here = &mut self.cores[usize::from(at)];
        here.is_held &= here.is_wanted;
        !here.is_held
    }
}
