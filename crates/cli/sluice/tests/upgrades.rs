//! Each process of a rack is replaced while a load runs: it is asked to end as a service manager does, and
//! the same program starts anew. No task may be lost, refused or end as unknown. The processes are separate,
//! on loopback. With SLUICE_BEFORE, the program of an earlier build, each replacement is by the other build,
//! as `scripts/upgrade-from` runs it.

mod common;

use std::process::Stdio;
use std::time::Duration;

use common::loaded::{BEFORE, LoadedRack, ReplacedPart, tasks};
use common::{Running, command};
use rustix::process::{Pid, Signal, kill_process};
use sluice_ports::free_address;

/// A rack whose address stays while its switch is replaced. Three workers serve at once, so that one may be
/// missing.
const PLAN: &str = r#"
name = "upgraded"
[switch]
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

/// How often a controller is replaced; other processes are about as often.
const TIMES: usize = 3;

#[test]
fn a_switch_on_a_socket_and_its_workers_are_replaced_under_load_and_every_task_is_answered() {
    let rack = LoadedRack::new(PLAN, 3);
    let mut switch = ReplacedPart::start(rack.path(), &["switch", "plan.toml", "--json"]);
    let mut workers = rack.workers();
    rack.under_load("200", || {
        for worker in &mut workers {
            switch.replace();
            rack.serves_again();
            worker.replace();
            rack.serves_again();
        }
    });
}

#[test]
fn a_controller_in_a_process_of_its_own_and_then_its_switch_are_replaced_under_load() {
    let tables = free_address().to_string();
    let rack = LoadedRack::new(PLAN, 3);
    let control = rack.control.to_string();
    let apart = ["switch", "plan.toml", "--json", "--controller-apart", "--control", &tables];
    let mut switch = ReplacedPart::start(rack.path(), &apart);
    let own = ["controller", "plan.toml", "--json", "--tables", &tables, "--control", &control];
    let mut controller = ReplacedPart::start(rack.path(), &own);
    let _workers = rack.workers();
    if std::env::var_os(BEFORE).is_none() {
        let status = rack.wait(|status| status["builds"].as_array().is_some_and(|builds| builds.len() >= 5));
        let kinds = |kind: &str| {
            let builds = status["builds"].as_array().expect("a list").iter();
            builds.filter(|of| of["kind"] == kind && of["build"] == env!("CARGO_PKG_VERSION")).count()
        };
        assert_eq!([kinds("controller"), kinds("switch"), kinds("worker")], [1, 1, 3], "{status}");
    }
    rack.under_load("200", || {
        for _ in 0..TIMES {
            controller.replace();
            rack.serves_again();
        }
        switch.replace();
        rack.serves_again();
    });
}

#[test]
fn a_server_and_the_workers_beside_it_are_replaced_under_load() {
    let rack = LoadedRack::new(&(PLAN.to_owned() + "[rdma]\nservers = 1\n"), 3);
    let control = rack.control.to_string();
    let _switch = ReplacedPart::start(rack.path(), &["switch", "plan.toml", "--json"]);
    let beside = ["server", "plan.toml", "--json", "--controller", &control, "--name", "server-1"];
    let mut server = ReplacedPart::start(rack.path(), &[&beside[..], &["--memory", "memory"]].concat());
    let mut workers = rack.workers();
    rack.under_load("200", || {
        for worker in &mut workers {
            server.replace();
            rack.wait(|status| status["servers"].as_array().is_some_and(|servers| servers.len() == 1));
            worker.replace();
            rack.serves_again();
        }
    });
}

/// Two racks below a spine; each has two workers.
const RACKS: &str = r#"
name = "racks"
policy = "dc-rain:1,told=replies"
[switch]
listen = "SWITCH"
control = "CONTROL"
[racks]
count = 2
[[slice]]
name = "work"
types = ["hold"]
[[worker]]
name = "a"
count = 2
rack = 1
slice = "work"
service = "hold"
[[worker]]
name = "b"
count = 2
rack = 2
slice = "work"
service = "hold"
"#;

#[test]
fn leaves_and_their_spine_are_replaced_under_load() {
    let rack = LoadedRack::new(RACKS, 2);
    let above = rack.control.to_string();
    let mut spine = ReplacedPart::start(rack.path(), &["switch", "plan.toml", "--json", "--spine"]);
    let mut leaves = Vec::new();
    let mut workers = Vec::new();
    for (number, names) in [("1", ["a-1", "a-2"]), ("2", ["b-1", "b-2"])] {
        let (at, control) = (free_address().to_string(), free_address());
        let role = ["switch", "plan.toml", "--json", "--leaf", number, "--above", &above, "--listen", &at];
        leaves.push(ReplacedPart::start(
            rack.path(),
            &[&role[..], &["--control", &control.to_string()]].concat(),
        ));
        workers.extend(names.map(|name| rack.worker(name, control)));
    }
    rack.wait(|status| rack.is_whole(status));
    rack.under_load("200", || {
        for leaf in &mut leaves {
            leaf.replace();
            rack.serves_again();
        }
        spine.replace();
        rack.serves_again();
    });
}

#[test]
fn a_worker_whose_service_does_not_return_is_ended_by_a_second_signal() {
    let load = "[load]\nrate = 1\nmix = \"spin=1\"\n[load.request.spin]\nbusy = \"10s\"\n";
    let rack = LoadedRack::new(&(PLAN.replace("hold", "spin") + load), 1);
    let control = rack.control.to_string();
    let _switch = ReplacedPart::start(rack.path(), &["switch", "plan.toml", "--json"]);
    let worker = ["worker", "spin", "--controller", &control, "--name", "w-1", "--drain-limit", "1min"];
    let mut worker = command(rack.path(), &worker);
    let worker = worker.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut worker = Running(worker);
    rack.wait(|status| status["workers"].as_array().is_some_and(|workers| workers.len() == 1));
    let args = ["load", "plan.toml", "--controller", &control];
    let load = command(rack.path(), &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _load = Running(load.expect("it starts"));
    rack.wait(|status| tasks(status) > 0);
    let pid = Pid::from_child(&worker.0);
    // The service spins.
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", worker.0.id())).expect("it lives");
        let in_user_mode = stat.rsplit(") ").next().and_then(|stat| stat.split(' ').nth(11));
        in_user_mode.and_then(|ticks| ticks.parse().ok()).expect("a number")
    };
    let before = ticks();
    while ticks() < before + 20 {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Two equal signals that are pending at once count as one.
    kill_process(pid, Signal::TERM).expect("it lives");
    kill_process(pid, Signal::INT).expect("it lives");
    assert_eq!(worker.0.wait().expect("it ends").code(), Some(4));
}
