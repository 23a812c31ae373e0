//! `sluice worker --plan`: a worker as a plan describes it. Given flags override the plan.

use std::ffi::OsString;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Args as _, Command, CommandFactory as _};
use sluice_net::program::WorkerArgs;
use sluice_services::kv::KV;
use sluice_services::rocks;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::plan::{Plan, ServicePlan, WorkerPlan};
use sluice_support::rocksdb;

use super::start::{become_program, serve_ours};
use crate::args::Sluice;

/// Runs the worker called `name` of the plan in `path`; the given flags override the plan's values.
pub(super) fn run(path: &Path, name: &str, given: GivenFlags, args: WorkerArgs) -> Outcome<()> {
    let plan = Plan::load(Some(path))?;
    let worker = worker(&plan, name)?;
    let (args, said) = merged(&plan, worker, given, args);
    if args.adaptive && args.memory.is_none() {
        let why = "has workers' depths found by their server's agent, which needs its memory: give --server \
                   and --memory";
        return Err(Failure::bad_input(format!("`{}` {why}", plan.policy)));
    }
    match &worker.service {
        ServicePlan::Ours(service) if service == rocks::NAME => {
            rocksdb::become_worker(plan.rocksdb.clone(), args)
        }
        ServicePlan::Ours(service) if service == KV => {
            rocksdb::become_store(plan.kv.clone(), plan.role_of(worker), args)
        }
        ServicePlan::Ours(service) => serve_ours(service, &args),
        ServicePlan::Program { exec, args: own } => {
            let flags = args.flags(&said.0).map_err(Failure::bad_input)?;
            become_program(exec, &own.iter().chain(&flags).map(OsString::from).collect::<Vec<_>>())
        }
    }
}

/// The names of the `sluice worker` flags that have a value.
pub(super) struct GivenFlags(Vec<String>);

impl GivenFlags {
    /// The flags on a command line of `sluice worker`.
    pub(super) fn on(line: impl IntoIterator<Item = OsString>) -> Self {
        let matches = Sluice::command().ignore_errors(true).get_matches_from(line);
        let Some(given) = matches.subcommand_matches("worker") else { return Self(Vec::new()) };
        let known = WorkerArgs::augment_args(Command::new("worker"));
        let ids = known.get_arguments().map(|arg| arg.get_id().as_str());
        let is_given = |id: &&str| given.value_source(id) == Some(ValueSource::CommandLine);
        Self(ids.filter(is_given).map(str::to_owned).collect())
    }

    /// Gives a flag a value, unless the flag has a value already.
    fn set<T>(&mut self, id: &str, of: &mut T, value: T) {
        if !self.0.iter().any(|said| said == id) {
            *of = value;
            self.0.push(id.to_owned());
        }
    }

    fn set_some<T>(&mut self, id: &str, of: &mut T, value: Option<T>) {
        if let Some(value) = value {
            self.set(id, of, value);
        }
    }
}

fn worker<'p>(plan: &'p Plan, name: &str) -> Outcome<&'p WorkerPlan> {
    plan.workers.iter().find(|worker| worker.name == name).ok_or_else(|| {
        let known: Vec<&str> = plan.workers.iter().map(|worker| worker.name.as_str()).collect();
        Failure::bad_input(format!("plan {}: {}", plan.name, sluice_units::unknown("worker", name, &known)))
    })
}

/// The plan's values for a worker, overridden by the given flags. The user must name the server and the
/// folder of its memory, since no plan knows the folder.
fn merged(
    plan: &Plan,
    worker: &WorkerPlan,
    given: GivenFlags,
    mut args: WorkerArgs,
) -> (WorkerArgs, GivenFlags) {
    let (mut said, program) = (given, plan.program().traits());
    said.set("dilate", &mut args.dilate, plan.dilation);
    said.set("seed", &mut args.seed, plan.seed);
    said.set("link_mtu", &mut args.link_mtu, plan.rdma.link_mtu);
    said.set("labels", &mut args.labels, worker.labels.clone());
    said.set_some("adaptive", &mut args.adaptive, program.adaptive.map(|_| true));
    said.set_some("early", &mut args.early, program.early.map(|_| true));
    said.set_some("patience", &mut args.patience, Some(program.patience).filter(|tasks| *tasks > 0));
    said.set_some("pin", &mut args.pin, worker.pin.map(Some));
    said.set_some("faults", &mut args.faults, worker.faults.clone().or(plan.socket_faults().cloned()));
    // A server of many cores uses the room of its cores as its quota.
    let Some(of) = &worker.cores else {
        said.set("slice", &mut args.slice, worker.slice.clone());
        said.set("quota", &mut args.quota, plan.quota(worker));
        return (args, said);
    };
    said.set("cores", &mut args.cores, Some(of.cores));
    said.set("serves", &mut args.serves, of.serves.clone());
    said.set("depth", &mut args.depth, of.depth);
    said.set("lambda", &mut args.lambda, of.lambda);
    said.set("assignment", &mut args.assignment, of.assignment);
    said.set("pool", &mut args.pool, of.pool);
    said.set("batch", &mut args.batch, of.batch);
    (args, said)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Command;

    const PLAN: &str = "dilation = 3\nseed = 7\nfaults = \"loss=0.1\"\npolicy = \"rain:1\"\n\
        [[slice]]\nname = \"a\"\ntypes = [\"hold\"]\n\
        [[worker]]\nname = \"w\"\ncount = 2\nslice = \"a\"\nservice = \"hold\"\npin = 1\n";

    /// What a program of a user's would be told.
    fn told(plan: &str, name: &str, given: &[&str]) -> String {
        let plan = Plan::from_text("here", plan).expect("legal");
        let (args, said) = merged_with(&plan, name, given);
        args.flags(&said.0).expect("all is text").join(" ")
    }

    fn merged_with(plan: &Plan, name: &str, given: &[&str]) -> (WorkerArgs, GivenFlags) {
        let line = [&["sluice", "worker", "spin"], given].concat();
        let Command::Worker(args) = Sluice::try_parse_from(&line).expect("legal").command else {
            unreachable!("it is a worker's")
        };
        let said = GivenFlags::on(line.iter().map(OsString::from));
        merged(plan, worker(plan, name).expect("there"), said, args.common)
    }

    #[test]
    fn a_worker_of_a_plan_is_told_all_that_the_plan_says_of_it() {
        assert_eq!(
            told(PLAN, "w-2", &["--name", "w-2"]),
            "--dilate 3 --faults loss=0.1 --link-mtu 3400 --name w-2 --pin 1 --quota 1 --seed 7 --slice a"
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
        let parts =
            ["--cores 4", "--serves a=3", "--depth 4", "--lambda 1/5", "--assignment shared", "--dilate 3"];
        assert!(parts.iter().all(|part| told.contains(part)) && !told.contains("quota"), "{told}");
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
        assert!(told(&weighed, "w-1", &[]).contains("--depth 2 --dilate 3"));
        assert!(told(&weighed, "w-1", &[]).contains("--serves a=1*3"));
        let moved = PLAN.replace("pin = 1", "cores = 2\nassignment = \"hybrid=2\"");
        assert!(told(&moved, "w-1", &[]).contains("--assignment hybrid=2"), "{moved}");
        let pool = unnamed.replace("pin = 1", "cores = 2\npool = true");
        assert!(told(&pool, "w-1", &[]).contains(" --pool "), "{pool}");
    }

    #[test]
    fn a_flag_that_is_given_counts_and_the_plans_does_not() {
        let plan = Plan::from_text("here", PLAN).expect("legal");
        let given = ["--quota", "5", "--faults=", "--early", "--name=-x"];
        let (args, said) = merged_with(&plan, "w-1", &given);
        assert_eq!((args.quota, args.dilate, args.seed, args.pin), (5, 3, 7, Some(1)));
        assert_eq!((&*args.faults, args.early, &*args.slice), ("", true, "a"));
        let flags = args.flags(&said.0).expect("all is text");
        assert_eq!(
            flags.join(" "),
            "--dilate 3 --early --faults  --link-mtu 3400 --name=-x --pin 1 --quota 5 --seed 7 --slice a"
        );
    }

    #[test]
    fn a_worker_that_a_plan_has_not_is_refused_with_those_it_has() {
        let plan = Plan::from_text("here", PLAN).expect("legal");
        let said = worker(&plan, "w-3").expect_err("there are two").to_string();
        assert!(said.contains("unknown worker `w-3`") && said.contains("w-1, w-2"), "{said}");
    }
}
