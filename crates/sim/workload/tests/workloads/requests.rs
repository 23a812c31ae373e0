//! The stream of tasks: the same for every policy, at the given rate and with the given mix, now and later.

use std::path::PathBuf;

use sluice_wire::{Nanos, TaskType};
use sluice_workload::{Request, Requests, TraceWriter, Workload};

const RATE: f64 = 1e6;

fn workload(text: &str) -> Workload {
    Workload::parse(text).expect(text)
}

fn requests(text: &str, count: usize) -> Vec<Request> {
    Requests::new(&workload(text), RATE, 42, 0).take(count).collect()
}

fn share(of: &[Request], is: impl Fn(&Request) -> bool) -> f64 {
    of.iter().filter(|request| is(request)).count() as f64 / of.len() as f64
}

#[test]
fn one_seed_gives_one_stream_and_each_replication_another() {
    let workload = workload("get=0.9@exp:8us,large=0.5+scan=0.1@keys:214ns:500");
    let of = |seed, replication| -> Vec<Request> {
        Requests::new(&workload, RATE, seed, replication).take(1_000).collect()
    };
    assert_eq!(of(1, 0), of(1, 0));
    assert_ne!(of(1, 0), of(2, 0));
    assert_ne!(of(1, 0), of(1, 1));
}

#[test]
fn another_rate_moves_the_tasks_and_changes_nothing_else() {
    let workload = workload("get=0.9@exp:8us,large=0.5+scan=0.1@lognormal:100us:1");
    let slow = Requests::new(&workload, RATE, 7, 0).take(10_000);
    let fast = Requests::new(&workload, 4.0 * RATE, 7, 0).take(10_000);
    for (slow, fast) in slow.zip(fast) {
        assert_eq!(slow.at.0 / 4, fast.at.0);
        assert_eq!(Request { at: fast.at, ..slow }, fast);
    }
}

#[test]
fn another_service_leaves_arrivals_and_classes_alone() {
    let with = |service: &str| requests(&format!("a=0.5@{service}+b=0.5@const:1us"), 10_000);
    for (one, other) in with("exp:8us").into_iter().zip(with("lognormal:8us:2")) {
        assert_eq!((one.at, one.class), (other.at, other.class));
    }
}

#[test]
fn poisson_arrivals_keep_rate_spread_mix_and_sizes() {
    let drawn = requests("get=0.9@exp:8us,large=0.25+scan=0.1@const:107us,type=9", 400_000);
    let gaps: Vec<f64> = drawn.windows(2).map(|two| (two[1].at - two[0].at).0 as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
    assert!((mean / 1_000.0 - 1.0).abs() < 0.006, "{mean}");
    assert!((variance / (mean * mean) - 1.0).abs() < 0.02);
    assert!((share(&drawn, |request| request.class == 1) - 0.1).abs() < 0.002);
    assert!((share(&drawn, |request| request.large) - 0.225).abs() < 0.003);
    assert!(drawn.iter().all(|request| request.task_type == TaskType([0, 9][usize::from(request.class)])));
}

#[test]
fn even_arrivals_come_at_equal_distances() {
    let drawn = requests("exp:10us;even", 1_000);
    assert!(drawn.iter().enumerate().all(|(i, request)| request.at == Nanos(1_000 * (i as u64 + 1))));
}

#[test]
fn a_rate_that_is_none_brings_no_task() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Requests::new(&workload("exp:10us"), rate, 1, 0).next(), None);
    }
}

/// The number of tasks in each tenth of a millisecond, divided by the expected number at the base rate.
fn factors(text: &str, bins: usize) -> Vec<f64> {
    let mut counts = vec![0.0; bins];
    for replication in 0..20 {
        let drawn = Requests::new(&workload(text), RATE, 3, replication);
        for request in drawn.take_while(|request| request.at < Nanos(100_000 * bins as u64)) {
            counts[(request.at.0 / 100_000) as usize] += 1.0 / (20.0 * 100.0);
        }
    }
    counts
}

#[test]
fn rates_follow_their_plan() {
    type Expected = fn(usize) -> f64;
    let middle = |bin: usize| bin as f64 / 10.0 + 0.05;
    let ramp: Expected = |bin| (0.5 + 1.5 * (bin as f64 / 10.0 + 0.05) / 2.0).min(2.0);
    let cases: [(&str, Expected); 5] = [
        ("exp:10us;steps:1@1ms:3", |bin| if bin < 10 { 1.0 } else { 3.0 }),
        ("exp:10us;steps:2@1ms:0@1ms", |bin| if bin / 10 % 2 == 0 { 2.0 } else { 0.0 }),
        ("exp:10us;ramp:0.5:2:2ms", ramp),
        ("exp:10us;burst:4:500us:1ms", |bin| if bin % 10 < 5 { 4.0 } else { 1.0 }),
        ("exp:10us;steps:1@1ms:0", |bin| if bin < 10 { 1.0 } else { 0.0 }),
    ];
    for (text, expected) in cases {
        for (bin, factor) in factors(text, 40).into_iter().enumerate() {
            let (expected, at) = (expected(bin), middle(bin));
            let bound = 4.5 * (expected / 2_000.0).sqrt() + 1e-9;
            assert!((factor - expected).abs() <= bound, "{text} at {at} ms: {factor}, not {expected}");
        }
    }
}

#[test]
fn arrivals_that_are_rare_beside_their_phases_keep_the_mean_rate() {
    let workload = workload("exp:10us;burst:3:10us:20us");
    let last = Requests::new(&workload, 1e3, 5, 0).take(20_000).last().expect("tasks come");
    let rate = 20_000.0 / (last.at.0 as f64 / 1e9);
    assert!((rate / 2_000.0 - 1.0).abs() < 0.03, "{rate}");
}

#[test]
fn the_mix_changes_when_the_plan_says_so() {
    let table = r#"
        [[class]]
        name = "busy"
        service = "exp:10us"
        [[class]]
        name = "idle"
        share = 0.0
        service = "const:1us"
        [[phase]]
        lasts = "20ms"
        [[phase]]
        lasts = "20ms"
        service = { busy = "bimodal:10us:100us:0.5" }
        [[phase]]
        rate = 4.0
        share = { busy = 0.75, idle = 0.25 }
    "#;
    let workload: Workload = toml::from_str(table).expect("it is legal");
    let drawn: Vec<Request> =
        Requests::new(&workload, RATE, 8, 0).take_while(|r| r.at < Nanos::from_millis(60)).collect();
    let part = |phase: u64| -> Vec<Request> {
        let inside = |request: &&Request| request.at.0 / 20_000_000 == phase;
        drawn.iter().filter(inside).copied().collect()
    };
    let mean = |of: &[Request]| of.iter().map(|r| r.service.0 as f64).sum::<f64>() / of.len() as f64;
    assert!((mean(&part(0)) / 10_000.0 - 1.0).abs() < 0.03);
    assert!((mean(&part(1)) / 55_000.0 - 1.0).abs() < 0.03);
    assert!(part(1).iter().all(|request| [10_000, 100_000].contains(&request.service.0)));
    assert!((share(&part(2), |request| request.class == 1) - 0.25).abs() < 0.01);
    assert!((part(2).len() as f64 / 80_000.0 - 1.0).abs() < 0.02);
}

struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn file(text: &str) -> File {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, text).expect("written");
    File { _folder: folder, path }
}

#[test]
fn a_trace_that_was_written_is_replayed_task_by_task() {
    let text = "get=0.9@exp:8us,large=0.5+scan=0.1@keys:214ns:500";
    let drawn = requests(text, 5_000);
    let mut writer = TraceWriter::new(Vec::new(), ["get", "scan"].map(str::to_owned)).expect("it fits");
    for request in &drawn {
        writer.write(request).expect("it fits");
    }
    let written = String::from_utf8(writer.finish().expect("it fits")).expect("it is text");
    let file = file(&written);

    let replayed = workload(&format!("{text};trace:{}", file.path.display()));
    assert_eq!(Requests::new(&replayed, 1.0, 99, 3).collect::<Vec<_>>(), drawn);

    let alone = workload(&format!("trace:{}", file.path.display()));
    assert_eq!(alone.to_string(), format!("trace:{}", file.path.display()));
    assert_eq!(Requests::new(&alone, 1.0, 99, 3).collect::<Vec<_>>(), drawn);
    let mean = drawn.iter().map(|request| request.service.0 as f64).sum::<f64>() / 5_000.0;
    assert!((alone.mean_service_ns() - mean).abs() < 1e-6 * mean);
    let json = serde_json::to_string(&alone).expect("it is plain data");
    assert_eq!(serde_json::from_str::<Workload>(&json).expect("it was just written"), alone);
}

#[test]
fn a_scaled_trace_has_the_same_tasks_at_the_rate_that_is_asked_for() {
    let file = file("100,get,8\n250.5,scan,3\n400,get,0.25,1\n");
    let text = format!("scaled-trace:{}", file.path.display());
    let scaled = workload(&text);
    assert_eq!(scaled.to_string(), text);
    // Three tasks in 400 µs are 7,500 a second; at twice that rate they arrive in half the time.
    let drawn: Vec<_> =
        Requests::new(&scaled, 15_000.0, 1, 0).map(|r| (r.at.0, r.class, r.service.0, r.large)).collect();
    assert_eq!(drawn, [(50_000, 0, 8_000, false), (125_250, 1, 3_000, false), (200_000, 0, 250, true)]);
    let json = serde_json::to_string(&scaled).expect("it is plain data");
    assert_eq!(serde_json::from_str::<Workload>(&json).expect("it was just written"), scaled);
}

#[test]
fn what_a_trace_leaves_open_is_drawn_from_its_class() {
    let file = file("# when, what\n100,get\n250.5,scan,3\n250.5,get,0.25,1\n");
    let replayed = workload(&format!("get=0.5@const:8us+scan=0.5@const:1us;trace:{}", file.path.display()));
    let drawn: Vec<_> =
        Requests::new(&replayed, 1.0, 1, 0).map(|r| (r.at.0, r.class, r.service.0, r.large)).collect();
    assert_eq!(drawn, [(100_000, 0, 8_000, false), (250_500, 1, 3_000, false), (250_500, 0, 250, true)]);
}

#[test]
fn a_trace_is_refused_at_the_line_and_column_of_its_fault() {
    for (text, why) in [
        ("100;get", "trace.csv:1:1: `100;get` has no comma: write MICROSECONDS,CLASS"),
        ("x,get", "trace.csv:1:1: `x` is not a number of microseconds"),
        ("-5,get", "trace.csv:1:1: `-5` is not a number of microseconds"),
        ("NaN,get", "trace.csv:1:1: `NaN` is not a number of microseconds"),
        ("1e99,get", "trace.csv:1:1: `1e99` is not a number"),
        ("99999999999999999999,get", "trace.csv:1:1: `99999999999999999999` is longer than"),
        ("# hm\n5,get\n4,get", "trace.csv:3:1: 4 comes after a later time: sort the lines"),
        ("5, gte", "trace.csv:1:4: unknown class `gte`; did you mean `get`?"),
        ("5,get,", "trace.csv:1:7: `` is not a number of microseconds"),
        ("5,get,0", "trace.csv:1:7: the service 0 is not from 0.001"),
        ("5,get,3,2", "trace.csv:1:9: `2` does not say whether the task is large: write 0 or 1"),
        ("5,get,3,1,9", "trace.csv:1:11: `9` is more than a line holds"),
        ("# nothing\n", "trace.csv:1:1: there are no tasks"),
    ] {
        let file = file(text);
        let asked = format!("get=1@exp:10us;trace:{}", file.path.display());
        let told = Workload::parse(&asked).expect_err(text).to_string();
        assert!(told.contains(why), "{text}: {told}");
    }
    let unknown = file("5,get\n");
    let told =
        Workload::parse(&format!("trace:{}", unknown.path.display())).expect_err("no service").to_string();
    assert!(told.contains("no line says how long a `get` takes"), "{told}");
}
