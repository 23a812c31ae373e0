//! What must hold after any sequence of calls: each register is the sum that the paper defines, and no
//! eligible request waits.

use proptest::prelude::*;
use sluice_host::orchestrator::{
    Balancing, CoreId, Lambda, Nic, NicSettings, RequestHandle, SchedulingOrder,
};
use sluice_wire::Nanos;

use crate::server::{address, enable_everywhere, jbsrq, nic, send, service, settings};

const SERVICES: usize = 5;
const PRIORITY: [u8; SERVICES] = [0, 1, 1, 4, 7];
const DEPTH: u32 = 3;

/// The expected state of a NIC after its calls.
#[derive(Clone, Debug)]
struct Model {
    balancing: Balancing,
    runs: Vec<[bool; SERVICES]>,
    held: Vec<[u32; SERVICES]>,
    waiting: [Vec<RequestHandle>; SERVICES],
}

impl Model {
    fn new(balancing: Balancing, cores: usize) -> Self {
        let waiting = Default::default();
        Self { balancing, runs: vec![[false; SERVICES]; cores], held: vec![[0; SERVICES]; cores], waiting }
    }

    /// The rank by the paper's definition, in fifths (λ's denominator is 5).
    fn rank(&self, of: usize, core: usize) -> u32 {
        let counts = |other: usize| match self.balancing {
            Balancing::Jbsrq(_) if PRIORITY[other] >= PRIORITY[of] => 5,
            Balancing::GlobalJbsq | Balancing::Jbsrq(_) => 1,
            Balancing::PerServiceJbsq => u32::from(other == of),
        };
        (0..SERVICES).map(|other| counts(other) * self.held[core][other]).sum()
    }

    fn bound(&self) -> u32 {
        if matches!(self.balancing, Balancing::Jbsrq(_)) { 5 * DEPTH } else { DEPTH }
    }

    fn has_room(&self, of: usize) -> bool {
        (0..self.runs.len()).any(|core| self.runs[core][of] && self.rank(of, core) < self.bound())
    }

    /// How many requests of a service would leave now. A core with a rank below the bound takes one more
    /// request, however small the difference is.
    fn room(&self, of: usize) -> u32 {
        let unit = if matches!(self.balancing, Balancing::Jbsrq(_)) { 5 } else { 1 };
        let of_core = |core: usize| {
            let ranks = (0..).map(|more| self.rank(of, core) + more * unit);
            ranks.take_while(|rank| *rank < self.bound()).count() as u32
        };
        (0..self.runs.len()).filter(|core| self.runs[*core][of]).map(of_core).sum()
    }

    /// Takes every descriptor that leaves, and compares it with the model.
    fn drain(&mut self, nic: &mut Nic) {
        while let Some(sent) = nic.dispatch(Nanos(0)) {
            let request = sent.request.expect("no monitor is on");
            let (of, core) = (request.service.index(), sent.core.index());
            let more_important = |other: usize| PRIORITY[other] > PRIORITY[of];
            for other in (0..SERVICES).filter(|other| more_important(*other)) {
                assert!(self.waiting[other].is_empty() || !self.has_room(other), "{other} goes before {of}");
            }
            let least = (0..self.runs.len()).filter(|core| self.runs[*core][of]);
            let least = least.min_by_key(|core| (self.rank(of, *core), *core)).unwrap();
            assert_eq!(least, core, "the least ranked core, of equals the first");
            assert!(self.rank(of, core) < self.bound(), "within the bound");
            assert_eq!(self.waiting[of].remove(0), request.handle, "in the order of their coming");
            self.held[core][of] += 1;
        }
    }

    fn check(&self, nic: &Nic) {
        for of in 0..SERVICES {
            assert_eq!(nic.is_eligible(service(of)), self.has_room(of), "the mask");
            assert!(self.waiting[of].is_empty() || !self.has_room(of), "{of} is eligible and waits");
            assert_eq!(nic.waiting(service(of)) as usize, self.waiting[of].len());
            assert_eq!(nic.balancer().room(service(of)), self.room(of), "of the whole server");
            for core in 0..self.runs.len() {
                let rank = self.runs[core][of].then(|| self.rank(of, core));
                assert_eq!(nic.balancer().rank(service(of), CoreId(core as u16)), rank);
            }
        }
        let most = self.balancing.held_max(DEPTH);
        assert!(self.held.iter().all(|held| held.iter().sum::<u32>() <= most), "its ring has room");
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Send,
    Enable,
    Disable,
    Feedback(u32),
}

fn calls() -> impl Strategy<Value = Vec<(Call, usize, usize)>> {
    let call = prop_oneof![
        5 => Just(Call::Send),
        2 => Just(Call::Enable),
        1 => Just(Call::Disable),
        4 => (1_u32..3).prop_map(Call::Feedback),
    ];
    proptest::collection::vec((call, 0..SERVICES, 0_usize..130), 1..300)
}

fn run(balancing: Balancing, cores: usize, calls: Vec<(Call, usize, usize)>) {
    let mut nic = nic(&settings(cores, DEPTH, balancing), &PRIORITY);
    let mut model = Model::new(balancing, cores);
    for (n, (call, of, core)) in calls.into_iter().enumerate() {
        let core = core % cores;
        let at = CoreId(core as u16);
        match call {
            Call::Send => {
                send(&mut nic, of, n as u64);
                model.waiting[of].push(RequestHandle(n as u64));
            }
            Call::Enable => {
                nic.enable_service(service(of), at).unwrap();
                model.runs[core][of] = true;
            }
            Call::Disable => {
                nic.disable_service(service(of), at).unwrap();
                model.runs[core][of] = false;
            }
            Call::Feedback(count) => {
                let told = nic.load_feedback(service(of), at, count);
                assert_eq!(told.is_ok(), count <= model.held[core][of], "no more than was dispatched");
                if told.is_ok() {
                    model.held[core][of] -= count;
                }
            }
        }
        model.drain(&mut nic);
        model.check(&nic);
    }
}

proptest! {
    #[test]
    fn registers_are_the_sums_and_nothing_eligible_waits_on_few_cores(
        calls in calls(),
        kind in 0_usize..3,
        cores in 1_usize..4,
    ) {
        run([jbsrq(), Balancing::GlobalJbsq, Balancing::PerServiceJbsq][kind], cores, calls);
    }

    #[test]
    fn registers_are_the_sums_and_nothing_eligible_waits_on_many_cores(calls in calls(), kind in 0_usize..3) {
        run([jbsrq(), Balancing::GlobalJbsq, Balancing::PerServiceJbsq][kind], 130, calls);
    }
}

#[test]
fn first_eligible_out_passes_over_a_service_without_room_and_push_in_first_out_does_not() {
    for (order, passes) in
        [(SchedulingOrder::FirstEligibleOut, true), (SchedulingOrder::PushInFirstOut, false)]
    {
        let settings = NicSettings { order, ..settings(2, 1, jbsrq()) };
        let mut nic = nic(&settings, &[0, 1]);
        nic.enable_service(service(1), CoreId(0)).unwrap();
        nic.enable_service(service(0), CoreId(1)).unwrap();
        (0..2).for_each(|handle| send(&mut nic, 1, handle));
        assert!(nic.dispatch(Nanos(0)).is_some());
        send(&mut nic, 0, 2);
        assert_eq!(nic.dispatch(Nanos(0)).is_some(), passes, "{order:?}");
    }
}

#[test]
fn a_request_that_finds_no_room_pushes_out_the_latest_of_the_least_important() {
    let settings = NicSettings { buffer_bytes: 4 * 64, ..settings(1, 1, jbsrq()) };
    let mut nic = nic(&settings, &[0, 1, 2]);
    for (of, handle) in [(0, 10), (1, 11), (0, 12), (0, 13)] {
        send(&mut nic, of, handle);
    }
    let mut evicted = Vec::new();
    let mut offer = |of: usize, handle: u64, bytes: u32| {
        evicted.clear();
        let told =
            nic.receive(&address(of), (RequestHandle(handle), bytes), Nanos(0), |gone| evicted.push(gone.0));
        (told.map_err(|why| why.name()).err(), evicted.clone())
    };
    assert_eq!(offer(1, 14, 64), (None, vec![13]));
    assert_eq!(offer(0, 15, 64), (Some("buffer_full"), vec![]), "it is the least important itself");
    assert_eq!(offer(2, 16, 192), (None, vec![12, 10, 14]), "two of service 0, then the latest of service 1");
    assert_eq!(offer(1, 17, 64), (Some("buffer_full"), vec![]), "what is left is as important, or more");
    assert_eq!(offer(2, 18, 256), (Some("buffer_full"), vec![]), "and nothing is dropped in vain");
    assert_eq!(offer(2, 19, 257), (Some("too_large"), vec![]));
    enable_everywhere(&mut nic, 1);
    assert_eq!(nic.dispatch(Nanos(0)).unwrap().request.unwrap().handle, RequestHandle(11));
    assert_eq!((nic.counts().evicted, nic.counts().received), (4, 6));
}

#[test]
fn lambda_may_be_nothing_or_one() {
    for (lambda, first) in [(Lambda::new(0, 1), 0), (Lambda::new(1, 1), 1)] {
        let mut nic = nic(&settings(2, 4, Balancing::Jbsrq(lambda.unwrap())), &[0, 1]);
        nic.enable_service(service(0), CoreId(0)).unwrap();
        send(&mut nic, 0, 1);
        nic.dispatch(Nanos(0)).unwrap();
        enable_everywhere(&mut nic, 1);
        send(&mut nic, 1, 2);
        assert_eq!(nic.dispatch(Nanos(0)).unwrap().core, CoreId(first));
    }
}

/// More important requests count fully, less important ones by λ: a fifth of a request takes no place.
#[test]
fn a_fifth_of_a_request_before_a_service_leaves_it_all_its_room() {
    let mut nic = nic(&settings(1, DEPTH, jbsrq()), &[0, 1]);
    (0..2).for_each(|of| enable_everywhere(&mut nic, of));
    send(&mut nic, 0, 1);
    nic.dispatch(Nanos(0)).unwrap();
    let room = |nic: &Nic| [0, 1].map(|of| nic.balancer().room(service(of)));
    assert_eq!(room(&nic), [2, 3]);
    send(&mut nic, 1, 2);
    nic.dispatch(Nanos(0)).unwrap();
    assert_eq!(room(&nic), [1, 2]);
}
