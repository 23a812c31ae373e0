//! Runs a study: rounds of replications on several threads, each written to the journal when it ends.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use sluice_sim::SimError;
use sluice_sim::run_jobs;
use sluice_stats::Measured;

use super::checked_plan::CheckedPlan;
use super::error::StudyError;
use super::journal::{self, Identity, Journal};
use super::known_points::{KnownPoints, PointId, Retention};
use super::rounds::{grid, of_causes, wanted};

/// A running study.
#[derive(Debug)]
pub struct Study {
    bench: Arc<CheckedPlan>,
    known: KnownPoints,
    /// None if the study's replications are not kept.
    journal: Option<Journal>,
    threads: usize,
    /// Replications that were in the folder's journal.
    kept: usize,
}

/// One replication of one point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub id: PointId,
    pub replication: u32,
}

/// A part of a study's own points: of the replications in their order each one whose place leaves this number
/// when it is divided by `of`. So neighbours, which take about as long, are in different parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StudyPart {
    pub number: u32,
    /// How many parts there are.
    pub of: u32,
}

/// Progress of a study.
#[derive(Clone, Copy, Debug)]
pub enum Step<'j> {
    /// A round of these jobs begins.
    Round(&'j [Job]),
    /// A job is done; what is known now.
    Done(&'j Job, &'j KnownPoints),
}

impl Study {
    /// A study on `threads` threads. Replications that are in the folder's journal do not run again.
    ///
    /// The folder is checked before anything runs.
    pub fn new(
        bench: Arc<CheckedPlan>,
        threads: usize,
        folder: &Path,
        identity: &Identity,
    ) -> Result<Self, StudyError> {
        let (mut known, mut kept) = (KnownPoints::default(), 0);
        let take = |id: PointId, replication, measured| {
            add_replication(&bench, &mut known, &id, replication, measured);
            kept += 1;
        };
        let journal = Some(Journal::open(folder, identity, take)?);
        Ok(Self { bench, known, journal, threads, kept })
    }

    /// A study that keeps its replications in memory only.
    pub fn in_memory(bench: Arc<CheckedPlan>, threads: usize) -> Self {
        Self { bench, known: KnownPoints::default(), journal: None, threads, kept: 0 }
    }

    /// How many replications an earlier run had left in the folder when this one began.
    pub const fn kept(&self) -> usize {
        self.kept
    }

    /// Keeps no more replications, so that another process may go on from the folder.
    pub fn close(&mut self) {
        self.journal = None;
    }

    /// The known points so far.
    pub const fn known(&self) -> &KnownPoints {
        &self.known
    }

    /// The replications of the next round; none if everything is known.
    pub fn round(&self) -> Vec<Job> {
        self.jobs(wanted(&self.bench, &self.known))
    }

    /// The replications that causes may need in addition, if each statement needs all of its causes.
    pub fn of_causes(&self) -> Vec<Job> {
        self.jobs(of_causes(&self.bench, &self.known))
    }

    /// The replications of a part that are missing.
    pub fn missing(&self, part: StudyPart) -> Vec<Job> {
        let all = self.all_of(grid(&self.bench)).into_iter().enumerate();
        let own = all.filter(|(index, _)| *index as u64 % u64::from(part.of) == u64::from(part.number));
        own.map(|(_, job)| job).filter(|job| !self.known.has(&job.id, job.replication)).collect()
    }

    /// Runs one part until it is known or `stop` is set. Returns whether it is known.
    ///
    /// # Errors
    /// A point cannot be run, or its result cannot be kept.
    pub fn run_part(
        &mut self,
        part: StudyPart,
        stop: &AtomicBool,
        mut tell: impl FnMut(Step<'_>),
    ) -> Result<bool, StudyError> {
        let jobs = self.missing(part);
        tell(Step::Round(&jobs));
        self.run_round(&jobs, stop, &mut tell)?;
        Ok(self.missing(part).is_empty())
    }

    /// Takes all that is in another folder's journal; nothing if that folder has none.
    ///
    /// # Errors
    /// The journal is another study's, or damaged.
    pub fn take_from(&mut self, folder: &Path, identity: &Identity) -> Result<(), StudyError> {
        let mut found = Vec::new();
        journal::read_from(folder, identity, |id, replication, measured| {
            found.push((Job { id, replication }, measured));
        })?;
        found.into_iter().try_for_each(|(job, measured)| self.take(&job, measured))
    }

    /// The missing replications of some points.
    fn jobs(&self, points: BTreeSet<PointId>) -> Vec<Job> {
        let mut jobs = self.all_of(points);
        jobs.retain(|job| !self.known.has(&job.id, job.replication));
        jobs
    }

    /// All replications of some points.
    fn all_of(&self, points: BTreeSet<PointId>) -> Vec<Job> {
        let replications = self.bench.plan().replications;
        let of_one =
            |id: PointId| (0..replications).map(move |replication| Job { id: id.clone(), replication });
        points.into_iter().flat_map(of_one).collect()
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
        let (bench, threads) = (Arc::clone(&self.bench), self.threads);
        let mut failed = None;
        let replicate = |job: &Job| bench.point(&job.id).replicate(job.replication, stop);
        run_jobs(jobs, threads, stop, replicate, |index, measured| {
            let taken = self.take_or_stop(&jobs[index], measured, tell);
            if let (None, Err(why)) = (&failed, taken) {
                failed = Some(why);
                stop.store(true, Ordering::Relaxed);
            }
        });
        failed.map_or(Ok(()), Err)
    }

    fn take_or_stop(
        &mut self,
        job: &Job,
        measured: Result<Measured, SimError>,
        tell: &mut impl FnMut(Step<'_>),
    ) -> Result<(), StudyError> {
        if let Err(SimError::Stopped) = measured {
            return Ok(());
        }
        self.take(job, measured.map_err(|why| job.failed(&why))?)?;
        tell(Step::Done(job, &self.known));
        Ok(())
    }

    /// Takes the result of a job, wherever that ran. A job that is known already is left as it is.
    ///
    /// # Errors
    /// The result cannot be kept.
    pub fn take(&mut self, job: &Job, measured: Measured) -> Result<(), StudyError> {
        if self.known.has(&job.id, job.replication) {
            return Ok(());
        }
        if let Some(journal) = &mut self.journal {
            journal.add(&job.id, job.replication, &measured)?;
        }
        add_replication(&self.bench, &mut self.known, &job.id, job.replication, measured);
        Ok(())
    }
}

impl StudyPart {
    /// Reads `3/20`: number 3 of 20, which begin with 0.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let numbers =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if number < of => Ok(Self { number, of }),
            _ => Err(StudyError::unreadable(
                "part",
                text,
                "is none: write 0/20 for the first of 20, 19/20 for the last",
            )),
        }
    }
}

impl fmt::Display for StudyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Job {
    /// Runs this job alone.
    ///
    /// # Errors
    /// The point cannot be run.
    pub fn run(&self, bench: &CheckedPlan, stop: &AtomicBool) -> Result<Measured, StudyError> {
        bench.point(&self.id).replicate(self.replication, stop).map_err(|why| self.failed(&why))
    }

    fn failed(&self, why: &SimError) -> StudyError {
        StudyError::Point(format!("{}: {why}", self.id))
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
