//! The cost of RingLeader's balancer, compared with a plain scan for the minimum. The scan keeps one row of
//! registers for each priority, and each decision reads the whole row.
//!
//! A step is the feedback of one request and the decision for the next one. Cores hold two requests each on
//! average; there are as many services as priorities, and every service runs on every core. Both sides
//! perform the same steps and must choose the same cores. They take turns, batch by batch, in one run; the
//! result is the median of the turns' ratios. Prints one line of JSON.

use std::hint::black_box;
use std::time::Instant;

use sluice_host::orchestrator::{Balancing, CoreBalancer, CoreId, Lambda, Priority, ServiceId};

const DEPTH: u32 = 4;
const LAMBDA: (u32, u32) = (1, 5);
const SERVICES_MAX: usize = 64;
const STEPS_A_BATCH: usize = 2_000;
const BATCHES_A_TURN: usize = 10;
const TURNS: usize = 61;

fn main() {
    let cores = [8, 64, 256];
    let cases: Vec<_> =
        cores.into_iter().flat_map(|cores| [2, 8].map(|levels| case(cores, levels))).collect();
    println!(r#"{{"bench":"orchestrator","cases":[{}]}}"#, cases.join(","));
}

/// Measures one combination of cores and priorities; returns JSON.
fn case(cores: usize, priorities: usize) -> String {
    let mut plain = Run::new(Plain::new(cores, priorities), cores, priorities);
    let mut ours = Run::new(ours(cores, priorities), cores, priorities);
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let (mut plain_ns, mut ours_ns) = (0.0, 0.0);
        for _ in 0..BATCHES_A_TURN {
            plain_ns += timed(|| plain.batch());
            ours_ns += timed(|| ours.batch());
        }
        turns.push((plain_ns, ours_ns));
    }
    assert_eq!(plain.chosen, ours.chosen, "both choose the same cores");
    let steps = (BATCHES_A_TURN * STEPS_A_BATCH) as f64;
    let plain_ns = median(turns.iter().map(|turn| turn.0 / steps));
    let ours_ns = median(turns.iter().map(|turn| turn.1 / steps));
    let ratio = median(turns.iter().map(|turn| turn.1 / turn.0));
    let of = format!(r#""cores":{cores},"priorities":{priorities}"#);
    format!(r#"{{{of},"plain_ns":{plain_ns:.2},"ours_ns":{ours_ns:.2},"ratio":{ratio:.3}}}"#)
}

fn timed(mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_nanos() as f64
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut of: Vec<f64> = of.collect();
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

trait Balances {
    fn dispatch(&mut self, service: ServiceId) -> Option<CoreId>;
    fn feedback(&mut self, service: ServiceId, core: CoreId);
}

/// The steps, and the requests that cores hold.
struct Run<B> {
    balancer: B,
    at_cores: Vec<(ServiceId, CoreId)>,
    /// For each step: the request whose feedback comes, and the service of the next request.
    steps: Vec<(usize, ServiceId)>,
    chosen: u64,
}

impl<B: Balances> Run<B> {
    fn new(mut balancer: B, cores: usize, priorities: usize) -> Self {
        let mut drawn = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |bound: usize| {
            drawn ^= drawn << 13;
            drawn ^= drawn >> 7;
            drawn ^= drawn << 17;
            (drawn >> 33) as usize % bound
        };
        let mut send = |service| (service, balancer.dispatch(service).expect("there is room"));
        let at_cores: Vec<_> = (0..2 * cores).map(|_| send(service_of(below(priorities)))).collect();
        let step = |_| (below(at_cores.len()), service_of(below(priorities)));
        let steps = (0..STEPS_A_BATCH).map(step).collect();
        Self { balancer, at_cores, steps, chosen: 0 }
    }

    #[inline(never)]
    fn batch(&mut self) {
        for (ended, next) in &self.steps {
            let place = &mut self.at_cores[*ended];
            self.balancer.feedback(place.0, place.1);
            let core = self.balancer.dispatch(black_box(*next)).expect("there is room");
            *place = (*next, core);
            self.chosen = self.chosen.wrapping_mul(31).wrapping_add(core.index() as u64);
        }
    }
}

fn service_of(number: usize) -> ServiceId {
    ServiceId::new(number).expect("there are so many")
}

fn ours(cores: usize, priorities: usize) -> CoreBalancer {
    let lambda = Lambda::new(LAMBDA.0, LAMBDA.1).expect("a share");
    let mut balancer = CoreBalancer::new(Balancing::Jbsrq(lambda), DEPTH, cores).expect("it can be");
    for number in 0..priorities {
        let priority = Priority::new(number as u8).expect("there are so many");
        balancer.register(service_of(number), priority).expect("it is new");
        for core in 0..cores {
            balancer.enable(service_of(number), CoreId(core as u16)).expect("there is such a core");
        }
    }
    balancer
}

impl Balances for CoreBalancer {
    fn dispatch(&mut self, service: ServiceId) -> Option<CoreId> {
        Self::dispatch(self, service)
    }

    fn feedback(&mut self, service: ServiceId, core: CoreId) {
        Self::feedback(self, service, core, 1).expect("it was dispatched");
    }
}

/// The baseline: the service's number is its priority.
struct Plain {
    /// A row of registers for each priority.
    ranks: Vec<Vec<u32>>,
    /// All bits set where the service does not run, which makes its rank infinite.
    absent: Vec<Vec<u32>>,
    outstanding: Vec<u16>,
}

impl Plain {
    fn new(cores: usize, priorities: usize) -> Self {
        Self {
            ranks: vec![vec![0; cores]; priorities],
            absent: vec![vec![0; cores]; priorities],
            outstanding: vec![0; cores * SERVICES_MAX],
        }
    }
}

fn weight(of: usize, row: usize) -> u32 {
    if row > of { LAMBDA.0 } else { LAMBDA.1 }
}

impl Balances for Plain {
    fn dispatch(&mut self, service: ServiceId) -> Option<CoreId> {
        let of = service.index();
        let (mut core, mut least) = (0, DEPTH * LAMBDA.1);
        for (at, (rank, absent)) in self.ranks[of].iter().zip(&self.absent[of]).enumerate() {
            let rank = rank | absent;
            // No branch here: it would be mispredicted a few times in each scan.
            core = if rank < least { at } else { core };
            least = least.min(rank);
        }
        if least == DEPTH * LAMBDA.1 {
            return None;
        }
        self.outstanding[core * SERVICES_MAX + of] += 1;
        for (row, ranks) in self.ranks.iter_mut().enumerate() {
            ranks[core] += weight(of, row);
        }
        Some(CoreId(core as u16))
    }

    fn feedback(&mut self, service: ServiceId, core: CoreId) {
        let (of, core) = (service.index(), core.index());
        let held = &mut self.outstanding[core * SERVICES_MAX + of];
        *held = held.checked_sub(1).expect("it was dispatched");
        for (row, ranks) in self.ranks.iter_mut().enumerate() {
            ranks[core] -= weight(of, row);
        }
    }
}
