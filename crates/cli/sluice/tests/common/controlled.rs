//! A rack with two controllers, of which one leads. The commands are those of `docs/manual/controllers.md`,
//! on free ports.
#![allow(dead_code, reason = "each test file uses a part")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::loaded::tasks;
use super::page_rack::PageRack;
use super::relay::Relay;
use super::{Running, command, json, sluice, stdout};

pub(crate) const PAGE: &str = include_str!("../../../../../docs/manual/controllers.md");
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A rack whose processes are those that the page starts.
pub(crate) struct ControlledRack {
    pub(crate) page: PageRack,
    /// The switch and the workers.
    pub(crate) others: Vec<Running>,
    pub(crate) controllers: Vec<(String, Running)>,
    /// What stands between each controller and the switch; empty if nothing does.
    pub(crate) relays: Vec<Relay>,
}

impl ControlledRack {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| Vec::new())
    }

    /// The same with a relay between each controller and the switch.
    pub(crate) fn with_relays() -> Self {
        Self::start_with(|tables| vec![Relay::start(tables), Relay::start(tables)])
    }

    fn start_with(relays: impl Fn(SocketAddr) -> Vec<Relay>) -> Self {
        let page =
            PageRack::of(PAGE, &["127.0.0.1:7400", "127.0.0.1:7401", "127.0.0.1:7402", "127.0.0.1:7000"]);
        let relays = relays(page.here("127.0.0.1:7401").parse().expect("an address"));
        let mut rack = Self { page, others: Vec::new(), controllers: Vec::new(), relays };
        let lines: Vec<_> = rack.page.lines("sh stays").collect();
        for line in lines {
            rack.start_line(line);
        }
        assert_eq!((rack.others.len(), rack.controllers.len()), (3, 2), "the page starts a rack");
        rack
    }

    pub(crate) fn path(&self) -> &Path {
        self.page.path()
    }

    pub(crate) fn start_line(&mut self, line: &str) {
        let mut args = self.page.args(line);
        if let Some(relay) = self.relays.get(self.controllers.len()).filter(|_| args[0] == "controller") {
            let at = args.iter().position(|arg| *arg == "--tables").expect("the page names it");
            args[at + 1] = relay.at().to_string();
        }
        let running = self.page.start_args(&args);
        match args[0].as_str() {
            "controller" => {
                let at = args.iter().position(|arg| *arg == "--control").expect("the page names it");
                self.controllers.push((args[at + 1].clone(), running));
            }
            _ => self.others.push(running),
        }
    }

    /// The addresses of all controllers, as `--controller` takes them.
    pub(crate) fn all(&self) -> String {
        self.page.here("127.0.0.1:7400,127.0.0.1:7402")
    }

    pub(crate) fn asked(&self, args: &[&str]) -> Output {
        sluice(self.path(), &[args, &["--controller", &self.all()]].concat())
    }

    /// The index of the controller that leads, once one does and both workers are registered there.
    pub(crate) fn leader(&self) -> usize {
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
    pub(crate) fn waits(&self, at: &str) {
        self.wait(at, |status| role(status) == "standby");
    }

    /// Waits until the controller with this address reports such a status, and returns it.
    pub(crate) fn wait(&self, at: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let status = sluice(self.path(), &["status", "--json", "--controller", at]);
            if status.status.success() {
                let status = json(&status);
                if is_so(&status) {
                    return status;
                }
            }
            assert!(Instant::now() < end, "{at} stays: {}\n{}", stdout(&status), self.page.logs());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the leader finds nothing wrong: a former leader that waits is no second controller.
    pub(crate) fn is_in_order(&self, leader: &str) {
        self.wait(leader, |status| status["findings"].as_array().is_some_and(Vec::is_empty));
    }

    /// Waits until the controller with this address is a standby that knows of this leader.
    pub(crate) fn follows(&self, at: &str, leader: &str) {
        self.wait(at, |status| {
            let known = status["standing"]["leader"].as_str();
            role(status) == "standby" && known.is_some_and(|known| known.ends_with(leader))
        });
    }

    /// A load that lasts for a while, once its tasks run.
    pub(crate) fn load(&self) -> Child {
        let (all, leader) = (self.all(), &self.controllers[self.leader()].0);
        let before = tasks(&self.wait(leader, |_| true));
        let load = ["load", "--controller", &all, "--mix", "hold=1", "--rate", "200", "--warm-up", "0s"];
        let more = ["--length", "4s", "--deadline", "60s", "--patience", "2min", "--json"];
        let mut load = command(self.path(), &[&load[..], &more].concat());
        let load = load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        self.wait(leader, |status| tasks(status) > before);
        load
    }

    pub(crate) fn signal(&self, controller: usize, signal: Signal) {
        kill_process(Pid::from_child(&self.controllers[controller].1.0), signal).expect("it lives");
    }
}

pub(crate) fn role(status: &Value) -> &str {
    status["standing"]["role"].as_str().expect("every controller says it")
}
