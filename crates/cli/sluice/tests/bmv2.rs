//! Racks with the switch on BMv2. They need root, `p4c-bm2-ss` and `simple_switch` (on the path, or in the
//! folders of `P4_TOOLS`); without these all tests except the first two print so and do nothing.

mod common;

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use common::namespaced::{self, descendants, folder_with, is_root, namespace, processes, start};
use common::{Running, SMALL, command, nothing_is_left_of, sluice, stderr};
use serde_json::Value;
use sluice_ports::free_address;

/// A worker, a server and the switch are killed.
const KILLED: &str = r#"
[rdma]
servers = 2
[[event]]
at = "2s"
kill = "worker w-1"
return_after = "500ms"
[[event]]
at = "4s"
kill = "server server-2"
return_after = "500ms"
[[event]]
at = "6s"
kill = "switch"
return_after = "500ms"
"#;

#[test]
fn what_a_switch_on_bmv2_cannot_do_is_refused_in_one_line() {
    let folder = folder_with(SMALL);
    let refused = |args: &[&str], why: &str| {
        let output = sluice(folder.path(), args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    };
    let switch = |more: &[&'static str]| [&["switch", "plan.toml", "--io", "bmv2"], more].concat();
    let on_lo = ["--interface", "lo", "--listen", "127.0.0.1:0"];
    refused(&switch(&["--listen", "127.0.0.1:0"]), "--interface");
    refused(&switch(&["--interface", "lo"]), "--listen");
    refused(&switch(&["--pins", "/sys/fs/bpf/x"]), "--io xdp");
    for (policy, why) in
        [("r2p2:2", "rain only"), ("rain:2,ranked", "ranks"), ("rain:2,target=50us", "no targets")]
    {
        refused(&switch(&[&on_lo[..], &["--policy", policy]].concat()), why);
    }
    refused(&["switch", "plan.toml", "--runtime", "p4runtime"], "add --io bmv2");
    let servers = ["--p4runtime", "127.0.0.1:1", "--thrift", "127.0.0.1:2"];
    refused(&[&["switch", "plan.toml"], &servers[..]].concat(), "add --io bmv2");
    let swept = ["up", "--sweep", "0.3", "--policy", "rain:2", "--io", "bmv2"];
    refused(&swept, "cannot be used with");
}

#[test]
fn a_machine_without_the_tools_hears_which_one_is_missing() {
    let folder = folder_with(SMALL);
    let args = ["switch", "plan.toml", "--io", "bmv2", "--interface", "lo", "--listen", "127.0.0.1:0"];
    let mut command = command(folder.path(), &args);
    // `env`, which starts the command, is there.
    command.env("PATH", "/usr/bin").env("P4_TOOLS", folder.path());
    if ["p4c-bm2-ss", "simple_switch"].iter().any(|name| Path::new("/usr/bin").join(name).exists()) {
        eprintln!("skipped: the tools are installed");
        return;
    }
    let output = command.output().expect("sluice starts");
    let said = stderr(&output);
    let why = if is_root() { "simple_switch was not found" } else { "takes root" };
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(why) && said.lines().count() == 1, "{said}");
}

#[test]
fn a_program_of_another_size_is_not_run() {
    if !may_run() {
        return;
    }
    let folder = folder_with(SMALL);
    let at = free_address().to_string();
    let args = ["switch", "plan.toml", "--io", "bmv2", "--interface", "lo", "--listen", &at, "--json"];
    let compiled = folder.path().join("out/small/state/bmv2/rain.json");
    let mut programs = Vec::new();
    for tasks in [1024, 2048] {
        let sized = format!("{SMALL}[switch]\ntasks_per_slice = {tasks}\ncontrol = \"127.0.0.1:0\"\n");
        fs::write(folder.path().join("plan.toml"), sized).expect("written");
        let mut switch = command(folder.path(), &args);
        let switch = switch.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut switch = switch.expect("sluice starts");
        let mut line = String::new();
        BufReader::new(switch.stdout.take().expect("piped")).read_line(&mut line).expect("its addresses");
        Running(switch).ends_well();
        programs.push(fs::read(&compiled).expect("compiled"));
    }
    fs::write(&compiled, &programs[0]).expect("written");
    let output = sluice(folder.path(), &args);
    let said = stderr(&output);
    let last = said.lines().last().unwrap_or_default();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(last.contains("program of another size"), "{said}");
    nothing_is_left_of(folder.path());
}

#[test]
fn a_rack_on_bmv2_loses_nothing_when_worker_server_and_switch_are_killed() {
    let plan = slow("10s") + KILLED;
    let Some(result) = run(&plan, &["--policy", "rain:1"]) else { return };
    assert_eq!((&result["io"], &result["policy"]), (&"bmv2".into(), &"rain:1".into()));
    assert_eq!(result["events"].as_array().expect("a list").len(), 3);
}

#[test]
fn a_rack_with_tables_over_p4runtime_loses_nothing_either() {
    if let Err(why) = sluice_bmv2::RuntimeApi::P4Runtime.switch() {
        eprintln!("skipped: {why}");
        return;
    }
    run(&(slow("10s") + KILLED), &["--policy", "rain:1", "--runtime", "p4runtime"]);
}

#[test]
fn a_rack_on_bmv2_that_is_killed_leaves_no_process() {
    if !may_run() {
        return;
    }
    let folder = folder_with(&(slow("60s") + "[rdma]\nservers = 0\n"));
    let mut up = start("bmv2", folder.path());
    let children = descendants(up.id());
    let namespaces = children.iter().filter_map(|pid| namespace(*pid)).collect::<HashSet<_>>();
    assert!(children.iter().any(|pid| name_of(*pid).as_deref() == Some("simple_switch")), "{children:?}");
    up.kill().expect("it is ours");
    up.wait().expect("it ends");
    while processes().filter_map(namespace).any(|id| namespaces.contains(&id)) {
        thread::sleep(Duration::from_millis(5));
    }
    nothing_is_left_of(folder.path());
}

#[test]
fn a_rack_whose_bmv2_dies_says_so_and_gets_a_new_one() {
    if !may_run() {
        return;
    }
    let folder = folder_with(&(slow("6s") + "[rdma]\nservers = 0\n"));
    let mut up = start("bmv2", folder.path());
    let mut children = descendants(up.id()).into_iter();
    let switch = children.find(|pid| name_of(*pid).as_deref() == Some("simple_switch"));
    let switch = rustix::process::Pid::from_raw(switch.expect("it runs") as i32).expect("a process");
    rustix::process::kill_process(switch, rustix::process::Signal::KILL).expect("it is ours");
    assert_eq!(up.wait().expect("it ends").code(), Some(0), "no task is lost");
    let log = fs::read_to_string(folder.path().join("out/small/logs/switch.log"));
    let log = log.expect("the switch's log");
    assert!(log.contains("BMv2 ended by itself, signal: 9"), "{log}");
}

/// A plan for a switch of some hundred packets a second on a busy machine.
fn slow(length: &str) -> String {
    let plan = SMALL
        .replace("rate = 300", "rate = 50")
        .replace("length = \"1s\"", &format!("length = \"{length}\""));
    plan.replace("name = \"small\"", "name = \"small\"\ndilation = 100\nout = \"out/small\"")
}

/// Runs a plan to its end, and checks that every task got a reply. `None` if this machine cannot.
fn run(plan: &str, args: &[&str]) -> Option<Value> {
    if !may_run() {
        return None;
    }
    Some(namespaced::run("bmv2", plan, args))
}

fn name_of(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).map(|name| name.trim().to_owned()).ok()
}

/// Whether this machine can run such a rack; says what is missing.
fn may_run() -> bool {
    let missing = ["p4c-bm2-ss", "simple_switch"].into_iter().find_map(|name| sluice_bmv2::tool(name).err());
    let missing = missing.map(|why| why.to_string());
    let missing = missing.or_else(|| (!is_root()).then(|| "network namespaces take root".to_owned()));
    if let Some(why) = &missing {
        eprintln!("skipped: {why}");
    }
    missing.is_none()
}
