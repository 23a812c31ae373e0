//! A study that is ready to run: what decides its result, and where that came from.

use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use sluice_outcome::study::StudyOutcome;
use sluice_study::KnownPoints;
use sluice_study::checked_plan::{CheckedPlan, Length};
use sluice_study::journal::Identity;
use sluice_study::outcome::{Provenance, outcome};

use crate::VERSION;

/// The program that runs studies.
#[derive(Clone, Debug)]
pub struct RunningBuild {
    /// Its commit.
    pub commit: &'static str,
    /// Tells builds of one commit apart, such as by the time of the file.
    pub file: String,
}

/// A study that is ready to run.
#[derive(Clone, Debug)]
pub struct ReadyStudy {
    pub bench: Arc<CheckedPlan>,
    /// The plan's file, if there is one.
    pub plan: Option<String>,
    /// Commands that run the study again; the first one runs all of it.
    pub commands: Vec<String>,
}

impl ReadyStudy {
    /// The result, as far as its points are known.
    pub fn outcome(&self, known: &KnownPoints, build: &RunningBuild) -> StudyOutcome {
        let provenance = Provenance {
            sluice: VERSION.into(),
            commit: build.commit.into(),
            plan: self.plan.clone(),
            commands: self.commands.clone(),
        };
        outcome(&self.bench, known, &provenance)
    }

    /// A fingerprint of all that decides the results, also of what is in files such as traces. Two machines
    /// that run parts of one study must have the same.
    pub fn fingerprint(&self) -> String {
        let mut hashed = HashedText::default();
        write!(hashed, "{:?}", self.bench).expect("a hash takes all");
        format!("{:016x}", hashed.0.finish())
    }

    /// The settings that decide the results, by names for messages.
    pub fn identity(&self, build: &RunningBuild) -> Identity {
        let plan = self.bench.plan();
        let length = match self.bench.terms().length {
            Length::Tasks(tasks, warmup) => format!("{tasks} tasks after {warmup}"),
            Length::Time { warmup_ns, span_ns } => format!("{span_ns} ns after {warmup_ns} ns"),
        };
        let workloads = (0..plan.cases.len()).map(|case| self.bench.workload(case).to_string());
        [
            ("name", plan.name.clone()),
            ("seed", plan.seed.to_string()),
            ("number of replications", plan.replications.to_string()),
            ("length", length),
            ("workload", workloads.collect::<Vec<_>>().join(" / ")),
            ("testbed", self.bench.testbed(0, None).to_toml()),
            ("commit", build.commit.to_owned()),
            ("program", build.file.clone()),
            ("plan", format!("{plan:?}")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

/// Text that is hashed as it is written: a trace's would be long.
#[derive(Default)]
struct HashedText(DefaultHasher);

impl fmt::Write for HashedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
