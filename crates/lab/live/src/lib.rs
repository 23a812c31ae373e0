//! `sluice up --policy … --sweep …`: compares live racks with the simulator on the same traces.
//!
//! Each policy runs over real UDP with workers that hold each task for its dilated service time. The
//! simulator gets the same program, testbed and trace, task by task. The remaining difference is this
//! machine: its lateness is measured too. If a difference exceeds what is allowed, the simulator runs again
//! with links that are longer by the measured lateness. [`follow`] does the same for plans whose load and
//! workers change, [`versus`] for today's load balancers.
#![forbid(unsafe_code)]

pub mod args;
pub mod follow;
mod kept;
mod live_sweep;
mod nginx;
mod outcome;
mod priority_boost;
mod rack;
mod rack_labels;
mod rack_network;
mod record;
mod servers;
mod switches;
mod trace;
pub mod versus;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sluice_net::pin::cores;
use sluice_outcome::study::{StudyOutcome, Verdict};
use sluice_report as report;
use sluice_sim::{SimError, run_jobs};
use sluice_stats::Measured;
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::file_name::file_name;
use sluice_support::print;
use sluice_support::results::{export, files, studies};
use sluice_support::stop::Stop;
use sluice_support::view;
use sluice_testbed::Testbed;
use sluice_wire::{Epoch, Nanos};

use args::SweepArgs;
use kept::{KeptSettings, SweepSettings};
use live_sweep::LiveSweep;
use outcome::{Cell, late_testbed_name, lateness};
use priority_boost::PriorityBoost;
use rack::LiveRack;
use record::{BEHIND_MAX, LiveReplication, TRIES_MAX};
use trace::Traces;

/// How long simulations may continue after a signal: measured points deserve a prediction, but not minutes
/// of waiting.
const PREDICTS_AFTER_STOP: Duration = Duration::from_secs(3);

/// Runs the sweep and prints its results.
///
/// # Errors
/// What cannot be run, or a difference without a known cause.
pub fn run(up: &SweepArgs<'_>) -> Outcome<()> {
    let settings = SweepSettings::of(up)?;
    let sweep = LiveSweep::new(&settings)?;
    let settings = settings.on_kept_testbed();
    let stop = Stop::on_signals_and_hangup()?;
    export::check(up.markdown)?;
    files::make(&sweep.out)?;
    settings.keep(&sweep.testbed)?;
    let quiet = up.output.quiet || up.output.json;
    let say = |text: String| {
        if !quiet {
            print::to_stderr(text);
        }
    };
    say(cost(&sweep));
    let traces = Traces::draw(&sweep, &stop)?;
    let priority_boost = PriorityBoost::ask();
    let mut cells = Vec::new();
    let measured = measure(&sweep, &traces, &stop, &say, &mut cells);
    if measured.as_ref().is_err_and(|failure| !failure.is(Kind::Aborted)) {
        return measured;
    }
    drop(priority_boost);
    say("the simulator runs the same traces".into());
    let predicted = stop.after(PREDICTS_AFTER_STOP, |late| {
        predict(&sweep, &traces, &mut cells, late)?;
        explain(&sweep, &traces, &mut cells, late)
    });
    predicted?;
    let study = outcome::study(&sweep, &cells, notes(&sweep, &cells), command(&settings), up.commit);
    studies::write(&sweep.out, &study)?;
    if up.output.json {
        print::line(report::json(&study))?;
    } else {
        print::text(report::summary(&study, view::columns()))?;
        say(format!("all of it is in {}", sweep.out.display()));
    }
    export::write(up.markdown, &report::markdown(&study)).map_err(Failure::with_result_shown)?;
    measured
        .and_then(|()| stopped(&sweep, &stop))
        .and_then(|()| verdict(&study, &cells))
        .map_err(Failure::with_result_shown)
}

/// Whether a signal came, including during the simulations.
fn stopped(sweep: &LiveSweep, stop: &Stop) -> Outcome<()> {
    if !stop.is_asked() {
        return Ok(());
    }
    let out = sweep.out.display();
    Err(Failure::new(Kind::Aborted, format!("stopped by a signal; what was done is in {out}")))
}

fn cost(sweep: &LiveSweep) -> String {
    let (policies, loads, runs) = (sweep.policies.len(), sweep.loads.len(), sweep.replications);
    let minutes = sweep.real_time().as_secs_f64() / 60.0;
    format!(
        "{policies} policies at {loads} loads, {runs} runs each, dilated {} times: about {minutes:.1} minutes, and one \
         for the simulator",
        sweep.dilation
    )
}

/// Runs every policy at every load, live.
fn measure(
    sweep: &LiveSweep,
    traces: &Traces,
    stop: &Stop,
    say: &impl Fn(String),
    cells: &mut Vec<Cell>,
) -> Outcome<()> {
    let began = Instant::now();
    let all = sweep.policies.len() * sweep.loads.len();
    for (who, policy) in sweep.policies.iter().enumerate() {
        let mut rack = LiveRack::start(sweep, policy, Epoch(who as u32 + 1))?;
        rack.adapt(None)?;
        let measured: Outcome<()> = (0..sweep.loads.len()).try_for_each(|load| {
            let takes = replications_of(sweep, traces, &rack, who, load, stop)?;
            if cells.is_empty() && takes.iter().all(LiveReplication::is_disturbed) {
                say(disturbed(sweep));
            }
            cells.push(Cell { who, load, takes, predicted: Vec::new(), late: None });
            let (done, took) = (cells.len(), began.elapsed().as_secs_f64());
            let left = took / done as f64 * (all - done) as f64;
            let at = sweep.loads[load];
            say(format!("{done} of {all}: {} at load {at} done, {left:.0} s left", policy.name));
            Ok(())
        });
        // The rack's threads spin, so they must end before an error is returned.
        rack.end()?;
        measured?;
    }
    Ok(())
}

/// A line about disturbed runs, printed as soon as it is known, since a sweep takes minutes.
fn disturbed(sweep: &LiveSweep) -> String {
    format!(
        "this machine gets in the way: every run was tried {TRIES_MAX} times and packets still left late; Ctrl-C and \
         --dilate {} makes the same lateness a tenth",
        sweep.dilation.saturating_mul(10)
    )
}

/// All runs of a policy at a load. A run that this machine disturbed is repeated on the same trace.
fn replications_of(
    sweep: &LiveSweep,
    traces: &Traces,
    rack: &LiveRack,
    who: usize,
    load: usize,
    stop: &Stop,
) -> Outcome<Vec<LiveReplication>> {
    let one = |number| {
        let trace = traces.get(load, number);
        let (take, played) = record::run_undisturbed(sweep, sweep.loads[load], trace, || {
            rack.play(trace, sweep.dilation, stop)
        })?;
        if sweep.each_task {
            let policy = file_name(&sweep.policies[who].name.replace([':', ','], "-"));
            let at = sweep.loads[load];
            let path = sweep.out.join(format!("tasks-{policy}-{at}-{}.csv", number + 1));
            record::write_tasks(&path, sweep, trace, &played)?;
        }
        Ok(take)
    };
    (0..sweep.replications).map(one).collect()
}

/// Simulates a prediction for each cell.
fn predict(sweep: &LiveSweep, traces: &Traces, cells: &mut [Cell], stop: &AtomicBool) -> Outcome<()> {
    let all: Vec<(usize, Testbed)> = (0..cells.len()).map(|cell| (cell, sweep.testbed.clone())).collect();
    for (cell, predicted) in simulate(sweep, traces, cells, &all, stop)? {
        cells[cell].predicted = predicted;
    }
    Ok(())
}

/// Simulates the cells that differ again, with links that are longer by this machine's lateness.
fn explain(sweep: &LiveSweep, traces: &Traces, cells: &mut [Cell], stop: &AtomicBool) -> Outcome<()> {
    let mut differing = Vec::new();
    for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.differs()) {
        let testbed = late_testbed(sweep, cell);
        let name = late_testbed_name(&sweep.policies[cell.who], sweep.loads[cell.load]);
        files::save(&sweep.out, &name, &testbed.to_toml())?;
        differing.push((index, testbed));
    }
    for (cell, predicted) in simulate(sweep, traces, cells, &differing, stop)? {
        cells[cell].late = Some(predicted);
    }
    Ok(())
}

/// The testbed with this machine's lateness added to its links. A worker's link carries packets of the
/// switch and of the worker, so it gets the mean of both latenesses. The client's link gets the lateness of
/// the client and of the last hop.
fn late_testbed(sweep: &LiveSweep, cell: &Cell) -> Testbed {
    let mean = |of: fn(&LiveReplication) -> f64| {
        cell.takes.iter().map(of).sum::<f64>() / cell.takes.len().max(1) as f64
    };
    let (switch, hosts) = (mean(|take| take.switch_late_ns), mean(|take| take.hosts_late_ns));
    let mut testbed = sweep.testbed.clone();
    let later = |link: &mut Nanos, ns: f64| *link = *link + Nanos(ns.max(0.0) as u64);
    later(&mut testbed.links.worker, f64::midpoint(switch, hosts));
    later(&mut testbed.links.client, mean(|take| take.behind_mean_ns));
    testbed.name = format!("{}, late", testbed.name);
    testbed
}

/// Simulates all replications of these cells on these testbeds, on all cores. Returns only the cells that
/// were finished before a stop.
fn simulate(
    sweep: &LiveSweep,
    traces: &Traces,
    cells: &[Cell],
    wanted: &[(usize, Testbed)],
    stop: &AtomicBool,
) -> Outcome<Vec<(usize, Vec<Measured>)>> {
    let runs = |cell: &Cell| 0..cell.takes.len() as u32;
    let jobs: Vec<(&(usize, Testbed), u32)> =
        wanted.iter().flat_map(|want| runs(&cells[want.0]).map(move |number| (want, number))).collect();
    let run = |((cell, testbed), number): &(&(usize, Testbed), u32)| {
        let (who, load) = (&sweep.policies[cells[*cell].who], cells[*cell].load);
        let workload = traces.workload(sweep, load, *number);
        let mut point = sweep.point(who, workload, sweep.loads[load]);
        point.testbed = testbed.clone();
        point.replicate(*number, stop)
    };
    let mut found: Vec<(usize, Vec<Measured>)> = wanted.iter().map(|(cell, _)| (*cell, Vec::new())).collect();
    let mut failed = None;
    run_jobs(&jobs, cores(), stop, run, |index, measured| match measured {
        Ok(measured) => {
            let cell = jobs[index].0.0;
            let place = found.iter_mut().find(|(known, _)| *known == cell);
            place.expect("every job is of a wanted cell").1.push(measured);
        }
        Err(SimError::Stopped) => {}
        Err(why) => failed = Some(why),
    });
    found.retain(|(cell, measured)| measured.len() == cells[*cell].takes.len());
    match failed {
        Some(why) => Err(Failure::broken(why)),
        None => Ok(found),
    }
}

fn notes(sweep: &LiveSweep, cells: &[Cell]) -> Vec<String> {
    let of = |cell: &Cell| {
        let (who, load) = (&sweep.policies[cell.who].name, sweep.loads[cell.load]);
        format!("{who} at {load}: {}", lateness(cell))
    };
    let first = format!(
        "Both sides get the same traces. Live: UDP over the loopback, {} workers that only hold their tasks, all times {} \
         times as long; the numbers here are divided by that again.",
        sweep.testbed.workers, sweep.dilation
    );
    let alone = cells.iter().filter(|cell| cell.predicted.is_empty()).count();
    let alone =
        (alone > 0).then(|| format!("{alone} measured points have no prediction: a signal came before"));
    let again: u32 = cells.iter().flat_map(|cell| &cell.takes).map(|take| take.tries - 1).sum();
    let again = (again > 0).then(|| {
        format!("{again} runs were done again because this machine was disturbed: the sender or the packets were late")
    });
    std::iter::once(first).chain(alone).chain(again).chain(cells.iter().map(of)).collect()
}

/// The command that runs the sweep again.
fn command(settings: &SweepSettings) -> String {
    let SweepSettings { policies, workload, testbed, dilation, replications, seed, .. } = settings;
    let loads: Vec<String> = settings.loads.iter().map(f64::to_string).collect();
    let (policies, loads, seconds) = (policies.join(","), loads.join(","), settings.length.as_secs_f64());
    format!(
        "sluice up --policy {policies} --dilate {dilation} --sweep {loads} --workload '{workload}' --testbed {testbed} \
         --length {seconds}s --replications {replications} --seed {seed}"
    )
}

/// An error unless the sender kept up, no packet was lost, and every difference has a cause.
fn verdict(study: &StudyOutcome, cells: &[Cell]) -> Outcome<()> {
    let all = || cells.iter().flat_map(|cell| &cell.takes);
    let late = all().map(|take| take.behind_p99).max().unwrap_or_default();
    if late > BEHIND_MAX {
        let (late, most) = (late.0 as f64 / 1e3, BEHIND_MAX.0 as f64 / 1e3);
        return Err(Failure::new(
            Kind::GateFailed,
            format!(
                "the sender fell behind: one task in a hundred left {late:.1} us late or more ({most} are allowed); \
                 leave this machine alone meanwhile, or give a larger --dilate"
            ),
        ));
    }
    let lost: u64 = all().map(|take| take.lost).sum();
    if lost > 0 {
        return Err(Failure::new(
            Kind::GateFailed,
            format!("this machine lost {lost} packets: give a larger --dilate"),
        ));
    }
    let unexplained = study.comparisons.iter().filter(|row| row.real && row.cause.is_none()).count();
    if unexplained > 0 {
        let why = format!(
            "{unexplained} numbers differ from their prediction by more than is allowed, for a reason not found"
        );
        return Err(Failure::new(Kind::GateFailed, why));
    }
    let open = study.comparisons.iter().filter(|row| row.verdict == Some(Verdict::Undecided)).count();
    if open > 0 {
        let why = format!(
            "{open} numbers are undecided: whether they are as near to their prediction as is allowed their \
             intervals cannot say; give more --replications or a longer --length, or leave this machine alone \
             meanwhile"
        );
        return Err(Failure::new(Kind::Undecided, why));
    }
    Ok(())
}
