//! Runs a study: checks the folder, estimates the cost, runs the rounds, and writes the result to stdout
//! and into the folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use sluice_experiment::{ReadyStudy, RequestedStudy, RunningBuild};
use sluice_outcome::study::StudyOutcome;
use sluice_report as report;
use sluice_report::table::digits;
use sluice_study::checked_plan::CheckedPlan;
use sluice_study::journal;
use sluice_study::run::{Step, Study};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::flags::ExportArgs;
use sluice_support::print;
use sluice_support::results::{export, studies};
use sluice_support::stop::Stop;
use sluice_support::view;

use super::args::RunArgs;
use super::cost::{Costs, span_text, tasks};
use super::growing::GrowingFiles;
use super::progress::Progress;

/// A study to be run.
pub(crate) struct StudyJob<'a> {
    pub(crate) ready: &'a ReadyStudy,
    pub(crate) how: &'a RunArgs,
    pub(crate) out: PathBuf,
    /// Whether the folder belongs to this study alone: then results of another build in it are replaced.
    pub(crate) own: bool,
}

/// A study that was run.
pub(crate) struct FinishedStudy {
    /// The result.
    pub(crate) outcome: StudyOutcome,
    /// Whether the run was stopped from outside.
    pub(crate) stopped: bool,
}

/// Runs the study, or continues an earlier run; after a signal, finished replications are kept.
pub(crate) fn run(job: &StudyJob<'_>, stop: &Stop) -> Outcome<FinishedStudy> {
    let (ready, bench) = (job.ready, job.ready.bench.as_ref());
    let threads = threads(job.how);
    let build = build();
    let identity = ready.identity(&build);
    let folder = job.out.as_path();
    if job.how.fresh || job.own && !journal::is_of(folder, &identity) {
        journal::forget(folder)?;
    }
    let mut study = Study::new(Arc::clone(&ready.bench), threads, folder, &identity)?;
    let mut progress = Progress::new(job.how.output.quiet || job.how.output.json);
    let first = study.round();
    let costs = Costs::measure(bench, &first, stop.flag());
    if first.is_empty() {
        progress.print_message("this was run before, and is shown again; --fresh runs it anew");
    } else {
        progress.print_message(&estimate(bench, &costs, &study, threads));
    }
    let mut growing = GrowingFiles::new(folder);
    let complete = study.run(stop.flag(), |step| match step {
        Step::Round(jobs) => progress.more(jobs.len(), costs.of(bench, jobs)),
        Step::Done(one, known) => {
            progress.one_done(costs.of_one(bench, one));
            growing.write_at_times(|| ready.outcome(known, &build));
        }
    });
    progress.finish();
    let stopped = !complete?;
    let outcome = ready.outcome(study.known(), &build);
    studies::write(folder, &outcome)?;
    Ok(FinishedStudy { outcome, stopped })
}

/// Runs a study that flags describe, and prints it.
pub(crate) fn run_requested(asked: &RequestedStudy<'_>, how: &RunArgs, export: &ExportArgs) -> Outcome<()> {
    run_ready(asked, &asked.ready()?, how, export)
}

/// Runs a study that flags describe and that is ready, and prints it.
pub(crate) fn run_ready(
    asked: &RequestedStudy<'_>,
    ready: &ReadyStudy,
    how: &RunArgs,
    export: &ExportArgs,
) -> Outcome<()> {
    export::check(export.file())?;
    let stop = Stop::on_signals_and_hangup()?;
    let out = how.out.clone().unwrap_or_else(|| asked.own_folder());
    let job = StudyJob { ready, how, out, own: how.out.is_none() };
    let ran = run(&job, &stop)?;
    let shown = show(&ran, how, &job.out);
    let written = export::write(export.file(), &report::markdown(&ran.outcome));
    written.map_err(Failure::with_result_shown)?;
    shown
}

/// Prints a study. After a stopped one, returns a failure.
pub(crate) fn show(ran: &FinishedStudy, how: &RunArgs, out: &Path) -> Outcome<()> {
    if how.output.json {
        print::line(report::json(&ran.outcome))?;
    } else {
        print::text(report::summary(&ran.outcome, view::columns()))?;
        if !how.output.quiet {
            print::to_stderr(format_args!("results are in {}", out.display()));
        }
    }
    if !ran.stopped {
        return Ok(());
    }
    let why = format!("stopped; what was done is in {}; the same command goes on from there", out.display());
    Err(Failure::new(Kind::Aborted, why).with_result_shown())
}

pub(super) fn threads(how: &RunArgs) -> usize {
    let all = || thread::available_parallelism().map_or(1, usize::from);
    how.threads.map_or_else(all, usize::from)
}

/// A line about the amount of work and its expected duration.
fn estimate(bench: &CheckedPlan, costs: &Costs, study: &Study, threads: usize) -> String {
    let jobs = study.round();
    let points = jobs.iter().map(|job| &job.id).collect::<std::collections::BTreeSet<_>>().len();
    let total: f64 = jobs.iter().map(|job| tasks(bench, job)).sum();
    let seconds = costs.of(bench, &jobs);
    let causes = costs.of(bench, &study.of_causes());
    let causes = if causes > seconds / 10.0 {
        format!("; up to {} more for causes of what differs", span_text(causes / threads as f64))
    } else {
        String::new()
    };
    let searches = if bench.plan().searches.is_empty() { "" } else { "; and what searches ask for" };
    format!(
        "{}: {points} point{}, {} runs, {}: about {} on {threads} threads ({:.2} million tasks a second \
         each){causes}{searches}",
        bench.plan().name,
        if points == 1 { "" } else { "s" },
        jobs.len(),
        amount(total),
        span_text(seconds / threads as f64),
        total / seconds.max(1e-9) / 1e6,
    )
}

/// A number of tasks, in millions if it is large.
fn amount(tasks: f64) -> String {
    if tasks < 1e6 { format!("{tasks:.0} tasks") } else { format!("{} million tasks", digits(tasks / 1e6)) }
}

/// This program: several builds may have the same commit during development.
pub(super) fn build() -> RunningBuild {
    let file = std::env::current_exe().and_then(std::fs::metadata);
    let written = file.ok().and_then(|file| {
        Some((file.len(), file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?))
    });
    let file = written.map_or_else(
        || "unknown".into(),
        |(bytes, at)| format!("of {bytes} bytes, written {} ms after 1970", at.as_millis()),
    );
    RunningBuild { commit: env!("SLUICE_COMMIT"), file }
}
