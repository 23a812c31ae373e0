//! Measures the cost of a request in the reference `central`, beside a bare loop over the standard
//! library's binary heap.
//!
//! 64 workers, Exp(10 µs), load 0.8. The two take turns in one run, and their time on the processor is
//! measured. `central` records latency and two slowdowns by class, averages its gauges over time and tracks
//! the measured span; the loop fills one histogram. Prints one line of JSON, and fails if the two disagree
//! on the latencies or if a warm rack allocates.

mod baseline;

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Ideal, Reference};
use sluice_stats::{Distribution, Recorder, Recording, Warmup};
use sluice_wire::Nanos;
use sluice_workload::{Requests, Workload};

use baseline::{median, serve, serve_lean, timed};

const WORKERS: usize = 64;
const LOAD: f64 = 0.8;
const MEAN_NS: f64 = 10_000.0;
const TASKS: u64 = 1_000_000;
const TURNS: u32 = 15;
const SEED: u64 = 1;

fn main() {
    let turns: Vec<Turn> = (0..TURNS).map(turn).collect();
    let of = |number: fn(&Turn) -> f64| median(turns.iter().map(number).collect());
    println!(
        r#"{{"bench":"central","loop_per_s":{:.0},"lean_loop_per_s":{:.0},"central_per_s":{:.0},"ratio":{:.3},"ratio_lean":{:.3},"draws_ns":{:.2},"allocations":{}}}"#,
        of(|turn| per_s(turn.bare)),
        of(|turn| per_s(turn.lean)),
        of(|turn| per_s(turn.central)),
        of(|turn| turn.bare / turn.central),
        of(|turn| turn.lean / turn.central),
        of(|turn| turn.draws) / TASKS as f64,
        allocations_once_warm(),
    );
}

/// The times of both for the same tasks, in nanoseconds.
struct Turn {
    bare: f64,
    lean: f64,
    central: f64,
    draws: f64,
}

fn turn(replication: u32) -> Turn {
    let (of_loop, bare) = timed(|| serve(requests(replication), WORKERS, TASKS));
    let (of_central, central) = timed(|| central(replication, TASKS));
    let (of_lean, lean) = timed(|| serve_lean(requests(replication), WORKERS, TASKS));
    let (of_draws, _) = timed(|| draw(replication));
    agree(&bare, &central);
    agree(&lean, &central);
    Turn { bare: of_loop, lean: of_lean, central: of_central, draws: of_draws }
}

fn per_s(ns: f64) -> f64 {
    TASKS as f64 * 1e9 / ns
}

fn requests(replication: u32) -> Requests {
    let workload = Workload::parse("exp:10us").expect("it is right");
    Requests::new(&workload, LOAD * WORKERS as f64 * 1e9 / MEAN_NS, SEED, replication)
}

/// Draws the tasks alone, a cost that both have.
fn draw(replication: u32) -> u64 {
    requests(replication).take(TASKS as usize).fold(0, |sum, request| sum ^ request.at.0 ^ request.service.0)
}

fn central(replication: u32, tasks: u64) -> Distribution {
    let ideal = Ideal { reference: Reference::Central, workers: WORKERS, distance: Nanos(0) };
    let recording = Recording {
        mean_services_ns: vec![MEAN_NS],
        tasks,
        warmup: Warmup::Tasks(0),
        parts: 0,
        way_home: Nanos(0),
        passed_over_at_random: None,
        within: Vec::new(),
    };
    let recorder = Recorder::new(recording);
    let measured = ideal.run(requests(replication), recorder, (SEED, replication), &AtomicBool::new(false));
    measured.expect("nobody stopped it").classes.remove(0).latency
}

/// Checks that both found the same latencies. The loop stops after so many ends, `central` when so many
/// arrivals have ended, so the last few tasks differ.
fn agree(bare: &Distribution, central: &Distribution) {
    assert_eq!(bare.count(), central.count());
    let apart = bare.mean() / central.mean() - 1.0;
    assert!(apart.abs() < 1e-4, "the sides disagree: {bare:?} and {central:?}");
}

/// How many allocations ten times the tasks cost beyond those at the start of a run.
fn allocations_once_warm() -> u64 {
    let of = |tasks| allocation_counter::measure(|| drop(central(0, tasks))).count_total;
    let allocations = of(10 * TASKS) - of(TASKS);
    assert_eq!(allocations, 0, "a warm rack allocates");
    allocations
}
