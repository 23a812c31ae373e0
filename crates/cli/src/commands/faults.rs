//! `sluice replay-fault` and `sluice fault-runs`: whole racks in virtual time, held to their promises.

use std::thread;
use std::time::Instant;

use serde_json::{Value, json};
use sluice_ground::fail::{Failure, Kind, Outcome};
use sluice_ground::print;
use sluice_ground::stop::Stop;
use sluice_sim::faults::{self, Line, Many, RackKind};

use crate::args::{FaultRuns, FaultRunsOf, ReplayFault};

/// Seeds between two lines of progress.
const CHUNK: u64 = 1_000;

impl FaultRunsOf {
    fn kind(&self) -> Outcome<RackKind> {
        if self.cores {
            RackKind::of_servers(self.policy).map_err(Failure::bad_input)
        } else {
            Ok(RackKind::of(self.policy))
        }
    }

    /// The command that tells a run.
    fn replay_line(&self, seed: u64) -> String {
        let Self { policy, cores } = self;
        let is_default = RackKind::of(*policy) == RackKind::default();
        let policy = if is_default { String::new() } else { format!(" --policy {policy}") };
        format!("sluice replay-fault {seed}{policy}{}", if *cores { " --cores" } else { "" })
    }
}

/// Tells one run.
pub(crate) fn replay(args: &ReplayFault) -> Outcome<()> {
    let kind = args.runs.kind()?;
    let mut lines = print::Lines::begin();
    let wanted = |line: &Line| args.only.as_ref().is_none_or(|only| only.wants(line));
    let replayed = faults::replay(&kind, args.seed, &mut |line| {
        if wanted(line) {
            lines.line(line);
        }
    });
    lines.end()?;
    match replayed {
        Ok(tally) => {
            print::aside(format_args!("seed {} keeps every promise: {tally}", args.seed));
            Ok(())
        }
        Err(broken) => Err(Failure::new(Kind::GateFailed, broken)),
    }
}

/// Runs seeds until one breaks a promise, all are done, or a signal comes.
pub(crate) fn runs(args: &FaultRuns) -> Outcome<()> {
    let kind = args.runs.kind()?;
    let stop = Stop::on_signals_and_hangup()?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let end = args.count.map_or(u64::MAX, |count| args.from.saturating_add(count));
    let started = Instant::now();
    let mut runs = 0;
    let mut from = args.from;
    while from < end && !stop.is_asked() {
        let to = end.min(from.saturating_add(CHUNK));
        let many = faults::run_many(&kind, from..to, threads, |_| !stop.is_asked());
        runs += many.runs;
        report(args, &many, runs, started)?;
        from = to;
    }
    if args.json {
        print::line(json_of(args, runs, &Value::Null))?;
    } else {
        print::line(format_args!("{runs} runs from seed {} on keep every promise", args.from))?;
    }
    Ok(())
}

/// What is found as JSON: `schemas/fault-runs.v1.json`.
fn json_of(args: &FaultRuns, runs: u64, broken: &Value) -> Value {
    let (policy, cores) = (args.runs.policy.to_string(), args.runs.cores);
    let schema = "sluice.fault-runs.v1";
    json!({
        "schema": schema, "policy": policy, "cores": cores, "from": args.from, "runs": runs, "broken": broken
    })
}

fn report(args: &FaultRuns, many: &Many, runs: u64, started: Instant) -> Outcome<()> {
    if let Some(broken) = &many.broken {
        let seed = broken.seed;
        let commit = env!("SLUICE_COMMIT");
        let again = args.runs.replay_line(seed);
        let why = format!("{broken}; commit {commit}; to see its packets: {again}");
        if args.json {
            let found = json!({ "seed": seed, "commit": commit, "why": broken.to_string() });
            print::line(json_of(args, runs, &found))?;
        }
        return Err(Failure::new(Kind::GateFailed, why).with_result_shown());
    }
    if !args.json {
        print::aside(format_args!(
            "{runs} runs in {:.0} s, all promises kept",
            started.elapsed().as_secs_f64()
        ));
    }
    Ok(())
}
