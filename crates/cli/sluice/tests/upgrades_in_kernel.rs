//! A switch in the kernel whose process is replaced while a load runs, in network namespaces. Needs root;
//! without root the tests print so and do nothing.

mod common;

use std::fs;
use std::thread;
use std::time::Duration;

use common::loaded::{LoadedRack, ReplacedPart};
use common::namespaced::is_root;
use serde_json::Value;

/// Three workers serve at once, so that one may be missing.
const PLAN: &str = r#"
name = "kept"
[switch]
io = "xdp"
listen = "SWITCH"
control = "CONTROL"
[[slice]]
name = "work"
types = ["hold"]
[[worker]]
name = "w"
count = 3
slice = "work"
service = "hold"
"#;

/// Tasks a second: few, since a busy machine must not be the reason why tasks wait.
const RATE: &str = "50";
/// How many more frames come to the client while no process drives the switch.
const FRAMES: u64 = 150;

#[test]
fn a_switch_in_the_kernel_and_its_workers_are_replaced_under_load_and_every_task_is_answered() {
    let Some(rack) = rack() else { return };
    let mut switch = switch(&rack, &[]);
    let mut workers = rack.workers();
    let epoch = epoch(&rack.wait(|_| true));
    rack.under_load(RATE, || {
        for worker in &mut workers {
            switch.replace();
            rack.serves_again();
            worker.replace();
            rack.serves_again();
        }
        // Longer than a lease, and without a farewell.
        switch.end();
        goes_on();
        switch.start_again();
        rack.serves_again();
        switch.kill();
        goes_on();
        switch.start_again();
        rack.serves_again();
    });
    let status = rack.wait(|_| true);
    assert_eq!(self::epoch(&status), epoch, "the program was emptied: {status}");
}

#[test]
fn the_process_of_a_switch_in_the_kernel_is_replaced_under_load_beside_a_controller_of_its_own() {
    let Some(rack) = rack() else { return };
    let tables = "127.0.0.1:7401";
    let mut switch = switch(&rack, &["--controller-apart", "--control", tables]);
    let control = rack.control.to_string();
    let own = ["controller", "plan.toml", "--json", "--tables", tables, "--control", &control];
    let mut controller = rack.beside_links(&[&own[..], &["--own-network"]].concat());
    let _workers = rack.workers();
    let before = rack.wait(|_| true);
    rack.under_load_of(&["--rate", RATE, "--retry", "never"], || {
        for _ in 0..2 {
            switch.end();
            goes_on();
            rack.wait(|status| status["switch"]["link"] == "down");
            switch.start_again();
            rack.serves_again();
            controller.replace();
            rack.serves_again();
        }
    });
    let after = rack.wait(|_| true);
    assert_eq!(epoch(&after), epoch(&before), "the program was emptied: {after}");
    assert_eq!(generations(&after), generations(&before), "a worker had to register anew: {after}");
}

fn rack() -> Option<LoadedRack> {
    if !is_root() {
        eprintln!("skipped: network namespaces take root");
        return None;
    }
    Some(LoadedRack::in_spaces(PLAN, 3))
}

fn switch<'r>(rack: &'r LoadedRack, flags: &[&str]) -> ReplacedPart<'r> {
    let links = rack.links();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    rack.beside_links(&[&["switch", "plan.toml", "--json", "--own-network"], flags, &links].concat())
}

fn epoch(status: &Value) -> u64 {
    status["switch"]["epoch"].as_u64().expect("the switch is known")
}

/// The workers' generations by index.
fn generations(status: &Value) -> Vec<(u64, u64)> {
    let workers = status["workers"].as_array().expect("a list").iter();
    let of = |worker: &Value| {
        (worker["worker"].as_u64().expect("a number"), worker["generation"].as_u64().expect("a number"))
    };
    let mut all: Vec<_> = workers.map(of).collect();
    all.sort_unstable();
    all
}

/// Waits until many more frames have come over the client's link: nothing else sends so many there.
fn goes_on() {
    let enough = received() + FRAMES;
    while received() < enough {
        thread::sleep(Duration::from_millis(5));
    }
}

/// How many frames came over the link of this thread's namespace.
fn received() -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").expect("procfs");
    let link = table.lines().find_map(|line| line.trim().strip_prefix("rack:"));
    let frames = link.and_then(|counts| counts.split_whitespace().nth(1));
    frames.and_then(|frames| frames.parse().ok()).expect("the client's link")
}
