//! Studies for Python: the same that the command runs, from the words of its command line.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread;

use pyo3::prelude::*;
use sluice_experiment::figures::PLANS;
use sluice_experiment::{ReadyStudy, RunningBuild, files, from_words};
use sluice_outcome::study::StudyOutcome;
use sluice_report as report;
use sluice_study::StudyError;
use sluice_study::journal;
use sluice_study::run::{Job, Step, Study};

use crate::errors::{bad_input, study, study_failed};
use crate::stoppable;

/// A study: what was asked for, and what is known of it.
#[pyclass(frozen, module = "sluice._sluice")]
pub(crate) struct StudyCore {
    ready: ReadyStudy,
    build: RunningBuild,
    /// Held by the thread that runs it.
    study: Arc<Mutex<Study>>,
}

/// How far a run is.
#[derive(Default)]
struct RunsDone {
    done: AtomicUsize,
    all: AtomicUsize,
}

#[pymethods]
impl StudyCore {
    /// The study that the words of a command line ask for. With `out`, goes on from what is in that folder,
    /// and keeps each replication there; `build` tells this library's builds apart.
    #[new]
    #[pyo3(signature = (words, *, build, out=None, fresh=false, threads=None))]
    fn new(
        py: Python<'_>,
        words: Vec<String>,
        build: String,
        out: Option<PathBuf>,
        fresh: bool,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let build = RunningBuild { commit: env!("SLUICE_COMMIT"), file: build };
        let open = || -> Result<Self, StudyError> {
            let ready = from_words(words)?;
            let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
            let bench = Arc::clone(&ready.bench);
            let opened = match out {
                None => Study::in_memory(bench, threads),
                Some(out) => {
                    if fresh {
                        journal::forget(&out)?;
                    }
                    Study::new(bench, threads, &out, &ready.identity(&build))?
                }
            };
            Ok(Self { ready, build, study: Arc::new(Mutex::new(opened)) })
        };
        py.detach(open).map_err(|why| study(py, &why))
    }

    /// Runs all that is missing. Calls `told` with the replications done and known so far to be needed.
    fn run(&self, py: Python<'_>, told: Py<PyAny>) -> PyResult<()> {
        let running = Arc::clone(&self.study);
        let counts = Arc::new(RunsDone::default());
        let counted = Arc::clone(&counts);
        drop(self.locked(py)?);
        let work = move |stop: &_| {
            let mut study = running.lock().unwrap_or_else(PoisonError::into_inner);
            study.run(stop, |step| match step {
                Step::Round(jobs) => {
                    counted.all.fetch_add(jobs.len(), Ordering::Relaxed);
                }
                Step::Done(..) => {
                    counted.done.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let mut last = None;
        let tell = |py: Python<'_>| {
            let now = (counts.done.load(Ordering::Relaxed), counts.all.load(Ordering::Relaxed));
            if last.replace(now) == Some(now) {
                return Ok(());
            }
            told.call1(py, now).map(drop)
        };
        stoppable::run(py, work, tell)?.map(drop).map_err(|why| study(py, &why))
    }

    /// How many replications an earlier run had left in the folder.
    fn kept(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |study| study.kept())
    }

    /// The replications that are missing now, each as a text; none if everything is known.
    fn round(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let jobs = self.with(py, |study| study.round())?;
        Ok(jobs.iter().map(|job| serde_json::to_string(job).expect("a job is JSON")).collect())
    }

    /// Runs one replication, wherever it is needed, and returns its result as a text.
    fn replicate(&self, py: Python<'_>, job: &str) -> PyResult<String> {
        let job = job_of(py, job)?;
        let bench = Arc::clone(&self.ready.bench);
        let work = move |stop: &_| {
            let measured = job.run(&bench, stop)?;
            serde_json::to_string(&measured).map_err(|why| StudyError::Broken(why.to_string()))
        };
        stoppable::run(py, work, |_| Ok(()))?.map_err(|why| study(py, &why))
    }

    /// Takes a replication's result from wherever it ran. One that is known already is left as it is.
    fn take(&self, py: Python<'_>, job: &str, result: &str) -> PyResult<()> {
        let job = job_of(py, job)?;
        let measured = serde_json::from_str(result).map_err(|why| {
            study_failed(py, &format!("a replication's result cannot be read ({why}): run it again"))
        })?;
        self.with(py, |study| study.take(&job, measured))?.map_err(|why| study(py, &why))
    }

    /// Lets go of the folder, so that another study may go on from there.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Study::close)
    }

    /// A fingerprint of all that decides the results, also of files.
    fn fingerprint(&self, py: Python<'_>) -> String {
        py.detach(|| self.ready.fingerprint())
    }

    /// The result as the JSON that the command prints.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        self.told(py, report::json)
    }

    /// The result as CSV.
    fn csv(&self, py: Python<'_>) -> PyResult<String> {
        self.told(py, report::csv)
    }

    /// The result as a page.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        self.told(py, report::page)
    }

    /// The tables that the command prints, for this width.
    fn summary(&self, py: Python<'_>, columns: usize) -> PyResult<String> {
        self.told(py, |outcome| report::summary(outcome, Some(columns)))
    }

    /// Writes the files that the command writes.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        self.told(py, |outcome| files::write(&folder, outcome))?.map_err(|why| study(py, &why))
    }

    /// The commit of this library.
    #[getter]
    fn commit(&self) -> &'static str {
        self.build.commit
    }
}

impl StudyCore {
    /// Something of the result as far as it is known.
    fn told<T: Send>(&self, py: Python<'_>, tell: impl FnOnce(&StudyOutcome) -> T + Send) -> PyResult<T> {
        self.with(py, |study| tell(&self.ready.outcome(study.known(), &self.build)))
    }

    /// Does something with the study, detached from the interpreter.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Study) -> T + Send) -> PyResult<T> {
        drop(self.locked(py)?);
        Ok(py.detach(|| work(&mut self.study.lock().unwrap_or_else(PoisonError::into_inner))))
    }

    /// The study, unless another thread runs it: nobody shall wait for hours.
    fn locked(&self, py: Python<'_>) -> PyResult<std::sync::MutexGuard<'_, Study>> {
        match self.study.try_lock() {
            Ok(study) => Ok(study),
            Err(TryLockError::Poisoned(study)) => Ok(study.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(bad_input(py, "the study runs in another thread: wait until that has ended"))
            }
        }
    }
}

fn job_of(py: Python<'_>, text: &str) -> PyResult<Job> {
    serde_json::from_str(text).map_err(|why| {
        bad_input(py, &format!("a replication's name cannot be read ({why}): take those of round()"))
    })
}

/// The names of the papers' figures, for `reproduce`.
#[pyfunction]
pub(crate) fn figure_names() -> Vec<&'static str> {
    PLANS.iter().map(|(name, _)| *name).collect()
}
