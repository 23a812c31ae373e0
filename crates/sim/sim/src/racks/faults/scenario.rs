//! A seed's scenario: the size of the datacenter, the rates of the network, and which switches die when.

use sluice_events::dice::Dice;
use sluice_testbed::{RackLayout, Rates, Retries, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

use crate::point::Point;
use crate::policy::Policy;
use crate::racks::downtime::{FabricSwitch, OutageStep};

pub(super) const FAULTS_END: Nanos = Nanos::from_millis(25);
/// From this time on every task gets a reply.
pub(super) const SETTLED: Nanos = Nanos::from_millis(50);
/// When clients submit the last task.
pub(super) const SUBMIT_END: Nanos = Nanos::from_millis(55);
/// No host renews from this time until `QUIET`. Relative to these tasks that is as long as the 250 ms
/// between two renewals relative to short tasks.
pub(super) const LAST_RENEWAL: Nanos = Nanos::from_micros(54_750);
/// By this time the last task has long been answered, and spines are checked. They are checked again at the
/// end, when racks have been idle for as many renewals as happen in half a minute.
pub(super) const QUIET: Nanos = Nanos::from_micros(55_490);
/// The longest time that a packet is under way in an idle datacenter.
pub(super) const UNDER_WAY: Nanos = Nanos::from_micros(100);
/// When the final check is made: past every deadline.
pub(super) const END: Nanos = Nanos::from_millis(90);
/// How long a task may take before its client calls it unknown.
const DEADLINE: Nanos = Nanos::from_millis(20);
/// The load, as a share of what all workers can serve. If racks are drawn evenly, the smallest rack has to
/// serve as much as the largest.
const LOAD: f64 = 0.15;
/// If racks are drawn evenly, the largest load of the smallest rack.
const LOAD_OF_SMALLEST: f64 = 0.5;

/// One run's settings, all drawn from its seed.
#[derive(Clone, Debug)]
pub(super) struct HopScenario {
    pub(super) point: Point,
    pub(super) turns: Vec<(Nanos, OutageStep)>,
    pub(super) leads: Vec<(Nanos, LeadStep)>,
    pub(super) above: Vec<(Nanos, AboveStep)>,
    /// When strangers send tasks to leaves.
    pub(super) strangers: Vec<Nanos>,
}

/// A failure of the controller above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AboveStep {
    Dies,
    Back,
}

/// A failure of a rack's own controller, or of a worker or its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeadStep {
    Dies(usize),
    Back(usize),
    /// Whether the worker's calls are cut off from now on.
    Cut(usize, bool),
    /// The worker's process dies, with all its tasks.
    WorkerDies(usize),
    WorkerBack(usize),
}

impl HopScenario {
    pub(super) fn of(policy: &Policy, seed: u64) -> Self {
        let dice = &mut Dice::named(seed, "datacenter faults", 0);
        let mut racks: Vec<u32> = (0..dice.between(2, 4)).map(|_| dice.between(1, 4) as u32).collect();
        let shape = Shape::of(seed, &mut racks);
        let spines = dice.between(1, 2) as u16;
        let count = racks.len() as u32;
        let mut testbed = Testbed {
            workers: racks.iter().sum(),
            clients: dice.between(1, 3) as u16,
            queue: 256,
            racks: RackLayout { spines, workers: racks, hop: shape.hop, ..RackLayout::default() },
            retries: Retries {
                first_timeout: Nanos::from_micros(dice.pick(&[300, 1_000])),
                timeout_max: Nanos::from_millis(2),
                deadline: DEADLINE,
            },
            ..Testbed::rain()
        };
        let rates = [(); 5].map(|()| rates(dice));
        let faults = &mut testbed.faults;
        [faults.submit, faults.dispatch, faults.reply, faults.reject, faults.update] = rates;
        faults.reorder_by = Nanos::from_micros(60);
        // A dead switch sends no refusals, so clients have to try again even on a network without losses.
        faults.update.loss = faults.update.loss.max(0.01);
        let workload = Workload::parse(shape.workload).expect("a workload");
        let mut point = Point { seed, ..Point::new(policy.clone(), testbed, workload, 1.0) };
        let sizes = &point.testbed.racks.workers;
        let smallest = f64::from(sizes.iter().copied().min().unwrap_or(1)) * sizes.len() as f64;
        let even = LOAD_OF_SMALLEST * smallest / f64::from(point.testbed.workers);
        point.rate_per_s = LOAD.min(even) * point.capacity_per_s();
        let leads = lead_steps(seed, count as usize, point.testbed.workers as usize);
        Self {
            point,
            turns: outages(dice, count, spines.into()),
            leads,
            above: above_steps(seed),
            strangers: stranger_steps(seed),
        }
    }
}

/// The lengths of tasks and links, and the sizes of racks. They are drawn from a stream of their own, so
/// that a seed's faults stay unchanged.
struct Shape {
    hop: Nanos,
    workload: &'static str,
}

impl Shape {
    fn of(seed: u64, racks: &mut [u32]) -> Self {
        let dice = &mut Dice::named(seed, "shapes of datacenters", 0);
        if dice.chance(300) {
            let large = dice.below(racks.len() as u64) as usize;
            racks[large] = dice.between(5, 8) as u32;
        }
        let (hop, workload) = if dice.chance(300) { (20_000, "exp:10us") } else { (2_000, "exp:40us") };
        Self { hop: Nanos(hop), workload }
    }
}

/// Draws low rates, high rates, or none.
fn rates(dice: &mut Dice) -> Rates {
    let mut share = || dice.pick(&[0.0, 0.0, 0.01, 0.1]);
    Rates { loss: share(), duplicate: share(), reorder: share() }
}

/// Two controllers die and return, two workers are cut off, and two die: each for less than a lease, or for
/// longer.
fn lead_steps(seed: u64, racks: usize, workers: usize) -> Vec<(Nanos, LeadStep)> {
    let dice = &mut Dice::named(seed, "racks' controllers' faults", 0);
    let mut steps = Vec::new();
    for _ in 0..2 {
        let mut span = || {
            let at = dice.span(Nanos::from_millis(1), Nanos::from_millis(18));
            (at, at + dice.span(Nanos::from_micros(200), Nanos::from_millis(4)))
        };
        let [(dies, back), (cut, mended), (killed, returned)] = [span(), span(), span()];
        let [rack, worker, victim] = [racks, workers, workers].map(|count| dice.below(count as u64) as usize);
        steps.extend([(dies, LeadStep::Dies(rack)), (back, LeadStep::Back(rack))]);
        steps.extend([(cut, LeadStep::Cut(worker, true)), (mended, LeadStep::Cut(worker, false))]);
        steps.extend([(killed, LeadStep::WorkerDies(victim)), (returned, LeadStep::WorkerBack(victim))]);
    }
    steps
}

/// Strangers send about every 100 µs.
fn stranger_steps(seed: u64) -> Vec<Nanos> {
    let dice = &mut Dice::named(seed, "strangers of datacenters", 0);
    let mut at = Nanos::from_millis(1);
    std::iter::from_fn(|| {
        at = at + dice.span(Nanos(0), Nanos::from_micros(200));
        (at < SUBMIT_END).then_some(at)
    })
    .collect()
}

/// The controller above dies once or twice, for less than a lease, or for longer.
fn above_steps(seed: u64) -> Vec<(Nanos, AboveStep)> {
    let dice = &mut Dice::named(seed, "faults of the controller above", 0);
    let mut from = Nanos::from_millis(1);
    let mut steps = Vec::new();
    for _ in 0..dice.between(1, 2) {
        let at = from + dice.span(Nanos(0), Nanos::from_millis(6));
        let back = at + dice.span(Nanos::from_micros(200), Nanos::from_millis(4));
        steps.extend([(at, AboveStep::Dies), (back, AboveStep::Back)]);
        from = back + Nanos::from_millis(1);
    }
    steps
}

/// Three outages, each of which ends before the next begins. A switch returns with an empty memory.
fn outages(dice: &mut Dice, leaves: u32, spines: u32) -> Vec<(Nanos, OutageStep)> {
    let mut from = Nanos::from_millis(1);
    let mut outage = |_| {
        let at = from + dice.span(Nanos(0), Nanos::from_millis(2));
        let lasts = dice.span(Nanos::from_micros(100), Nanos::from_millis(4));
        let heard_after = Nanos(dice.span(Nanos(0), lasts).0.min(2_000_000));
        from = at + lasts + Nanos::from_millis(1);
        let is_leaf = dice.chance(500);
        let who = if is_leaf {
            FabricSwitch::Leaf(dice.below(leaves.into()) as u32)
        } else {
            FabricSwitch::Spine(dice.below(spines.into()) as u32)
        };
        [
            (at, OutageStep::Dies(who)),
            (at + heard_after, OutageStep::Out(who)),
            (at + lasts, OutageStep::Back(who)),
        ]
    };
    (0..3).flat_map(&mut outage).collect()
}
