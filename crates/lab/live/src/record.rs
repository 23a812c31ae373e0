//! Turns the outcomes of a trace's tasks into the measurements of a replication, with the simulator's own
//! recorder.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use sluice_host::client::Outcome as Ending;
use sluice_stats::{Counts, Gauges, Measured, Outcome as Failed, PARTS, Recorder, Recording, Replied};
use sluice_support::fail::Outcome;
use sluice_support::results::files;
use sluice_testrig::schedule::PlayedTask;
use sluice_wire::Nanos;
use sluice_workload::Trace;

use super::live_sweep::LiveSweep;
use super::rack::{SwitchCounts, TraceResult};

/// If more than one task in a hundred left later than this, in the emulated rack's time, a run has measured
/// the sender.
pub(crate) const BEHIND_MAX: Nanos = Nanos(1_000);
/// A run whose packets left later than this on average, in nanoseconds of the emulated rack's time, is
/// repeated.
const LATE_MAX_NS: f64 = 150.0;

/// How often a run that this machine disturbs is tried.
pub(crate) const TRIES_MAX: u32 = 3;

/// A replication of a live rack.
#[derive(Clone, Debug)]
pub(crate) struct LiveReplication {
    /// The measurements, in the emulated rack's time.
    pub(crate) measured: Measured,
    /// The 99th percentile and the mean of tasks' lateness, in that time.
    pub(crate) behind_p99: Nanos,
    pub(crate) behind_mean_ns: f64,
    /// The mean lateness of delayed packets, in nanoseconds of that time.
    pub(crate) switch_late_ns: f64,
    pub(crate) hosts_late_ns: f64,
    /// Packets dropped by the kernel or a full delay queue.
    pub(crate) lost: u64,
    /// How many runs were needed.
    pub(crate) tries: u32,
}

impl LiveReplication {
    /// The measurements of `performance`, a run of `trace` at `load`.
    pub(crate) fn of(
        sweep: &LiveSweep,
        load: f64,
        trace: &Trace,
        performance: &TraceResult,
        tries: u32,
    ) -> Self {
        let factor = f64::from(sweep.dilation);
        let behind = SendLateness::of(trace, &performance.played, sweep.dilation);
        Self {
            measured: measured(sweep, load, trace, performance),
            behind_p99: behind.p99,
            behind_mean_ns: behind.mean_ns,
            switch_late_ns: performance.switch_late.mean_ns() / factor,
            hosts_late_ns: performance.hosts_late.mean_ns() / factor,
            lost: performance.counted.lost,
            tries,
        }
    }

    /// Whether another process on this machine disturbed the run.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.behind_p99 > BEHIND_MAX
            || self.switch_late_ns > LATE_MAX_NS
            || self.hosts_late_ns > LATE_MAX_NS
            || self.lost > 0
    }
}

/// How late tasks left, in the emulated rack's time.
pub(crate) struct SendLateness {
    pub(crate) p99: Nanos,
    mean_ns: f64,
}

impl SendLateness {
    pub(crate) fn of(trace: &Trace, played: &[PlayedTask], dilation: u32) -> Self {
        let due = trace.tasks().iter().map(|task| task.at.times(dilation.into()));
        let mut behind: Vec<Nanos> = due.zip(played).map(|(due, played)| played.seen.since(due)).collect();
        behind.sort_unstable();
        let p99 = behind.get(behind.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default();
        let total: u64 = behind.iter().map(|late| late.0).sum();
        let mean_ns = total as f64 / behind.len().max(1) as f64 / f64::from(dilation);
        Self { p99: Nanos(p99.0 / u64::from(dilation)), mean_ns }
    }
}

/// Plays a trace, and repeats it if this machine disturbed it, up to [`TRIES_MAX`] times.
pub(crate) fn run_undisturbed(
    sweep: &LiveSweep,
    load: f64,
    trace: &Trace,
    mut play: impl FnMut() -> Outcome<TraceResult>,
) -> Outcome<(LiveReplication, Vec<PlayedTask>)> {
    let mut tries = 0;
    loop {
        let performance = play()?;
        tries += 1;
        let take = LiveReplication::of(sweep, load, trace, &performance, tries);
        if !take.is_disturbed() || tries == TRIES_MAX {
            return Ok((take, performance.played));
        }
    }
}

/// Feeds each task to a recorder, in order of time.
fn measured(sweep: &LiveSweep, load: f64, trace: &Trace, performance: &TraceResult) -> Measured {
    let mean_services_ns = sweep.workload.classes.iter().map(|class| class.service.mean_ns()).collect();
    let warmup = sluice_stats::Warmup::Tasks(sweep.warm_up(load));
    let mut recorder = Recorder::new(Recording {
        mean_services_ns,
        tasks: sweep.tasks(load),
        warmup,
        parts: PARTS,
        way_home: sweep.testbed.way_home(),
        passed_over_at_random: None,
        within: Vec::new(),
    });
    let ended = |played: &PlayedTask| Nanos(played.ended.0 / u64::from(sweep.dilation));
    let mut endings: Vec<(Nanos, usize)> =
        performance.played.iter().map(ended).zip(0..trace.tasks().len()).collect();
    endings.sort_unstable();
    let mut endings = endings.into_iter().peekable();
    let end = |recorder: &mut Recorder, (at, index): (Nanos, usize)| {
        let (task, played) = (&trace.tasks()[index], &performance.played[index]);
        let undilated = |ns: u32| u64::from(ns) / u64::from(sweep.dilation);
        match played.outcome {
            Ending::Reply(reply) => {
                let waited = Nanos(undilated(reply.switch_wait_ns) + undilated(reply.worker_wait_ns));
                recorder.done(&Replied {
                    class: task.class,
                    intended: task.at,
                    at,
                    service: task.service.unwrap_or_default(),
                    served: Nanos(undilated(reply.service_ns)),
                    waited,
                });
            }
            Ending::Refused(_) => recorder.failed(task.at, Failed::Refused),
            Ending::Unknown(_) => recorder.failed(task.at, Failed::Unknown),
        }
    };
    for task in trace.tasks() {
        while let Some(ending) = endings.next_if(|(at, _)| *at < task.at) {
            end(&mut recorder, ending);
        }
        recorder.sent(task.at);
    }
    for ending in endings {
        end(&mut recorder, ending);
    }
    let gauges = Gauges { labels_met: performance.labels_met, ..Gauges::default() };
    recorder.finish(counts(sweep, load, trace, performance.counted), gauges)
}

/// The switch's counters over the whole run, scaled to the measured tasks.
fn counts(sweep: &LiveSweep, load: f64, trace: &Trace, counted: SwitchCounts) -> Counts {
    let share = sweep.tasks(load) as f64 / trace.tasks().len().max(1) as f64;
    let part = |events: u64| (events as f64 * share) as u64;
    Counts {
        passes: part(counted.passes),
        recirculations: part(counted.recirculated),
        packets: part(counted.packets),
        lost_packets: part(counted.lost),
        ..Counts::default()
    }
}

/// Writes the outcome of each task; times are nanoseconds of the emulated rack.
pub(crate) fn write_tasks(
    path: &Path,
    sweep: &LiveSweep,
    trace: &Trace,
    played: &[PlayedTask],
) -> Outcome<()> {
    let failed = |why: std::io::Error| files::unwritten(path, &why);
    let mut out = BufWriter::new(std::fs::File::create(path).map_err(failed)?);
    let undilated = |span: Nanos| span.0 as f64 / f64::from(sweep.dilation);
    writeln!(out, "due_ns,class,service_ns,sent_ns,ended_ns,latency_ns,attempts,outcome").map_err(failed)?;
    for (task, played) in trace.tasks().iter().zip(played) {
        let class = &trace.classes()[usize::from(task.class)];
        let (sent, ended) = (undilated(played.sent), undilated(played.ended));
        let outcome = match played.outcome {
            Ending::Reply(_) => "replied",
            Ending::Refused(_) => "refused",
            Ending::Unknown(_) => "unknown",
        };
        let (due, service, attempts) = (task.at.0, task.service.unwrap_or_default().0, played.attempts);
        let latency = ended - due as f64;
        writeln!(out, "{due},{class},{service},{sent:.0},{ended:.0},{latency:.0},{attempts},{outcome}")
            .map_err(failed)?;
    }
    out.flush().map_err(failed)
}
