//! The processes of a rack, or of racks below spines: the switch, further spines, leaves, a controller if
//! it runs alone, servers, workers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use sluice_log::LogForm;
use sluice_outcome::run::LeafTrip;
use sluice_rpc::Remote;
use sluice_support::controller_caller::{ControllerCaller, rack_now};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::flags::Io;
use sluice_support::plan::{Plan, Target, WorkerPlan};
use sluice_support::shared_memory::HeldMemory;
use sluice_support::stop::Stop;

use super::child::Child;
use super::forwarding::Forwarding;
use super::metric_reports::MetricReports;
use super::network::{Network, RackPart};
use super::servers;

/// How long a rack may take to become ready.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// How often the rack is asked whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// How long processes may take to finish the tasks that they hold.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// A switch of ours ends when its workers have ended: nobody would take the tasks that still wait.
const AT_THE_END: [&str; 2] = ["--drain-limit", "0s"];

/// All processes of a rack. Dropping this value kills them, and then removes their memory.
pub(super) struct Processes<'p> {
    plan: &'p Plan,
    files: Files,
    network: Network,
    switch: Option<Child>,
    controller: Option<Child>,
    /// The spines after the first one, which is `switch`.
    spines: Vec<FabricProcess>,
    leaves: Vec<FabricProcess>,
    /// For racks whose leaf runs on a server: their forwarding switches.
    forwardings: Vec<Forwarding>,
    servers: Vec<Option<Child>>,
    /// The folder of the servers' memory, if there are servers.
    memory: Option<HeldMemory>,
    /// How often each server was started.
    starts: Vec<u32>,
    workers: Vec<Option<Child>>,
    at: Addresses,
    /// Where the processes report their metrics, if anybody wants these.
    reports: Option<MetricReports>,
    /// What all workers trace, and switches on sockets.
    trace_flags: Vec<String>,
}

/// The files of the processes.
pub(super) struct Files {
    pub(super) program: PathBuf,
    /// The plan, from which each process reads the settings that all share.
    pub(super) plan: PathBuf,
    /// The folder of log files.
    pub(super) logs: PathBuf,
}

/// The rack's addresses; a restarted process uses its old ones.
#[derive(Debug, Default)]
struct Addresses {
    switch: Option<SocketAddr>,
    /// The address of the controller, or of the tables if the controller runs alone.
    beside_switch: Option<SocketAddr>,
    /// The addresses of the spines' controllers, if there are several; for a controller that runs alone,
    /// one for each spine.
    controllers: Vec<SocketAddr>,
}

/// A rack's leaf or a further spine, and its addresses, which it uses again after a restart.
#[derive(Debug, Default)]
struct FabricProcess {
    child: Option<Child>,
    switch: Option<SocketAddr>,
    control: Option<SocketAddr>,
}

/// What a switch or a controller prints when it listens.
#[derive(Debug, Deserialize)]
struct Listening {
    switch: Option<SocketAddr>,
    control: SocketAddr,
    #[serde(default)]
    controls: Vec<SocketAddr>,
}

impl<'p> Processes<'p> {
    /// Starts all processes, each in its place in the network.
    pub(super) fn start(
        plan: &'p Plan,
        files: Files,
        network: Network,
        (reports, trace_flags): (Option<MetricReports>, Vec<String>),
    ) -> Outcome<Self> {
        let at = Addresses {
            switch: plan.switch.listen,
            beside_switch: if plan.switch.controller_apart { None } else { plan.switch.control },
            controllers: plan.switch.control.into_iter().collect(),
        };
        let workers = plan.workers.iter().map(|_| None).collect();
        let servers: Vec<_> = plan.servers().iter().map(|_| None).collect();
        let racks = plan.racks.map_or(0, |racks| racks.count);
        let leaves = (0..racks).map(|_| FabricProcess::default()).collect();
        let spines = (1..plan.spines()).map(|_| FabricProcess::default()).collect();
        let forwardings = (0..racks).filter(|_| plan.leaves_are_on_servers());
        let forwardings =
            forwardings.map(|_| Forwarding::start(network.listen(None))).collect::<Outcome<_>>()?;
        let starts = vec![0; servers.len()];
        let has_servers = !servers.is_empty();
        let memory = has_servers.then(|| HeldMemory::take(servers::memory_folder(plan))).transpose()?;
        let mut rack = Self {
            plan,
            files,
            network,
            switch: None,
            controller: None,
            spines,
            leaves,
            forwardings,
            servers,
            memory,
            starts,
            workers,
            at,
            reports,
            trace_flags,
        };
        rack.start_again(&Target::Switch)?;
        for spine in 2..=plan.spines() {
            rack.start_again(&Target::Spine(spine))?;
        }
        if plan.switch.controller_apart {
            rack.start_again(&Target::Controller)?;
        }
        for leaf in 1..=racks {
            rack.start_again(&Target::Leaf(leaf))?;
        }
        for server in plan.servers() {
            rack.start_again(&Target::Server(server))?;
        }
        for worker in &plan.workers {
            rack.start_again(&Target::Worker(worker.name.clone()))?;
        }
        Ok(rack)
    }

    /// The network in which the processes run.
    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    /// The address of the controller; with several spines, that of the first one.
    pub(super) fn controller(&self) -> Outcome<Remote> {
        Ok(Remote::new(&self.known_controller()?.to_string(), None)?)
    }

    /// The addresses at which clients register: of the controller, or of each spine's.
    pub(super) fn controllers(&self) -> Outcome<Vec<Remote>> {
        let remote = |at: SocketAddr| Ok(Remote::new(&at.to_string(), None)?);
        self.known_controllers()?.into_iter().map(remote).collect()
    }

    /// The controllers of all spines and racks.
    pub(super) fn watched(&self) -> Outcome<Vec<Remote>> {
        let leaves = self.leaves.iter().filter_map(|leaf| leaf.control);
        let leaves = leaves.map(|at| Ok(Remote::new(&at.to_string(), None)?));
        self.controllers()?.into_iter().map(Ok).chain(leaves).collect()
    }

    /// The addresses of all controllers.
    pub(super) fn known_controllers(&self) -> Outcome<Vec<SocketAddr>> {
        (1..=self.plan.spines().max(1)).map(|spine| self.controller_of_spine(spine)).collect()
    }

    fn controller_of_spine(&self, spine: u16) -> Outcome<SocketAddr> {
        if self.plan.switch.controller_apart {
            let known = self.at.controllers.get(usize::from(spine) - 1);
            return known.copied().ok_or_else(not_started);
        }
        let Some(behind) = usize::from(spine).checked_sub(2) else { return self.known_controller() };
        let control = self.spines.get(behind).and_then(|spine| spine.control);
        control.ok_or_else(|| Failure::broken(format!("spine {spine} has not started")))
    }

    /// The controllers above a rack's leaf, its own spine's first. A controller that runs alone knows the
    /// other spines itself.
    fn controllers_of(&self, rack: u16) -> Outcome<Vec<SocketAddr>> {
        let mut spines = self.plan.spines_of(rack);
        spines.truncate(if self.plan.switch.controller_apart { 1 } else { spines.len() });
        spines.into_iter().map(|spine| self.controller_of_spine(spine)).collect()
    }

    /// Starts one process, for the first time or again.
    pub(super) fn start_again(&mut self, target: &Target) -> Outcome<()> {
        match target {
            Target::Switch | Target::Spine(1) => self.start_switch(),
            Target::Spine(spine) => self.start_spine(*spine),
            Target::Controller => self.start_controller(),
            Target::Worker(name) => self.start_worker(name),
            Target::Server(name) => self.start_server(name),
            Target::Leaf(rack) => self.start_leaf(*rack),
        }
    }

    /// Kills one process with SIGKILL.
    pub(super) fn kill(&mut self, target: &Target) {
        if let Some(mut child) = self.child(target).and_then(Option::take) {
            child.kill();
        }
    }

    /// Whether a process was started and not killed since.
    pub(super) fn is_started(&mut self, target: &Target) -> bool {
        self.child(target).is_some_and(|child| child.is_some())
    }

    /// Takes out a process that ended by itself, and its error. The part then counts as not started.
    pub(super) fn take_dead(&mut self) -> Option<(Target, Failure)> {
        // This runs often, and rarely finds a dead process.
        if !self.all().any(Child::has_ended) {
            return None;
        }
        self.targets().into_iter().find_map(|target| {
            let mut child = self.child(&target)?.take_if(Child::has_ended)?;
            Some((target, child.complaint()))
        })
    }

    /// All processes, by the names that plans use to kill them.
    fn targets(&self) -> Vec<Target> {
        let spines = (2..=self.plan.spines()).map(Target::Spine);
        let leaves = (1..).take(self.leaves.len()).map(Target::Leaf);
        let servers = self.plan.servers().into_iter().map(Target::Server);
        let workers = self.plan.workers.iter().map(|worker| Target::Worker(worker.name.clone()));
        let first = [Target::Switch, Target::Controller].into_iter();
        first.chain(spines).chain(leaves).chain(servers).chain(workers).collect()
    }

    fn child(&mut self, target: &Target) -> Option<&mut Option<Child>> {
        match target {
            Target::Switch | Target::Spine(1) => Some(&mut self.switch),
            Target::Spine(spine) => self.spine(*spine).map(|spine| &mut spine.child),
            Target::Controller => Some(&mut self.controller),
            Target::Worker(name) => self.place(name).map(|place| &mut self.workers[place]),
            Target::Server(name) => self.place_of_server(name).map(|place| &mut self.servers[place]),
            Target::Leaf(rack) => self.leaf(*rack).map(|leaf| &mut leaf.child),
        }
    }

    /// The times that packets took to leaves on servers and back so far.
    pub(super) fn leaf_trips(&self) -> Vec<LeafTrip> {
        (1..).zip(&self.forwardings).map(|(rack, forwarding)| forwarding.leaf_trip(rack)).collect()
    }

    /// An error unless all started processes run.
    pub(super) fn check(&mut self) -> Outcome<()> {
        self.all().try_for_each(Child::check)
    }

    /// Waits until the switch knows all workers and servers and serves all slices, by polling.
    pub(super) fn wait_until_ready(&mut self, stop: &Stop) -> Outcome<()> {
        let askers =
            self.controllers()?.into_iter().map(ControllerCaller::new).collect::<Outcome<Vec<_>>>()?;
        let patience = Instant::now() + READY_PATIENCE;
        loop {
            self.check()?;
            if stop.is_asked() {
                return Err(Failure::new(Kind::Aborted, "stopped before the rack was ready"));
            }
            let (open, written) =
                askers.iter().map(joined).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
            let all: usize = self.plan.workers.iter().map(WorkerPlan::all_lanes).sum();
            if open >= all && written >= self.servers.len() {
                return Ok(());
            }
            if Instant::now() > patience {
                let logs = self.files.logs.display();
                let s = READY_PATIENCE.as_secs();
                return Err(Failure::broken(format!(
                    "only {open} of {all} workers and {written} of {} servers joined in {s} s; see {logs}",
                    self.servers.len()
                )));
            }
            thread::sleep(ASK_EVERY);
        }
    }

    /// Ends all processes: first the workers, which finish the tasks that they hold, then the parts that
    /// they need for that.
    pub(super) fn end(mut self) {
        let patience = Instant::now() + END_PATIENCE;
        end_all(self.workers.iter_mut().flatten(), patience);
        end_all(self.servers.iter_mut().flatten(), patience);
        end_all(self.leaves.iter_mut().filter_map(|leaf| leaf.child.as_mut()), patience);
        end_all(self.spines.iter_mut().filter_map(|spine| spine.child.as_mut()), patience);
        end_all(self.controller.iter_mut().chain(&mut self.switch), patience);
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Child> {
        let hosts = self.servers.iter_mut().chain(&mut self.workers).flatten();
        let leaves = self.spines.iter_mut().chain(&mut self.leaves).filter_map(|one| one.child.as_mut());
        self.switch.iter_mut().chain(&mut self.controller).chain(leaves).chain(hosts)
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.plan.workers.iter().position(|worker| worker.name == name)
    }

    fn leaf(&mut self, rack: u16) -> Option<&mut FabricProcess> {
        self.leaves.get_mut(usize::from(rack).checked_sub(1)?)
    }

    fn spine(&mut self, spine: u16) -> Option<&mut FabricProcess> {
        self.spines.get_mut(usize::from(spine).checked_sub(2)?)
    }

    fn place_of_server(&self, name: &str) -> Option<usize> {
        self.plan.servers().iter().position(|known| known == name)
    }

    fn start_switch(&mut self) -> Outcome<()> {
        let mut args = vec!["switch".to_owned(), path(&self.files.plan), "--json".to_owned()];
        args.extend(AT_THE_END.map(str::to_owned));
        args.extend(["--listen".to_owned(), self.network.listen(self.at.switch).to_string()]);
        args.extend(["--control".to_owned(), self.network.listen(self.at.beside_switch).to_string()]);
        args.extend(self.plan.racks.map(|_| "--spine".to_owned()));
        args.extend(self.switch_traces());
        args.extend(self.network.switch_args().into_iter().chain(self.network.control_args()));
        let (child, listening) = self.start_listener("switch", args)?;
        self.at.switch = listening.switch;
        self.at.beside_switch = Some(listening.control);
        if !self.plan.switch.controller_apart {
            self.at.controllers = vec![listening.control];
        }
        self.switch = Some(child);
        Ok(())
    }

    /// The flags with which a switch writes spans. One on links writes none.
    fn switch_traces(&self) -> impl Iterator<Item = String> {
        self.trace_flags.iter().filter(|_| self.plan.switch.io == Io::Udp).cloned()
    }

    fn start_controller(&mut self) -> Outcome<()> {
        let spines = self.spines.iter().map(|spine| spine.control);
        let tables: Vec<_> = [self.at.beside_switch].into_iter().chain(spines).collect();
        let listens = |known| self.network.listen(known);
        let controls = (0..tables.len()).map(|at| listens(self.at.controllers.get(at).copied()));
        let controls = listed(&controls.collect::<Vec<_>>());
        let tables = listed(&tables.into_iter().map(listens).collect::<Vec<_>>());
        let mut args = vec!["controller".to_owned(), path(&self.files.plan), "--json".to_owned()];
        args.extend(["--tables".to_owned(), tables, "--control".to_owned(), controls]);
        args.extend(self.network.control_args());
        let (child, listening) = self.start_listener("controller", args)?;
        self.at.controllers = listening.controls;
        self.controller = Some(child);
        Ok(())
    }

    fn start_leaf(&mut self, rack: u16) -> Outcome<()> {
        let above = listed(&self.controllers_of(rack)?);
        let mut role = vec!["--leaf".to_owned(), rack.to_string(), "--above".to_owned(), above];
        let none = || Failure::broken(format!("there is no rack {rack}"));
        let known = self.leaf(rack).ok_or_else(none)?;
        let at = (known.switch, known.control);
        let forwarding = self.forwardings.get(usize::from(rack) - 1);
        role.extend(forwarding.iter().flat_map(|is| ["--behind".to_owned(), is.at().to_string()]));
        let started = self.start_in_fabric(&format!("leaf {rack}"), role, at)?;
        if let Some(forwarding) = forwarding {
            forwarding.set_leaf(started.switch);
        }
        self.leaf(rack).map(|leaf| *leaf = started).ok_or_else(none)
    }

    fn start_spine(&mut self, spine: u16) -> Outcome<()> {
        let none = || Failure::broken(format!("there is no spine {spine}"));
        let known = self.spine(spine).ok_or_else(none)?;
        let at = (known.switch, known.control);
        let started = self.start_in_fabric(&format!("spine {spine}"), [format!("--spine={spine}")], at)?;
        self.spine(spine).map(|spine| *spine = started).ok_or_else(none)
    }

    /// Starts a leaf or a further spine, at its old addresses if it has any.
    fn start_in_fabric(
        &self,
        name: &str,
        role: impl IntoIterator<Item = String>,
        (switch, control): (Option<SocketAddr>, Option<SocketAddr>),
    ) -> Outcome<FabricProcess> {
        let mut args = vec!["switch".to_owned(), path(&self.files.plan), "--json".to_owned()];
        args.extend(AT_THE_END.map(str::to_owned));
        args.extend(role);
        args.extend(self.switch_traces());
        args.extend(["--listen".to_owned(), self.network.listen(switch).to_string()]);
        args.extend(["--control".to_owned(), self.network.listen(control).to_string()]);
        let (child, listening) = self.start_listener(name, args)?;
        Ok(FabricProcess { child: Some(child), switch: listening.switch, control: Some(listening.control) })
    }

    /// The address at which a worker registers: its rack's controller.
    fn controller_of(&self, worker: &WorkerPlan) -> Outcome<SocketAddr> {
        let Some(rack) = self.plan.rack_of(worker) else { return self.known_controller() };
        let leaf = self.leaves.get(usize::from(rack) - 1).and_then(|leaf| leaf.control);
        leaf.ok_or_else(|| Failure::broken(format!("the leaf of rack {rack} has not started")))
    }

    /// Starts a process that prints its addresses on stdout.
    fn start_listener(&self, name: &str, args: Vec<String>) -> Outcome<(Child, Listening)> {
        let mut child = self.start_child(name, RackPart::Switch, args)?;
        let line = child.first_line()?;
        match serde_json::from_str(&line) {
            Ok(listening) => Ok((child, listening)),
            // With `--json` the process prints its error in this line too, besides on its stderr.
            Err(_) => Err(child.complaint()),
        }
    }

    fn start_server(&mut self, name: &str) -> Outcome<()> {
        let place = self.place_of_server(name);
        let place = place.ok_or_else(|| Failure::broken(format!("there is no server {name}")))?;
        let mut args = vec!["server".to_owned(), path(&self.files.plan), "--json".to_owned()];
        args.extend(["--controller".to_owned(), self.known_controller()?.to_string()]);
        args.extend(["--name".to_owned(), name.to_owned()]);
        args.extend(["--listen".to_owned(), self.network.server(place).to_string()]);
        args.extend(["--memory".to_owned(), path(&self.memory_of(name)?)]);
        self.starts[place] += 1;
        if let Some(folder) = &self.plan.rdma.pcap {
            let file = folder.join(format!("{name}-{}.pcap", self.starts[place]));
            args.extend(["--pcap".to_owned(), path(&file)]);
        }
        self.servers[place] = Some(self.start_child(name, RackPart::Server(place), args)?);
        Ok(())
    }

    fn memory_of(&self, server: &str) -> Outcome<PathBuf> {
        let none = || Failure::broken(format!("there is no memory for server {server}"));
        self.memory.as_ref().map(|memory| memory.path().join(server)).ok_or_else(none)
    }

    /// The address of the first controller.
    pub(super) fn known_controller(&self) -> Outcome<SocketAddr> {
        self.at.controllers.first().copied().ok_or_else(not_started)
    }

    fn start_worker(&mut self, name: &str) -> Outcome<()> {
        let Some(place) = self.place(name) else { return Err(Failure::broken(format!("no worker {name}"))) };
        let worker = &self.plan.workers[place];
        let args = self.worker_args(worker)?;
        let child = self.start_child(&format!("worker {name}"), RackPart::Worker(worker), args)?;
        self.workers[place] = Some(child);
        Ok(())
    }

    fn start_child(&self, name: &str, who: RackPart<'_>, mut args: Vec<String>) -> Outcome<Child> {
        args.extend(["--parent".to_owned(), std::process::id().to_string()]);
        if sluice_log::is_json() {
            args.extend(["--log".to_owned(), LogForm::Json.name().to_owned()]);
        }
        if let Some(reports) = &self.reports {
            let is_server = matches!(who, RackPart::Server(_));
            let process = if is_server { format!("server {name}") } else { name.to_owned() };
            args.extend(reports.args(&process));
        }
        let start = || Child::start(name, &self.files.program, &args, &self.files.logs);
        self.network.within(self.plan, who, start)?
    }

    fn worker_args(&self, worker: &WorkerPlan) -> Outcome<Vec<String>> {
        let mut args = vec!["worker".to_owned(), "--plan".to_owned(), path(&self.files.plan)];
        args.extend(self.trace_flags.iter().cloned());
        args.extend(["--name".to_owned(), worker.name.clone()]);
        args.extend(["--controller".to_owned(), self.controller_of(worker)?.to_string()]);
        args.extend(["--listen".to_owned(), self.network.host(self.plan, Some(worker)).to_string()]);
        if let Some(server) = self.plan.server_of(worker) {
            let memory = self.memory_of(&server)?;
            args.extend(["--server".to_owned(), server, "--memory".to_owned(), path(&memory)]);
        }
        Ok(args)
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        for child in self.all() {
            child.kill();
        }
    }
}

/// How many workers a controller's switch has, and how many servers have rings.
fn joined(asker: &ControllerCaller) -> (usize, usize) {
    asker.status().map_or((0, 0), |status| {
        let written = status.servers.iter().filter(|server| !server.rings.is_empty()).count();
        let rack = rack_now(&status);
        let open = rack.workers.iter().filter(|worker| worker.phase == "open");
        let open = open.map(|worker| worker.stands_for.max(1) as usize).sum::<usize>();
        if rack.is_up() { (open, written) } else { (0, 0) }
    })
}

fn end_all<'c>(children: impl Iterator<Item = &'c mut Child>, patience: Instant) {
    let mut children: Vec<&mut Child> = children.collect();
    for child in &children {
        child.ask_to_end();
    }
    for child in &mut children {
        if !child.wait_until(patience) {
            child.kill();
        }
    }
}

fn not_started() -> Failure {
    Failure::broken("the controller has not started")
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

/// Addresses as a flag takes them, separated by commas.
pub(super) fn listed(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",")
}
