//! Figures: a plan by its name or from its file, with what flags change about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_stats::Warmup;
use sluice_study::checked_plan::{CheckedPlan, Length, Overload, RunSettings};
use sluice_study::plan::Plan;
use sluice_system::text;

use crate::args::FigureArgs;
use crate::figures::PLANS;
use crate::{PlanKind, ReadyStudy, StudyResult, bad_input, shell};

/// The length of the paper's points: 1 s and 10 s, divided into five replications of a fifth each.
const PAPER_REPLICATIONS: u32 = 5;
const PAPER_LENGTH: Length = Length::Time { warmup_ns: 200_000_000, span_ns: 2_000_000_000 };

/// Names of the command that stand for several figures.
const GROUPS: [&str; 2] = ["rain", "all"];

/// A plan's text, and where it was found.
#[derive(Clone, Debug)]
pub struct FigurePlan {
    pub text: String,
    /// Its file, in this repository if the plan is built in.
    pub file: String,
    /// The folder of the files that the plan names.
    pub folder: PathBuf,
    /// The name by which it is found again.
    pub called: String,
}

impl FigurePlan {
    /// Finds a plan by its name, or reads a file: one study.
    ///
    /// # Errors
    /// There is no such plan, it is a rack's, or the name stands for several.
    pub fn find_one(name: &str) -> StudyResult<Self> {
        if GROUPS.contains(&name) {
            return Err(bad_input(format!("`{name}` is several figures: ask for each of them by its name")));
        }
        Self::find(name)
    }

    /// Finds a plan by its name, or reads a file.
    ///
    /// # Errors
    /// There is no such plan, or it is a rack's.
    pub fn find(name: &str) -> StudyResult<Self> {
        let called = name.to_owned();
        if let Some((_, text)) = PLANS.iter().find(|(known, _)| *known == name) {
            let file = format!("experiments/{name}.toml");
            return Ok(Self { text: (*text).to_owned(), file, folder: PathBuf::new(), called });
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|ending| ending != "toml") {
            let mut known = PLANS.map(|(known, _)| known).to_vec();
            known.extend(GROUPS);
            let unknown = sluice_units::unknown("plan", name, &known);
            return Err(bad_input(format!("{unknown}; or give the path of a .toml file")));
        }
        let text = text::read(path).map_err(|why| bad_input(format!("plan {name} cannot be read: {why}")))?;
        if PlanKind::of(&text) == Some(PlanKind::Rack) {
            return Err(bad_input(PlanKind::Rack.is_no_other(name)));
        }
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        Ok(Self { text, file: name.to_owned(), folder, called })
    }

    /// Whether the figure is measured on this machine, and not simulated.
    pub fn is_measured(&self) -> bool {
        toml::from_str::<toml::Table>(&self.text).is_ok_and(|plan| plan.contains_key("measure"))
    }
}

impl FigureArgs {
    /// The figure with the flags' changes, ready to run.
    ///
    /// # Errors
    /// The plan is invalid, or its figure is measured.
    pub fn ready(&self, found: &FigurePlan) -> StudyResult<ReadyStudy> {
        if found.is_measured() {
            let name = &found.called;
            return Err(bad_input(format!(
                "{name} is measured on this machine, not simulated: run `sluice reproduce {name}`"
            )));
        }
        self.ready_from(&Plan::parse(&found.file, &found.text)?, found)
    }

    /// The same for a plan that was read from this text.
    ///
    /// # Errors
    /// The plan is invalid.
    pub fn ready_from(&self, plan: &Plan, found: &FigurePlan) -> StudyResult<ReadyStudy> {
        let bench = self.bench(plan, found)?;
        let name = shell::word(&found.called);
        let mut commands = vec![format!("sluice reproduce {name}{}", self.flags())];
        let causes = bench.plan().causes.iter().map(|cause| shell::word(&cause.id));
        commands.extend(causes.map(|cause| format!("sluice reproduce {name} --cause {cause}")));
        Ok(ReadyStudy { bench: Arc::new(bench), plan: Some(found.file.clone()), commands })
    }

    fn bench(&self, plan: &Plan, found: &FigurePlan) -> StudyResult<CheckedPlan> {
        let mut plan = plan.clone();
        if let Some(cause) = &self.cause {
            plan = plan.only_cause(cause)?;
        }
        plan.tasks = self.tasks.unwrap_or(plan.tasks);
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.replications = self.replications.unwrap_or(plan.replications);
        let mut length = Length::Tasks(plan.tasks.div_ceil(plan.replications.into()), Warmup::Detect);
        if self.paper_length {
            plan.replications = PAPER_REPLICATIONS;
            length = PAPER_LENGTH;
        }
        let terms = RunSettings { length, overload: Overload::LeftOut, folder: found.folder.clone() };
        CheckedPlan::new(plan, terms)
    }

    /// The flags that decide results.
    fn flags(&self) -> String {
        let tasks = self.tasks.map(|tasks| format!(" --tasks {tasks}"));
        let replications = self.replications.map(|replications| format!(" --replications {replications}"));
        let seed = self.seed.map(|seed| format!(" --seed {seed}"));
        let paper = self.paper_length.then(|| " --paper-length".to_owned());
        let cause = self.cause.as_ref().map(|cause| format!(" --cause {}", shell::word(cause)));
        [tasks, replications, seed, paper, cause].into_iter().flatten().collect()
    }
}
