//! The traces of a sweep: drawn once, written to files, and read back by both sides.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use sluice_net::client::Urgency;
use sluice_services::hold;
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::results::files;
use sluice_support::stop::Stop;
use sluice_testrig::schedule::Planned;
use sluice_wire::{Nanos, TaskType};
use sluice_workload::{Arrivals, Request, Requests, Trace, TraceWriter, TracedTask, Workload};

use super::live_sweep::LiveSweep;

/// One trace for each load and replication.
pub(crate) struct Traces(Vec<Vec<Arc<Trace>>>);

impl Traces {
    /// Draws all traces into the folder of results; an error if stopped.
    pub(crate) fn draw(sweep: &LiveSweep, stop: &Stop) -> Outcome<Self> {
        let folder = sweep.out.join("traces");
        files::make(&folder)?;
        let of =
            |load: &f64| (0..sweep.replications).map(|number| draw(sweep, *load, number, stop)).collect();
        Ok(Self(sweep.loads.iter().map(of).collect::<Outcome<_>>()?))
    }

    /// The trace of a load, by its index, and a replication.
    pub(crate) fn get(&self, load: usize, replication: u32) -> &Arc<Trace> {
        &self.0[load][replication as usize]
    }

    /// The workload with this trace's arrivals.
    pub(crate) fn workload(&self, sweep: &LiveSweep, load: usize, replication: u32) -> Workload {
        let trace = Arc::clone(self.get(load, replication));
        Workload { classes: sweep.workload.classes.clone(), arrivals: Arrivals::Trace(trace) }
    }
}

fn draw(sweep: &LiveSweep, load: f64, number: u32, stop: &Stop) -> Outcome<Arc<Trace>> {
    let path = sweep.out.join("traces").join(format!("load-{load}-{}.csv", number + 1));
    let tasks = sweep.warm_up(load) + sweep.tasks(load) + sweep.tail(load);
    let requests = Requests::new(&sweep.workload, sweep.rate_per_s(load), sweep.seed, number);
    let requests = requests.take(usize::try_from(tasks).unwrap_or(usize::MAX));
    written(&path, &sweep.workload, requests, stop).map(Arc::new)
}

/// Writes these tasks to a file and reads them back, so that both sides use the file's contents.
pub(crate) fn written(
    path: &Path,
    workload: &Workload,
    requests: impl Iterator<Item = Request>,
    stop: &Stop,
) -> Outcome<Trace> {
    let failed = |why: std::io::Error| files::unwritten(path, &why);
    let names: Vec<String> = workload.classes.iter().map(|class| class.name.clone()).collect();
    let out = BufWriter::new(File::create(path).map_err(failed)?);
    let mut writer = TraceWriter::new(out, names.clone()).map_err(failed)?;
    for request in requests {
        if stop.is_asked() {
            return Err(Failure::new(Kind::Aborted, "stopped by a signal before anything was measured"));
        }
        writer.write(&request).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    Trace::read(path, Some(&names)).map_err(Failure::broken)
}

/// A trace as a client's schedule, with all times stretched; `of` gives a task's type and the span that it
/// carries.
pub(crate) fn planned(
    trace: &Trace,
    dilation: u32,
    of: impl Fn(&TracedTask) -> (TaskType, Nanos),
) -> Vec<Planned> {
    let planned = |task: &TracedTask| {
        let (kind, span) = of(task);
        Planned {
            due: task.at.times(dilation.into()),
            kind,
            urgency: task.service.map_or(Urgency::Unstated, Urgency::Work),
            bytes: hold::request(span),
        }
    };
    trace.tasks().iter().map(planned).collect()
}
