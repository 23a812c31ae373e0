//! Invalid input: exit code 2, and one line that says what, why and what next.

mod common;

use std::net::{TcpListener, UdpSocket};
use std::path::Path;

use common::{SMALL, json, sluice, stderr, stdout};
use sluice_ports::free_address;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Exit code 2, one line on stderr with all of `parts` in it, and with `--json` an error object on stdout.
fn refuses(folder: &Path, args: &[&str], parts: &[&str]) {
    let output = sluice(folder, args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{args:?}: not one line:\n{said}");
    for part in parts {
        assert!(said.contains(part), "{args:?}: no `{part}` in: {said}");
    }
    if args.contains(&"--json") {
        assert_eq!(json(&output)["error"]["kind"], "bad_input");
    } else {
        assert_eq!(stdout(&output), "", "{args:?}");
    }
}

/// `up` and `up --json` refuse the small plan with `from` replaced by `to`.
fn refuses_plan(from: &str, to: &str, parts: &[&str]) {
    assert!(SMALL.contains(from), "{from}");
    refuses_text(&SMALL.replacen(from, to, 1), parts);
}

fn refuses_text(plan: &str, parts: &[&str]) {
    let folder = folder();
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    refuses(folder.path(), &["up", "plan.toml"], parts);
    refuses(folder.path(), &["up", "plan.toml", "--json"], parts);
}

#[test]
fn an_unknown_key_or_section_of_a_plan_names_line_and_nearest_known() {
    refuses_plan("name = \"small\"", "nmae = \"small\"", &["line 2", "unknown key `nmae`", "`name`"]);
    refuses_plan("[load]", "[laod]", &["unknown key `laod`", "did you mean `load`?"]);
    refuses_plan("slice = \"work\"", "slcie = \"work\"", &["line 9", "[[worker]]", "did you mean `slice`?"]);
    refuses_plan("warm_up", "warmup", &["[load]", "did you mean `warm_up`?"]);
}

#[test]
fn a_switch_in_the_kernel_says_what_it_needs_and_what_only_a_socket_can_do() {
    let folder = folder();
    let listen = ["--listen", "127.0.0.1:0"];
    let kernel = |more: &[&str], parts: &[&str]| {
        let args = [&["switch", "--io", "xdp"], more].concat();
        refuses(folder.path(), &args, parts);
        refuses(folder.path(), &[&args[..], &["--json"]].concat(), parts);
    };
    kernel(&listen, &["needs the interfaces", "--interface"]);
    kernel(&["--interface", "lo"], &["needs the address", "--listen"]);
    let lo = [&["--interface", "lo"], &listen[..]].concat();
    kernel(&[&lo[..], &["--policy", "draconis"]].concat(), &["by rain only", "--io udp"]);
    kernel(&[&lo[..], &["--faults", "loss=0.1"]].concat(), &["has no socket", "leave faults out"]);
    refuses(folder.path(), &["switch", "--interface", "lo"], &["add --io xdp"]);
    refuses(folder.path(), &["switch", "--detach"], &["add --io xdp"]);
}

#[test]
fn a_plan_of_the_other_kind_is_named_with_the_command_for_it() {
    let folder = folder();
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/rain-6b.toml");
    let rack = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/demo.toml");
    let no_rack = ["is a study for `sluice reproduce`, not a rack for `sluice up`", "run `sluice reproduce "];
    for command in ["up", "switch", "load"] {
        refuses(folder.path(), &[command, study], &no_rack);
    }
    refuses(folder.path(), &["up", "rain-6b", "--json"], &no_rack);
    let no_study = ["is a rack for `sluice up`, not a study for `sluice reproduce`", "run `sluice up "];
    refuses(folder.path(), &["reproduce", rack], &no_study);
    refuses(folder.path(), &["reproduce", rack, "--json"], &no_study);
}

#[test]
fn a_missing_or_unreadable_plan_is_named() {
    let folder = folder();
    refuses(folder.path(), &["up", "none.toml"], &["none.toml", "cannot be read", "give the path"]);
    refuses(folder.path(), &["up", "."], &["plan .", "cannot be read"]);
    refuses(folder.path(), &["switch", "none.toml"], &["none.toml", "cannot be read"]);
    refuses_plan("count = 2", "count = = 2", &["line 8", "is not TOML"]);
}

#[test]
fn unknown_policies_services_types_flags_and_commands_name_the_known() {
    refuses_plan(
        "name = \"small\"",
        "policy = \"rian\"",
        &["unknown program `rian`", "did you mean `rain`?"],
    );
    refuses_plan(
        "\"hold\"\n[load]",
        "\"hodl\"\n[load]",
        &["unknown service `hodl`", "rocksdb, kv, spin, hold"],
    );
    refuses_plan("hold=1", "hodl=1", &["unknown type `hodl`", "did you mean `hold`?"]);
    refuses_plan("[\"hold\"]", "[\"hodl\"]", &["line 5", "[[slice]]", "unknown type `hodl`"]);
    let folder = folder();
    refuses(folder.path(), &["up", "--lenght", "3s"], &["--lenght", "--length"]);
    refuses(folder.path(), &["up", "--lenght", "3s", "--json"], &["--lenght"]);
    refuses(folder.path(), &["upp"], &["upp", "up"]);
    refuses(folder.path(), &["worker", "rocksbd"], &["unknown service `rocksbd`", "`rocksdb`"]);
    refuses(folder.path(), &["resources", "rian"], &["unknown program `rian`", "`rain`"]);
    refuses(folder.path(), &["load", "--rate", "10", "--mix", "gte=1"], &["unknown type `gte`", "`get`"]);
}

#[test]
fn servers_and_rdma_that_cannot_be_are_refused() {
    let refuses = |line: &str, parts: &[&str]| {
        refuses_text(&format!("{SMALL}\n[rdma]\n{line}\n"), parts);
    };
    refuses("servers = 17", &["servers in [rdma]", "17 is not between 0 and 16"]);
    refuses("mtu = 1000", &["mtu in [rdma]", "none of 256, 512, 1024, 2048, 4096"]);
    refuses("link_mtu = 900", &["900 is not between 1280 and 9000"]);
    refuses("transport = \"ud\"", &["unknown transport `ud`"]);
    refuses("tiny_slots = 12", &["12 is not a power of two; the next is 16"]);
    refuses("slots = 4", &["unknown key `slots`"]);
    refuses(
        "[[event]]\nat = \"1ms\"\nkill = \"server server-2\"",
        &["unknown server `server-2`", "server-1"],
    );
    let folder = folder();
    let server = ["server", "--memory", "m", "--controller", "127.0.0.1:1"];
    let with = |more: &[&'static str]| [&server[..], more].concat();
    self::refuses(folder.path(), &with(&["--mtu", "1000"]), &["1000 bytes", "256, 512, 1024, 2048 and 4096"]);
    self::refuses(folder.path(), &with(&["--listen", "0.0.0.0:4791"]), &["0.0.0.0:4791", "address"]);
    self::refuses(folder.path(), &with(&["--faults", "lost=1"]), &["faults"]);
}

#[test]
fn a_rate_that_is_no_rate_is_refused() {
    refuses_plan("rate = 300", "rate = 0", &["rate 0 is not above 0"]);
    refuses_plan("rate = 300", "rate = -5.5", &["rate -5.5 is not above 0"]);
    refuses_plan("rate = 300", "rate = nan", &["NaN is not above 0"]);
    refuses_plan("rate = 300", "rate = \"fast\"", &["is a string where a number belongs"]);
    refuses_plan("rate = 300\n", "", &["needs one of `rate`"]);
    let folder = folder();
    refuses(folder.path(), &["load", "--mix", "get=1", "--rate", "-1"], &["rate -1 is not above 0"]);
    refuses(folder.path(), &["load", "--mix", "get=1", "--rate", "fast"], &["`fast` is not a number"]);
    refuses(folder.path(), &["load", "--mix", "get=1"], &["give --rate, --stages, --trace"]);
}

#[test]
fn a_retry_that_is_neither_is_refused() {
    refuses_plan(
        "rate = 300",
        "rate = 300\nretry = \"always\"",
        &["`always`", "neither `budget` nor `never`"],
    );
}

#[test]
fn a_budget_that_is_none_is_refused() {
    let with = |budget: &str| format!("{SMALL}\n[load.budget]\n{budget}\n");
    refuses_text(&with("hold = \"70ms\""), &["hold", "longer than a packet can tell", "at most 67ms"]);
    refuses_text(&with("hold = \"0us\""), &["spent before its task can be sent"]);
    refuses_text(&with("hodl = \"200us\""), &["unknown type `hodl`"]);
    let flags = ["load", "--mix", "hold=1", "--rate", "10", "--budget", "100ms"];
    refuses(folder().path(), &flags, &["longer than a packet can tell"]);
    let sweep = ["up", "--sweep", "0.5", "--budget", "200us"];
    refuses(folder().path(), &sweep, &["a live sweep have no budgets", "--sweep"]);
}

#[test]
fn a_latency_within_which_nothing_is_in_time_is_refused() {
    let with = |text: &str| SMALL.replace("[load]", &format!("[load]\n{text}"));
    refuses_text(&with("within = \"0us\""), &["within in [load]", "no answer comes within `0us`"]);
    refuses_text(&with("within = \"soon\""), &["`soon` is not a span"]);
    refuses_text(&with("within = \"hodl=5ms\""), &["unknown type `hodl`", "did you mean `hold`"]);
    refuses_text(&with("within = \"hold=5ms,4=1ms\""), &["type `hold` has two latencies"]);
    refuses_text(&with("refused_max = 1.5"), &["1.5 is not between 0 and 1"]);
    let load =
        |within: &'static str| ["load", "--mix", "hold=0.5,spin=0.5", "--rate", "9", "--within", within];
    refuses(folder().path(), &load("0us"), &["no answer comes within `0us`"]);
    refuses(folder().path(), &load("get=1ms"), &["unknown type `get`", "no rack was there"]);
    let sweep = ["up", "--sweep", "0.5", "--within", "200us"];
    refuses(folder().path(), &sweep, &["--within", "--sweep"]);
    let folder = folder();
    std::fs::write(folder.path().join("small.toml"), SMALL).expect("written");
    refuses(folder.path(), &["up", "small.toml", "--within", "get=1ms"], &["--within: unknown type `get`"]);
}

#[test]
fn a_mix_that_does_not_add_up_is_refused() {
    refuses_plan("hold=1", "hold=0.9", &["adds up to 0.9, not 1"]);
    refuses_plan("hold=1", "hold=0.5,spin=0.5", &["sends `spin`, which no slice serves"]);
    refuses(folder().path(), &["load", "--rate", "9", "--mix", "get=0.9,scan=0.2"], &["adds up to 1.1"]);
}

#[test]
fn a_sweep_of_live_racks_that_makes_no_sense_is_refused_before_anything_runs() {
    let folder = folder();
    let refuses = |flags: &[&str], parts: &[&str]| refuses(folder.path(), &[&["up"], flags].concat(), parts);
    refuses(&["--sweep", "0.9..0.3"], &["0.9..0.3", "ends before it starts"]);
    refuses(&["--sweep", "fast"], &["`fast` is not a number"]);
    refuses(&["--sweep", "1.2", "--replications", "1"], &["replications: 1 is not in 2..=1000"]);
    refuses(&["--sweep", "0.3", "--policy", "rian"], &["unknown", "`rian`", "did you mean `rain`?"]);
    for simulated in ["jsq", "dc-rs-h", "dc-rs-lb", "sparrow:2", "ringleader:4"] {
        let next = format!("sluice sweep {simulated}");
        let parts = [&format!("`{simulated}` runs in simulations only"), "ask for", &next];
        refuses(&["--sweep", "0.3", "--policy", simulated], &parts);
    }
    refuses(&["--sweep", "0.3", "--workload", "exp:"], &["exp:"]);
    refuses(&["--sweep", "0.3", "--workload", "a=1@exp:10us,large=0.1"], &["carry 8 bytes"]);
    refuses(
        &["--sweep", "0.3", "--workload", "exp:10us,priority=4"],
        &["priority = 4", "from 0 (first) to 3"],
    );
    std::fs::write(folder.path().join("day.csv"), "600000000,,10,0,,0,u1,2,12,0.02,0.03,0.0001,0\n")
        .expect("there is room");
    let trace = ["--sweep", "0.3", "--workload", "cluster-trace:day.csv:500us"];
    refuses(&trace, &["day.csv:1:25:", "the priority `12`"]);
    refuses(&["--sweep", "0.3", "--testbed", "none.toml"], &["none.toml", "no testbed can be read"]);
    let labelled =
        "clients = 1\n[labels]\nneeds = [\"task=gpu\"]\n[[labels.worker]]\ncount = 1\nlabels = [\"gpu\"]\n";
    std::fs::write(folder.path().join("labelled.toml"), labelled).expect("there is room");
    refuses(
        &["--sweep", "0.3", "--testbed", "labelled.toml"],
        &[
            "the rack has tasks that not every worker serves",
            "`rain:2` gives any task to any worker: take `rain:2,labels`",
        ],
    );
    std::fs::write(folder.path().join("nobody.toml"), labelled.replace("[\"gpu\"]", "[\"ssd\"]"))
        .expect("there is room");
    refuses(
        &["--sweep", "0.3", "--testbed", "nobody.toml", "--policy", "rain:1,labels"],
        &["names `gpu`, and no worker has it", "[[labels.worker]]"],
    );
    refuses(&["--sweep", "0.001", "--length", "1us"], &["has no task", "--length"]);
    refuses(&["--sweep", "0.3", "--out", "/proc/none"], &["/proc/none", "cannot be made"]);
    refuses(&["--replications", "3"], &["--sweep"]);
    refuses(&["plan.toml", "--sweep", "0.3"], &["--sweep", "cannot be used with"]);
}

#[test]
fn a_load_that_is_no_share_is_refused_before_anything_runs() {
    for load in ["0", "-1", "nan", "11"] {
        let flag = format!("--load={load}");
        refuses(
            folder().path(),
            &["versus", &flag, "--json"],
            &["load", "a share of what all workers can serve"],
        );
    }
    refuses(folder().path(), &["versus", "--policy", "rian:1"], &["rian"]);
}

#[test]
fn a_quota_that_no_switch_believes_is_refused() {
    refuses_plan("count = 2", "quota = 0", &["quota", "0 is outside 1 to 16"]);
    refuses_plan("count = 2", "quota = 17", &["17 is outside 1 to 16"]);
    refuses_plan("count = 2", "quota = 9", &["a quota of 9", "believes 8 at most"]);
    refuses(folder().path(), &["worker", "spin", "--quota", "17"], &["--quota", "17 is not in 1..=16"]);
}

#[test]
fn classes_that_cannot_be_are_refused() {
    let sizes = |sizes: &str| format!("types = [\"hold\"]\nsizes = {sizes}");
    for wrong in [r#"["5us", "3us"]"#, r#"["0us"]"#, r#"["1us", "2us", "3us", "4us"]"#] {
        refuses_plan(
            "types = [\"hold\"]",
            &sizes(wrong),
            &["line 6", "sizes", "one to three spans", "longer"],
        );
    }
    refuses_plan("types = [\"hold\"]", &sizes(r#"["5 apples"]"#), &["line 6", "5 apples"]);
    let plan = SMALL.replacen("types = [\"hold\"]", &sizes(r#"["5us", "9us"]"#), 1);
    let plan = format!("policy = \"rain:1,classes=2\"\n{plan}");
    refuses_text(&plan, &["slice `work` has 2 sizes", "2 classes", "give 1 at most"]);
    let plan = SMALL.replace("[load]", "[switch]\ntasks_per_slice = 65536\n[load]");
    let plan = format!("policy = \"rain:1,classes=4\"\n{plan}");
    refuses_text(&plan, &["1 slices of 262144 entries", "lower tasks_per_slice"]);
    let each = format!("{SMALL}[load.request.hold]\nbusy = \"1ms\"\neach = \"1us\"\n");
    refuses_text(&each, &["each", "give `keys` or `rows`"]);
    for wrong in ["rain:classes=3", "rain:classes=8", "rain:sizes=10"] {
        refuses(folder().path(), &["sweep", wrong, "--load", "0.5"], &["means nothing to rain", "classes=4"]);
    }
    refuses_text(
        &format!("policy = \"rain:1,classes=4,sizes=10%\"\n{SMALL}"),
        &["only the simulator", "`sizes`"],
    );
    let kernel = ["switch", "--io", "xdp", "--interface", "lo", "--listen", "127.0.0.1:0", "--policy"];
    refuses(folder().path(), &[&kernel[..], &["rain:1,classes=4"]].concat(), &["--io udp"]);
}

#[test]
fn labels_that_nobody_has_or_asks_for_are_refused() {
    let plan = |policy: &str, slice: &str, worker: &str| {
        let plan = SMALL.replacen("types = [\"hold\"]", &format!("types = [\"hold\"]\n{slice}"), 1);
        format!("policy = \"{policy}\"\n{}", plan.replacen("count = 2", &format!("count = 2\n{worker}"), 1))
    };
    let (needs, gpu) = ("needs = [\"hold=gpu\"]", "labels = [\"gpu\"]");
    let refuses = |policy: &str, slice: &str, worker: &str, parts: &[&str]| {
        refuses_text(&plan(policy, slice, worker), parts);
    };
    let nobody = ["slice `work` has tasks that need gpu", "give a [[worker]] of it these `labels`"];
    refuses("rain:2,labels", needs, "labels = [\"ssd\"]", &nobody);
    refuses("draconis:labels", needs, "labels = [\"ssd\"]", &nobody);
    refuses("draconis", needs, gpu, &["gives any task to any worker", "`draconis:labels`"]);
    refuses("rain:2", needs, gpu, &["gives any task to any worker", "take `rain:2,labels`"]);
    refuses(
        "rain:2,labels",
        "needs = [\"hodl=gpu\"]",
        gpu,
        &["line 7", "needs in [[slice]]", "did you mean `hold`?"],
    );
    refuses("rain:2,labels", "needs = [\"hold\"]", gpu, &["line 7", "TYPE=LABEL"]);
    refuses("rain:2,labels", "needs = [\"hold=a+b+c+d+e+f+g+h+i\"]", gpu, &["10 labels are more than 8"]);
    refuses("rain:2,labels", &format!("{needs}\nkinds = [\"gpu\"]"), "", &["name its kind, too"]);
    for policy in ["rain:2,labels,ranked", "rain:2,labels,classes=2"] {
        self::refuses(folder().path(), &["sweep", policy, "--load", "0.5"], &["means nothing to rain"]);
    }
    let kernel = ["switch", "--io", "xdp", "--interface", "lo", "--listen", "127.0.0.1:0", "--policy"];
    self::refuses(folder().path(), &[&kernel[..], &["rain:1,labels"]].concat(), &["--io udp"]);
}

#[test]
fn a_rack_without_workers_or_with_too_many_is_refused() {
    refuses_plan("count = 2", "count = 0", &["no workers", "add a [[worker]]"]);
    refuses_plan("count = 2", "count = 600", &["600 workers, 4800 tokens", "its ring holds 4096"]);
    refuses_plan("types = [\"hold\"]", "types = [\"hold\"]\nlimit = 9000", &["9000", "its ring holds 8192"]);
    refuses_plan("count = 2", "count = 5000", &["5000 is not between 0 and 1024"]);
    let plan = SMALL.replace("[load]", "[switch]\ntasks_per_slice = 1000\n[load]");
    refuses_text(&plan, &["1000 is not a power of two", "1024"]);
    let plan = SMALL.replace("[load]", "[switch]\ntasks_per_slice = 262144\n[load]");
    refuses_text(&plan, &["1 slices of 262144 entries", "lower tasks_per_slice"]);
}

#[test]
fn two_workers_of_one_name_are_refused() {
    let plan =
        SMALL.replace("[load]", "[[worker]]\nname = \"w-1\"\nslice = \"work\"\nservice = \"spin\"\n[load]");
    refuses_text(&plan, &["two workers are called `w-1`", "rename one"]);
}

#[test]
fn a_port_that_is_taken_or_out_of_range_is_refused() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("bound");
    let plan = SMALL.replace("[load]", &format!("[switch]\nlisten = \"{at}\"\n[load]"));
    refuses_text(&plan, &["switch", &at.to_string(), "choose another port"]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("bound");
    let plan = SMALL.replace("[load]", &format!("[switch]\ncontrol = \"{at}\"\n[load]"));
    refuses_text(&plan, &[&at.to_string()]);
    let plan = SMALL.replace("[load]", "[switch]\nlisten = \"127.0.0.1:70000\"\n[load]");
    refuses_text(&plan, &["port `70000`", "out of range"]);
}

#[test]
fn an_address_that_does_not_resolve_is_refused() {
    let plan = SMALL.replace("[load]", "[switch]\nlisten = \"no-such-host.invalid:0\"\n[load]");
    refuses_text(&plan, &["no-such-host.invalid", "does not resolve"]);
    refuses(
        folder().path(),
        &["status", "--controller", "no-such-host.invalid:1"],
        &["no-such-host.invalid"],
    );
}

#[test]
fn folders_that_cannot_be_written_are_refused() {
    refuses_plan("name = \"small\"", "state = \"/dev/null/state\"", &["/dev/null/state"]);
    refuses_plan(
        "name = \"small\"",
        "out = \"/dev/null/out\"",
        &["/dev/null/out", "a part of the path is a file"],
    );
    let plan = SMALL.replace("\"hold\"\n[load]", "\"rocksdb\"\n[rocksdb]\npath = \"/dev/null/db\"\n[load]");
    refuses_text(&plan, &["/dev/null", "choose another"]);
    refuses(folder().path(), &["worker", "rocksdb", "--db", "/dev/null/db"], &["/dev/null", "--db"]);
}

#[test]
fn a_dilation_under_one_is_refused() {
    refuses_plan("name = \"small\"", "dilation = 0", &["dilation", "0 is not a whole number from 1"]);
    refuses_plan("name = \"small\"", "dilation = 0.5", &["0.5 is not a whole number from 1"]);
    refuses(folder().path(), &["worker", "spin", "--dilate", "0"], &["--dilate"]);
}

#[test]
fn events_that_cannot_happen_are_refused() {
    let with = |event: &str| format!("{SMALL}[[event]]\n{event}\n");
    refuses_text(&with("at = \"500ms\"\nkill = \"worker w-9\""), &["unknown worker `w-9`", "w-1"]);
    refuses_text(
        &with("at = \"500ms\"\nkill = \"rack\""),
        &["`rack` cannot be killed", "switch, controller"],
    );
    refuses_text(&with("at = \"5s\"\nkill = \"switch\""), &["after the load's end"]);
    refuses_text(&with("at = \"500ms\"\nkill = \"controller\""), &["controller_apart = true"]);
    refuses_text(&with("kill = \"switch\""), &["`at` is missing"]);
}

#[test]
fn faults_that_make_no_sense_are_refused() {
    refuses_plan("name = \"small\"", "faults = \"lost=0.1\"", &["`lost` is none of loss"]);
    refuses(folder().path(), &["up", "--faults", "loss=2"], &["loss `2` is not a share", "from 0 to 1"]);
}

#[test]
fn a_load_against_an_absent_switch_ends_after_its_patience() {
    let at = free_address().to_string();
    let args =
        ["load", "--rate", "10", "--mix", "get=1", "--controller", &at, "--patience", "300ms", "--json"];
    refuses(folder().path(), &args, &[&at, "after 0.3 s"]);
    refuses(folder().path(), &["status", "--controller", &at, "--json"], &[&at, "sluice switch"]);
}

#[test]
fn whoever_asks_a_controller_that_is_not_there_hears_how_to_start_one() {
    let folder = folder();
    let nobody = free_address().to_string();
    for asks in [&["status"][..], &["move", "w", "s"], &["map", "get", "s"]] {
        let args = [asks, &["--controller", &nobody]].concat();
        refuses(folder.path(), &args, &["no controller answers", "start one with `sluice switch`"]);
    }
}

#[test]
fn serving_other_machines_takes_a_certificate_and_the_authority_of_those_who_may_call() {
    let folder = folder();
    std::fs::write(folder.path().join("empty.pem"), "").expect("written");
    let refuses = |args: &[&str], parts: &[&str]| refuses(folder.path(), args, parts);
    let switch = |control, more: &[&'static str]| {
        [&["switch", "--listen", "127.0.0.1:0", "--control", control][..], more].concat()
    };
    let tls = ["--tls", "empty.pem", "empty.pem"];
    refuses(&switch("0.0.0.0:0", &[]), &["0.0.0.0:0 without TLS", "--tls", "--client-ca"]);
    refuses(&switch("0.0.0.0:0", &tls), &["callers that show no certificate", "--client-ca"]);
    refuses(&switch("127.0.0.1:0", &tls), &["certificate empty.pem", "holds none", "-out"]);
    refuses(&switch("127.0.0.1:0", &["--client-ca", "empty.pem"]), &["--tls"]);
    let controller = ["controller", "--tables", "127.0.0.1:1", "--control", "0.0.0.0:0"];
    refuses(&[&controller[..], &tls].concat(), &["callers that show no certificate", "--client-ca"]);
    for asks in [
        &["status"][..],
        &["move", "w", "s"],
        &["map", "get", "s"],
        &["load", "--rate", "9", "--mix", "get=1"],
    ] {
        refuses(&[asks, &["--ca", "none.pem"]].concat(), &["authority none.pem", "give the path"]);
        refuses(&[asks, &["--identity", "empty.pem", "empty.pem"]].concat(), &["--ca"]);
    }
}

#[test]
fn a_controller_above_spines_writes_the_tables_of_each_of_them() {
    let folder = folder();
    let racks = SMALL.replace("[[slice]]", "[racks]\ncount = 1\nspines = 1\n[[slice]]");
    let two = racks.replace("count = 1\nspines = 1", "count = 2\nspines = 2");
    for (name, text) in [("one.toml", &racks), ("two.toml", &two)] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let refuses = |args: &[&str], parts: &[&str]| {
        refuses(folder.path(), &[&["controller"], args].concat(), parts);
    };
    let (one, two) = ("127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2");
    refuses(&["two.toml", "--tables", one], &["--tables has 1 addresses", "the spines", "are 2", "commas"]);
    refuses(&["one.toml", "--tables", two], &["--tables has 2 addresses", "are 1"]);
    refuses(&["one.toml", "--tables", one, "--control", two], &["--control has 2 addresses"]);
    refuses(&["one.toml", "--tables", "nowhere"], &["nowhere"]);
    let leaf = ["switch", "one.toml", "--leaf", "1", "--above", one, "--controller-apart"];
    let output = sluice(folder.path(), &leaf);
    assert_eq!(output.status.code(), Some(2), "a leaf has its rack's in its process");
}

#[test]
fn names_that_could_command_a_terminal_are_refused_in_plans() {
    refuses_plan("name = \"work\"", "name = \"wo rk\"", &["a slice", "`wo rk` holds ` `", "digits"]);
    refuses_plan("name = \"w\"", "name = \"w\\u001b\"", &["a worker", "holds `\\u{1b}`"]);
}

#[test]
fn a_load_to_a_slice_that_no_worker_serves_is_refused_before_anything_starts() {
    let other = "types = [\"hold\"]\n[[slice]]\nname = \"other\"\ntypes = [\"scan\"]";
    let plan = SMALL.replace("types = [\"hold\"]", other);
    let parts = ["the load sends `scan` to slice `other`", "no worker", "slice = \"other\""];
    refuses_text(&plan.replace("hold=1", "hold=0.5,scan=0.5"), &parts);
    let folder = folder();
    let unsent = plan.replace("hold=1", "hold=1,scan=0").replace("\"1s\"", "\"100ms\"");
    std::fs::write(folder.path().join("plan.toml"), unsent).expect("written");
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(json(&output)["tasks"]["refused"], 0, "nothing is sent there: {}", stderr(&output));
}

#[test]
fn an_address_that_is_not_here_is_not_told_to_take_another_port() {
    let plan = SMALL.replace("[[slice]]", "[switch]\nlisten = \"192.0.2.1:0\"\n[[slice]]");
    let folder = folder();
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    let control = ["switch", "plan.toml", "--control", "127.0.0.1:0"];
    let parts = ["192.0.2.1:0", "not one of this machine's", "ip -brief address"];
    refuses(folder.path(), &control, &parts);
    let said = stderr(&sluice(folder.path(), &control));
    assert!(!said.contains("port,") && !said.contains("another port"), "{said}");
}

#[test]
fn a_rack_is_not_looked_at_without_a_pause() {
    for every in ["0s", "1ns", "49ms"] {
        refuses(folder().path(), &["status", "--watch", "--every", every], &[every, "50ms"]);
    }
}

#[test]
fn files_that_are_no_text_are_told_with_their_line_and_what_helps() {
    let folder = folder();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("written");
        name.to_owned()
    };
    let plan = |bytes: &[u8]| [&SMALL.as_bytes()[..14], bytes].concat();
    for (bytes, part) in
        [(&b"\xff"[..], "line 2: byte 14 (0xff) is not UTF-8"), (b"\n\0", "line 3: byte 1 is NUL")]
    {
        let file = write("plan.toml", &plan(bytes));
        refuses(folder.path(), &["up", &file], &["plan.toml", part]);
    }
    let utf16 = write("utf16.toml", b"\xff\xfen\0a\0");
    refuses(folder.path(), &["up", &utf16], &["UTF-16", "iconv"]);
    refuses(folder.path(), &["up", "/"], &["name a file in it"]);
    refuses(folder.path(), &["reproduce", &utf16], &["UTF-16"]);
    refuses(folder.path(), &["report", &utf16], &["UTF-16"]);
}
