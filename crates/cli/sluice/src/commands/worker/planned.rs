//! `sluice worker --plan`: turns a plan's description of a worker into the flags that all workers share.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args as _, FromArgMatches as _};
use sluice_net::program::WorkerArgs;
use sluice_services::rocks;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::plan::{Plan, ServicePlan, WorkerPlan};
use sluice_support::rocksdb;

use super::start::{become_program, serve_ours};
use crate::args::one_line;

/// Runs the worker called `name` of the plan in `path`; the given flags override the plan's.
pub(super) fn run(path: &Path, name: &str, given: Vec<OsString>) -> Outcome<()> {
    let plan = Plan::load(Some(path))?;
    let worker = worker(&plan, name)?;
    let flags = merged(flags(&plan, worker), given);
    match &worker.service {
        ServicePlan::Ours(service) if service == rocks::NAME => rocksdb::become_worker(&plan.rocksdb, flags),
        ServicePlan::Ours(service) => serve_ours(service, &read(flags)?),
        ServicePlan::Program { exec, args } => {
            let own = args.iter().map(OsString::from);
            become_program(exec, &own.chain(flags).collect::<Vec<_>>())
        }
    }
}

fn worker<'p>(plan: &'p Plan, name: &str) -> Outcome<&'p WorkerPlan> {
    plan.workers.iter().find(|worker| worker.name == name).ok_or_else(|| {
        let known: Vec<&str> = plan.workers.iter().map(|worker| worker.name.as_str()).collect();
        Failure::bad_input(format!("plan {}: {}", plan.name, sluice_units::unknown("worker", name, &known)))
    })
}

/// The flags from the plan. The user must name the server and the folder of its memory, since no plan knows
/// the folder.
fn flags(plan: &Plan, worker: &WorkerPlan) -> Vec<(&'static str, Option<String>)> {
    let mut flags = joins(plan, worker);
    flags.extend([
        ("--dilate", Some(plan.dilation.to_string())),
        ("--seed", Some(plan.seed.to_string())),
        ("--link-mtu", Some(plan.rdma.link_mtu.to_string())),
    ]);
    let labels = Some(worker.labels.join(",")).filter(|labels| !labels.is_empty());
    flags.extend(labels.map(|labels| ("--labels", Some(labels))));
    let program = plan.program();
    flags.extend(program.traits().adaptive.map(|_| ("--adaptive", None)));
    flags.extend(program.traits().early.map(|_| ("--early", None)));
    let patience = Some(program.traits().patience).filter(|patience| *patience > 0);
    flags.extend(patience.map(|patience| ("--patience", Some(patience.to_string()))));
    flags.extend(worker.pin.map(|core| ("--pin", Some(core.to_string()))));
    let faults = worker.faults.as_ref().or(plan.socket_faults());
    flags.extend(faults.map(|faults| ("--faults", Some(faults.clone()))));
    flags
}

/// The slice that the worker joins, and its quota; a server of many cores uses the room of its cores
/// instead.
fn joins(plan: &Plan, worker: &WorkerPlan) -> Vec<(&'static str, Option<String>)> {
    let Some(of) = &worker.cores else {
        let quota = plan.quota(worker).to_string();
        return vec![("--slice", Some(worker.slice.clone())), ("--quota", Some(quota))];
    };
    let serves: Vec<String> = of.serves.iter().map(ToString::to_string).collect();
    let mut joins = vec![
        ("--cores", Some(of.cores.to_string())),
        ("--serves", Some(serves.join(","))),
        ("--depth", Some(of.depth.to_string())),
        ("--lambda", Some(of.lambda.to_string())),
        ("--assignment", Some(of.assignment.to_string())),
    ];
    joins.extend(of.pool.then_some(("--pool", None)));
    joins.extend(of.batch.then_some(("--batch", None)));
    joins
}

/// The plan's flags that were not given, followed by the given ones.
fn merged(planned: Vec<(&str, Option<String>)>, given: Vec<OsString>) -> Vec<OsString> {
    let is_given = |flag: &str| {
        let with_value = format!("{flag}=");
        given.iter().any(|word| word == flag || word.to_string_lossy().starts_with(&with_value))
    };
    let mut flags = Vec::new();
    for (flag, value) in planned.into_iter().filter(|(flag, _)| !is_given(flag)) {
        flags.extend([flag.to_owned()].into_iter().chain(value).map(OsString::from));
    }
    flags.extend(given);
    flags
}

fn read(flags: Vec<OsString>) -> Outcome<WorkerArgs> {
    let line = std::iter::once("sluice worker".into()).chain(flags);
    let command = WorkerArgs::augment_args(clap::Command::new("sluice worker"));
    let matches = command.try_get_matches_from(line);
    let args = matches.and_then(|matches| WorkerArgs::from_arg_matches(&matches));
    args.map_err(|why| Failure::bad_input(one_line(&why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "dilation = 3\nseed = 7\nfaults = \"loss=0.1\"\npolicy = \"rain:1\"\n\
        [[slice]]\nname = \"a\"\ntypes = [\"hold\"]\n\
        [[worker]]\nname = \"w\"\ncount = 2\nslice = \"a\"\nservice = \"hold\"\npin = 1\n";

    fn told(plan: &str, name: &str, given: &[&str]) -> String {
        let plan = Plan::from_text("here", plan).expect("legal");
        let given = given.iter().map(OsString::from).collect();
        let flags = merged(flags(&plan, worker(&plan, name).expect("there")), given);
        flags.join(std::ffi::OsStr::new(" ")).into_string().expect("text")
    }

    #[test]
    fn a_worker_of_a_plan_is_told_all_that_the_plan_says_of_it() {
        assert_eq!(
            told(PLAN, "w-2", &["--name", "w-2"]),
            "--slice a --quota 1 --dilate 3 --seed 7 --link-mtu 3400 --pin 1 --faults loss=0.1 --name w-2"
        );
        let patient = PLAN.replace("rain:1", "rain:3,patient=5");
        assert!(told(&patient, "w-1", &[]).contains("--quota 3"));
        assert!(told(&patient, "w-1", &[]).contains("--patience 5"));
        let kernel = PLAN.to_owned() + "[switch]\nio = \"xdp\"\n";
        assert!(!told(&kernel, "w-1", &[]).contains("--faults"), "the links have them");
    }

    #[test]
    fn a_server_of_many_cores_is_told_its_slices_and_no_quota() {
        let plan = PLAN.replace("slice = \"a\"\nservice", "cores = 4\nserves = [\"a=3\"]\nservice");
        let told = told(&plan, "w-1", &[]);
        assert!(
            told.starts_with("--cores 4 --serves a=3 --depth 4 --lambda 1/5 --assignment shared --dilate 3")
                && !told.contains("quota"),
            "{told}"
        );
        for (wrong, why) in [
            (PLAN.replace("rain:1", "rain:2,patient").replace("pin = 1", "cores = 2"), "has patience"),
            (PLAN.replace("pin = 1", "cores = 2\nquota = 1"), "leave `quota` out"),
            (PLAN.replace("pin = 1", "cores = 2\nserves = [\"a=1\"]"), "keep one"),
            (PLAN.replace("pin = 1", "serves = [\"a=1\"]"), "give `cores`"),
            (plan.replace("a=3", "b=3"), "unknown slice `b`"),
            (plan.replace("a=3", "a=3*0"), "is no weight"),
            (plan.replace("pin = 1", "lambda = \"3/2\""), "ratio from 0 to 1"),
            (plan.replace("pin = 1", "lambda = \"0.2\""), "write λ as 1/5"),
            (plan.replace("pin = 1", "lambda = \"1/16777259\""), "shorten the ratio"),
            (plan.replace("pin = 1", "depth = 65"), "not between 1 and 64"),
            (PLAN.replace("pin = 1", "depth = 4"), "give `cores`"),
            (PLAN.replace("pin = 1", "pool = true"), "give `cores`"),
            (PLAN.replace("pin = 1", "assignment = \"dedicated\""), "give `cores`"),
            (plan.replace("pin = 1", "assignment = \"hybrid\""), "write shared, dedicated, or hybrid=N"),
            (plan.replace("pin = 1", "assignment = \"hybrid=5\""), "needs 5 cores at least"),
            (plan.replace("pin = 1", "pool = true\nassignment = \"dedicated\""), "nothing for a pool"),
        ] {
            let said = Plan::from_text("here", &wrong).expect_err("refused").to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_plan_with_servers_of_many_cores_that_names_no_policy_gets_one_that_suits_them() {
        let unnamed = PLAN.replace("policy = \"rain:1\"\n", "");
        let plan = |text: &str| Plan::from_text("here", text).expect("legal").policy;
        assert_eq!(plan(&unnamed), "rain:2,patient,early");
        assert_eq!(plan(&unnamed.replace("pin = 1", "cores = 2")), "rain:1");
        let weighed =
            PLAN.replace("slice = \"a\"\nservice", "cores = 2\nserves = [\"a=1*3\"]\ndepth = 2\nservice");
        assert!(told(&weighed, "w-1", &[]).starts_with("--cores 2 --serves a=1*3 --depth 2 --lambda 1/5"));
        let moved = PLAN.replace("pin = 1", "cores = 2\nassignment = \"hybrid=2\"");
        assert!(told(&moved, "w-1", &[]).contains("--assignment hybrid=2"), "{moved}");
        let pool = unnamed.replace("pin = 1", "cores = 2\npool = true");
        assert!(told(&pool, "w-1", &[]).contains(" --assignment shared --pool"), "{pool}");
    }

    #[test]
    fn a_flag_that_is_given_counts_and_the_plans_does_not() {
        let flags = told(PLAN, "w-1", &["--quota", "5", "--faults=", "--early"]);
        assert_eq!(
            flags,
            "--slice a --dilate 3 --seed 7 --link-mtu 3400 --pin 1 --quota 5 --faults= --early"
        );
        let args = read(flags.split(' ').map(OsString::from).collect()).expect("legal");
        assert_eq!((args.quota, args.dilate, args.seed, args.pin), (5, 3, 7, Some(1)));
    }

    #[test]
    fn a_worker_that_a_plan_has_not_is_refused_with_those_it_has() {
        let plan = Plan::from_text("here", PLAN).expect("legal");
        let said = worker(&plan, "w-3").expect_err("there are two").to_string();
        assert!(said.contains("unknown worker `w-3`") && said.contains("w-1, w-2"), "{said}");
    }
}
