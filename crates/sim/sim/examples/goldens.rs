//! Prints one line for each of many short runs, with a hash of its results: the numbers of a point, byte
//! for byte, and every line of a fault run's replay. Run `goldens [SEEDS [POLICIES]]` before and after a
//! change that must change nothing; POLICIES selects policies whose names contain it.

use std::env;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use sluice_faults::{RackKind, replay};
use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::Warmup;
use sluice_switch::registry::Choice;
use sluice_testbed::Testbed;
use sluice_workload::Workload;

const POLICIES: [&str; 28] = [
    "rain:1",
    "rain:2",
    "rain:2,ranked",
    "rain:4,ranked",
    "rain:2,classes=4",
    "rain:2,labels",
    "rain:2,labels,early",
    "rain:2,early",
    "rain:2,early=learned",
    "rain:4,ranked,classes=2,patient=4",
    "rain:adaptive,theta=0.2",
    "r2p2:2",
    "r2p2:3",
    "draconis",
    "draconis:poll=20us",
    "racksched:2",
    "racksched:2,tracked",
    "racksched",
    "pallas",
    "pallas:weights=3/1",
    "horus",
    "horus:resubmit=writes,idle=uncounted",
    "central",
    "rain-rdma:2",
    "rain:2,rdma",
    "rain:2,ranked,early",
    "rain:adaptive,advise",
    "rain:adaptive,stays",
];

const MIX: &str = "get=0.8@exp:10us+scan=0.2@exp:30us";
const LARGE: &str = "get=0.7@exp:10us+scan=0.3@exp:30us,large=0.5";
/// The services are so long that the run outlasts one interval of the agents.
const SLOW: &str = "get=0.5@exp:2ms+scan=0.5@exp:2ms,large=0.5";
const LOSSES: &str = "[faults.submit]\nloss = 0.01\nduplicate = 0.01\n[faults.dispatch]\nloss = 0.01\n\
    [faults.token]\nloss = 0.01\nreorder = 0.05\n[faults.reply]\nloss = 0.01\nduplicate = 0.02\n";
const LABELS: &str = "[labels]\nneeds = [\"scan=gpu\"]\n\
    [[labels.worker]]\ncount = 20\n[[labels.worker]]\ncount = 12\nlabels = [\"gpu\"]\n";
const BELOW_SPINES: [&str; 7] = [
    "dc-horus",
    "dc-horus:only=loads",
    "dc-rs-h",
    "dc-rs-lb",
    "dc-rain:1",
    "dc-rain:2",
    "dc-rain:2,only=loads",
];
const RACKS: &str = "clients = 2\n[racks]\nspines = 2\nworkers = [4, 4, 8, 16]\nhop = \"5us\"\n";
const OUTAGES: &str = "outages = [{ leaf = 1, at = \"2ms\", heard_after = \"500us\", lasts = \"2ms\" }, \
    { spine = 1, at = \"5ms\", lasts = \"2ms\" }]\n";
const LOSSES_BELOW_SPINES: &str = "[faults.update]\nloss = 0.01\nduplicate = 0.01\n";
const STALLS: &str = "[stalls]\nper_s = 500\nlength = \"50us\"\n[slow]\nworkers = [1, 3]\nfactor = 2.0\n";

fn main() {
    let seeds = env::args().nth(1).map_or(40, |seeds| seeds.parse().expect("how many seeds"));
    let only = env::args().nth(2).unwrap_or_default();
    let policies = || POLICIES.iter().filter(|policy| policy.contains(&only));
    let programs = policies().filter(|policy| Choice::parse(policy).is_ok());
    policies().for_each(|policy| points(policy));
    BELOW_SPINES.iter().filter(|policy| policy.contains(&only)).for_each(|policy| below_spines(policy));
    programs.for_each(|policy| (0..seeds).for_each(|seed| told(policy, seed)));
}

fn points(policy: &str) {
    let Ok(policy) = Policy::parse(policy) else { return say(policy, "unknown") };
    let racks = [
        ("plain", Testbed::rain(), "", MIX),
        ("lossy", Testbed::rain(), LOSSES, MIX),
        ("labels", Testbed::rain(), LABELS, MIX),
        ("stalls", Testbed::rain(), STALLS, MIX),
        ("servers", Testbed::rain_rdma(), "", LARGE),
        ("servers, lossy", Testbed::rain_rdma(), LOSSES, LARGE),
        ("slices", Testbed::rain_rdma(), "", LARGE),
        ("slices, slow", Testbed::rain_rdma(), "", SLOW),
        ("slices, slow, lossy", Testbed::rain_rdma(), LOSSES, SLOW),
    ];
    let is_adaptive = policy.to_string().contains("adaptive");
    for (name, testbed, keys, workload) in racks {
        if workload == SLOW && !is_adaptive {
            continue;
        }
        for load in [0.4, 0.9] {
            let tasks = if workload == SLOW { 15_000 } else { 6_000 };
            let testbed = testbed.changed(&keys.parse().expect("keys")).expect("a testbed");
            let workload = Workload::parse(workload).expect("a workload");
            let rate = load * f64::from(testbed.workers) * 1e9 / workload.mean_service_ns();
            let slices = name.starts_with("slices").then(|| {
                vec![
                    ("get".to_owned(), testbed.workers / 2),
                    ("scan".to_owned(), testbed.workers.div_ceil(2)),
                ]
            });
            let point = Point {
                tasks,
                warmup: Warmup::Tasks(500),
                transient: true,
                slices,
                ..Point::new(policy.clone(), testbed, workload, rate)
            };
            run(&format!("{policy} | {name} | {load}"), &point);
        }
    }
}

fn below_spines(policy: &str) {
    let outages = format!("{RACKS}{OUTAGES}");
    let lossy = format!("{RACKS}{LOSSES}{LOSSES_BELOW_SPINES}");
    for (name, keys) in [("plain", RACKS), ("outages", &outages), ("lossy", &lossy)] {
        for load in [0.4, 0.9] {
            let testbed = Testbed::rain().changed(&keys.parse().expect("keys")).expect("a testbed");
            let workload = Workload::parse(MIX).expect("a workload");
            let policy = Policy::parse(policy).expect("a policy");
            let warmup = Warmup::Tasks(500);
            let mut point = Point {
                tasks: 12_000,
                warmup,
                transient: true,
                ..Point::new(policy, testbed, workload, 1.0)
            };
            point.rate_per_s = load * point.capacity_per_s();
            run(&format!("{} | {name} | {load}", point.policy), &point);
        }
    }
}

fn run(name: &str, point: &Point) {
    let what = match point.check().and_then(|()| point.replicate(0, &AtomicBool::new(false))) {
        Ok(measured) => serde_json::to_string(&measured).expect("numbers"),
        Err(why) => why.to_string(),
    };
    say(name, &what);
}

fn told(policy: &str, seed: u64) {
    let program = Choice::parse(policy).expect("it was one");
    let mut story = String::new();
    let outcome = replay(&RackKind::of(program), seed, &mut |line| _ = writeln!(story, "{line:?}"));
    say(&format!("{policy} | seed {seed}"), &format!("{story}{outcome:?}"));
}

fn say(run: &str, what: &str) {
    let mut hash = DefaultHasher::new();
    what.hash(&mut hash);
    let start = if what.len() < 200 { what } else { "" };
    writeln!(io::stdout(), "{:016x} {:8} {run} {start}", hash.finish(), what.len()).ok();
}
