//! The rack: all machines, what is under way between them, and the clock.

use sluice_events::dice::Dice;
use sluice_events::{Address, Copies, Mail, PacketId, World, WorldEvent};
use sluice_host::client::{self, Client, ClientSettings};
use sluice_host::worker::{self, Worker, WorkerSettings};
use sluice_wire::{Nanos, Packet, TaskId};

use super::Broken;
use super::clients::{ClientProcess, client_settings};
use super::controller::Brain;
use super::cores::{CoresScenario, ServerCores};
use super::event::Event;
use super::hosts::{CLIENTS, Host, NOBODY, SCENE, SWITCH, WORKERS};
use super::kind::RackKind;
use super::limits::{END, FAULTS_END, REST, SUBMIT_END};
use super::network::{Network, WAY};
use super::oracle::{Oracle, Tally};
use super::orders::orders;
use super::replay_log::{self, Line, Names, Who};
use super::scenario::Scenario;
use super::servers::Servers;
use super::switch::SwitchNode;
use super::workers::{WorkerProcess, worker_settings};

/// When a run begins.
const BEGINNING: Nanos = Nanos(1_000);

/// Where the lines of a replay go.
pub(super) type Trace<'t> = Option<&'t mut dyn FnMut(&Line)>;

/// Everything in one run.
pub(super) struct Rack<'t> {
    pub(super) seed: u64,
    pub(super) world: World<Event, Network>,
    pub(super) scenario: Scenario,
    pub(super) dice: Dice,
    /// How far off services are when they say what they will take.
    pub(super) estimates: Dice,
    /// How long before they come to the queue the switch's passes look at the clock.
    pub(super) looks: Dice,
    pub(super) switch: SwitchNode,
    pub(super) brain: Brain,
    pub(super) workers: Vec<WorkerProcess>,
    /// What stands behind their lanes, where they are servers of many cores.
    pub(super) servers_of_cores: Vec<ServerCores>,
    pub(super) worker_settings: WorkerSettings,
    /// What workers say; empty between calls.
    pub(super) worker_actions: Vec<worker::Action>,
    pub(super) clients: Vec<ClientProcess>,
    pub(super) client_settings: ClientSettings,
    /// What clients say; empty between calls.
    pub(super) client_actions: Vec<client::Action>,
    pub(super) servers: Servers,
    pub(super) oracle: Oracle,
    /// What the story calls tasks.
    pub(super) names: Names,
    /// Before that time nobody rests, as far as is known.
    rests_from: Nanos,
    trace: Trace<'t>,
}

impl<'t> Rack<'t> {
    pub(super) fn new(kind: &RackKind, seed: u64, trace: Trace<'t>) -> Self {
        let scenario = Scenario::of(kind, seed);
        let mut rack = Self {
            seed,
            world: World::new(Network::new(seed, scenario.rates.clone())),
            dice: Dice::new(seed, 3),
            estimates: Dice::named(seed, "estimates", 0),
            looks: Dice::named(seed, "looks", 0),
            switch: SwitchNode::new(&scenario),
            brain: Brain::new(seed, &scenario),
            workers: (0..scenario.workers).map(WorkerProcess::new).collect(),
            servers_of_cores: servers_of_cores(&scenario),
            worker_settings: worker_settings(&scenario),
            worker_actions: Vec::new(),
            clients: (0..scenario.clients).map(ClientProcess::new).collect(),
            client_settings: client_settings(&scenario),
            client_actions: Vec::new(),
            servers: Servers::new(seed, &scenario),
            oracle: Oracle::new(&scenario),
            scenario,
            names: Names::default(),
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

    /// Whether anybody listens to the story.
    pub(super) fn is_told(&self) -> bool {
        self.trace.is_some()
    }

    /// Says to whoever replays what somebody does; `what` is made only then.
    pub(super) fn say(&mut self, who: Who, what: impl FnOnce() -> String) {
        self.tell(who, None, None, |_| what());
    }

    /// The same of what is done to another, or with a task, by whose name in the story `what` is made.
    pub(super) fn tell(
        &mut self,
        who: Who,
        to: Option<Who>,
        task: Option<TaskId>,
        what: impl FnOnce(&str) -> String,
    ) {
        let Some(trace) = &mut self.trace else { return };
        let task = task.map(|task| self.names.task(task));
        let what = what(task.as_deref().unwrap_or_default());
        trace(&Line { at: self.world.now, who, to, task, what });
    }

    pub(super) fn remind(&mut self, at: Nanos, event: Event) {
        self.world.engine.schedule(at, SCENE, event);
    }

    pub(super) fn after(&mut self, span: Nanos, event: Event) {
        self.remind(self.world.now + span, event);
    }

    /// Puts a packet on the network.
    pub(super) fn send(&mut self, from: Address, to: Address, packet: Packet) {
        let packet = self.world.packets.keep(&packet);
        self.send_at(from, to, self.world.now, packet);
    }

    /// The same of a packet that leaves then.
    pub(super) fn send_at(&mut self, from: Address, to: Address, leaves: Nanos, lies: PacketId) {
        let packet = *self.world.packets.get(lies);
        let arrivals = self.world.send_copies(from, to, leaves, lies);
        self.tell(Who::at(from), Some(Who::at(to)), replay_log::task_of(&packet), |task| {
            replay_log::packet(&packet, task) + &replay_log::fate(leaves, arrivals)
        });
    }

    /// When the copies of what is no packet of ours arrive, sent now over a way that is open.
    pub(super) fn arrivals(&mut self, kind: usize) -> Copies {
        self.world.network.injector.arrivals(self.world.now, kind)
    }

    fn begin(&mut self) {
        let about = replay_log::scenario(&self.scenario);
        self.say(Who::Rack, || about);
        for worker in 0..self.workers.len() {
            self.start_worker(worker);
        }
        for client in 0..self.clients.len() {
            self.start_client(client);
            self.after(Nanos(50_000), Event::Submit(client));
        }
        self.start_servers();
        self.connect_brain();
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
        self.remind(Nanos(20_000), Event::Inspect);
        self.remind(REST, Event::Rest);
        self.remind(END, Event::Close);
    }

    fn play(&mut self) -> Result<Tally, String> {
        while let Some((at, what)) = self.world.next() {
            let event = match what {
                WorldEvent::Mail(mail) => Event::Mail(at, mail),
                WorldEvent::Scheduled(event) => event,
                WorldEvent::Timer | WorldEvent::Clock => continue,
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
            Event::Mail(to, mail) => self.mail(to, mail)?,
            Event::Op { brain, switch, by, op } => {
                self.on_line(brain, |rack| rack.table_op(brain, switch, by, *op)).unwrap_or(Ok(()))?;
            }
            Event::OpDone { brain, answer } => {
                self.on_line(brain, |rack| rack.table_answered(brain, *answer));
            }
            Event::Call(call) => self.call_arrives(*call),
            Event::CallAnswered { call, answer } => self.call_answered(call, *answer)?,
            Event::BrainWakes(brain) => {
                self.on_line(brain, |rack| rack.brain_wakes(brain)).unwrap_or(Ok(()))?;
            }
            Event::Wake(host) => self.wake(host)?,
            Event::Renew(host, life) => self.renew_if_alive(host, life),
            Event::Finish { worker, life, slot } => self.finish(worker, life, slot)?,
            Event::Early { worker, life } => self.early(worker, life)?,
            Event::Write { server, write } => self.write_comes(server, write)?,
            Event::Nak { server, id, expected } => self.nak(server, id, expected)?,
            Event::ServerFailure(server, server_failure) => self.server_failure(server, server_failure)?,
            Event::Submit(client) => self.submit(client)?,
            Event::ProcessFailure(process_failure) => self.process_failure(process_failure)?,
            Event::GrayFailure(gray_failure) => self.gray_failure(gray_failure)?,
            Event::Order(order) => self.order(order),
            Event::Look => self.show_all()?,
            Event::FaultsEnd => self.faults_end(),
            Event::WorkerBack(worker) => self.worker_back(worker),
            Event::WorkerGoesOn(worker) => self.worker_goes_on(worker)?,
            Event::SwitchBack => self.switch_back(),
            Event::SwitchGoesOn => self.switch_goes_on()?,
            Event::BrainBack => self.brain_back(),
            Event::LinkBack => self.connect_brain(),
            Event::FormerLooks => self.former_looks(),
            Event::Await(call) => self.await_arrives(call),
            Event::Changed { worker, life } => self.changed(worker, life),
            Event::Inspect => self.inspect()?,
            Event::Rest => self.rest()?,
            Event::Close => {}
        }
        Ok(())
    }

    fn mail(&mut self, to: Address, mail: Mail) -> Result<(), String> {
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

    /// Joins all places that packets go between.
    fn lay_links(&mut self) {
        let ends = [NOBODY, SWITCH, WORKERS, CLIENTS];
        for (from, to) in ends.into_iter().flat_map(|from| ends.map(|to| (from, to))) {
            self.world.join(from, to, WAY, Nanos(0));
        }
    }

    /// Whose process lives at this place now.
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

    /// The operating system says that nobody listens at the switch: half the time.
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
            Host::Worker(worker) if self.has_cores() => self.lane_wakes(worker),
            Host::Worker(worker) => self.worker_wakes(worker),
            Host::Client(client) => self.wake_or_thaw(client),
            // It has no timers but its renewals.
            Host::Server(_) => Ok(()),
        }
    }

    /// Nothing new was submitted for a while. A client may have tasks that it held back until then, and a
    /// task may be sent until its deadline; a sweep may have a token in its hand. When that is over workers
    /// get their longest probe interval again.
    fn rest(&mut self) -> Result<(), String> {
        let now = self.world.now;
        if self.oracle.has_open() || self.switch.reckoning.has_sweep() {
            self.rests_from = now + REST.since(SUBMIT_END);
        }
        if now < self.rests_from {
            self.after(Nanos::from_millis(1), Event::Rest);
            return Ok(());
        }
        self.inspect_at_rest()
    }

    /// The periodic look at what must hold at every moment.
    fn inspect(&mut self) -> Result<(), String> {
        (0..self.workers.len()).try_for_each(|worker| self.inspect_worker(worker))?;
        self.inspect_room()?;
        self.inspect_bytes()?;
        self.inspect_queues()?;
        self.after(Nanos(20_000), Event::Inspect);
        Ok(())
    }
}

fn servers_of_cores(scenario: &Scenario) -> Vec<ServerCores> {
    let server = |cores: &CoresScenario| ServerCores::new(cores, scenario.slices);
    scenario.cores.iter().flat_map(|cores| (0..cores.servers).map(move |_| server(cores))).collect()
}
