//! How long goodput is off after a step, a burst, a loss of workers or a slower service, with a target.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Mark, Observer, Outcome, Replied};
use sluice_testbed::{Slow, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

/// What 32 workers can serve of tasks of 10 µs, a second.
const CAPACITY: f64 = 3.2e6;
/// Goodput is counted over so long a time.
const BIN: Nanos = Nanos::from_micros(100);
/// An answer counts if it comes within this time.
const IN_TIME: Nanos = Nanos::from_micros(300);
const RUN: Nanos = Nanos::from_millis(15);
/// When it happens, and when it is over.
const BEGINS: Nanos = Nanos::from_millis(5);
const ENDS: Nanos = Nanos::from_millis(10);
const REPLICATIONS: u32 = 12;

/// The answers in time in each span of [`BIN`].
struct Goodput {
    bins: Vec<u64>,
    now: Nanos,
}

impl Observer for Goodput {
    fn sent(&mut self, at: Nanos) -> Mark {
        self.now = at;
        Mark::None
    }

    fn done(&mut self, task: &Replied) {
        let is_in_time = task.at.since(task.intended) <= IN_TIME;
        if let Some(bin) = self.bins.get_mut((task.at.0 / BIN.0) as usize).filter(|_| is_in_time) {
            *bin += 1;
        }
    }

    fn failed(&mut self, _: Nanos, _: Outcome) {}

    fn is_complete(&self) -> bool {
        self.now >= RUN
    }
}

/// The goodput in each span, per second, over all replications.
fn goodput(policy: &str, workload: &str, load: f64, testbed: &Testbed) -> Vec<f64> {
    let bins = (RUN.0 / BIN.0) as usize;
    let mut sum = vec![0; bins];
    for replication in 0..REPLICATIONS {
        let point = Point {
            transient: true,
            ..Point::new(
                Policy::parse(policy).expect("a policy"),
                testbed.clone(),
                Workload::parse(workload).expect("a workload"),
                CAPACITY * load,
            )
        };
        let observer = Goodput { bins: vec![0; bins], now: Nanos(0) };
        let (seen, ..) = point.observe(replication, observer, &AtomicBool::new(false)).expect("it runs");
        sum.iter_mut().zip(seen.bins).for_each(|(sum, bin)| *sum += bin);
    }
    let seconds = BIN.0 as f64 / 1e9 * f64::from(REPLICATIONS);
    sum.into_iter().map(|answers| answers as f64 / seconds).collect()
}

/// After which time from `event` on goodput is within 5 % of what it settles at until `until`.
fn off_for(goodput: &[f64], event: Nanos, until: Nanos) -> Nanos {
    let (from, to) = ((event.0 / BIN.0) as usize, (until.0 / BIN.0) as usize);
    let settled = &goodput[from.midpoint(to)..to];
    let level = settled.iter().sum::<f64>() / settled.len() as f64;
    let off =
        |answers: &[f64]| (answers.iter().sum::<f64>() / answers.len() as f64 / level - 1.0).abs() > 0.05;
    let bins = goodput[from..to].windows(3).rposition(off).map_or(0, |last| last + 1);
    BIN.times(bins as u64)
}

fn slow(factor: f64, workers: std::ops::Range<u32>) -> Testbed {
    let slow = Slow { workers: workers.collect(), factor, from: BEGINS, length: ENDS.since(BEGINS) };
    Testbed { clients: 4, slow, ..Testbed::rain() }
}

/// For how long goodput is off after the beginning and after the end, in simulated time.
fn off(workload: &str, load: f64, testbed: &Testbed) -> [Nanos; 2] {
    let goodput = goodput("rain:2,target=50us", workload, load, testbed);
    [off_for(&goodput, BEGINS, ENDS), off_for(&goodput, ENDS, RUN)]
}

#[test]
fn goodput_is_back_within_a_millisecond_after_a_step_a_burst_a_loss_and_a_slower_service() {
    let rain = Testbed { clients: 4, ..Testbed::rain() };
    let cases = [
        ("from 60 % to 200 % and back", "exp:10us;steps:0.6@5ms:2@5ms:0.6", 1.0, rain.clone()),
        (
            "50 tasks a worker within 1 us, twice",
            "exp:10us;steps:1@5ms:833@1us:1@4999us:833@1us:1",
            0.6,
            rain,
        ),
        ("a quarter of the workers stops under 90 %", "exp:10us", 0.9, slow(1_000.0, 0..8)),
        ("services three times as long under 80 %", "exp:10us", 0.8, slow(3.0, 0..0)),
    ];
    for (name, workload, load, testbed) in cases {
        for off in off(workload, load, &testbed) {
            println!("{name}: {off:?}");
            assert!(off <= Nanos::from_millis(1), "{name}: {off:?}");
        }
    }
}

#[test]
fn without_a_target_goodput_does_not_come_back_after_a_step() {
    let testbed = Testbed { clients: 4, ..Testbed::rain() };
    let goodput = goodput("rain:2", "exp:10us;steps:0.6@5ms:2@5ms:0.6", 1.0, &testbed);
    let last = goodput[goodput.len() - 10..].iter().sum::<f64>() / 10.0;
    assert!(last < 0.1 * CAPACITY, "{last}");
}
