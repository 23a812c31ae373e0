//! Invalid input to commands that simulate: exit code 2, and one line that says what, why and what next,
//! before anything runs.

mod common;

use std::path::Path;

use common::{json, sluice, stderr, stdout};

/// The flags of runs unless a row has others; small, in case an input is accepted by mistake.
const SMALL: [(&str, &str); 2] = [("--tasks", "2000"), ("--replications", "2")];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Exit code 2 and one line with all of `parts`; with `--json` an error object as well.
fn refuses(folder: &Path, args: &[&str], parts: &[&str]) {
    for json_too in [false, true] {
        let mut args = args.to_vec();
        if json_too {
            args.push("--json");
        }
        let output = sluice(folder, &args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{args:?}: not one line:\n{said}");
        for part in parts {
            assert!(said.contains(part), "{args:?}: no `{part}` in: {said}");
        }
        if json_too {
            assert_eq!(json(&output)["error"]["kind"], "bad_input");
        } else {
            assert_eq!(stdout(&output), "", "{args:?}");
        }
    }
}

/// `sluice sim` refuses these flags.
fn refuses_sim(flags: &[&str], parts: &[&str]) {
    let mut args = vec!["sim"];
    for (flag, value) in SMALL {
        if !flags.contains(&flag) {
            args.extend([flag, value]);
        }
    }
    if !flags.iter().any(|flag| ["--rate", "--load"].contains(flag)) {
        args.extend(["--load", "0.5"]);
    }
    args.extend(flags);
    refuses(folder().path(), &args, parts);
}

#[test]
fn workloads_that_do_not_parse() {
    for (workload, parts) in [
        ("exp:-1us", &["exp:-1us", "is not a span"][..]),
        ("exp:", &["exp:"]),
        ("exp:NaNus", &["is not a span"]),
        ("epx:10us", &["unknown", "`exp`"]),
        ("bimodal:10us:100us:2", &["bimodal:10us:100us:2", "share"]),
        ("get=0.9@exp:8us+scan=0.2@exp:9us", &["1.1"]),
        ("get=0.9@exp:8us+scan", &["scan"]),
        ("trace:none.csv", &["none.csv"]),
        ("exp:10us,priority=4", &["priority = 4 is not a number from 0 (first) to 3"]),
        ("exp:10us,priority=high", &["priority", "high"]),
        ("cdf:none.csv", &["none.csv"]),
    ] {
        refuses_sim(&["--workload", workload], parts);
    }
}

#[test]
fn files_that_are_malformed_are_named_with_line_and_column() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("short.csv", "1,0.5\n2,0.9\n");
    write("bad.csv", "1,0.5\n2,much\n");
    write("trace.csv", "0,get,10\n5,get,fast\n");
    let sim = |workload: &str, parts: &[&str]| {
        refuses(folder.path(), &["sim", "--load", "0.5", "--tasks", "2000", "--workload", workload], parts);
    };
    sim("cdf:short.csv", &["short.csv", "1"]);
    sim("cdf:bad.csv", &["bad.csv:2:3"]);
    sim("trace:trace.csv", &["trace.csv:2:"]);
    write("cluster.csv", "600000000,,10,0,,0,u1,2,12,0.02,0.03,0.0001,0\n");
    let priority = "the priority `12` is not a whole number from 0 to 11";
    sim("cluster-trace:cluster.csv:500us", &["cluster.csv:1:25:", priority]);
}

#[test]
fn a_label_that_no_worker_has_is_refused_in_simulations_as_in_racks() {
    let folder = folder();
    let testbed = "[labels]\nneeds = [\"task=gpu\"]\n[[labels.worker]]\ncount = 1\nlabels = [\"ssd\"]\n";
    std::fs::write(folder.path().join("nobody.toml"), testbed).expect("written");
    let run =
        ["sim", "--load", "0.5", "--tasks", "2000", "--workload", "exp:10us", "--testbed", "nobody.toml"];
    for policy in ["draconis:labels", "rain:1,labels"] {
        let args = [&run[..], &["--policy", policy]].concat();
        refuses(
            folder.path(),
            &args,
            &["nobody.toml", "names `gpu`, and no worker has it", "[[labels.worker]]"],
        );
    }
}

#[test]
fn a_rate_that_is_not_the_traces_own_is_refused() {
    let folder = folder();
    let lines: Vec<String> = (1..=4_000).map(|n| format!("{},get,10", n * 5)).collect();
    std::fs::write(folder.path().join("day.csv"), lines.join("\n")).expect("written");
    let own = ["day.csv brings 200000 tasks per second", "a load of 0.062", "scaled-trace:day.csv"];
    let flags = ["--workload", "trace:day.csv", "--tasks", "2000", "--replications", "2"];
    let sim = |more: [&'static str; 2]| [&["sim"], &flags[..], &more[..]].concat();
    refuses(folder.path(), &sim(["--load", "0.5"]), &own);
    refuses(folder.path(), &sim(["--rate", "300k"]), &own);
    let search = [&["throughput", "rain:1", "--slo", "p99<50us"], &flags[..]].concat();
    refuses(folder.path(), &search, &["a rate of its own", "200000", "scaled-trace:day.csv"]);
}

#[test]
fn budgets_that_no_packet_can_tell_or_nobody_looks_at() {
    refuses_sim(&["--budget", "68ms"], &["68ms", "longer than a packet can tell", "at most 67ms"]);
    refuses_sim(&["--budget", "0us"], &["spent before its task can be sent", "at least 3us"]);
    refuses_sim(&["--budget", "2us"], &["spent before its task can be sent"]);
    refuses_sim(&["--budget", "soon"], &["`soon` is not a span"]);
    refuses_sim(&["--budget", "3us"], &["below a round trip of", "give at least"]);
    refuses_sim(&["--workload", "exp:10us,budget=1s"], &["class", "longer than a packet can tell"]);
    refuses_sim(&["--budget", "50us", "--policy", "central"], &["central looks at no budget", "rain:2"]);
}

#[test]
fn loads_that_nobody_can_sustain() {
    refuses_sim(&["--rate", "3200k"], &["100.0 %", "ask for less", "transient"]);
    refuses_sim(&["--load", "1.2"], &["120.0 %"]);
    refuses_sim(
        &[
            "--workload",
            "get=0.9@const:8us+scan=0.1@const:107us",
            "--slices",
            "get=14,scan=18",
            "--rate",
            "1700k",
        ],
        &["no steady state"],
    );
}

#[test]
fn numbers_and_ranges_that_do_not_parse() {
    refuses_sim(&["--rate", "NaN"], &["rate `NaN`"]);
    refuses_sim(&["--rate", "-5"], &["`-5`"]);
    refuses_sim(&["--rate", "fast"], &["rate `fast` is not a number"]);
    refuses_sim(&["--load", "0"], &["load `0`"]);
    refuses_sim(&["--load", "0.1..0.9"], &["range `0.1..0.9` has no step"]);
    refuses_sim(&["--load", "0.9..0.1/0.1"], &["ends before it starts"]);
    refuses_sim(&["--load", "0.1..0.9/0"], &["load `0`"]);
    refuses_sim(&["--seed", "lucky"], &["--seed", "lucky"]);
    refuses_sim(&["--seed", "-1"], &["-1"]);
    refuses_sim(&["--tasks", "0"], &["--tasks", "`0`"]);
    refuses_sim(&["--tasks", "1.5"], &["whole number"]);
    refuses_sim(&["--replications", "0"], &["--replications"]);
    refuses_sim(&["--warm-up", "soon"], &["warm-up `soon`", "detect"]);
    refuses_sim(&["--large", "NaN"], &["between 0 and 1"]);
    refuses_sim(&["--threads", "0"], &["--threads"]);
    refuses(folder().path(), &["sim", "--tasks", "2000"], &["--rate", "--load"]);
    refuses(folder().path(), &["sim", "--rate", "1k", "--load", "0.1"], &["--load", "--rate"]);
}

#[test]
fn racks_that_cannot_be() {
    refuses_sim(&["--workers", "0"], &["workers = 0"]);
    refuses_sim(&["--testbed", "none.toml"], &["none.toml", "`rain`, `rain-rdma`, `ideal`"]);
    refuses_sim(&["--slices", "get=14"], &["unknown class `get`", "task"]);
    refuses_sim(&["--slices", "task=31"], &["31", "32"]);
    refuses_sim(&["--slices", "task=none"], &["slices `task=none`"]);
    let folder = folder();
    std::fs::write(folder.path().join("bed.toml"), "wrokers = 3\n").expect("written");
    refuses(folder.path(), &["sim", "--load", "0.5", "--testbed", "bed.toml"], &["bed.toml", "`workers`"]);
    let bed = |more: &str| {
        let rain =
            include_str!("../../../../experiments/testbeds/rain.toml").replacen("queue = 8192", more, 1);
        std::fs::write(folder.path().join("bed.toml"), rain).expect("written");
    };
    bed("queue = 100000");
    let args = ["sim", "--policy", "rain:2,classes=4", "--load", "0.5", "--testbed", "bed.toml"];
    refuses(folder.path(), &args, &["queue of 100000", "1 slices of 4 classes", "to 16320 at most"]);
    bed("queue = 8192\nsizes = [\"9us\", \"3us\"]");
    refuses(folder.path(), &args, &["bed.toml", "one to three spans"]);
}

#[test]
fn policies_that_are_not_known() {
    refuses_sim(&["--policy", "rian:2"], &["unknown policy `rian`", "`rain`"]);
    refuses_sim(&["--policy", "rain:99"], &["rain:99"]);
    refuses(folder().path(), &["sweep", "rain:1", "palas", "--load", "0.5"], &["`palas`", "`pallas`"]);
    refuses(folder().path(), &["compare", "rain:1", "jsqq", "--load", "0.5"], &["`jsqq`", "`jsq`"]);
    let (two, one) = ("takes two policies, and 1 were given", "takes one policy, and 2 were given");
    refuses(folder().path(), &["compare", "rain:1", "--load", "0.5"], &[two, "--policy"]);
    refuses(folder().path(), &["sim", "rain:1", "rain:2", "--load", "0.5"], &[one, "--policy"]);
    refuses(folder().path(), &["up", "--policy", "rain:1,rain:2"], &[one, "--sweep"]);
    refuses(folder().path(), &["switch", "--policy", "rain:1", "--policy", "draconis"], &[one]);
    refuses(folder().path(), &["sweep", "--load", "0.5"], &["which policies?", "sluice sweep rain:2"]);
    let joined = ["sweep", "--policy", "rain:2,rackshced", "--load", "0.5"];
    refuses(folder().path(), &joined, &["`rackshced` means nothing", "did you mean `racksched`?"]);
    refuses(folder().path(), &["up", "rain:2"], &["rain:2 is a policy", "--policy rain:2"]);
}

#[test]
fn limits_that_are_not_limits() {
    let throughput = |slo: &str, parts: &[&str]| {
        refuses(folder().path(), &["throughput", "rain:1", "--slo", slo, "--tasks", "2000"], parts);
    };
    throughput("p99", &["`<`"]);
    throughput("p99<10", &["100us"]);
    throughput("p98<10us", &["metric `p98`", "p99"]);
    throughput("gte.p99<10us", &["unknown class `gte`"]);
    throughput("slowdown_p99<NaN", &["no value"]);
}

#[test]
fn folders_that_cannot_be_written_are_found_before_the_run() {
    refuses_sim(&["--out", "/dev/null/out"], &["/dev/null/out", "--out"]);
    let reproduce = ["reproduce", "rain-6b", "--out", "/dev/null/out"];
    refuses(folder().path(), &reproduce, &["/dev/null/out", "choose another folder"]);
}

#[test]
fn another_runs_folder_is_refused() {
    let folder = folder();
    let run = |seed| {
        ["sim", "--load", "0.3", "--tasks", "2000", "--replications", "2", "--out", "run", "--seed", seed]
    };
    let first = sluice(folder.path(), &run("1"));
    assert!(first.status.success(), "{}", stderr(&first));
    refuses(folder.path(), &run("2"), &["holds another run", "seed is `1`, not `2`", "--fresh"]);
}

#[test]
fn plans_that_cannot_be_run() {
    let folder = folder();
    refuses(folder.path(), &["reproduce", "rain-6d"], &["unknown plan `rain-6d`", "rain-6a"]);
    refuses(folder.path(), &["reproduce", "none.toml"], &["none.toml", "cannot be read"]);
    refuses(folder.path(), &["reproduce"], &["PLAN"]);
    refuses(folder.path(), &["reproduce", "rain-6a", "--cause", "none"], &["unknown cause `none`"]);
    refuses(
        folder.path(),
        &["reproduce", "rain-2", "--tasks", "5"],
        &["--tasks 5 is too few", "at least 20"],
    );
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/rain-1.toml"));
    let text = text.expect("the plan is there");
    for (from, to, parts) in [
        ("title = ", "titel = ", &["line 3", "unknown key `titel`", "`title`"][..]),
        ("tasks = 1_000_000", "tasks = = 3", &["line", "plan bad.toml"]),
        ("replications = 5", "replications = 0", &["0 replications"]),
        ("run = [\"rain:1\"", "run = [\"rian:1\"", &["unknown policy `rain:1`"]),
        ("workload = \"exp:10us\"", "workload = \"exp:\"", &["exp:"]),
        ("metric = \"p99\"", "metric = \"p98\"", &["[[claim]] shallow-is-better-before", "metric `p98`"]),
        (
            "ours = false\n",
            "",
            &["[[claim]] shallow-collapses-first", "whose its number is", "`ours = true`"],
        ),
        ("closer_in = \"bimodal\"", "closer_in = \"bimodl\"", &["unknown case `bimodl`", "`bimodal`"]),
        ("value = 0.25", "value = 25", &["[tolerance]"]),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(folder.path().join("bad.toml"), text.replacen(from, to, 1)).expect("written");
        refuses(folder.path(), &["reproduce", "bad.toml"], parts);
    }
}

#[test]
fn a_table_of_what_is_not_known_names_the_nearest() {
    let folder = folder();
    refuses(folder.path(), &["table", "rian:2"], &["rian", "rain"]);
    refuses(folder.path(), &["table", "--workloads", "expo"], &["workload of the table", "`exp`"]);
    refuses(folder.path(), &["table", "--only"], &["<POLICY>"]);
    let one = ["table", "central", "--only", "--workloads", "exp,const", "--tasks", "2k", "--json"];
    let output = sluice(folder.path(), &one);
    assert!(output.status.success(), "{}", stderr(&output));
    let of_its_own: Vec<_> =
        std::fs::read_dir(folder.path().join("out")).expect("a folder").flatten().collect();
    let [own] = &of_its_own[..] else { panic!("{of_its_own:?}") };
    let name = own.file_name().to_string_lossy().into_owned();
    assert!(name.starts_with("table-"), "{name}: the whole table's folder is left alone");
    let page = std::fs::read_to_string(own.path().join("table.md")).expect("it is written");
    assert!(
        page.contains("\n## const: ") && page.contains("\n## exp: ") && !page.contains("## mix"),
        "{page}"
    );
    assert_eq!(page.matches("| `central` |").count(), 3, "{page}");
}
