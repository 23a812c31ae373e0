//! `sluice replay-fault` and `sluice fault-runs`: whole racks in virtual time, checked against their
//! promises.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use std::{fmt, fs, io, thread};

use serde_json::{Value, json};
use sluice_faults::{LogLine, Many, RackKind};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::print;
use sluice_support::stop::Stop;
use sluice_system::{Attempt, advice};

use crate::args::{FaultRunsArgs, FaultRunsOfArgs, ReplayFaultArgs};

/// How many seeds are run between two lines of progress.
const CHUNK: u64 = 1_000;

impl FaultRunsOfArgs {
    fn kind(&self) -> Outcome<RackKind> {
        let kind = if self.cores {
            RackKind::of_servers(self.policy).map_err(Failure::bad_input)?
        } else {
            RackKind::of(self.policy)
        };
        let kind = if self.budgets { kind.with_budgets() } else { kind };
        let kind = if self.standbys { kind.with_standbys() } else { kind };
        Ok(if self.store { kind.with_store() } else { kind })
    }

    /// The flags as on a command line.
    fn flags(&self) -> String {
        let flag = |is_set: bool, flag| if is_set { flag } else { "" };
        let flags = [
            flag(self.cores, " --cores"),
            flag(self.budgets, " --budgets"),
            flag(self.standbys, " --standbys"),
            flag(self.store, " --store"),
        ];
        flags.concat()
    }

    /// The command that replays a run.
    fn replay_line(&self, seed: u64) -> String {
        let policy = self.policy;
        let is_default = RackKind::of(policy) == RackKind::default();
        let policy = if is_default { String::new() } else { format!(" --policy {policy}") };
        format!("sluice replay-fault {seed}{policy}{}", self.flags())
    }

    /// The options as on a command line.
    fn written(&self) -> String {
        format!("{}{}", self.policy, self.flags())
    }
}

/// Replays one run and prints what happened.
pub(crate) fn replay(args: &ReplayFaultArgs) -> Outcome<()> {
    let kind = args.runs.kind()?;
    let mut lines = print::Lines::begin();
    let wanted = |line: &LogLine| args.only.as_ref().is_none_or(|only| only.wants(line));
    let replayed = sluice_faults::replay(&kind, args.seed, &mut |line| {
        if wanted(line) {
            lines.line(line);
        }
    });
    lines.end()?;
    match replayed {
        Ok(tally) => {
            print::to_stderr(format_args!("seed {} keeps every promise: {tally}", args.seed));
            Ok(())
        }
        Err(broken) => Err(Failure::new(Kind::GateFailed, broken)),
    }
}

/// Runs seeds until one breaks a promise, all are done, or a signal comes.
pub(crate) fn runs(args: &FaultRunsArgs) -> Outcome<()> {
    let kind = args.runs.kind()?;
    let mut places = args.resume.as_deref().map(NextSeeds::read).transpose()?;
    let of = args.runs.written();
    let first = places.as_ref().and_then(|places| places.next(&of)).unwrap_or(args.from);
    let stop = Stop::on_signals_and_hangup()?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let end = args.count.map_or(u64::MAX, |count| first.saturating_add(count));
    let mut course = RunProgress { args, first, runs: 0, started: Instant::now() };
    while first + course.runs < end && !stop.is_asked() {
        let from = first + course.runs;
        let to = end.min(from.saturating_add(CHUNK));
        let many = sluice_faults::run_many(&kind, from..to, threads, |_| !stop.is_asked());
        course.runs += many.runs;
        course.report(&many)?;
        // Seeds start in order, and each one that started has ended.
        if let Some(places) = &mut places {
            places.keep(&of, first + course.runs)?;
        }
    }
    if args.json {
        print::line(course.to_json(&Value::Null))
    } else {
        print::line(format_args!("{} runs from seed {first} on keep every promise", course.runs))
    }
}

struct RunProgress<'a> {
    args: &'a FaultRunsArgs,
    first: u64,
    runs: u64,
    started: Instant,
}

impl RunProgress<'_> {
    /// The results as JSON: `schemas/fault-runs.v1.json`.
    fn to_json(&self, broken: &Value) -> Value {
        let FaultRunsOfArgs { policy, cores, budgets, standbys, store } = &self.args.runs;
        json!({
            "schema": "sluice.fault-runs.v1", "policy": policy.to_string(), "cores": cores,
            "budgets": budgets, "standbys": standbys, "store": store,
            "from": self.first, "runs": self.runs, "broken": broken
        })
    }

    fn report(&self, many: &Many) -> Outcome<()> {
        let Self { args, runs, started, .. } = self;
        if let Some(broken) = &many.broken {
            let seed = broken.seed;
            let commit = env!("SLUICE_COMMIT");
            let again = args.runs.replay_line(seed);
            let why = format!("{broken}; commit {commit}; to see its packets: {again}");
            if args.json {
                let found = json!({ "seed": seed, "commit": commit, "why": broken.to_string() });
                print::line(self.to_json(&found))?;
            }
            return Err(Failure::new(Kind::GateFailed, why).with_result_shown());
        }
        if !args.json {
            let took = started.elapsed().as_secs_f64();
            print::to_stderr(format_args!("{runs} runs in {took:.0} s, all promises kept"));
        }
        Ok(())
    }
}

/// The next seed of each kind of run, in a file that outlives the command. Each line is `SEED POLICY`,
/// followed by the flags that were given.
struct NextSeeds<'p> {
    path: &'p Path,
    next: BTreeMap<String, u64>,
}

impl<'p> NextSeeds<'p> {
    /// Reads the file; a missing file has no entries.
    fn read(path: &'p Path) -> Outcome<Self> {
        let wrong = |why: &dyn fmt::Display| Failure::bad_input(format!("{}: {why}", path.display()));
        let text = match fs::read_to_string(path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|why| wrong(&format!("{why}; name a file that this program may write")))?,
        };
        let line = |(number, line): (usize, &str)| {
            let read = line.split_once(' ').and_then(|(seed, of)| Some((of.to_owned(), seed.parse().ok()?)));
            read.ok_or_else(|| {
                let number = number + 1;
                wrong(&format!("line {number}: `{line}` is no seed and policy; write it as 10000 rain:1"))
            })
        };
        Ok(Self { path, next: text.lines().enumerate().map(line).collect::<Outcome<_>>()? })
    }

    fn next(&self, of: &str) -> Option<u64> {
        self.next.get(of).copied()
    }

    /// Writes a new file and renames it, so that a full disk loses no entry.
    fn keep(&mut self, of: &str, next: u64) -> Outcome<()> {
        self.next.insert(of.to_owned(), next);
        let lines: Vec<_> = self.next.iter().map(|(of, next)| format!("{next} {of}\n")).collect();
        let beside = self.path.with_added_extension("new");
        let written = fs::write(&beside, lines.concat()).and_then(|()| fs::rename(&beside, self.path));
        written.map_err(|why| {
            let (path, helps) = (self.path.display(), advice(Attempt::Write, &why));
            Failure::broken(format!("{path}: how far the runs came cannot be kept: {why}; {helps}"))
        })
    }
}
