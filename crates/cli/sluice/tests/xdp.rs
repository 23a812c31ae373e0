//! Racks with the switch in the kernel. They need root; without root all tests except the first print so
//! and do nothing.

mod common;

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::Duration;

use common::namespaced::{self, descendants, folder_with, is_root, namespace, processes, start};
use common::{SMALL, sluice, stderr};
use serde_json::Value;

/// A small rack with two servers and large tasks, whose switch, server and worker are killed.
const KILLED: &str = r#"
[rdma]
servers = 2
[[event]]
at = "1s"
kill = "worker w-1"
return_after = "300ms"
[[event]]
at = "2s"
kill = "server server-2"
return_after = "300ms"
[[event]]
at = "3s"
kill = "switch"
return_after = "500ms"
"#;

#[test]
fn what_a_rack_in_the_kernel_cannot_do_is_refused_in_one_line() {
    let folder = folder_with(SMALL);
    let refused = |args: &[&str], why: &str| {
        let output = sluice(folder.path(), &[&["up", "plan.toml", "--io", "xdp"], args].concat());
        let said = stderr(&output);
        let why = if is_root() { why } else { "takes root" };
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    };
    refused(&["--policy", "r2p2:2"], "--io xdp schedules by rain only");
    refused(&["--faults", "loss=0.1,delay=5ms"], "leave `delay` out");
    for (key, why) in
        [("transport = \"rc\"", "unreliable pairs only"), ("link_mtu = 9000", "links of 3400 B")]
    {
        let plan = format!("{SMALL}[rdma]\n{key}\n");
        fs::write(folder.path().join("plan.toml"), plan).expect("written");
        refused(&[], why);
    }
}

#[test]
fn a_rack_in_the_kernel_loses_nothing_when_worker_server_and_switch_are_killed() {
    let plan = SMALL.replace("length = \"1s\"", "length = \"6s\"\ndeadline = \"60s\"") + KILLED;
    let Some(result) = run(&plan, &["--policy", "rain:1"]) else { return };
    assert_eq!((&result["io"], &result["policy"]), (&"xdp".into(), &"rain:1".into()));
    assert_eq!(result["events"].as_array().expect("a list").len(), 3);
}

#[test]
fn links_that_lose_double_and_reorder_frames_lose_no_task() {
    let plan = SMALL.replace("rate = 300", "rate = 100").replace("length = \"1s\"", "length = \"5s\"");
    let plan = plan.replace("name = \"small\"", "dilation = 10");
    let faults = "loss=0.02,dup=0.02,reorder=0.05";
    let Some(result) = run(&plan, &["--faults", faults]) else { return };
    assert_eq!(result["faults"], faults);
}

#[test]
fn a_rack_that_is_killed_leaves_no_process_in_its_namespaces() {
    if !is_root() {
        return skipped();
    }
    // Without servers, since the next run of the plan would remove leftovers of their memory.
    let plan = SMALL.replace("length = \"1s\"", "length = \"60s\"") + "[rdma]\nservers = 0\n";
    let folder = folder_with(&plan);
    // A machine has some of its own, such as systemd's.
    let mounts = || -> Vec<String> {
        let mounts = fs::read_to_string("/proc/mounts").expect("it is there");
        mounts.lines().filter(|line| line.contains(" bpf rw")).map(str::to_owned).collect()
    };
    let before = mounts();
    let mut up = start("xdp", folder.path());
    let namespaces = descendants(up.id()).iter().filter_map(|pid| namespace(*pid)).collect::<HashSet<_>>();
    assert!(namespaces.len() == 3, "switch and workers live apart: {namespaces:?}");
    up.kill().expect("it is ours");
    up.wait().expect("it ends");
    while processes().filter_map(namespace).any(|id| namespaces.contains(&id)) {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(mounts(), before, "a mount is left");
}

/// Runs a plan in the kernel to its end, and checks that every task got a reply. `None` if the user may
/// not.
fn run(plan: &str, args: &[&str]) -> Option<Value> {
    if !is_root() {
        skipped();
        return None;
    }
    Some(namespaced::run("xdp", plan, args))
}

fn skipped() {
    eprintln!("skipped: network namespaces take root");
}
