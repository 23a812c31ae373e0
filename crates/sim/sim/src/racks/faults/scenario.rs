//! What a seed stands for: how large the datacenter is, how bad the network, and which switches die when.

use sluice_events::dice::Dice;
use sluice_testbed::{RackLayout, Rates, Retries, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

use crate::point::Point;
use crate::policy::Policy;
use crate::racks::downtime::{FabricSwitch, OutageStep};

/// When faults end.
pub(super) const FAULTS_END: Nanos = Nanos::from_millis(25);
/// From here on every task is replied to.
pub(super) const SETTLED: Nanos = Nanos::from_millis(50);
/// When clients submit no more.
pub(super) const SUBMIT_END: Nanos = Nanos::from_millis(55);
/// Nobody renews from then until it is quiet: as long, beside
/// these tasks, as the quarter of a second between two renewals beside short ones.
pub(super) const LAST_RENEWAL: Nanos = Nanos::from_micros(54_750);
/// When the last task has long been answered, and spines are looked at. They are again at the end, when racks
/// have been idle for as many renewals as half a minute has.
pub(super) const QUIET: Nanos = Nanos::from_micros(55_490);
/// No packet of an idle datacenter is under way for longer.
pub(super) const UNDER_WAY: Nanos = Nanos::from_micros(100);
/// When the books are closed: past every deadline.
pub(super) const END: Nanos = Nanos::from_millis(90);
/// How long a task may take before its client calls it unknown.
const DEADLINE: Nanos = Nanos::from_millis(20);
/// The share of what all workers can bear that is asked of them: where racks are drawn evenly, the smallest
/// bears as much as the largest.
const LOAD: f64 = 0.15;
/// Where racks are drawn evenly, the smallest is asked for so much at most.
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

/// What happens to the controller above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AboveStep {
    Dies,
    Back,
}

/// What happens to a rack's own controller, or to a worker and its calls to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeadStep {
    Dies(usize),
    Back(usize),
    /// Whether they are cut off from now on.
    Cut(usize, bool),
    /// Its process, with all that it holds.
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
        // What dies is silent, so that clients have to try again on the best of networks.
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

/// How long tasks and ways are, and how unequal racks. In dice of its own, so that a seed's faults stay what
/// they were.
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

/// Mild, bad, or none at all.
fn rates(dice: &mut Dice) -> Rates {
    let mut share = || dice.pick(&[0.0, 0.0, 0.01, 0.1]);
    Rates { loss: share(), duplicate: share(), reorder: share() }
}

/// Two controllers die and come back, two workers are cut off and two die: shorter than a lease, or longer.
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

/// Every 100 us, about.
fn stranger_steps(seed: u64) -> Vec<Nanos> {
    let dice = &mut Dice::named(seed, "strangers of datacenters", 0);
    let mut at = Nanos::from_millis(1);
    std::iter::from_fn(|| {
        at = at + dice.span(Nanos(0), Nanos::from_micros(200));
        (at < SUBMIT_END).then_some(at)
    })
    .collect()
}

/// The controller above dies once or twice, shorter than a lease, or longer.
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

/// Three, one behind the other: each ends before the next begins. Who is out comes back with an empty memory.
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
