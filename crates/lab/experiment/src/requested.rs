//! Turns flags into a plan with one case.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_stats::Warmup;
use sluice_study::checked_plan::{self, CheckedPlan, Length, Overload, RunSettings};
use sluice_study::limit::Limit;
use sluice_study::numbers;
use sluice_study::plan::{Case, Compare, Plan, PolicySetup, SearchFor, Tolerance, slices};
use sluice_units::show_span;
use sluice_workload::{Arrivals, Workload};

use crate::args::{CurvesArgs, LengthArgs, OfferedArgs, SettingArgs, ThroughputArgs};
use crate::{ReadyStudy, StudyResult, bad_input, shell};

/// How many characters of the policies' names a folder's name contains.
const NAME_MAX: usize = 60;

/// The study that flags describe.
#[derive(Clone, Debug)]
pub struct RequestedStudy<'a> {
    /// The command, such as `sweep`.
    command: &'static str,
    policies: Vec<String>,
    /// The offered rates, if they are known beforehand.
    offered: Option<&'a OfferedArgs>,
    /// Under which circumstances.
    setting: &'a SettingArgs,
    /// The limit, for a search.
    slo: Option<&'a Limit>,
    /// Whether the first two policies are compared.
    compared: bool,
}

impl<'a> RequestedStudy<'a> {
    /// One policy under one or several loads.
    pub fn sim(args: &'a CurvesArgs, policy_default: &str) -> StudyResult<Self> {
        let policy = args.policies.one("sim", policy_default)?;
        Ok(Self::curves("sim", args, vec![policy]))
    }

    /// Several policies under several loads, each on the same tasks.
    pub fn sweep(args: &'a CurvesArgs) -> StudyResult<Self> {
        Ok(Self::curves("sweep", args, args.policies.some("sweep")?))
    }

    /// Two policies on the same tasks, and whether they differ.
    pub fn compare(args: &'a CurvesArgs) -> StudyResult<Self> {
        if args.setting.length.replications < 2 {
            return Err(bad_input("a comparison needs at least 2 replications: give --replications 5"));
        }
        let policies = args.policies.exactly::<2>("compare")?.into();
        Ok(Self { compared: true, ..Self::curves("compare", args, policies) })
    }

    /// The highest rate at which policies keep a limit.
    pub fn throughput(args: &'a ThroughputArgs) -> StudyResult<Self> {
        Ok(Self {
            command: "throughput",
            policies: args.policies.some("throughput")?,
            offered: None,
            setting: &args.setting,
            slo: Some(&args.slo),
            compared: false,
        })
    }

    fn curves(command: &'static str, args: &'a CurvesArgs, policies: Vec<String>) -> Self {
        let (offered, setting) = (Some(&args.offered), &args.setting);
        Self { command, policies, offered, setting, slo: None, compared: false }
    }

    /// The study, checked and ready to run.
    pub fn ready(&self) -> StudyResult<ReadyStudy> {
        Ok(ReadyStudy { bench: Arc::new(self.bench()?), plan: None, commands: vec![self.again()] })
    }

    /// The folder for this command's results: its name is recognizable, and different studies have
    /// different folders.
    pub fn own_folder(&self) -> PathBuf {
        let mut name = self.policies.join("_").replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
        name.truncate(NAME_MAX);
        let mut hasher = DefaultHasher::new();
        self.again().hash(&mut hasher);
        PathBuf::from("out").join(self.command).join(format!("{name}-{:08x}", hasher.finish() as u32))
    }

    fn bench(&self) -> StudyResult<CheckedPlan> {
        let setting = self.setting;
        if !(0.0..=1.0).contains(&setting.large) {
            return Err(bad_input(format!(
                "large share {} is not between 0 and 1: write a share such as 0.1",
                setting.large
            )));
        }
        let overload = if setting.transient { Overload::Meant } else { Overload::Refused };
        let length = length_for(&setting.length);
        let terms = RunSettings { length, overload, folder: PathBuf::new() };
        CheckedPlan::new(self.plan()?, terms)
    }

    fn plan(&self) -> StudyResult<Plan> {
        let setting = self.setting;
        let slices = setting.slices.as_deref().map_or(Ok(Vec::new()), slices)?;
        let runs =
            self.policies.iter().map(|policy| PolicySetup { policy: policy.clone(), slices: slices.clone() });
        let runs: Vec<PolicySetup> = runs.collect();
        let case = Case {
            id: "load".into(),
            title: self.title(),
            workload: self.workload_text()?,
            large: setting.large,
            lasts_ns: None,
            testbed: self.clients(),
            within: setting.within.clone(),
            overload: false,
            rates: self.offered.map_or(Ok(Vec::new()), |offered| self.rates(offered))?,
            runs: runs.clone(),
        };
        let search =
            |run: &PolicySetup, limit: &Limit| SearchFor { case: 0, run: run.clone(), limit: limit.clone() };
        let searches = self.slo.iter().flat_map(|limit| runs.iter().map(|run| search(run, limit))).collect();
        let pair = || Compare { case: 0, a: runs[0].clone(), b: runs[1].clone() };
        Ok(Plan {
            name: self.command.into(),
            title: self.title(),
            source: String::new(),
            notes: Vec::new(),
            testbed: setting.testbed.clone(),
            workers: setting.workers,
            seed: setting.seed,
            tasks: setting.length.tasks,
            replications: setting.length.replications,
            cases: vec![case],
            claims: Vec::new(),
            causes: Vec::new(),
            searches,
            comparisons: self.compared.then(pair).into_iter().collect(),
            tolerance: Tolerance::UNUSED,
        })
    }

    /// What the flags change about the testbed's clients.
    fn clients(&self) -> toml::Table {
        let SettingArgs { clients, client_weights: weights, .. } = self.setting;
        let mut changes = toml::Table::new();
        if let Some(clients) = clients {
            changes.insert("clients".to_owned(), i64::from(*clients).into());
        }
        if !weights.is_empty() {
            let each: Vec<_> = weights.iter().map(|weight| i64::from(*weight)).collect();
            changes.insert("clients".to_owned(), (weights.len() as i64).into());
            changes.insert("client_weights".to_owned(), each.into());
        }
        changes
    }

    /// The command that runs the study again, with everything that decides its result.
    fn again(&self) -> String {
        let setting = self.setting;
        let length = &setting.length;
        let mut words = vec!["sluice".to_owned(), self.command.to_owned()];
        words.extend(self.policies.iter().map(|policy| shell::word(policy)));
        let warm_up = match length.warm_up {
            Warmup::Detect => None,
            Warmup::Tasks(tasks) => Some(tasks.to_string()),
            Warmup::TimeNs(ns) => Some(format!("{ns}ns")),
        };
        let flags = [
            ("--rate", self.offered.and_then(|offered| offered.rate.clone())),
            ("--load", self.offered.and_then(|offered| offered.load.clone())),
            ("--slo", self.slo.map(ToString::to_string)),
            ("--workload", Some(setting.workload.clone())),
            ("--testbed", Some(setting.testbed.clone())),
            ("--workers", setting.workers.map(|workers| workers.to_string())),
            ("--clients", setting.clients.map(|clients| clients.to_string())),
            (
                "--client-weights",
                (!setting.client_weights.is_empty()).then(|| weights(&setting.client_weights)),
            ),
            ("--large", (setting.large > 0.0).then(|| setting.large.to_string())),
            ("--slices", setting.slices.clone()),
            ("--budget", setting.budget.map(show_span)),
            ("--within", setting.within.as_ref().map(ToString::to_string)),
            ("--tasks", Some(length.tasks.to_string())),
            ("--replications", Some(length.replications.to_string())),
            ("--warm-up", warm_up),
            ("--seed", Some(setting.seed.to_string())),
        ];
        for (flag, value) in flags {
            words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), shell::word(&value)]));
        }
        words.extend(setting.transient.then(|| "--transient".to_owned()));
        words.join(" ")
    }

    fn title(&self) -> String {
        match self.slo {
            Some(limit) => format!("the highest rate that keeps {limit}, under {}", self.setting.workload),
            None if self.compared => format!("{} against {}", self.policies[0], self.policies[1]),
            None => format!("{} under {}", self.policies.join(", "), self.setting.workload),
        }
    }

    /// Rates as whole tasks per second.
    fn rates(&self, offered: &OfferedArgs) -> StudyResult<Vec<f64>> {
        let rates = match (&offered.rate, &offered.load) {
            (Some(text), _) => numbers::several(text, numbers::rate)?,
            (None, Some(text)) => {
                let capacity = self.capacity()?;
                numbers::several(text, numbers::load)?.into_iter().map(|load| load * capacity).collect()
            }
            (None, None) => vec![self.trace_rate()?],
        };
        Ok(rates.into_iter().map(|rate| rate.round().max(1.0)).collect())
    }

    /// The rate that all workers together can serve.
    fn capacity(&self) -> StudyResult<f64> {
        let testbed = checked_plan::testbed(&self.setting.testbed, Path::new(""))?;
        let workers = self.setting.workers.unwrap_or(testbed.workers);
        Ok(f64::from(workers) * 1e9 / self.workload()?.mean_service_ns())
    }

    fn trace_rate(&self) -> StudyResult<f64> {
        match self.workload()?.arrivals {
            Arrivals::Trace(trace) => Ok(trace.rate_per_s()),
            _ => Err(bad_input("how much is offered? give --rate (such as 2000k) or --load (such as 0.8)")),
        }
    }

    /// The workload as text, with the budget that was asked for.
    fn workload_text(&self) -> StudyResult<String> {
        let setting = self.setting;
        let Some(budget) = setting.budget else { return Ok(setting.workload.clone()) };
        let mut workload = self.workload()?;
        for class in &mut workload.classes {
            class.budget.get_or_insert(budget);
        }
        let text = workload.to_string();
        if Workload::parse(&text).is_ok_and(|read| read == workload) {
            return Ok(text);
        }
        Err(bad_input(format!(
            "--budget: the workload {} has no place for it in a line: write `budget = \"{}\"` at its classes \
             in a plan",
            setting.workload,
            show_span(budget)
        )))
    }

    fn workload(&self) -> StudyResult<Workload> {
        Workload::parse(&self.setting.workload).map_err(bad_input)
    }
}

/// Weights as the flag takes them.
fn weights(each: &[u32]) -> String {
    each.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// The length of each replication.
fn length_for(args: &LengthArgs) -> Length {
    Length::Tasks(args.tasks.div_ceil(args.replications.into()), args.warm_up)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(no_binary_name = true)]
    struct Asked {
        #[command(flatten)]
        curves: CurvesArgs,
    }

    #[test]
    fn the_command_that_runs_it_again_is_one_a_shell_understands() {
        let words = ["rain:2", "--load=0.3, 0.6", "--slices=get=14, scan=18", "--testbed=it's mine.toml"];
        let more = ["--within=get=100us,scan=1ms", "--workload=get=0.9@const:8us+scan=0.1@const:107us"];
        let asked = Asked::try_parse_from([&words[..], &more].concat()).expect("flags of the command");
        let again = RequestedStudy::sweep(&asked.curves).expect("a known policy").again();
        let says = |part: &str| assert!(again.contains(part), "{again}");
        says("sluice sweep rain:2 --load '0.3, 0.6' --workload get=0.9@const:8us+scan=0.1@const:107us ");
        says("--testbed 'it'\\''s mine.toml' --slices 'get=14, scan=18' --within get=100us,scan=1ms ");
    }
}
