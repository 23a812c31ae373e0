//! Several controllers of one rack, in processes of their own, of which one leads: they are killed, stopped
//! and ended under a load that loses nothing. The commands are those of `docs/manual/controllers.md`, on
//! free ports.

mod common;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::page_rack::PageRack;
use common::{Running, command, json, sluice, stderr, stdout, terminate};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const PAGE: &str = include_str!("../../../../docs/manual/controllers.md");
const PATIENCE: Duration = Duration::from_mins(2);

/// A rack whose processes are those that the page starts.
struct Rack {
    page: PageRack,
    /// The switch and the workers.
    others: Vec<Running>,
    controllers: Vec<(String, Running)>,
}

impl Rack {
    fn start() -> Self {
        let page =
            PageRack::of(PAGE, &["127.0.0.1:7400", "127.0.0.1:7401", "127.0.0.1:7402", "127.0.0.1:7000"]);
        let mut rack = Self { page, others: Vec::new(), controllers: Vec::new() };
        let lines: Vec<_> = rack.page.lines("sh stays").collect();
        for line in lines {
            rack.start_line(line);
        }
        assert_eq!((rack.others.len(), rack.controllers.len()), (3, 2), "the page starts a rack");
        rack
    }

    fn path(&self) -> &Path {
        self.page.path()
    }

    fn start_line(&mut self, line: &str) {
        let (running, args) = (self.page.start(line), self.page.args(line));
        match args[0].as_str() {
            "controller" => {
                let at = args.iter().position(|arg| *arg == "--control").expect("the page names it");
                self.controllers.push((args[at + 1].clone(), running));
            }
            _ => self.others.push(running),
        }
    }

    /// The addresses of all controllers, as `--controller` takes them.
    fn all(&self) -> String {
        self.page.here("127.0.0.1:7400,127.0.0.1:7402")
    }

    fn asked(&self, args: &[&str]) -> Output {
        sluice(self.path(), &[args, &["--controller", &self.all()]].concat())
    }

    /// The index of the controller that leads, once one does and both workers are registered there.
    fn leader(&self) -> usize {
        let end = Instant::now() + PATIENCE;
        loop {
            for (index, (at, _)) in self.controllers.iter().enumerate() {
                let status = sluice(self.path(), &["status", "--json", "--controller", at]);
                if status.status.success() {
                    let status = json(&status);
                    let workers = status["workers"].as_array().map_or(0, Vec::len);
                    if role(&status) == "leads" && status["switch"]["link"] == "up" && workers == 2 {
                        return index;
                    }
                }
            }
            assert!(Instant::now() < end, "nobody leads: {}", self.page.logs());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the controller with this address is a standby.
    fn waits(&self, at: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let status = sluice(self.path(), &["status", "--json", "--controller", at]);
            if status.status.success() && role(&json(&status)) == "standby" {
                return;
            }
            assert!(Instant::now() < end, "{at} is no standby: {}", self.page.logs());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the leader finds nothing wrong: a former leader that waits is no second controller.
    fn is_in_order(&self, leader: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let findings =
                json(&sluice(self.path(), &["status", "--json", "--controller", leader]))["findings"].take();
            if findings.as_array().is_some_and(Vec::is_empty) {
                return;
            }
            assert!(Instant::now() < end, "{findings}: {}", self.page.logs());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A load that lasts for a while.
    fn load(&self) -> Child {
        let all = self.all();
        let load = ["load", "--controller", &all, "--mix", "hold=1", "--rate", "200", "--warm-up", "0s"];
        let load = [&load[..], &["--length", "4s", "--json"]].concat();
        command(self.path(), &load).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Checks that a load got a reply to each task.
    fn lost_nothing(&self, load: Child) {
        let said = load.wait_with_output().expect("it ends");
        let tasks = &json(&said)["tasks"];
        assert!(tasks["sent"].as_u64() > Some(0), "{}", stderr(&said));
        assert_eq!(tasks["sent"], tasks["replied"], "{tasks}\n{}", self.page.logs());
    }

    fn signal(&self, controller: usize, signal: Signal) {
        kill_process(Pid::from_child(&self.controllers[controller].1.0), signal).expect("it lives");
    }
}

fn role(status: &Value) -> &str {
    status["standing"]["role"].as_str().expect("every controller says it")
}

#[test]
fn leaders_that_are_killed_stopped_and_ended_under_load_lose_nothing() {
    let mut rack = Rack::start();
    let first = rack.leader();
    let (first_at, other_at) = (rack.controllers[first].0.clone(), rack.controllers[1 - first].0.clone());
    rack.waits(&other_at);

    // The page's commands, while both run.
    for line in rack.page.lines("sh") {
        let args = rack.page.args(line);
        let said = sluice(rack.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(said.status.code(), Some(0), "{line}: {}", stderr(&said));
    }
    let text = stdout(&rack.asked(&["status"]));
    let parts = [
        format!("controller http://{other_at}: standby, http://{first_at} leads"),
        format!("controller http://{first_at}; switch"),
        format!("standbys http://{other_at}"),
    ];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    let alone = sluice(rack.path(), &["move", "w-1", "work", "--controller", &other_at]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(
        stderr(&alone).contains(&format!("this controller is a standby: http://{first_at} leads")),
        "{alone:?}"
    );

    // Killed under load.
    let load = rack.load();
    thread::sleep(Duration::from_secs(1));
    drop(rack.controllers.remove(first));
    assert_eq!(rack.controllers[rack.leader()].0, other_at);
    rack.lost_nothing(load);
    let text = stdout(&rack.asked(&["status"]));
    assert!(text.contains(&format!("controller http://{first_at}: dead: ")), "{text}");

    // A new one waits. Then the leader stands still under load, and goes on as a standby.
    let is_it = |line: &&str| line.contains("--standby") && rack.page.here(line).contains(&first_at);
    let again = rack.page.lines("sh stays").find(is_it).expect("the page starts it");
    rack.start_line(again);
    rack.waits(&first_at);
    let load = rack.load();
    thread::sleep(Duration::from_secs(1));
    rack.signal(0, Signal::STOP);
    assert_eq!(rack.controllers[rack.leader()].0, first_at);
    rack.signal(0, Signal::CONT);
    rack.waits(&other_at);
    rack.is_in_order(&first_at);
    rack.lost_nothing(load);

    // The leader is asked to end: the other one need not wait for its lease.
    let load = rack.load();
    let (_, mut leader) = rack.controllers.remove(1);
    terminate(&leader.0);
    assert_eq!(leader.0.wait().expect("it ends").code(), Some(0));
    assert_eq!(rack.controllers[rack.leader()].0, other_at);
    rack.lost_nothing(load);
    let moved = rack.asked(&["move", "w-1", "work"]);
    assert_eq!(moved.status.code(), Some(0), "{}", stderr(&moved));
    for other in rack.others.into_iter().rev() {
        other.ends_well();
    }
}

#[test]
fn a_standby_without_a_switch_to_ask_says_so_and_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["controller", "--tables", "127.0.0.1:9", "--control", "127.0.0.1:0", "--standby"];
    let mut started: Command = command(folder.path(), &args);
    let mut standby = Running(started.stderr(Stdio::piped()).spawn().expect("it starts"));
    let log = std::io::BufReader::new(standby.0.stderr.take().expect("piped"));
    // In any order.
    let mut missing = vec!["leads when no other controller does", "the switch does not say who leads: "];
    for line in std::io::BufRead::lines(log).map_while(Result::ok) {
        missing.retain(|part| !line.contains(part));
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "it ended without {missing:?}");
    assert!(standby.runs());
    terminate(&standby.0);
    assert_eq!(standby.0.wait().expect("it ends").code(), Some(0));
}
