//! The rack: all machines, the packets under way between them, and the clock. What happens in it stands in
//! files above this one.

use sluice_events::dice::Dice;
use sluice_events::{Address, ClockId, Copies, PacketId, World};
use sluice_host::client::{self, ClientSettings};
use sluice_host::worker::{self, WorkerSettings};
use sluice_wire::{Nanos, Packet, TaskId};

use super::budgets::TaskBudgets;
use super::clients::{ClientProcess, client_settings};
use super::controller::ControllerPair;
use super::cores::{CoresScenario, ServerCores};
use super::event::Event;
use super::hosts::{CLIENTS, ControllerSession, Host, NOBODY, SCENE, SWITCH, WORKERS};
use super::kind::RackKind;
use super::network::{Network, WAY};
use super::oracle::{Life, Oracle};
use super::partitions::End;
use super::replay_log::{self, LogLine, Party, TaskNames};
use super::scenario::Scenario;
use super::servers::Servers;
use super::standbys::Standbys;
use super::store::LeaseStore;
use super::switch::SwitchNode;
use super::workers::{WorkerProcess, worker_settings};

/// When a run begins.
const BEGINNING: Nanos = Nanos(1_000);

/// Receives the lines of a replay.
pub(super) type Trace<'t> = Option<&'t mut dyn FnMut(&LogLine)>;

/// The whole state of one run.
pub(super) struct Rack<'t> {
    pub(super) seed: u64,
    pub(super) world: World<Event, Network>,
    pub(super) scenario: Scenario,
    pub(super) dice: Dice,
    /// The stream for the errors of told service times.
    pub(super) estimates: Dice,
    /// The stream for the time between a pass's reading of the clock and its arrival at the queue.
    pub(super) looks: Dice,
    pub(super) switch: SwitchNode,
    pub(super) controllers: ControllerPair,
    /// The state beside two controllers of which one leads, if the rack has such.
    pub(super) standbys: Option<Standbys>,
    pub(super) store: Option<LeaseStore>,
    pub(super) workers: Vec<WorkerProcess>,
    /// The NICs and cores behind workers that are lanes.
    pub(super) servers_of_cores: Vec<ServerCores>,
    pub(super) worker_settings: WorkerSettings,
    /// The actions of workers; empty between calls.
    pub(super) worker_actions: Vec<worker::Action>,
    pub(super) clients: Vec<ClientProcess>,
    pub(super) client_settings: ClientSettings,
    /// The actions of clients; empty between calls.
    pub(super) client_actions: Vec<client::Action>,
    pub(super) servers: Servers,
    pub(super) oracle: Oracle,
    pub(super) budgets: TaskBudgets,
    /// The names of tasks in the replay.
    pub(super) names: TaskNames,
    /// The clock of the periodic checks of promises.
    pub(super) inspections: ClockId,
    /// The earliest time at which the run may rest, by the last check of the rack.
    pub(super) rests_from: Nanos,
    trace: Trace<'t>,
}

impl<'t> Rack<'t> {
    pub(super) fn new(kind: &RackKind, seed: u64, trace: Trace<'t>) -> Self {
        let scenario = Scenario::of(kind, seed);
        let mut world = World::new(Network::new(seed, scenario.rates.clone()));
        let mut rack = Self {
            seed,
            inspections: world.engine.clock(SCENE),
            world,
            dice: Dice::new(seed, 3),
            estimates: Dice::named(seed, "estimates", 0),
            looks: Dice::named(seed, "looks", 0),
            switch: SwitchNode::new(&scenario, kind.has_standbys),
            controllers: ControllerPair::new(seed, &scenario, kind.has_standbys),
            standbys: Standbys::new(kind, seed),
            store: LeaseStore::new(kind, seed),
            workers: (0..scenario.workers).map(WorkerProcess::new).collect(),
            servers_of_cores: servers_of_cores(&scenario),
            worker_settings: worker_settings(&scenario),
            worker_actions: Vec::new(),
            clients: (0..scenario.clients).map(ClientProcess::new).collect(),
            client_settings: client_settings(&scenario),
            client_actions: Vec::new(),
            servers: Servers::new(seed, &scenario),
            oracle: Oracle::new(&scenario),
            budgets: TaskBudgets::new(kind, seed),
            scenario,
            names: TaskNames::default(),
            rests_from: Nanos(0),
            trace,
        };
        rack.world.now = BEGINNING;
        rack.lay_links();
        rack
    }

    /// Whether the run is replayed.
    pub(super) fn is_told(&self) -> bool {
        self.trace.is_some()
    }

    /// Writes a line of the replay: what somebody does. `what` is called only if the run is replayed.
    pub(super) fn say(&mut self, who: Party, what: impl FnOnce() -> String) {
        self.tell(who, None, None, |_| what());
    }

    /// Writes a line of the replay about two parties or a task. `what` gets the task's name.
    pub(super) fn tell(
        &mut self,
        who: Party,
        to: Option<Party>,
        task: Option<TaskId>,
        what: impl FnOnce(&str) -> String,
    ) {
        let Some(trace) = &mut self.trace else { return };
        let task = task.map(|task| self.names.task(task));
        let what = what(task.as_deref().unwrap_or_default());
        trace(&LogLine { at: self.world.now, who, to, task, what });
    }

    pub(super) fn remind(&mut self, at: Nanos, event: Event) {
        self.world.engine.schedule(at, SCENE, event);
    }

    pub(super) fn after(&mut self, span: Nanos, event: Event) {
        self.remind(self.world.now + span, event);
    }

    pub(super) fn send(&mut self, from: Address, to: Address, packet: Packet) {
        let packet = self.world.packets.keep(&packet);
        self.send_at(from, to, self.world.now, packet);
    }

    /// Sends a packet at `leaves`.
    pub(super) fn send_at(&mut self, from: Address, to: Address, leaves: Nanos, lies: PacketId) {
        let packet = *self.world.packets.get(lies);
        let arrivals = self.world.send_copies(from, to, leaves, lies);
        self.tell(Party::at(from), Some(Party::at(to)), replay_log::task_of(&packet), |task| {
            replay_log::packet(&packet, task) + &replay_log::fate(leaves, arrivals)
        });
    }

    /// When the copies of a message that is no packet arrive, if it is sent now and no partition stops it.
    pub(super) fn arrivals(&mut self, kind: usize) -> Copies {
        self.world.network.injector.arrivals(self.world.now, kind)
    }

    /// Makes the links between all addresses.
    fn lay_links(&mut self) {
        let ends = [NOBODY, SWITCH, WORKERS, CLIENTS];
        for (from, to) in ends.into_iter().flat_map(|from| ends.map(|to| (from, to))) {
            self.world.join(from, to, WAY, Nanos(0));
        }
    }

    /// The host whose process is at this address now.
    pub(super) fn host_at(&self, to: Address) -> Option<Host> {
        Host::at(to).filter(|host| match host {
            Host::Worker(worker) => self.workers[*worker].node.as_ref().is_some_and(|node| node.at == to),
            Host::Client(client) => self.clients[*client].node.at == to,
            Host::Server(_) => false,
        })
    }

    /// The host that stands for this host's process: for a lane, the first lane of its server.
    pub(super) fn process_at(&self, host: Host) -> Host {
        match host {
            Host::Worker(worker) => Host::Worker(self.scenario.process_of(worker).start),
            other => other,
        }
    }

    pub(super) fn host_is_cut(&self, host: Host) -> bool {
        self.world.network.injector.is_cut(self.process_at(host), self.world.now)
    }

    pub(super) fn calls_get_through(&self, host: Host) -> bool {
        !self.is_closed(End::Host(self.process_at(host)), End::Controller)
    }

    pub(super) fn answers_get_through(&self, host: Host) -> bool {
        !self.is_closed(End::Controller, End::Host(self.process_at(host)))
    }

    fn is_closed(&self, from: End, to: End) -> bool {
        self.world.network.injector.partitions.is_closed(self.world.now, Some(from), Some(to))
    }

    pub(super) fn life_of(&self, host: Host) -> Life {
        match host {
            Host::Worker(worker) => self.workers[worker].life,
            Host::Client(client) => self.clients[client].incarnation.0,
            Host::Server(server) => self.servers.nodes[server].life,
        }
    }

    pub(super) fn session(&mut self, host: Host) -> &mut ControllerSession {
        match host {
            Host::Worker(worker) => &mut self.workers[worker].session,
            Host::Client(client) => &mut self.clients[client].session,
            Host::Server(server) => &mut self.servers.nodes[server].session,
        }
    }

    pub(super) fn is_paused(&self, worker: usize) -> bool {
        self.world.now < self.paused_until(worker)
    }

    pub(super) fn paused_until(&self, worker: usize) -> Nanos {
        self.workers[self.scenario.process_of(worker).start].core.stalled_until
    }

    pub(super) const fn has_cores(&self) -> bool {
        self.scenario.cores.is_some()
    }
}

fn servers_of_cores(scenario: &Scenario) -> Vec<ServerCores> {
    let server = |cores: &CoresScenario| ServerCores::new(cores, scenario.slices);
    scenario.cores.iter().flat_map(|cores| (0..cores.servers).map(move |_| server(cores))).collect()
}
