//! `sluice versus`: compares Rain with today's load balancers on one trace.
//!
//! The same tasks go, one after the other, through a rack under each policy, through nginx's UDP proxy, and
//! to workers among which the kernel chooses (`SO_REUSEPORT`). All workers only hold their tasks, dilated.
//! The simulator's central queue, under which no worker is idle while a task waits, is the reference. Left
//! out: IPVS, which must be in the kernel.

use std::time::Duration;

use serde::Serialize;
use sluice_host::client::Outcome as Ending;
use sluice_net::udp::Lateness;
use sluice_outcome::study::{Measure, Metric, Part};
use sluice_report::table::{Table, digits, time};
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, summarize};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::flags::{Io, Output};
use sluice_support::print;
use sluice_support::results::files;
use sluice_support::stop::Stop;
use sluice_switch::registry::Choice;
use sluice_testbed::Testbed;
use sluice_testrig::plain::{PlainOptions, PlainRack};
use sluice_testrig::schedule::PlayedTask;
use sluice_wire::{Epoch, TaskType};
use sluice_workload::{Trace, TracedTask, Workload};

use super::kept::{KeptSettings, VersusSettings};
use super::live_sweep::{self, LivePolicy, LiveSweep};
use super::nginx::Nginx;
use super::priority_boost::PriorityBoost;
use super::rack::{self, LiveRack, SwitchCounts, ThreadLayout, TraceResult};
use super::record::{self, LiveReplication};
use super::trace::{Traces, planned};
use crate::args::{LoadBalancer, VersusArgs};

const SCHEMA: &str = "sluice.versus.v1";
/// The simulator's policy that is the reference.
const CENTRAL: &str = "central";
/// A load above this is a mistake.
const LOAD_MAX: f64 = 10.0;
/// The results.
#[derive(Debug, Serialize)]
struct VersusReport {
    schema: &'static str,
    workload: String,
    load: f64,
    workers: u32,
    dilation: u32,
    /// The number of measured tasks.
    tasks: u64,
    rows: Vec<Row>,
    /// What was asked for but is not installed.
    missing: Vec<String>,
}

/// One row of the comparison.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// Whether packets went through this machine; if not, the row was simulated.
    live: bool,
    slowdown_p50: f64,
    slowdown_p95: f64,
    slowdown_p99: f64,
    slowdown_p999: f64,
    /// The p99 time from the intended send time to the start of service.
    scheduling_delay_p99_ns: f64,
    /// Sent tasks without an answer.
    unanswered: u64,
    /// The 99th percentile of the client's lateness, in nanoseconds of the emulated rack.
    behind_p99_ns: u64,
    tries: u32,
}

/// Runs everything, one after the other.
/// # Errors
/// What cannot be run, or a bound that was not kept.
pub fn run(args: &VersusArgs) -> Outcome<()> {
    let settings = VersusSettings::of(args)?;
    let sweep = ask(&settings)?;
    let stop = Stop::on_signals_and_hangup()?;
    files::make(&sweep.out)?;
    settings.keep(&sweep.testbed)?;
    let quiet = args.output.quiet || args.output.json;
    let say = |text: String| {
        if !quiet {
            print::to_stderr(text);
        }
    };
    let runs = u32::try_from(sweep.policies.len() + settings.today.len()).unwrap_or(u32::MAX);
    say(format!(
        "{runs} runs of {:.0} s or more",
        (sweep.real_time() / sweep.policies.len() as u32).as_secs_f64()
    ));
    let traces = Traces::draw(&sweep, &stop)?;
    let trace = traces.get(0, 0);
    let central = central(&sweep, &traces)?.replicate(0, stop.flag()).map_err(Failure::broken)?;
    let mut found = VersusReport {
        schema: SCHEMA,
        workload: sweep.workload.to_string(),
        load: settings.load,
        workers: settings.workers,
        dilation: sweep.dilation,
        tasks: sweep.tasks(settings.load),
        rows: vec![row(CENTRAL.into(), &central, None)],
        missing: Vec::new(),
    };
    // Not for a switch in the kernel: it may run in the kernel's own threads, which do not share the boost.
    let priority_boost = (settings.io == Io::Udp).then(PriorityBoost::ask);
    for (place, who) in sweep.policies.iter().enumerate() {
        let rack = LiveRack::start(&sweep, who, Epoch(place as u32 + 1))?;
        let take = run_undisturbed(&sweep, trace, || rack.play(trace, sweep.dilation, &stop));
        rack.end()?;
        say(format!("{} done", who.name));
        found.rows.push(live_row(who.name.clone(), &take?));
    }
    for today in &settings.today {
        match through(*today, &sweep, &settings, trace, &stop)? {
            Ok(take) => {
                say(format!("{} done", today.name()));
                found.rows.push(live_row(today.name().into(), &take));
            }
            Err(missing) => found.missing.push(missing),
        }
    }
    drop(priority_boost);
    finish(&settings, &args.output, &found)
}

fn ask(settings: &VersusSettings) -> Outcome<LiveSweep> {
    if !(settings.load > 0.0 && settings.load <= LOAD_MAX) {
        let why = format!("load {}: give a share of what all workers can serve, such as 0.8", settings.load);
        return Err(Failure::bad_input(why));
    }
    let workload = Workload::parse(&settings.workload).map_err(Failure::bad_input)?;
    let testbed = Testbed { workers: settings.workers, ..Testbed::ideal() };
    let rate = f64::from(settings.workers) * 1e9 / workload.mean_service_ns() * settings.load;
    // One task more, since rounding might give one less.
    let seconds = (settings.tasks as f64 + 1.0) / rate * f64::from(settings.dilation);
    let length = Duration::try_from_secs_f64(seconds).map_err(|why| {
        Failure::bad_input(format!("it would take {seconds:.0} s ({why}): ask for fewer tasks or more load"))
    })?;
    let sweep = LiveSweep {
        policies: live_sweep::who(&settings.policies)?,
        loads: vec![settings.load],
        workload,
        testbed,
        dilation: settings.dilation,
        length,
        replications: 1,
        seed: settings.seed,
        out: settings.out.clone(),
        each_task: false,
        io: settings.io,
        slices: Vec::new(),
    };
    sweep.checked()
}

fn central(sweep: &LiveSweep, traces: &Traces) -> Outcome<sluice_sim::point::Point> {
    let policy = Policy::parse(CENTRAL).map_err(Failure::broken)?;
    let who = LivePolicy { name: CENTRAL.into(), choice: Choice::default(), policy };
    Ok(sweep.point(&who, traces.workload(sweep, 0, 0), sweep.loads[0]))
}

/// Plays the trace, and repeats it if this machine was disturbed.
fn run_undisturbed(
    sweep: &LiveSweep,
    trace: &Trace,
    play: impl FnMut() -> Outcome<TraceResult>,
) -> Outcome<VersusRun> {
    let (take, played) = record::run_undisturbed(sweep, sweep.loads[0], trace, play)?;
    let is_unanswered = |played: &&PlayedTask| !matches!(played.outcome, Ending::Reply(_));
    let unanswered = played.iter().filter(is_unanswered).count() as u64;
    Ok(VersusRun { take, unanswered })
}

/// What was measured.
struct VersusRun {
    take: LiveReplication,
    unanswered: u64,
}

/// Sends the trace through one of today's load balancers; or returns what this machine lacks for it.
fn through(
    today: LoadBalancer,
    sweep: &LiveSweep,
    settings: &VersusSettings,
    trace: &Trace,
    stop: &Stop,
) -> Outcome<Result<VersusRun, String>> {
    if today == LoadBalancer::Nginx
        && let Some(missing) = Nginx::missing()
    {
        return Ok(Err(missing));
    }
    let layout = ThreadLayout::of(Io::Udp);
    let rack = PlainRack::start(&PlainOptions {
        workers: settings.workers as usize,
        shared: today == LoadBalancer::Reuseport,
        ports: settings.ports as usize,
        waiting: layout.waiting,
        core: layout.hosts_core,
    })?;
    let proxy = match today {
        LoadBalancer::Nginx => {
            Some(Nginx::start(rack.workers(), &sweep.out.join("nginx"), layout.switch_core)?)
        }
        LoadBalancer::Reuseport => None,
    };
    let target = proxy.as_ref().map_or(rack.workers()[0], Nginx::at);
    let tried = run_undisturbed(sweep, trace, || {
        let factor = u64::from(sweep.dilation);
        let of = |task: &TracedTask| (TaskType(0), task.service.unwrap_or_default().times(factor));
        let playing = rack.play(target, planned(trace, sweep.dilation, of), rack::deadline(sweep.dilation));
        Ok(TraceResult {
            played: rack::finished(&playing, stop)?,
            labels_met: None,
            counted: SwitchCounts::default(),
            switch_late: Lateness::default(),
            hosts_late: Lateness::default(),
        })
    });
    drop(proxy);
    rack.end()?;
    tried.map(Ok)
}

fn live_row(name: String, tried: &VersusRun) -> Row {
    row(name, &tried.take.measured, Some(tried))
}

fn row(name: String, measured: &Measured, live: Option<&VersusRun>) -> Row {
    let summary = summarize(std::slice::from_ref(measured));
    let of = |measure, part| summary.overall.get(Metric { measure, part }).value;
    let slowdown = |part| of(Measure::Slowdown, part);
    Row {
        name,
        live: live.is_some(),
        slowdown_p50: slowdown(Part::P50),
        slowdown_p95: slowdown(Part::P95),
        slowdown_p99: slowdown(Part::P99),
        slowdown_p999: slowdown(Part::P999),
        scheduling_delay_p99_ns: of(Measure::SchedulingDelayNs, Part::P99),
        unanswered: live.map_or(0, |tried| tried.unanswered),
        behind_p99_ns: live.map_or(0, |tried| tried.take.behind_p99.0),
        tries: live.map_or(0, |tried| tried.take.tries),
    }
}

/// Writes and prints the results, and checks the given bounds.
fn finish(settings: &VersusSettings, output: &Output, found: &VersusReport) -> Outcome<()> {
    let json = serde_json::to_string_pretty(found).expect("numbers and text have a JSON form");
    files::save(&settings.out, "versus.json", &json)?;
    if output.json {
        print::line(json)?;
    } else {
        print::text(found.table())?;
        found.missing.iter().try_for_each(print::line)?;
    }
    found.verdict(settings).map_err(Failure::with_result_shown)
}

impl VersusReport {
    fn table(&self) -> Table {
        let mut table = Table::new([
            "slowdown",
            "p50",
            "p95",
            "p99",
            "p99.9",
            "p99 / central",
            "delay p99",
            "unanswered",
            "client late",
        ]);
        let central = self.rows[0].slowdown_p99;
        for row in &self.rows {
            let is_live = |text: String| if row.live { text } else { String::new() };
            table.row([
                row.name.clone(),
                digits(row.slowdown_p50),
                digits(row.slowdown_p95),
                digits(row.slowdown_p99),
                digits(row.slowdown_p999),
                digits(row.slowdown_p99 / central),
                time(row.scheduling_delay_p99_ns),
                is_live(row.unanswered.to_string()),
                is_live(format!("{:.2} us", row.behind_p99_ns as f64 / 1e3)),
            ]);
        }
        table
    }

    /// An error unless each policy keeps the bounds.
    fn verdict(&self, settings: &VersusSettings) -> Outcome<()> {
        let is_todays = |row: &&Row| settings.today.iter().any(|today| today.name() == row.name);
        let best =
            self.rows.iter().filter(is_todays).map(|row| row.slowdown_p99).fold(f64::INFINITY, f64::min);
        let [central, live @ ..] = &self.rows[..] else { return Ok(()) };
        live.iter().filter(|row| !is_todays(row)).try_for_each(|row| row.keeps(settings, central, best))
    }
}

impl Row {
    /// An error unless the policy is as close to the central queue, and as far from the best of today's
    /// balancers, as the bounds say.
    fn keeps(&self, settings: &VersusSettings, central: &Self, best: f64) -> Outcome<()> {
        let (name, p99) = (&self.name, self.slowdown_p99);
        let failed = |why: String| Err(Failure::new(Kind::GateFailed, why));
        if self.unanswered > 0 {
            return failed(format!("{name} left {} tasks without an answer", self.unanswered));
        }
        let over = p99 / central.slowdown_p99;
        if settings.within.is_some_and(|most| over > most) {
            return failed(format!("the p99 of {name} is {over:.2} times the central queue's"));
        }
        let better = best / p99;
        if settings.better.is_some_and(|least| better < least) {
            return failed(format!("the p99 of {name} is only {better:.2} times better than today's"));
        }
        Ok(())
    }
}
