//! From what became of a trace's tasks to what one replication measured, by the simulator's own recorder.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use sluice_host::client::Outcome as Ending;
use sluice_stats::{Counts, Gauges, Measured, Outcome as Failed, PARTS, Recorder, Recording, Replied};
use sluice_support::fail::Outcome;
use sluice_support::results::files;
use sluice_testrig::schedule::Played;
use sluice_wire::Nanos;
use sluice_workload::Trace;

use super::ask::Ask;
use super::rack::{Counted, Performance};

/// A run whose tasks left later than this, one in a hundred of them, measured the sender; in the times of the
/// rack that is stood for.
pub(crate) const BEHIND_MAX: Nanos = Nanos(1_000);
/// A run whose packets left later than this on average is done again, likewise.
const LATE_MAX_NS: f64 = 150.0;

/// How often a run is tried that this machine disturbs.
pub(crate) const TRIES_MAX: u32 = 3;

/// A replication of a live rack.
#[derive(Clone, Debug)]
pub(crate) struct Take {
    /// In the times of the rack that is stood for.
    pub(crate) measured: Measured,
    /// How late tasks left, in those times: the 99th percentile and the mean.
    pub(crate) behind_p99: Nanos,
    pub(crate) behind_mean_ns: f64,
    /// How late packets left that were held, in those times, on average.
    pub(crate) switch_late_ns: f64,
    pub(crate) hosts_late_ns: f64,
    /// Packets that the kernel or a full hold dropped.
    pub(crate) lost: u64,
    /// How many runs it took.
    pub(crate) tries: u32,
}

impl Take {
    /// What `performance` of `trace` at `load` measured.
    pub(crate) fn of(ask: &Ask, load: f64, trace: &Trace, performance: &Performance, tries: u32) -> Self {
        let factor = f64::from(ask.dilation);
        let behind = Behind::of(trace, &performance.played, ask.dilation);
        Self {
            measured: measured(ask, load, trace, performance),
            behind_p99: behind.p99,
            behind_mean_ns: behind.mean_ns,
            switch_late_ns: performance.switch_late.mean_ns() / factor,
            hosts_late_ns: performance.hosts_late.mean_ns() / factor,
            lost: performance.counted.lost,
            tries,
        }
    }

    /// Whether something else on this machine got in the way.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.behind_p99 > BEHIND_MAX
            || self.switch_late_ns > LATE_MAX_NS
            || self.hosts_late_ns > LATE_MAX_NS
            || self.lost > 0
    }
}

/// How late tasks left, in the times of the rack that is stood for.
pub(crate) struct Behind {
    pub(crate) p99: Nanos,
    mean_ns: f64,
}

impl Behind {
    pub(crate) fn of(trace: &Trace, played: &[Played], dilation: u32) -> Self {
        let due = trace.tasks().iter().map(|task| task.at.times(dilation.into()));
        let mut behind: Vec<Nanos> = due.zip(played).map(|(due, played)| played.seen.since(due)).collect();
        behind.sort_unstable();
        let p99 = behind.get(behind.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default();
        let total: u64 = behind.iter().map(|late| late.0).sum();
        let mean_ns = total as f64 / behind.len().max(1) as f64 / f64::from(dilation);
        Self { p99: Nanos(p99.0 / u64::from(dilation)), mean_ns }
    }
}

/// Plays a trace, again if this machine disturbed it, and not for ever.
pub(crate) fn tried(
    ask: &Ask,
    load: f64,
    trace: &Trace,
    mut play: impl FnMut() -> Outcome<Performance>,
) -> Outcome<(Take, Vec<Played>)> {
    let mut tries = 0;
    loop {
        let performance = play()?;
        tries += 1;
        let take = Take::of(ask, load, trace, &performance, tries);
        if !take.is_disturbed() || tries == TRIES_MAX {
            return Ok((take, performance.played));
        }
    }
}

/// Tells a recorder of each task in the order of time.
fn measured(ask: &Ask, load: f64, trace: &Trace, performance: &Performance) -> Measured {
    let mean_services_ns = ask.workload.classes.iter().map(|class| class.service.mean_ns()).collect();
    let warmup = sluice_stats::Warmup::Tasks(ask.warm_up(load));
    let mut recorder = Recorder::new(Recording {
        mean_services_ns,
        tasks: ask.tasks(load),
        warmup,
        parts: PARTS,
        way_home: ask.testbed.way_home(),
        passed_over_at_random: None,
    });
    let ended = |played: &Played| Nanos(played.ended.0 / u64::from(ask.dilation));
    let mut endings: Vec<(Nanos, usize)> =
        performance.played.iter().map(ended).zip(0..trace.tasks().len()).collect();
    endings.sort_unstable();
    let mut endings = endings.into_iter().peekable();
    let end = |recorder: &mut Recorder, (at, index): (Nanos, usize)| {
        let (task, played) = (&trace.tasks()[index], &performance.played[index]);
        let undilated = |ns: u32| u64::from(ns) / u64::from(ask.dilation);
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
    recorder.finish(counts(ask, load, trace, performance.counted), gauges)
}

/// What the switch counted over the whole run, as much of it as falls to the measured tasks.
fn counts(ask: &Ask, load: f64, trace: &Trace, counted: Counted) -> Counts {
    let share = ask.tasks(load) as f64 / trace.tasks().len().max(1) as f64;
    let part = |events: u64| (events as f64 * share) as u64;
    Counts {
        passes: part(counted.passes),
        recirculations: part(counted.recirculated),
        packets: part(counted.packets),
        lost_packets: part(counted.lost),
        ..Counts::default()
    }
}

/// Writes what became of each task; times are those of the rack that is stood for, in nanoseconds.
pub(crate) fn write_tasks(path: &Path, ask: &Ask, trace: &Trace, played: &[Played]) -> Outcome<()> {
    let failed = |why: std::io::Error| files::unwritten(path, &why);
    let mut out = BufWriter::new(std::fs::File::create(path).map_err(failed)?);
    let undilated = |span: Nanos| span.0 as f64 / f64::from(ask.dilation);
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
