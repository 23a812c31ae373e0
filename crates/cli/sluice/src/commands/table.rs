//! `sluice table`: holds all policies for a rack against each other on six workloads.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_experiment::ReadyStudy;
use sluice_report as report;
use sluice_stats::Warmup;
use sluice_study::checked_plan::{CheckedPlan, Length, Overload, RunSettings};
use sluice_study::limit::Limit;
use sluice_study::plan::{Plan, PolicySetup, SearchFor};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::print;
use sluice_support::results::files;
use sluice_support::stop::Stop;
use sluice_switch::registry::Choice;

use crate::study::args::TableArgs;
use crate::study::{StudyJob, run as run_study};

const FILE: &str = "experiments/table.toml";
const PLAN: &str = include_str!("../../../../../experiments/table.toml");
/// What the highest load must keep. Over the class's mean: of an exponential service one task in a hundred
/// is so short that the network alone takes ten times as long.
const LIMIT: &str = "slowdown_type_mean_p99<10";
/// The command without flags, which makes the whole table.
const COMMAND: &str = "sluice table";
/// The page, beside the study's files.
const PAGE: &str = "table.md";

/// Runs the table's study and prints the page.
pub(crate) fn run(args: &TableArgs) -> Outcome<()> {
    let plan = plan(args)?;
    let length = Length::Tasks(plan.tasks.div_ceil(plan.replications.into()), Warmup::Detect);
    let terms = RunSettings { length, overload: Overload::LeftOut, folder: PathBuf::new() };
    let ready = ReadyStudy {
        bench: Arc::new(CheckedPlan::new(plan, terms)?),
        plan: Some(FILE.to_owned()),
        commands: vec![again(args)],
    };
    let stop = Stop::on_signals_and_hangup()?;
    let out = args.how.out.clone().unwrap_or_else(|| own_folder(&again(args)));
    let job = StudyJob { ready: &ready, how: &args.how, out: out.clone(), own: args.how.out.is_none() };
    let ran = run_study(&job, &stop)?;
    let page = report::standings(&ran.outcome, stages);
    files::save(&out, PAGE, &page)?;
    if args.how.output.json {
        print::line(report::json(&ran.outcome))?;
    } else {
        print::text(&page)?;
        if !args.how.output.quiet {
            print::to_stderr(format_args!("the table is in {}", Path::new(&out).join(PAGE).display()));
        }
    }
    if !ran.stopped {
        return Ok(());
    }
    let why = format!("stopped; what was done is in {}; the same command goes on from there", out.display());
    Err(Failure::new(Kind::Aborted, why).with_result_shown())
}

/// The table's plan with the policies that were asked for, and a search for each line.
fn plan(args: &TableArgs) -> Outcome<Plan> {
    let mut plan = Plan::parse(FILE, PLAN)?;
    plan.tasks = args.tasks.unwrap_or(plan.tasks);
    plan.replications = args.replications.unwrap_or(plan.replications);
    choose_workloads(&mut plan, &args.workloads)?;
    let limit = Limit::parse(LIMIT)?;
    for (index, case) in plan.cases.iter_mut().enumerate() {
        if args.only {
            case.runs.clear();
        }
        for policy in &args.policies {
            let run = PolicySetup::shared(policy);
            if !case.runs.contains(&run) {
                case.runs.push(run);
            }
        }
        let search = |run: &PolicySetup| SearchFor { case: index, run: run.clone(), limit: limit.clone() };
        plan.searches.extend(case.runs.iter().map(search));
    }
    Ok(plan)
}

/// Leaves only the workloads that are named, or all if none is.
fn choose_workloads(plan: &mut Plan, names: &[String]) -> Outcome<()> {
    let known: Vec<&str> = plan.cases.iter().map(|case| case.id.as_str()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::bad_input(sluice_units::unknown("workload of the table", name, &known)));
    }
    plan.cases.retain(|case| names.is_empty() || names.contains(&case.id));
    Ok(())
}

/// The folder of a table's command: each has its own, so that a short run takes nothing from a long one.
fn own_folder(command: &str) -> PathBuf {
    let folder = Path::new("out").join("table");
    if command == COMMAND {
        return folder;
    }
    let mut hasher = DefaultHasher::new();
    command.hash(&mut hasher);
    folder.with_file_name(format!("table-{:08x}", hasher.finish() as u32))
}

/// The command that makes the same table.
fn again(args: &TableArgs) -> String {
    let tasks = args.tasks.map(|tasks| format!("--tasks {tasks}"));
    let replications = args.replications.map(|replications| format!("--replications {replications}"));
    let workloads = (!args.workloads.is_empty()).then(|| format!("--workloads {}", args.workloads.join(",")));
    let only = args.only.then(|| "--only".to_owned());
    let words = [COMMAND.to_owned()].into_iter().chain(args.policies.iter().cloned());
    let flags = [only, workloads, tasks, replications].into_iter().flatten();
    words.chain(flags).collect::<Vec<_>>().join(" ")
}

/// How many stages of a switch a policy's program takes; `None` if it is not a program of a switch.
fn stages(policy: &str) -> Option<u32> {
    let choice = Choice::parse(policy).ok().filter(|choice| choice.traits().software.is_none())?;
    Some(choice.on_a_whole_chip().layout().totals().stages)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sluice_sim::policy::Policy;

    use super::*;

    /// Policies that refuse tasks on purpose, of one server, of several racks, and of the fabric.
    const LEFT_OUT: [&str; 18] = [
        "in-time",
        "codel",
        "breakwater",
        "ringleader",
        "shinjuku",
        "rss",
        "stealing",
        "caladan",
        "d-ideal",
        "dc-horus",
        "dc-rs-h",
        "dc-rs-lb",
        "dc-rain",
        "ecmp",
        "letflow",
        "conga",
        "spray",
        "drill",
    ];

    /// The plan's policies.
    fn listed() -> BTreeSet<String> {
        let plan = Plan::parse(FILE, PLAN).expect("it is right");
        plan.cases.iter().flat_map(|case| &case.runs).map(|run| run.policy.clone()).collect()
    }

    fn name(policy: &str) -> &str {
        policy.split(':').next().unwrap_or_default()
    }

    #[test]
    fn each_policy_for_a_rack_is_in_the_table() {
        let listed = listed();
        let listed: BTreeSet<&str> = listed.iter().map(|policy| name(policy)).collect();
        for policy in Policy::all() {
            let name = name(policy.name);
            assert!(
                listed.contains(name) != LEFT_OUT.contains(&name),
                "{name}: a line in {FILE}, or a reason"
            );
        }
    }

    #[test]
    fn the_page_has_a_line_of_each_policy_for_each_workload() {
        let page = include_str!("../../../../../docs/results/table.md");
        let plan = Plan::parse(FILE, PLAN).expect("it is right");
        for policy in listed() {
            let lines = page.lines().filter(|line| line.starts_with(&format!("| `{policy}` |"))).count();
            assert_eq!(lines, 1 + plan.cases.len(), "{policy}: run `{COMMAND}` again");
        }
        for case in &plan.cases {
            assert!(page.contains(&format!("\n## {}: {}\n", case.id, case.title)), "{}", case.id);
        }
    }
}
