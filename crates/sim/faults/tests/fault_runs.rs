//! Checks the protocol's promises under faults, over many seeds.

use std::process::Command;
use std::thread;

use sluice_faults::{Broken, RackKind, replay, run, run_many};
use sluice_switch::registry::Choice;

#[test]
fn ten_thousand_seeds_of_rain_keep_every_promise() {
    keeps_every_promise("rain", 10_000);
}

/// Rain with ranks and the other programs, each with as many seeds as take about the same time; a polled
/// program takes seven times as long per seed. A program that is new in the registry is run as its example
/// says.
#[test]
fn seeds_of_every_other_program_keep_the_promises_that_it_makes() {
    let of = [
        ("rain:2,ranked", 1_000),
        ("rain:4,ranked", 1_000),
        ("rain:2,classes=4", 1_000),
        ("rain:2,labels", 1_000),
        ("rain:2,labels,wait=4", 500),
        ("rain:4,ranked,classes=2,patient=4", 500),
        ("rain:2,target=100us", 1_000),
        ("rain:2,classes=4,target=100us", 500),
        ("r2p2:2", 1_000),
        ("r2p2:9", 250),
        ("server:1", 500),
        ("server:3", 250),
        ("draconis:poll=20us", 500),
        ("draconis:poll=20us,classes=4", 250),
        ("draconis:poll=20us,labels", 250),
        ("draconis:poll=20us,classes=2,jobs=5", 250),
        ("racksched:2", 1_500),
        ("racksched:2,tracked", 1_500),
        ("racksched:2,tracked,bound=8", 500),
        ("rain:2,queue=160", 500),
        ("pallas", 1_500),
        ("pallas:weights=3/1", 1_500),
        ("horus", 1_500),
        ("horus:resubmit=writes,idle=uncounted", 500),
    ];
    let is_of = |policy: &str, name: &str| policy.split(':').next() == Some(name);
    let is_new = |name: &str| name != "rain" && !of.iter().any(|(policy, _)| is_of(policy, name));
    let new = Choice::all().filter(|program| is_new(program.name)).map(|program| (program.example, 500));
    for (policy, seeds) in of.into_iter().chain(new) {
        keeps_every_promise(policy, seeds);
    }
}

/// The workers of these racks are lanes: several live and die together, answer for each other, and run all
/// tasks that they hold at once.
#[test]
fn seeds_of_rain_over_servers_of_many_cores_keep_every_promise() {
    for (policy, seeds) in [("rain:1", 1_000), ("rain:2,classes=4", 250), ("rain:2,labels", 250)] {
        let kind = RackKind::of_servers(program(policy)).expect("it suits them");
        keep_every_promise(&kind, " --cores", seeds);
    }
}

/// Two controllers, of which one leads while the switch lets it, are killed, stopped and cut off.
#[test]
fn seeds_with_standbys_keep_every_promise() {
    for (policy, seeds) in [("rain", 1_500), ("rain:2,labels", 250), ("racksched:2", 250)] {
        keep_every_promise(&RackKind::of(program(policy)).with_standbys(), " --standbys", seeds);
    }
}

/// The same controllers also need a lease from a store, which falls silent or is cut off.
#[test]
fn seeds_with_a_store_keep_every_promise() {
    for (policy, seeds) in [("rain", 1_000), ("rain:2,target=100us", 250)] {
        keep_every_promise(&RackKind::of(program(policy)).with_store(), " --standbys --store", seeds);
    }
}

#[test]
fn a_run_with_standbys_has_several_leaders_one_after_the_other_and_refuses_late_writes() {
    let kind = RackKind::default().with_standbys();
    let (mut leads, mut refused) = (0, 0);
    for seed in 0..50 {
        let count = |line: &sluice_faults::LogLine| {
            let line = line.to_string();
            leads += u64::from(line.contains("this controller leads now"));
            refused += u64::from(line.contains("REFUSED, it obeys controller"));
        };
        replay(&kind, seed, &mut { count }).expect("it keeps every promise");
    }
    assert!(leads > 100 && refused > 10, "{leads} leads, {refused} late writes");
}

/// Some tasks of these racks are worth beginning for a while only, from less than a microsecond to several
/// tries.
#[test]
fn seeds_with_budgets_keep_every_promise() {
    for (policy, seeds) in [
        ("rain:2", 1_000),
        ("rain:2,ranked", 250),
        ("rain:2,classes=4", 250),
        ("rain:2,labels", 250),
        ("rain:2,target=100us", 250),
        ("r2p2:2", 100),
        ("server:1", 100),
        ("draconis:poll=20us,classes=2,jobs=5", 50),
        ("racksched:2,tracked", 100),
        ("pallas", 100),
        ("horus", 100),
    ] {
        keep_every_promise(&RackKind::of(program(policy)).with_budgets(), " --budgets", seeds);
    }
    let servers = RackKind::of_servers(program("rain:1")).expect("it suits them");
    keep_every_promise(&servers.with_budgets(), " --cores --budgets", 250);
}

#[test]
fn what_servers_of_many_cores_have_no_use_for_is_refused_in_a_line() {
    for (policy, what) in [
        ("rain:2,patient,early", "early tokens"),
        ("rain:2,patient", "patience"),
        ("rain:adaptive", "adaptive depths"),
        ("r2p2:2", "other ways of giving tasks to workers"),
    ] {
        let why = RackKind::of_servers(program(policy)).expect_err("it does not suit them").to_string();
        assert!(why.contains(what) && why.ends_with("take rain:1") && !why.contains('\n'), "{policy}: {why}");
    }
}

fn program(policy: &str) -> Choice {
    Choice::parse(policy).expect("a policy")
}

fn keeps_every_promise(policy: &str, seeds: u64) {
    keep_every_promise(&RackKind::of(program(policy)), "", seeds);
}

fn keep_every_promise(kind: &RackKind, flags: &str, seeds: u64) {
    let program = kind.program();
    let policy = program.to_string();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let many = run_many(kind, 0..seeds, threads, |_| true);
    if let Some(broken) = many.broken {
        let again = format!("sluice replay-fault {} --policy {policy}{flags}", broken.seed);
        panic!("{policy}: {broken}\n  commit {}; to see its packets: {again}", commit());
    }
    let told = format!("{policy}: {} runs: {:?}", many.runs, many.tally);
    println!("{told}");
    assert!(seeds < 1_000 || many.tally.is_explained(kind), "{told}");
    assert!(many.tally.has_room(), "{told}");
    // With a target half of the seeds have a client that offers many times its share. The rest is refused.
    let least = if program.traits().takes_targets { 4 } else { 8 };
    assert!(many.tally.replied * 10 >= many.tally.submitted * least, "{told}");
    assert!(many.tally.run_again > 0, "no seed made a task run twice: the faults are too kind; {told}");
}

/// In these seeds a poll that finds its task in the last class recirculates for up to 0.3 ms before. If
/// only services counted, the rack could serve less than half of what is sent.
#[test]
fn what_is_sent_after_the_faults_leaves_polls_the_time_to_go_round() {
    let kind = RackKind::of(program("draconis:poll=20us,classes=4"));
    for seed in [1064, 1348, 1362, 1420, 2232] {
        run(&kind, seed).unwrap_or_else(|broken| panic!("{broken}"));
    }
}

/// Seeds that broke a promise once, with the cause.
const BROKE: [(&str, &str, &[u64]); 25] = [
    // An operator's look at balances made the controller's own readings rarer and rarer. A worker that had
    // to wait for tasks of former types waited for tens of milliseconds after they had run.
    ("rain:2,patient,early", "", &[516_983]),
    ("server:1", "", &[516_983, 706_380]),
    // The runs' own bug: a switch restarted, and the former controller was not told that its connection had
    // ended.
    ("server:1", "", &[714_315]),
    // A client that had got a dead client's address did not answer requests for the bytes of that client's
    // tasks, and each request held a worker's place until the last retry.
    ("rain:2,labels", "", &[512_789]),
    // A round trip through a switch that stood still became the time to wait for a lost DISPATCH, four
    // times over.
    ("rain:1", " --cores", &[712_291]),
    // A lane that was lent to another slice, and had room there for a few tasks, sent tokens for all its
    // room.
    ("rain:1", " --cores", &[714_227]),
    // A server that stood still for longer than its lease got its row again, and the row counted WRITEs
    // from the reliable pair's first number on. The pair was far ahead, and took each WRITE for one that
    // had come before.
    ("rain:2,patient,early", "", &[32_001_252]),
    // Two late tasks of a lane, beyond the room of its server, never got their bytes. When the lane gave
    // them up it sent a token for each, though another lane's tokens had all the room.
    ("rain:2,labels", " --cores", &[40_000_553]),
    // A sweep was sent while another was under way, and counted as under way for as long as tasks took
    // tokens of the first rank. Stale tokens of the last rank kept a worker out for 36 ms.
    ("rain:4,ranked", "", &[40_001_614]),
    // The runs' own bug: workers reported a capacity that ignored the recirculation of polls. Ten times
    // what they could serve could wait for 8 ms, each task was sent four times meanwhile, and nothing else
    // was served.
    ("draconis:poll=20us,classes=4", "", &[50_000_176]),
    // A client's row ended while its tasks waited. So their DISPATCHes named no address to ask for their
    // bytes, and a worker asked for 6 ms for each.
    ("rain:4,ranked,classes=2,patient=4", "", &[80_009_448]),
    // The runs' own bug: the count of how often a class was passed over went on after a sweep had taken all
    // of its tasks.
    ("rain:4,ranked,classes=2,patient=4", "", &[80_007_631, 80_012_083]),
    // The runs' own bug: a client had held back a hundred tasks, and sent the last of them when the run was
    // to rest.
    ("draconis", "", &[80_002_272]),
    // The runs' own bug: a server stood still until just after the faults, and WRITEs that had waited for
    // it since then counted as sent without faults.
    ("rain:2,classes=4", "", &[95_000_006]),
    // The runs' own bug: the controller's machine was busy twice, and the switch's answers that had waited
    // through both times came after those that had waited through the second. The controller took each
    // answer for the next one, and read each worker's row under another index.
    ("rain:4,ranked,classes=2,patient=4", "", &[100_025_555]),
    // The runs' own bug: one pass read the clock 20 us early. Its task left at once, and seemed to have
    // waited for longer than its WRITE was on its way.
    ("rain:2,patient,early", "", &[100_009_258]),
    // The runs' own bug: after the faults hosts still called a controller that had been superseded, so that
    // a lease ended at the present one.
    ("rain", "", &[120_006_656]),
    // The runs' own bug: workers of another kind took the last task of a class, and the count of how often
    // the class was passed over by tokens of this kind went on with its next task.
    ("rain:2,labels", "", &[100_033_728]),
    ("rain:2,labels,wait=4", "", &[100_033_728]),
    // The runs' own bug: of what a worker can serve, the recirculation of its tokens did not count. A worker
    // with one token did a task in 70 us, and tasks of 12 us came every 20 us, long after the faults.
    ("rain:2,labels", "", &[110_004_439]),
    ("rain:2,labels,wait=4", "", &[110_004_439, 100_023_979]),
    // Polls carried a task that no worker served any more, and were answered, for 47 ms: it was out of the
    // queue whenever a sweep came.
    ("draconis:poll=20us,labels", "", &[110_000_045]),
    // A round took three times as long as the pause between two polls. Two workers took each other's task
    // out of the queue, by turns, for 50 ms.
    ("draconis:poll=20us,labels", "", &[100_001_523]),
    // The runs' own bug: polls of five workers took a repeat out of the queue, a round each, before the one
    // worker that it suited, and the run was to rest 12 ms after the last task.
    ("draconis:poll=20us,labels", "", &[100_009_746]),
    // A client's type got a slice again, with a share of 3. All 29 tasks of the client were tried at once,
    // after each timeout, and filled the queue.
    ("draconis:poll=20us", "", &[120_004_621]),
];

#[test]
fn seeds_that_broke_a_promise_once_keep_it() {
    for (policy, flags, seeds) in BROKE {
        let program = program(policy);
        let servers = || RackKind::of_servers(program).expect("it suits them");
        let kind = if flags.is_empty() { RackKind::of(program) } else { servers() };
        for seed in seeds {
            run(&kind, *seed).unwrap_or_else(|broken| panic!("{policy}{flags}: {broken}"));
        }
    }
}

/// In this seed an operator maps both types to the slice of one worker, so that its queue is full for 8 ms,
/// and 1,280 tasks are refused. A repeat takes the room of one task, so it explains one refusal and not
/// all.
#[test]
fn a_repeat_in_a_full_queue_explains_one_refusal() {
    let kind = RackKind::of(program("rain:2,labels"));
    let many = run_many(&kind, 60_004_228..60_004_229, 1, |_| true);
    assert!(many.broken.is_none() && many.tally.refused > 1_000, "{:?}", many.tally);
    assert_eq!(many.tally.crowded_out, 1, "{:?}", many.tally);
}

/// In this seed tries of 41 tasks find a full queue, half of it repeats. Then the only worker is gone, and
/// the last tries of all of them are rejected for that. No room would have helped these tasks.
#[test]
fn a_task_whose_last_try_found_no_worker_was_not_refused_for_room() {
    let kind = RackKind::of(program("draconis:poll=20us"));
    let many = run_many(&kind, 110_000_039..110_000_040, 1, |_| true);
    assert!(many.broken.is_none() && many.tally.refused > 40, "{:?}", many.tally);
    assert_eq!(many.tally.crowded_out, 0, "{:?}", many.tally);
}

/// The same seeds, without our corrections and with them: the corrections keep the promises.
#[test]
fn as_published_draconis_breaks_a_promise_that_it_keeps_when_healed() {
    let broken = |policy: &str| run_many(&RackKind::of(program(policy)), 0..100, 1, |_| true).broken;
    let published = broken("draconis:poll=20us,as-published").expect("adds overran the ring");
    assert!(published.what.starts_with("promise 6: "), "{published}");
    assert!(broken("draconis:poll=20us").is_none());
}

#[test]
fn one_seed_replays_one_run_to_the_letter() {
    let record = |seed| {
        let mut lines = Vec::new();
        let outcome = replay(&RackKind::default(), seed, &mut |line| lines.push(line.to_owned()));
        (outcome, lines)
    };
    let (outcome, lines) = record(7);
    assert_eq!(record(7), (outcome.clone(), lines.clone()));
    assert_eq!(run(&RackKind::default(), 7), outcome, "watching a run changes nothing");
    assert!(lines.iter().any(|line| line.what.starts_with("DISPATCH task")));
}

fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

#[test]
fn a_broken_promise_is_told_with_its_number_and_its_name() {
    let broken = |what: &str| Broken { seed: 7, at_ns: 50_041_000, what: what.to_owned() }.to_string();
    assert_eq!(
        broken("promise 4: client 0 waits"),
        "seed 7 at 50041 us: promise 4 (nobody stuck): client 0 waits"
    );
    assert_eq!(broken("no promise 4: at all"), "seed 7 at 50041 us: no promise 4: at all");
    let page = include_str!("../../../../docs/manual/faults.md");
    for (number, name) in
        [(1, "one outcome"), (4, "nobody stuck"), (7, "right worker"), (9, "not too late"), (10, "its share")]
    {
        assert!(broken(&format!("promise {number}: x")).contains(&format!("promise {number} ({name}): x")));
        assert!(page.contains(&format!("| {number} | {name} |")), "docs/manual/faults.md: {number} {name}");
    }
}
