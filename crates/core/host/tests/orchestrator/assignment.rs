//! Which services run on which cores: complete-share, dedicated, hybrid.

use sluice_host::orchestrator::{
    AllocatorSettings, AssignedService, Assignment, CoreAllocator, CoreId, CoreUse, Hint, HostCall, LoadHint,
    Nic, OrchestratorSetupError, ServiceId,
};
use sluice_wire::Nanos;

use crate::server::{jbsrq, nic, priority, service, settings};

const CORES: usize = 6;
const LATENCY: usize = 1;
const BATCH: usize = 0;

/// A latency-sensitive service that keeps two cores, a batch service that keeps one, and their NIC.
struct Server {
    allocator: CoreAllocator,
    nic: Nic,
    rearmed: Vec<ServiceId>,
}

impl Server {
    fn new(assignment: Assignment, batch: Option<ServiceId>) -> Self {
        Self::keeping(assignment, batch, [2, 1])
    }

    /// A server whose services keep `floors` cores.
    fn keeping(assignment: Assignment, batch: Option<ServiceId>, floors: [usize; 2]) -> Self {
        let mut nic = nic(&settings(CORES, 4, jbsrq()), &[0, 1]);
        let service = |number: usize, floor| AssignedService {
            service: service(number),
            priority: priority(number as u8),
            floor,
        };
        let settings = AllocatorSettings {
            assignment,
            cores: CORES,
            services: vec![service(LATENCY, floors[0]), service(BATCH, floors[1])],
            batch,
            moves_every: Nanos(5_000),
        };
        let allocator = CoreAllocator::new(settings, |call| apply(&mut nic, call, &mut Vec::new())).unwrap();
        Self { allocator, nic, rearmed: Vec::new() }
    }

    fn hint(&mut self, number: usize, hint: Hint, now: u64) {
        let (nic, rearmed) = (&mut self.nic, &mut self.rearmed);
        let hint = LoadHint { service: service(number), hint };
        self.allocator.hint(hint, Nanos(now), |call| apply(nic, call, rearmed));
        assert_eq!(self.rearmed.pop(), Some(hint.service), "each hint is answered");
        for core in 0..CORES {
            let core = CoreId(core as u16);
            let owner = self.allocator.owner(core).unwrap();
            for number in [LATENCY, BATCH] {
                let runs = owner == CoreUse::Shared || owner == CoreUse::Own(service(number));
                assert_eq!(self.nic.balancer().runs(service(number), core), runs, "the NIC knows it");
            }
        }
    }

    fn own(&self, number: usize) -> usize {
        self.allocator.own_cores(service(number))
    }
}

fn apply(nic: &mut Nic, call: HostCall, rearmed: &mut Vec<ServiceId>) {
    match call {
        HostCall::EnableService(service, core) => nic.enable_service(service, core).unwrap(),
        HostCall::DisableService(service, core) => nic.disable_service(service, core).unwrap(),
        HostCall::RearmLoadMonitor(service) => rearmed.push(service),
    }
}

#[test]
fn all_services_run_on_all_cores_and_hints_change_nothing_under_complete_share() {
    let mut server = Server::new(Assignment::CompleteShare, None);
    server.hint(LATENCY, Hint::ScaleUp, 0);
    assert!((0..CORES).all(|core| server.allocator.owner(CoreId(core as u16)) == Some(CoreUse::Shared)));
    assert_eq!(server.allocator.moves(), 0);
}

#[test]
fn a_dedicated_core_runs_one_service_and_goes_where_the_load_is() {
    let mut server = Server::new(Assignment::Dedicated, Some(service(BATCH)));
    assert_eq!((server.own(LATENCY), server.own(BATCH)), (2, 4));
    for _ in 0..9 {
        server.hint(LATENCY, Hint::ScaleUp, 0);
    }
    assert_eq!((server.own(LATENCY), server.own(BATCH)), (5, 1), "the batch service keeps its floor");
    server.hint(BATCH, Hint::ScaleUp, 10_000);
    assert_eq!(server.own(BATCH), 1, "and takes none from what is more important");
    for at in 0..9 {
        server.hint(LATENCY, Hint::ScaleDown, 10_000 + at);
    }
    assert_eq!((server.own(LATENCY), server.own(BATCH)), (2, 4));
}

#[test]
fn a_batch_service_without_a_floor_gives_up_its_last_core_and_another_service_does_not() {
    let all = CORES + 3;
    let up = |batch| {
        let mut server = Server::keeping(Assignment::Dedicated, batch, [0, 0]);
        (0..all).for_each(|_| server.hint(LATENCY, Hint::ScaleUp, 0));
        server
    };
    let mut server = up(Some(service(BATCH)));
    assert_eq!((server.own(LATENCY), server.own(BATCH)), (CORES, 0));
    (0..all).for_each(|at| server.hint(LATENCY, Hint::ScaleDown, 10_000 + at as u64));
    assert_eq!((server.own(LATENCY), server.own(BATCH)), (1, CORES - 1), "what is given back is its own");
    assert_eq!(up(None).own(BATCH), 1);
}

#[test]
fn a_core_moves_once_in_five_microseconds() {
    let mut server = Server::new(Assignment::Dedicated, Some(service(BATCH)));
    server.hint(LATENCY, Hint::ScaleUp, 1_000);
    server.hint(LATENCY, Hint::ScaleDown, 5_999);
    // The core that moved just now stays; a core that has not moved is taken.
    assert_eq!((server.own(LATENCY), server.allocator.moves()), (2, 2));
    let mut tight = Server::new(Assignment::Dedicated, None);
    (0..3).for_each(|_| tight.hint(LATENCY, Hint::ScaleUp, 1_000));
    assert_eq!(tight.own(LATENCY), 5, "all spare cores");
    (0..5).for_each(|_| tight.hint(LATENCY, Hint::ScaleDown, 2_000));
    assert_eq!(tight.own(LATENCY), 3, "only the two that have not moved");
    tight.hint(LATENCY, Hint::ScaleDown, 6_000);
    assert_eq!(tight.own(LATENCY), 2);
}

#[test]
fn shared_cores_become_a_services_own_and_go_back_under_the_hybrid_model() {
    let mut server = Server::new(Assignment::Hybrid(2), None);
    assert_eq!((server.own(LATENCY), server.own(BATCH)), (2, 1));
    for _ in 0..9 {
        server.hint(LATENCY, Hint::ScaleUp, 0);
    }
    assert_eq!(server.own(LATENCY), 3, "two cores stay shared");
    for at in 0..9 {
        server.hint(LATENCY, Hint::ScaleDown, 10_000 * at);
    }
    assert_eq!(server.own(LATENCY), 2);
}

#[test]
fn floors_that_do_not_fit_are_refused_when_it_is_built() {
    let services = vec![AssignedService { service: service(0), priority: priority(0), floor: 4 }; 2];
    for (assignment, floor) in [(Assignment::Dedicated, 8), (Assignment::Hybrid(3), 11)] {
        let services = services.clone();
        let moves_every = Nanos(5_000);
        let settings = AllocatorSettings { assignment, cores: 7, services, batch: None, moves_every };
        let told = CoreAllocator::new(settings, |_| {}).map(drop);
        assert_eq!(told, Err(OrchestratorSetupError::Assignment { cores: 7, floor }));
    }
}
