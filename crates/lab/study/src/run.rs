//! Runs a study: rounds of replications on several threads, each written to the journal when it ends.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sluice_sim::SimError;
use sluice_sim::run_jobs;
use sluice_stats::Measured;

use super::checked_plan::CheckedPlan;
use super::error::StudyError;
use super::journal::{Identity, Journal};
use super::known_points::{KnownPoints, PointId, Retention};
use super::rounds::{of_causes, wanted};

/// A running study.
#[derive(Debug)]
pub struct Study<'b> {
    bench: &'b CheckedPlan,
    known: KnownPoints,
    journal: Journal,
    threads: usize,
}

/// One replication of one point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    pub id: PointId,
    pub replication: u32,
}

/// Progress of a study.
#[derive(Clone, Copy, Debug)]
pub enum Step<'j> {
    /// A round of these jobs begins.
    Round(&'j [Job]),
    /// A job is done; what is known now.
    Done(&'j Job, &'j KnownPoints),
}

impl<'b> Study<'b> {
    /// A study on `threads` threads. Replications that are in the folder's journal do not run again.
    ///
    /// The folder is checked before anything runs.
    pub fn new(
        bench: &'b CheckedPlan,
        threads: usize,
        folder: &Path,
        identity: &Identity,
    ) -> Result<Self, StudyError> {
        let mut known = KnownPoints::default();
        let take = |id: PointId, replication, measured| {
            add_replication(bench, &mut known, &id, replication, measured);
        };
        let journal = Journal::open(folder, identity, take)?;
        Ok(Self { bench, known, journal, threads })
    }

    /// The known points so far.
    pub const fn known(&self) -> &KnownPoints {
        &self.known
    }

    /// The replications of the next round; none if everything is known.
    pub fn round(&self) -> Vec<Job> {
        self.jobs(wanted(self.bench, &self.known))
    }

    /// The replications that causes may need in addition, if each statement needs all of its causes.
    pub fn of_causes(&self) -> Vec<Job> {
        self.jobs(of_causes(self.bench, &self.known))
    }

    /// The missing replications of some points.
    fn jobs(&self, points: BTreeSet<PointId>) -> Vec<Job> {
        let replications = self.bench.plan().replications;
        let jobs = points
            .into_iter()
            .flat_map(|id| (0..replications).map(move |replication| Job { id: id.clone(), replication }));
        jobs.filter(|job| !self.known.has(&job.id, job.replication)).collect()
    }

    /// Runs until everything is known or `stop` is set; an error sets `stop`, too. Returns whether everything
    /// is known.
    pub fn run(&mut self, stop: &AtomicBool, mut tell: impl FnMut(Step<'_>)) -> Result<bool, StudyError> {
        loop {
            let jobs = self.round();
            if jobs.is_empty() {
                return Ok(true);
            }
            tell(Step::Round(&jobs));
            self.run_round(&jobs, stop, &mut tell)?;
            if stop.load(Ordering::Relaxed) {
                return Ok(self.round().is_empty());
            }
        }
    }

    fn run_round(
        &mut self,
        jobs: &[Job],
        stop: &AtomicBool,
        tell: &mut impl FnMut(Step<'_>),
    ) -> Result<(), StudyError> {
        let (bench, threads) = (self.bench, self.threads);
        let mut failed = None;
        let replicate = |job: &Job| bench.point(&job.id).replicate(job.replication, stop);
        run_jobs(jobs, threads, stop, replicate, |index, measured| {
            let taken = self.take(&jobs[index], measured, tell);
            if let (None, Err(why)) = (&failed, taken) {
                failed = Some(why);
                stop.store(true, Ordering::Relaxed);
            }
        });
        failed.map_or(Ok(()), Err)
    }

    fn take(
        &mut self,
        job: &Job,
        measured: Result<Measured, SimError>,
        tell: &mut impl FnMut(Step<'_>),
    ) -> Result<(), StudyError> {
        let measured = match measured {
            Err(SimError::Stopped) => return Ok(()),
            Err(why) => return Err(StudyError::Point(format!("{}: {why}", job.id))),
            Ok(measured) => measured,
        };
        self.journal.add(&job.id, job.replication, &measured)?;
        add_replication(self.bench, &mut self.known, &job.id, job.replication, measured);
        tell(Step::Done(job, &self.known));
        Ok(())
    }
}

fn add_replication(
    bench: &CheckedPlan,
    known: &mut KnownPoints,
    id: &PointId,
    replication: u32,
    measured: Measured,
) {
    let plan = bench.plan();
    let whole = plan
        .comparisons
        .iter()
        .any(|pair| pair.case == id.case && id.change.is_none() && (pair.a == id.run || pair.b == id.run));
    let keep = Retention { whole, numbers: bench.numbers(id.case) };
    known.add(id, replication, plan.replications, measured, &keep);
}
