//! The forms on command lines and in plans: every form is read back as it is shown, and every error is one
//! line that says what helps.

use std::path::Path;

use proptest::prelude::*;
use sluice_workload::{Arrivals, Service, Workload, WorkloadForm};

#[test]
fn services_that_make_no_sense_are_refused_with_what_helps() {
    for (text, why) in [
        ("exp:-1us", "service `exp:-1us`: the mean: `-1us` is not a span: write a number and a unit"),
        ("exp:", "service `exp:`: the mean is missing; write it as exp:MEAN, such as exp:10us"),
        ("exp", "the mean is missing"),
        ("exp:0us", "the mean is 0; a service takes at least 1ns"),
        ("exp:NaN", "`NaN` is not a span"),
        ("exp:infus", "`infus` is not a span"),
        ("exp:0.1ns", "finer than a nanosecond"),
        ("exp:91ms", "the mean 91ms is above 90ms"),
        ("exp:99999999999999999999us", "longer than a hundred days"),
        ("exp:1us:2us", "`2us` is more than it takes; write it as exp:MEAN"),
        ("exp:10us:", "`` is more than it takes"),
        ("const:5s", "the span `5s` is above 4.294967295s"),
        ("bimodal:1us:2us:2", "the share of the first: `2` is not a share: write a number from 0 to 1"),
        ("bimodal:1us:2us:NaN", "`NaN` is not a share"),
        ("bimodal:1us:2us", "the share of the first is missing; write it as bimodal:FIRST:SECOND"),
        ("multimodal:1us@0.5:2us@0.6", "the shares add up to 1.1, not 1"),
        ("multimodal:1us", "the mode `1us` has no `@`"),
        ("multimodal:", "the mode is missing"),
        ("lognormal:1us:inf", "the sigma: `inf` is not a finite number"),
        ("lognormal:1us:0", "the sigma 0 is not from 0.001 to 10"),
        ("pareto:1us:1", "the alpha 1 is not from 1.001"),
        ("uniform:2us:1us", "the low end 2us is above the high end 1us"),
        ("keys:1us:0", "the mean number of keys 0 is not from 0.001"),
        ("keys:1ms:1000", "44362 keys, the most that can be drawn, take longer than 4.294967295s"),
        ("cdf:", "the file is missing; write it as cdf:FILE"),
        ("cdf:nowhere.csv", "nowhere.csv: No such file or directory"),
        ("profile:rocks.toml", "the file or the type is missing; write it as profile:FILE:TYPE"),
        (
            "expo:10us",
            "service `expo:10us`: unknown distribution `expo`; did you mean `exp`? known: const, exp",
        ),
        ("", "unknown distribution ``"),
    ] {
        let told = Service::parse(text).expect_err(text).to_string();
        assert!(told.contains(why), "{text}: {told}");
        assert!(!told.contains('\n'), "{told}");
    }
}

#[test]
fn workloads_that_make_no_sense_are_refused_with_what_helps() {
    for (text, why) in [
        ("get=0.9@exp:8us+scan=0.2@const:1us", "the shares add up to 1.1, not 1: correct them"),
        ("get=0.5@exp:8us+get=0.5@const:1us", "two classes are called `get`: rename one"),
        ("get=2@exp:8us", "the share of `get`: `2` is not a share"),
        ("get=0.9", "`get=0.9` has no `@`; write SERVICE, or NAME=SHARE@SERVICE"),
        ("exp:10us,large=2", "large: `2` is not a share"),
        ("exp:10us,type=70000", "type: `70000` is not a number from 0 to 65535"),
        ("exp:10us,lagre=1", "unknown option `lagre`; did you mean `large`?"),
        ("get=1@exp:-8us", "service `exp:-8us`: the mean"),
        ("exp:10us;bursts:1:1ms:2ms", "arrivals `bursts:1:1ms:2ms`: it is none of poisson, even, steps"),
        ("exp:10us;burst:5:2ms:1ms", "a burst of 2ms leaves nothing of 1ms"),
        ("exp:10us;ramp:1:2", "write ramp:FROM:TO:SPAN"),
        ("exp:10us;steps:1:2", "only the last phase may be without a span"),
        ("exp:10us;steps:0@1ms:0", "every factor is 0, so that no task ever comes"),
        ("exp:10us;steps:-1@1ms", "the factor `-1` is not a finite number from 0 on"),
        ("exp:10us;steps:NaN", "the factor `NaN` is not a finite number"),
        ("trace:nowhere.csv", "nowhere.csv: No such file or directory"),
    ] {
        let told = Workload::parse(text).expect_err(text).to_string();
        assert!(told.contains(why), "{text}: {told}");
        assert!(!told.contains('\n'), "{told}");
    }
}

/// A message may quote anything, so it must be safe for a terminal or a log, and end with its line.
#[test]
fn what_is_refused_is_told_in_one_line_fit_for_a_terminal() {
    let junk = "\n\u{1b}[2J\0\u{202e}";
    let told = |text: &str| {
        let services = [Service::parse(text).map(drop), Workload::parse(text).map(drop)];
        let arrivals = Arrivals::parse(text).map(drop);
        services
            .into_iter()
            .chain([arrivals])
            .filter_map(|read| Some(read.err()?.to_string()))
            .collect::<Vec<_>>()
    };
    let mut refused = 0;
    for before in [
        "",
        "exp:",
        "exp:1us:",
        "bimodal:1us:2us:",
        "multimodal:",
        "multimodal:1us@",
        "lognormal:1us:",
        "pareto:1us:",
        "uniform:1us:",
        "keys:1us:",
        "cdf:",
        "profile:",
        "profile:x:",
        "trace:",
        "cluster:",
        "flows:",
        "get=",
        "get=0.5@",
        "exp:1us,",
        "exp:1us,large=",
        "exp:1us;",
        "exp:1us;burst:",
        "ramp:",
        "steps:",
        "steps:1@",
        "burst:1:",
    ] {
        for said in told(&format!("{before}{junk}")) {
            refused += 1;
            assert!(!said.contains(|c: char| c.is_control() || c == '\u{202e}'), "{said:?}");
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn a_short_form_is_shown_as_it_was_written() {
    for text in [
        "exp:10us",
        "exp:10us,large=0.5",
        "const:1.5ms;even",
        "get=0.9@const:8us,large=1+scan=0.1@const:107us,type=7",
        "exp:10us;steps:1@50ms:2@50ms",
        "exp:10us;steps:0.5..2@100ms:2",
        "a=0.3@multimodal:5us@0.5:50us@0.5+b=0.7@keys:214ns:500:2us;steps:5@1ms:1@9ms",
    ] {
        assert_eq!(Workload::parse(text).expect(text).to_string(), text);
    }
}

#[test]
fn bursts_and_ramps_are_shown_as_the_steps_that_they_are() {
    for (text, steps) in [
        ("ramp:0.5:2:100ms", "steps:0.5..2@100ms:2"),
        ("burst:5:1ms:10ms", "steps:5@1ms:1@9ms"),
        ("steps:1@1ms:2..3@2ms:3", "steps:1@1ms:2..3@2ms:3"),
    ] {
        assert_eq!(Arrivals::parse(text).expect(text).to_string(), steps);
        assert_eq!(Arrivals::parse(steps).expect(steps), Arrivals::parse(text).expect(text));
    }
}

#[test]
fn a_table_says_all_that_a_short_form_can_and_changes_of_the_mix_too() {
    let table = r#"
        repeat = true
        [[class]]
        name = "get"
        share = 0.75
        service = "exp:10us"
        large = 0.5
        [[class]]
        name = "scan"
        share = 0.25
        service = "const:100us"
        type = 9
        [[phase]]
        lasts = "20ms"
        [[phase]]
        lasts = "10ms"
        rate = [1.0, 2.5]
        share = { get = 0.5, scan = 0.5 }
        service = { scan = "bimodal:10us:100us:0.5" }
    "#;
    let workload: Workload = toml::from_str(table).expect("it is legal");
    assert!((workload.mean_service_ns() - 32_500.0).abs() < 1e-6);
    assert!((workload.busy_workers(1e6) - 2.5 * 32.5).abs() < 1e-6, "{}", workload.busy_workers(1e6));
    assert!(!workload.is_steady());
    let shown = serde_json::to_string(&workload).expect("it is plain data");
    assert_eq!(serde_json::from_str::<Workload>(&shown).expect("it was just written"), workload);
}

#[test]
fn a_table_with_unknown_keys_or_faults_is_refused_where_they_stand() {
    let class = "[[class]]\nname = \"get\"\nservice = \"exp:10us\"\n";
    for (table, why) in [
        (format!("{class}sahre = 1.0"), "unknown field `sahre`"),
        (format!("arival = \"even\"\n{class}"), "unknown field `arival`"),
        (format!("{class}share = 0.5"), "the shares add up to 0.5, not 1"),
        (format!("{class}large = nan"), "the large share NaN of class `get` is not from 0 to 1"),
        (format!("repeat = true\n{class}"), "`repeat` is for phases"),
        (format!("arrivals = \"even\"\n{class}[[phase]]\n"), "exclude each other"),
        (
            format!("{class}[[phase]]\nservice = {{ gte = \"exp:1us\" }}"),
            "unknown class `gte`; did you mean `get`?",
        ),
        (format!("{class}[[phase]]\nshare = {{ get = 0.5 }}"), "phase 1: the shares add up to 0.5"),
        (format!("{class}[[phase]]\nrate = nan"), "the factor NaN is not from 0"),
        ("class = []".to_owned(), "there are 0 classes"),
    ] {
        let told = toml::from_str::<Workload>(&table).expect_err(&table).to_string();
        assert!(told.contains(why), "{table}: {told}");
    }
}

#[test]
fn files_are_looked_for_from_the_folder_of_their_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.csv"), "1,0.5\n3,1\n").expect("written");
    let form = WorkloadForm::Short("cdf:a.csv".to_owned());
    let workload = form.resolve(folder.path()).expect("it is legal");
    assert_eq!(workload.to_string(), "cdf:a.csv");
    assert!(form.resolve(Path::new("")).is_err());
}

#[test]
fn a_cumulative_distribution_is_refused_at_the_line_and_column_of_its_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.csv");
    for (text, why) in [
        ("# value, share\n1,0.5\n2,0.9\n", "a.csv:3:1: the cumulative distribution ends at 0.9, not at 1"),
        ("", "a.csv:1:1: the cumulative distribution ends at 0"),
        ("1,0.5\n1,1\n", "a.csv:2:1: the value 1 does not grow"),
        ("1,0.5\n2, 0.5\n", "a.csv:2:4: the cumulative share 0.5 does not grow"),
        ("1,1.5\n", "a.csv:1:3: `1.5` is not a share"),
        ("1,NaN\n", "a.csv:1:3: `NaN` is not a share"),
        (" x,1\n", "a.csv:1:2: `x` is not a number of microseconds"),
        ("0,1\n", "a.csv:1:1: 0 is not from 0.001 to 4294967.295 microseconds"),
        ("1;1\n", "a.csv:1:1: `1;1` is not a value and a share: write MICROSECONDS,CUMULATIVE"),
    ] {
        std::fs::write(&path, text).expect("written");
        let told = Service::parse(&format!("cdf:{}", path.display())).expect_err(text).to_string();
        assert!(told.contains(why), "{text}: {told}");
    }
}

#[test]
fn a_profile_comes_with_this_program() {
    let mean = |text| Service::parse(text).expect("it is built in").mean_ns();
    let (get, scan) = (mean("profile:rocksdb:get-19"), mean("profile:rocksdb:scan-3200"));
    assert!((38e3..42e3).contains(&get) && (680e3..700e3).contains(&scan), "{get} {scan}");
    let unknown = Service::parse("profile:rocksdb:get-91").expect_err("there is no such type");
    assert!(unknown.to_string().contains("did you mean `get-19`?"), "{unknown}");
}

#[test]
fn a_profile_is_read_by_type_and_refused_where_it_is_wrong() {
    let profile = r#"
schema = "sluice.profile.v1"
service = "rocksdb"
measured_unix_s = 1750000000
cpu = "some processor"
clock = "wall"
clock_cost_ns = 25
[data]
keys = 1000
key_bytes = 64
item_bytes = 128
cache_mib = 64
[[operation]]
name = "get-10"
keys = 10
exponential = false
samples = 1000
preempted = 0
mean_ns = 6000.0
cdf = [[4000, 0.5], [8000, 1.0]]
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rocks.toml");
    let parse = |text: &str, name: &str| {
        std::fs::write(&path, text).expect("written");
        Service::parse(&format!("profile:{}:{name}", path.display()))
    };
    let service = parse(profile, "get-10").expect("it is legal");
    assert!((service.mean_ns() - 5_000.0).abs() < 1e-9);
    for (from, to, why) in [
        ("v1", "v9", "rocks.toml:1:1: the schema is `sluice.profile.v9`"),
        ("1.0]]", "0.9]]", "operation `get-10`: the cdf ends at 0.9, not at 1"),
        ("[8000", "[3000", "operation `get-10`: times and shares of the cdf must grow"),
        ("keys = 10\n", "kesy = 10\n", "rocks.toml:15:1: [[operation]]: unknown key `kesy`"),
        ("get-10", "get-20", "unknown type `get-10`; did you mean `get-20`?"),
    ] {
        let told = parse(&profile.replace(from, to), "get-10").expect_err(why).to_string();
        assert!(told.contains(why), "{told}");
    }
}

fn span() -> impl Strategy<Value = String> {
    (1..90_000_000u64).prop_map(|ns| format!("{}.{:03}us", ns / 1_000, ns % 1_000))
}

fn service() -> impl Strategy<Value = String> {
    let share = || 0.0..=1.0;
    prop_oneof![
        span().prop_map(|span| format!("const:{span}")),
        span().prop_map(|span| format!("exp:{span}")),
        (span(), span(), share()).prop_map(|(a, b, share)| format!("bimodal:{a}:{b}:{share}")),
        (span(), span(), share())
            .prop_map(|(a, b, share)| format!("multimodal:{a}@{share}:{b}@{}", 1.0 - share)),
        (span(), 0.001..10.0).prop_map(|(mean, sigma)| format!("lognormal:{mean}:{sigma}")),
        (span(), 1.001..1_000.0).prop_map(|(mean, alpha)| format!("pareto:{mean}:{alpha}")),
        (1..1_000_000u64, 0..1_000_000u64)
            .prop_map(|(low, more)| format!("uniform:{low}ns:{}ns", low + more)),
        (1..10_000u64, 0.001..1_000.0, span())
            .prop_map(|(per, keys, base)| format!("keys:{per}ns:{keys}:{base}")),
    ]
}

proptest! {
    #[test]
    fn every_service_is_read_back_as_it_is_shown(text in service()) {
        let service = Service::parse(&text).expect("it is legal");
        prop_assert_eq!(Service::parse(&service.to_string()).expect("it was shown"), service.clone());
        prop_assert!(service.mean_ns() >= 1.0 && service.mean_ns().is_finite());
        prop_assert!(service.squared_variation() >= 0.0 && service.squared_variation().is_finite());
    }

    #[test]
    fn every_mix_is_read_back_as_it_is_shown(first in service(), second in service(), share in 0.0..=1.0, large in 0.0..=1.0) {
        let text = format!("get={share}@{first},large={large}+scan={}@{second}", 1.0 - share);
        let workload = Workload::parse(&text).expect("it is legal");
        prop_assert_eq!(Workload::parse(&workload.to_string()).expect("it was shown"), workload.clone());
        let json = serde_json::to_string(&workload).expect("it is plain data");
        prop_assert_eq!(serde_json::from_str::<Workload>(&json).expect("it was just written"), workload);
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "[a-z0-9.:;@=+,/-]{0,40}", name in "(exp|keys|multimodal|pareto|steps|get=1@exp)") {
        let _ = Service::parse(&text);
        let _ = Service::parse(&format!("{name}:{text}"));
        let _ = Workload::parse(&text);
        let _ = Workload::parse(&format!("{name}:{text}"));
        let _ = Arrivals::parse(&format!("{name}:{text}"));
    }
}
