//! What Prometheus reads of a live rack: the numbers that `sluice status` shows, of all processes from one
//! port, while they live.
#![allow(clippy::float_cmp, reason = "counts are whole numbers")]

mod common;
#[path = "../../../run/metrics/tests/strict/mod.rs"]
mod strict;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::namespaced::is_root;
use common::{Running, SMALL, command, json, sluice, sluice_succeeds, sluice_until, stderr, stdout};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sluice_ports::free_address;
use strict::Series;

/// More scrapes than anything here needs to come true.
const MOST_LOOKS: usize = 2_000;
/// More scrapes than a worker that was killed is down for.
const LOOKS_AT_A_KILL: usize = 600;

/// The metrics at an address.
fn scrape(at: SocketAddr) -> Series {
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    strict::read(body)
}

/// Scrapes again and again.
fn looks(at: SocketAddr) -> impl Iterator<Item = Series> {
    std::iter::repeat_with(move || {
        std::thread::sleep(std::time::Duration::from_millis(5));
        scrape(at)
    })
}

/// Scrapes until the values are as they should be.
fn wait_for(at: SocketAddr, what: &str, is_so: impl Fn(&Series) -> bool) -> Series {
    let mut last = Series::new();
    for seen in looks(at).take(MOST_LOOKS) {
        if is_so(&seen) {
            return seen;
        }
        last = seen;
    }
    panic!("never {what}: {last:#?}")
}

/// The sum of the series of this name whose labels have this part.
fn sum(series: &Series, name: &str, part: &str) -> f64 {
    let is_it =
        |key: &str| key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('{'));
    series.iter().filter(|(key, _)| is_it(key) && key.contains(part)).map(|(_, value)| value).sum()
}

/// Starts a small rack without its load, with metrics at `at`, and waits until it is ready.
fn rack(folder: &Path, at: SocketAddr) -> Running {
    rack_of(folder, at, SMALL.split("[load]").next().expect("the rack's part"))
}

fn rack_of(folder: &Path, at: SocketAddr, plan: &str) -> Running {
    std::fs::write(folder.join("small.toml"), plan).expect("written");
    let at = at.to_string();
    let up = command(folder, &["up", "small.toml", "--metrics", &at]).stderr(Stdio::piped()).spawn();
    let mut up = Running(up.expect("it starts"));
    let said = BufReader::new(up.0.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let mut said = said.filter(|line| line.contains("workers are ready"));
    let ready = said.next().expect("it is ready");
    assert!(ready.contains(&format!("http://{at}/metrics")), "{ready}");
    std::thread::spawn(move || said.for_each(drop));
    up
}

#[test]
fn one_port_has_what_status_says_and_what_each_process_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = free_address();
    let rack = rack(folder.path(), at);
    let load = ["load", "--mix", "hold=1", "--rate", "100", "--warm-up", "0s", "--length", "500ms", "--json"];
    let loaded = json(&sluice(folder.path(), &load));
    let replied = loaded["tasks"]["replied"].as_f64().expect("a number");
    let series = wait_for(at, "all counted", |series| {
        sum(series, "sluice_worker_tasks_served_total", "outcome=\"done\"") >= replied
            && sum(series, "sluice_controller_hosts", "client") == 0.0
    });
    let status = json(&sluice_succeeds(folder.path(), &["status", "--json"]));
    for (counter, name) in [
        ("submits", "sluice_switch_submits_total"),
        ("dispatched", "sluice_switch_tasks_dispatched_total"),
        ("rejected", "sluice_switch_tasks_rejected_total"),
        ("written_ahead", "sluice_switch_tasks_written_ahead_total"),
    ] {
        let shown = status["switch"]["counters"][counter].as_f64().unwrap_or(0.0);
        assert_eq!(sum(&series, name, "process=\"switch\""), shown, "{counter} of {status}");
    }
    let slice = &status["slices"][0];
    let of_slice = |name: &str| sum(&series, name, "slice=\"work\"");
    assert_eq!(of_slice("sluice_slice_open"), 1.0);
    assert_eq!(of_slice("sluice_slice_workers"), slice["workers"].as_f64().expect("a number"));
    // The limit is measured, and may move between two looks.
    wait_for(at, "the same limit", |series| {
        let status = json(&sluice_succeeds(folder.path(), &["status", "--json"]));
        let limit = status["slices"][0]["limit"].as_f64().expect("a number");
        sum(series, "sluice_slice_tasks_waiting_limit", "slice=\"work\"") == limit
    });
    assert_eq!(of_slice("sluice_slice_tasks_waiting"), 0.0);
    assert_eq!(sum(&series, "sluice_controller_hosts", "worker"), 2.0);
    assert_eq!(sum(&series, "sluice_controller_events_total", "worker-joined"), 2.0);
    for spans in ["service", "wait"] {
        let all = sum(&series, &format!("sluice_worker_{spans}_seconds_count"), "worker w-");
        assert!(all >= replied, "{all} of {replied} {spans}");
    }
    let up = |name: &str| sum(&series, "sluice_process_up", &format!("\"{name}\""));
    assert_eq!(["switch", "worker w-1", "worker w-2"].map(up), [1.0; 3]);
    rack.ends_well();
    TcpStream::connect(at).expect_err("nothing listens any more");
}

#[test]
fn a_plans_load_is_counted_beside_the_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = free_address();
    let _rack = rack_of(folder.path(), at, &SMALL.replace("length = \"1s\"", "length = \"60s\""));
    // A scrape may come between the counts of one task.
    wait_for(at, "replied, with a latency each", |series| {
        let of_load = |name: &str| sum(series, name, "process=\"load\"");
        let replied = sum(series, "sluice_client_tasks_ended_total", "process=\"load\",outcome=\"replied\"");
        replied > 0.0
            && of_load("sluice_client_latency_seconds_count") == replied
            && of_load("sluice_client_latency_seconds_sum") > of_load("sluice_client_service_seconds_sum")
            && of_load("sluice_client_tasks_submitted_total") >= replied
    });
}

#[test]
fn a_switch_in_the_kernel_counts_what_its_workers_do() {
    if !is_root() {
        eprintln!("skipped: network namespaces take root");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = free_address();
    let plan = SMALL.replace("length = \"1s\"", "length = \"60s\"") + "[switch]\nio = \"xdp\"\n";
    let _rack = rack_of(folder.path(), at, &plan);
    let counted = |series: &Series, name: &str| sum(series, name, "process=\"switch\"");
    wait_for(at, "dispatched and served", |series| {
        let served = sum(series, "sluice_worker_tasks_served_total", "outcome=\"done\"");
        let submits = counted(series, "sluice_switch_submits_total");
        served > 100.0 && submits >= served && counted(series, "sluice_switch_tasks_dispatched_total") > 100.0
    });
    let up = wait_for(at, "all up", |series| sum(series, "sluice_process_up", "") >= 3.0);
    assert_eq!(sum(&up, "sluice_process_up", "\"switch\""), 1.0);
}

#[test]
fn a_server_tells_its_memory() {
    let (folder, at) = (tempfile::tempdir().expect("a folder"), free_address());
    let rack = rack(folder.path(), at);
    wait_for(at, "the server has rings", |series| {
        let of_server = |name: &str| sum(series, name, "process=\"server server-1\"");
        of_server("sluice_server_rings") > 0.0 && of_server("sluice_server_memory_bytes") > 0.0
    });
    rack.ends_well();
}

#[test]
fn leaves_below_a_spine_count_what_it_hands_down_and_what_they_tell_it() {
    let (folder, at) = (tempfile::tempdir().expect("a folder"), free_address());
    let racks = "name = \"small\"\npolicy = \"dc-horus\"\n[racks]\ncount = 2";
    let plan = SMALL.replace("name = \"small\"", racks).replace("length = \"1s\"", "length = \"1800s\"");
    let _rack = rack_of(folder.path(), at, &plan);
    wait_for(at, "both leaves serve", |series| {
        let of = |name: &str, process: &str| sum(series, name, &format!("process=\"{process}\""));
        let serves = |leaf: &str| {
            of("sluice_leaf_tasks_handed_down_total", leaf) > 0.0
                && of("sluice_leaf_packets_told_above_total", leaf) > 0.0
                && of("sluice_switch_tasks_dispatched_total", leaf) > 0.0
        };
        serves("leaf 1") && serves("leaf 2") && of("sluice_switch_submits_total", "switch") > 0.0
    });
}

#[test]
fn a_worker_that_is_killed_is_down_until_it_counts_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = free_address();
    let rack = rack(folder.path(), at);
    let up = |series: &Series| sum(series, "sluice_process_up", "worker w-1");
    let registered = |series: &Series| sum(series, "sluice_worker_registered", "worker w-1");
    wait_for(at, "registered", |series| up(series) + registered(series) == 2.0);
    // `sluice up` starts it again half a second later. A test that gets no turn for so long kills once more.
    let series = (0..3).find_map(|_| {
        kill_process(rack.worker_process("w-1"), Signal::KILL).expect("it lives");
        looks(at).take(LOOKS_AT_A_KILL).find(|series| up(series) == 0.0)
    });
    let series = series.expect("never down");
    assert!(!series.keys().any(|key| key.starts_with("sluice_worker") && key.contains("w-1")), "{series:?}");
    wait_for(at, "back", |series| up(series) + registered(series) == 2.0);
    rack.ends_well();
}

#[test]
fn a_port_that_is_taken_ends_each_command_before_it_does_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.toml"), SMALL).expect("written");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = taken.local_addr().expect("bound").to_string();
    for args in [
        &["up", "small.toml"][..],
        &["switch", "small.toml"],
        &["controller", "small.toml", "--tables", "127.0.0.1:1"],
        &["worker", "hold", "--controller", "127.0.0.1:1"],
        &["server", "--memory", "memory", "--controller", "127.0.0.1:1"],
    ] {
        let output = sluice(folder.path(), &[args, &["--metrics", &at]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(&at) && said.contains("choose another port"), "{args:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{args:?}: {said}");
        let left = std::fs::read_dir(folder.path()).expect("ours").flatten().map(|entry| entry.file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["small.toml"], "{args:?} left something behind");
    }
}

#[test]
fn a_switch_and_its_plan_say_where_the_metrics_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = SMALL.split("[load]").next().expect("the rack's part");
    let plan = format!("{plan}[switch]\ncontrol = \"127.0.0.1:0\"\nmetrics = \"127.0.0.1:0\"\n");
    std::fs::write(folder.path().join("small.toml"), plan).expect("written");
    let started = command(folder.path(), &["switch", "small.toml", "--json"]).stdout(Stdio::piped()).spawn();
    let mut switch = Running(started.expect("it starts"));
    let mut line = String::new();
    BufReader::new(switch.0.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let listening: Value = serde_json::from_str(&line).expect("JSON");
    common::hold_to_schema(&listening);
    let at = listening["metrics"].as_str().and_then(|at| at.parse().ok()).expect("an address");
    let series = wait_for(at, "up", |series| series.get("sluice_controller_switch_up") == Some(&1.0));
    assert_eq!(series["sluice_slice_workers{slice=\"work\"}"], 0.0);
    assert_eq!(series["sluice_controller_calls_refused_total{reason=\"name\"}"], 0.0);
    assert!(!series.keys().any(|key| key.contains("process=")), "{series:?}");
    switch.ends_well();
}

/// What Prometheus at `at` has at a path of its interface; null until it is ready.
fn data(at: SocketAddr, path: &str) -> Value {
    let Ok(mut stream) = TcpStream::connect(at) else { return Value::Null };
    let request = format!("GET /api/v1/{path} HTTP/1.0\r\nHost: x\r\n\r\n");
    let mut answer = String::new();
    if stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer)).is_err() {
        return Value::Null;
    }
    // It says 503 until it is ready.
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str::<Value>(body).map_or(Value::Null, |mut answer| answer["data"].take())
}

/// What Prometheus at `at` answers to a query: the value of each series.
fn query(at: SocketAddr, query: &str) -> Vec<f64> {
    let plain = |letter: &u8| letter.is_ascii_alphanumeric();
    let escaped: String = query
        .bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let answer = data(at, &format!("query?query={escaped}"));
    let series = answer["result"].as_array().cloned().unwrap_or_default();
    series.iter().filter_map(|of| of["value"][1].as_str()?.parse().ok()).collect()
}

/// What an expression compares in the end, without the comparison, which leaves out what is in order.
fn compared(expression: &str) -> &str {
    let is_whole = |of: &str| of.matches('(').count() == of.matches(')').count();
    let parts = [" > ", " == "].iter().filter_map(|sign| expression.rsplit_once(sign));
    parts.map(|(of, _)| of).find(|of| is_whole(of)).unwrap_or(expression)
}

/// All expressions of the board, over a time that a test can wait for.
fn expressions_of_the_board() -> Vec<String> {
    let board: Value = serde_json::from_str(include_str!("../../../../docs/manual/prometheus/board.json"))
        .expect("the board is JSON");
    let panels = board["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let texts = targets.map(|target| target["expr"].as_str().expect("an expression"));
    texts.map(|text| text.replace("$instance", ".*").replace("$__rate_interval", "10s")).collect()
}

/// All rules that Prometheus at `at` has read, once it is ready.
fn rules(at: SocketAddr) -> Vec<Value> {
    let groups = data(at, "rules")["groups"].as_array().cloned().unwrap_or_default();
    groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect()
}

/// Starts Prometheus with our rules, for a rack whose metrics are at `rack`; `None` if none is here. `sluice
/// up` waits two seconds for a process that does not answer, so a scrape has three.
fn prometheus(folder: &Path, rack: SocketAddr, api: SocketAddr) -> Option<Running> {
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/manual/prometheus/rules.yml");
    let config = format!(
        "global: {{scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 200ms}}\n\
         rule_files: [{rules}]\n\
         scrape_configs: [{{job_name: sluice, static_configs: [{{targets: [\"{rack}\"]}}]}}]\n"
    );
    std::fs::write(folder.join("prometheus.yml"), config).expect("written");
    let started = Command::new("prometheus")
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=series"])
        .arg(format!("--web.listen-address={api}"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let is_here = started.map(Running).ok();
    if is_here.is_none() {
        eprintln!("skipped: no prometheus is here (scripts/setup --test unpacks it)");
    }
    is_here
}

/// Needs the program `prometheus` of Debian's package, which `scripts/setup --test` unpacks.
#[test]
fn prometheus_reads_a_live_rack_and_all_of_board_and_rules_has_data_and_a_stopped_worker_fires() {
    let (folder, at, api) = (tempfile::tempdir().expect("a folder"), free_address(), free_address());
    let Some(mut prometheus) = prometheus(folder.path(), at, api) else { return };
    let plan = SMALL.replace("length = \"1s\"", "length = \"1800s\"");
    let rack = rack_of(folder.path(), at, &plan);
    let mut seen = |text: &str, is_so: &dyn Fn(&[f64]) -> bool| {
        let found = (0..MOST_LOOKS).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            is_so(&query(api, text))
        });
        assert!(found && prometheus.runs(), "{text}: {:?}", query(api, text));
    };
    seen("up", &|values| values == [1.0]);
    seen("sluice_process_up", &|values| values.len() >= 3 && values.iter().all(|value| *value == 1.0));
    seen("sum(rate(sluice_worker_tasks_served_total[10s]))", &|values| values.first() > Some(&1.0));
    seen("sluice:client_latency_seconds:p99", &|values| values.first() > Some(&0.0));
    for expression in expressions_of_the_board() {
        seen(compared(&expression), &|values| !values.is_empty());
    }
    let rules = rules(api);
    assert!(rules.len() > 15, "{rules:?}");
    for rule in &rules {
        assert_ne!(rule["health"], "err", "{rule}");
        seen(compared(rule["query"].as_str().expect("a query")), &|values| !values.is_empty());
    }
    let firing = |alert: &str| format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}");
    // A lease may have ended while this machine stood still, and is told of for minutes.
    seen(&firing("SluiceProcessDown"), &<[f64]>::is_empty);
    let worker = rack.worker_process("w-1");
    kill_process(worker, Signal::STOP).expect("it lives");
    seen(&firing("SluiceProcessDown"), &|values| values == [1.0]);
    seen(&firing("SluiceHostsDied"), &|values| values.contains(&1.0));
    kill_process(worker, Signal::CONT).expect("it lives");
    seen(&firing("SluiceProcessDown"), &<[f64]>::is_empty);
}

/// Needs the program `promtool` of the same package.
#[test]
fn each_alert_fires_when_it_should_and_not_before() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/manual/prometheus");
    let mut promtool = Command::new("promtool");
    let Ok(tried) = promtool.args(["test", "rules", "rules.test.yml"]).current_dir(folder).output() else {
        return eprintln!("skipped: no promtool is here (scripts/setup --test unpacks it)");
    };
    assert!(tried.status.success(), "{}{}", stdout(&tried), stderr(&tried));
    let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).expect("it is there");
    let tests = read("rules.test.yml");
    for alert in read("rules.yml").lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let name = format!("alertname: {alert}\n");
        let mut looks = tests.split(&name).skip(1).filter_map(|of| of.split("- alertname:").next());
        assert!(
            looks.any(|look| look.contains("exp_alerts:")),
            "rules.test.yml has no time at which {alert} fires"
        );
    }
}

/// A controller of a switch apart, which waits for the lead: where it is asked, and where its metrics are.
fn standby(folder: &Path, tables: &str) -> (Running, String, SocketAddr) {
    let own = ["controller", "small.toml", "--json", "--standby", "--tables", tables];
    let args = [&own[..], &["--control", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]].concat();
    let mut started = Running(
        command(folder, &args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts"),
    );
    let mut line = String::new();
    BufReader::new(started.0.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let listening: Value = serde_json::from_str(&line).expect("JSON");
    let at = |key: &str| listening[key].as_str().expect("an address").to_owned();
    (started, at("control"), at("metrics").parse().expect("an address"))
}

#[test]
fn a_standby_is_no_alert_and_all_tell_of_a_switch_that_stands_still() {
    let (folder, tables) = (tempfile::tempdir().expect("a folder"), free_address().to_string());
    let plan = SMALL.split("[load]").next().expect("the rack's part");
    std::fs::write(folder.path().join("small.toml"), plan).expect("written");
    let apart = ["switch", "small.toml", "--controller-apart", "--control", &tables];
    let switch = command(folder.path(), &apart).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let switch = Running(switch.expect("it starts"));
    let controllers = [(); 2].map(|()| standby(folder.path(), &tables));
    let [(_, one, at), (_, other, other_at)] = &controllers;
    let leads = |series: &Series| series.get("sluice_controller_leads") == Some(&1.0);
    let reaches = |series: &Series| series.get("sluice_controller_switch_up") == Some(&1.0);
    let both = |what: &str, is_so: &dyn Fn(&Series, &Series) -> bool| {
        wait_for(*at, what, |series| is_so(series, &scrape(*other_at)));
    };
    both("one leads and both reach the switch", &|one, other| {
        leads(one) != leads(other) && reaches(one) && reaches(other)
    });
    // What a standby does not know would look like a slice without workers.
    both("the leader alone tells of slices", &|one, other| {
        [one, other].iter().all(|of| of.contains_key("sluice_slice_open{slice=\"work\"}") == leads(of))
    });
    kill_process(Pid::from_child(&switch.0), Signal::STOP).expect("it lives");
    both("neither leads or reaches the switch", &|one, other| {
        [one, other].iter().all(|of| !leads(of) && !reaches(of))
    });
    for controller in [one, other] {
        let lost = (0..MOST_LOOKS).find_map(|_| {
            let status = json(&sluice(folder.path(), &["status", "--json", "--controller", controller]));
            (status["findings"][0]["code"] == "switch-lost").then_some(status)
        });
        let standing = &lost.expect("it says so")["standing"];
        assert_eq!((&standing["role"], &standing["leader"]), (&"standby".into(), &"".into()), "{standing}");
    }
    let all = format!("{one},{other}");
    let parts = [
        "standby, the switch does not say who leads: ",
        "no controller leads now\nwhat is wrong:",
        "(switch-lost)",
    ];
    let says_all = |output: &Output| parts.iter().all(|part| stdout(output).contains(part));
    let said = sluice_until(folder.path(), &["status", "--controller", &all], says_all);
    assert!(says_all(&said), "{parts:?}: {}", stdout(&said));
    kill_process(Pid::from_child(&switch.0), Signal::CONT).expect("it lives");
    both("one leads again", &|one, other| leads(one) != leads(other));
}
