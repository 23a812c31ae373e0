//! The rack: all machines, the packets under way between them, and the clock.

use std::mem;

use sluice_events::dice::Dice;
use sluice_events::{Address, ClockId, Copies, Mail, PacketId, World, WorldEvent};
use sluice_host::client::{self, Client, ClientSettings};
use sluice_host::worker::{self, Worker, WorkerSettings};
use sluice_wire::{Nanos, Packet, TaskId};

use super::Broken;
use super::budgets::TaskBudgets;
use super::clients::{ClientProcess, client_settings};
use super::controller::ControllerPair;
use super::cores::{CoresScenario, ServerCores};
use super::event::Event;
use super::hosts::{CLIENTS, Host, NOBODY, SCENE, SWITCH, WORKERS};
use super::kind::RackKind;
use super::limits::{END, FAULTS_END, LEASE, REST, SUBMIT_END};
use super::network::{Network, WAY};
use super::oracle::{Oracle, Tally};
use super::orders::orders;
use super::replay_log::{self, LogLine, Party, TaskNames};
use super::scenario::Scenario;
use super::servers::Servers;
use super::switch::SwitchNode;
use super::workers::{WorkerProcess, worker_settings};

/// When a run begins.
const BEGINNING: Nanos = Nanos(1_000);

/// The time between two checks of the promises that hold at every moment.
const INSPECT_EVERY: Nanos = Nanos::from_micros(20);

/// How long three of four runs continue once the rack rests: three leases, and six of the longest intervals
/// between probes.
const CALM: Nanos = Nanos(3 * LEASE.0);

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
    inspections: ClockId,
    /// The earliest time at which the run may rest, by the last check of the rack.
    rests_from: Nanos,
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
            switch: SwitchNode::new(&scenario),
            controllers: ControllerPair::new(seed, &scenario),
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
        rack.begin();
        rack
    }

    pub(super) fn run(mut self) -> Result<Tally, Broken> {
        self.play().map_err(|what| Broken { seed: self.seed, at_ns: self.world.now.0, what })
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

    /// Sends a packet now.
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

    fn begin(&mut self) {
        let about = replay_log::scenario(&self.scenario);
        self.say(Party::Rack, || about);
        for worker in 0..self.workers.len() {
            self.start_worker(worker);
        }
        for client in 0..self.clients.len() {
            self.start_client(client);
            self.after(Nanos(50_000), Event::Submit(client));
        }
        self.start_servers();
        self.connect_controller();
        for (at, process_failure) in self.scenario.process_failures.clone() {
            self.remind(at, Event::ProcessFailure(process_failure));
        }
        for (at, gray_failure) in self.scenario.gray_failures.clone() {
            self.remind(at, Event::GrayFailure(gray_failure));
        }
        for (at, order) in orders(self.seed, &self.scenario) {
            self.remind(at, Event::Order(order));
        }
        self.remind(FAULTS_END, Event::FaultsEnd);
        self.world.engine.set(self.inspections, INSPECT_EVERY);
        self.remind(REST, Event::Rest);
        self.remind(END, Event::Close);
    }

    fn play(&mut self) -> Result<Tally, String> {
        while let Some((at, what)) = self.world.next() {
            let event = match what {
                WorldEvent::Mail(mail) => Event::Mail(at, mail),
                WorldEvent::Scheduled(event) => event,
                WorldEvent::Clock => Event::Inspect,
                WorldEvent::Timer => continue,
            };
            if matches!(event, Event::Close) {
                self.inspect_at_rest()?;
                return self.oracle.close();
            }
            if let Some(event) = self.hold_up(event) {
                self.happen(event)?;
            }
        }
        Err("the run ended before its time".to_owned())
    }

    pub(super) fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Mail(to, mail) => self.on_mail(to, mail)?,
            Event::Op { life, switch, by, op } => {
                self.on_line(life, |rack| rack.table_op(life, switch, by, *op)).unwrap_or(Ok(()))?;
            }
            Event::OpDone(life) => {
                self.on_line(life, |rack| rack.table_answered(life));
            }
            Event::Call(call) => self.call_arrives(*call),
            Event::CallAnswered { call, answer } => self.call_answered(call, *answer)?,
            Event::ControllerWakes(life) => {
                self.on_line(life, |rack| rack.on_controller_timer(life)).unwrap_or(Ok(()))?;
            }
            Event::Wake(host) => self.wake(host)?,
            Event::Renew(host, life) => self.renew_if_alive(host, life),
            Event::Finish { worker, life, slot } => self.finish(worker, life, slot)?,
            Event::Early { worker, life } => self.early(worker, life)?,
            Event::Write { server, write } => self.on_write(server, write)?,
            Event::WriteWaited(server) => self.write_is_read(server)?,
            Event::Nak { server, id, expected } => self.nak(server, id, expected)?,
            Event::ServerFailure(server, server_failure) => self.server_failure(server, server_failure)?,
            Event::Submit(client) => self.submit(client)?,
            Event::ProcessFailure(process_failure) => self.process_failure(process_failure)?,
            Event::GrayFailure(gray_failure) => self.gray_failure(gray_failure)?,
            Event::Order(order) => self.order(order),
            Event::Look => self.show_all()?,
            Event::FaultsEnd => self.faults_end(),
            Event::WorkerBack(worker) => self.worker_back(worker),
            Event::WorkerGoesOn(worker) => self.resume_worker(worker)?,
            Event::SwitchBack => self.switch_back(),
            Event::SwitchGoesOn => self.resume_switch()?,
            Event::ControllerBack => self.restart_controller(),
            Event::LinkBack => self.connect_controller(),
            Event::FormerLooks => self.check_former(),
            Event::Await(call) => self.await_arrives(call),
            Event::Changed { worker, life } => self.changed(worker, life),
            Event::Inspect => self.inspect()?,
            Event::Rest => self.rest()?,
            Event::Close => {}
        }
        Ok(())
    }

    fn on_mail(&mut self, to: Address, mail: Mail) -> Result<(), String> {
        if to.at(0) == SWITCH {
            return self.at_switch(to, mail);
        }
        let Mail::Packet { packet, .. } = mail else { return Ok(()) };
        match self.host_at(to) {
            Some(Host::Worker(worker)) => self.at_worker(worker, packet),
            Some(Host::Client(client)) => self.at_client(client, mail, packet),
            Some(Host::Server(_)) | None => {
                self.world.packets.free(packet);
                Ok(())
            }
        }
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

    pub(super) fn host_is_cut(&self, host: Host) -> bool {
        self.world.network.injector.is_cut(self.process_at(host), self.world.now)
    }

    /// In half of the cases the operating system reports that no process listens at the switch.
    pub(super) fn refused_by_switch(&mut self, from: Address) {
        if self.dice.chance(500) {
            return;
        }
        let outcome = match self.host_at(from) {
            Some(Host::Worker(worker)) => {
                let mut process = self.scenario.process_of(worker);
                process.try_for_each(|worker| self.on_worker(worker, Worker::refused))
            }
            Some(Host::Client(client)) => self.on_client(client, Client::refused),
            Some(Host::Server(_)) | None => Ok(()),
        };
        debug_assert!(outcome.is_ok(), "asking for a renewal breaks no promise");
    }

    fn wake(&mut self, host: Host) -> Result<(), String> {
        match host {
            Host::Worker(worker) if self.has_cores() => self.on_lane_timer(worker),
            Host::Worker(worker) => self.on_worker_timer(worker),
            Host::Client(client) => self.wake_or_thaw(client),
            // A server has no timers but its renewals.
            Host::Server(_) => Ok(()),
        }
    }

    /// Nothing new was submitted for a while. A client may have held tasks back until then, a task may be
    /// sent until its deadline, a sweep may carry a token, and polls may carry a repeat past the worker
    /// that it suits. When all that is over, workers get their longest probe interval once more.
    fn rest(&mut self) -> Result<(), String> {
        let now = self.world.now;
        if self.oracle.has_open() || self.switch.reckoning.has_sweep() || self.carried() > 0 {
            self.rests_from = now + REST.since(SUBMIT_END);
        }
        if now < self.rests_from {
            self.after(Nanos::from_millis(1), Event::Rest);
            return Ok(());
        }
        self.inspect_at_rest()?;
        if !self.seed.is_multiple_of(4) {
            self.after(CALM, Event::Close);
        }
        Ok(())
    }

    /// The periodic check of what must hold at every moment.
    fn inspect(&mut self) -> Result<(), String> {
        let is_unseen = |worker: &WorkerProcess| worker.held_when_seen.is_none();
        let happened = self.switch.is_unseen || self.workers.iter().any(is_unseen);
        if happened {
            (0..self.workers.len()).try_for_each(|worker| self.inspect_worker(worker))?;
            self.inspect_room()?;
        }
        self.inspect_clients()?;
        if mem::take(&mut self.switch.is_unseen) {
            self.inspect_queues()?;
        }
        self.world.engine.set(self.inspections, self.world.now + INSPECT_EVERY);
        Ok(())
    }
}

fn servers_of_cores(scenario: &Scenario) -> Vec<ServerCores> {
    let server = |cores: &CoresScenario| ServerCores::new(cores, scenario.slices);
    scenario.cores.iter().flat_map(|cores| (0..cores.servers).map(move |_| server(cores))).collect()
}
