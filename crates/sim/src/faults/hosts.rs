//! The hosts' processes: the real machines, the work they do, and their dealings with the controller.

use sluice_control::{Answer, ClientHello, Event as Told, WorkerHello};
use sluice_host::client::{self, Client, ClientSettings, Outcome, Submission};
use sluice_host::worker::{self, Worker, WorkerSettings};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Endpoint, Incarnation, Nanos, Packet, ReplyStatus, TaskId, TaskType, WorkerId};

use super::controller::{RETRY_HORIZON, slice_name};
use super::oracle::{Ending, Life, answer, request};
use super::rack::{Event, Host, Rack};
use super::scenario::{DEADLINE, FAULTS_END, PROBE_LONGEST, RENEW_EVERY, SETTLED, SUBMIT_END};
use super::switch::{START, SwitchNode};

/// How long a host waits for the controller's answer before it asks again.
const PATIENCE: Nanos = Nanos::from_millis(1);
/// The least time between two calls of a host.
const CALL_GAP: Nanos = Nanos::from_micros(50);

/// What a host knows of its dealings with the controller.
#[derive(Debug, Default)]
pub(super) struct Dealings {
    /// When the call under way was made.
    asked: Option<Nanos>,
}

/// A worker's process, if it lives.
#[derive(Debug)]
pub(super) struct WorkerNode {
    pub(super) machine: Option<Worker>,
    pub(super) life: Life,
    pub(super) at: Endpoint,
    pub(super) stalled_until: Nanos,
    pub(super) cut_until: Nanos,
    pub(super) leaving: bool,
    index: u16,
    starts: u16,
    grant: Option<worker::Grant>,
    dealings: Dealings,
    armed: Option<Nanos>,
    /// Tasks in hand that came after they were given up for lost.
    late_in_hand: Vec<TaskId>,
}

impl WorkerNode {
    pub(super) fn new(index: usize) -> Self {
        Self {
            machine: None,
            life: 0,
            at: Endpoint::default(),
            stalled_until: Nanos(0),
            cut_until: Nanos(0),
            leaving: false,
            index: index as u16,
            starts: 0,
            grant: None,
            dealings: Dealings::default(),
            armed: None,
            late_in_hand: Vec::new(),
        }
    }

    /// The process is gone, with everything in it.
    pub(super) fn stop(&mut self) {
        self.machine = None;
        self.life = 0;
    }

    pub(super) const fn lives(&self) -> bool {
        self.machine.is_some()
    }

    fn late(&self) -> u64 {
        self.machine.as_ref().map_or(0, |machine| machine.stats().late)
    }

    pub(super) fn name(&self) -> String {
        format!("worker {}", self.index)
    }
}

/// A client's process; it always lives.
#[derive(Debug)]
pub(super) struct ClientNode {
    pub(super) machine: Client,
    pub(super) incarnation: Incarnation,
    at: Endpoint,
    index: u16,
    starts: u16,
    held: Option<(sluice_wire::ClientId, sluice_wire::Key)>,
    dealings: Dealings,
    armed: Option<Nanos>,
}

impl ClientNode {
    pub(super) fn new(index: usize) -> Self {
        Self {
            machine: Client::new(Incarnation(0), START),
            incarnation: Incarnation(0),
            at: Endpoint::default(),
            index: index as u16,
            starts: 0,
            held: None,
            dealings: Dealings::default(),
            armed: None,
        }
    }
}

const fn endpoint(base: u16, index: u16, starts: u16) -> Endpoint {
    Endpoint { ip: [0; 16], port: base + index * 100 + starts }
}

fn worker_settings() -> WorkerSettings {
    WorkerSettings {
        first_rtt: Nanos::from_micros(20),
        probe_longest: PROBE_LONGEST,
        probe_max_busy: Nanos::from_millis(1),
        retry_horizon: RETRY_HORIZON,
        ..WorkerSettings::default()
    }
}

fn client_settings() -> ClientSettings {
    ClientSettings {
        first_timeout: Nanos::from_millis(1),
        timeout_max: Nanos::from_millis(8),
        renew_gap: Nanos::from_micros(100),
        ..ClientSettings::default()
    }
}

/// The life of a worker that will fail this task: a service may.
const fn fails(life: Life, task: TaskId) -> bool {
    (life ^ task.sequence.0 as u64).is_multiple_of(31)
}

impl Rack<'_> {
    pub(super) fn host_at(&self, to: Endpoint) -> Option<Host> {
        let worker = self.workers.iter().position(|node| node.lives() && node.at == to).map(Host::Worker);
        worker.or_else(|| self.clients.iter().position(|node| node.at == to).map(Host::Client))
    }

    /// Whether this end of the network is cut off now.
    pub(super) fn is_cut(&self, end: Endpoint) -> bool {
        self.workers.iter().any(|node| node.at == end && self.now < node.cut_until)
    }

    fn host_is_cut(&self, host: Host) -> bool {
        matches!(host, Host::Worker(worker) if self.now < self.workers[worker].cut_until)
    }

    pub(super) fn start_worker(&mut self, worker: usize) {
        let life = self.dice.word() | 1;
        let node = &mut self.workers[worker];
        node.starts += 1;
        *node = WorkerNode {
            machine: Some(Worker::new()),
            life,
            at: endpoint(10_000, node.index, node.starts),
            starts: node.starts,
            ..WorkerNode::new(worker)
        };
        self.say(|| format!("worker {worker} starts as {life:016x}"));
        self.after(Nanos(1_000), Event::Renew(Host::Worker(worker), life));
    }

    pub(super) fn start_client(&mut self, client: usize) {
        let incarnation = Incarnation(self.dice.word());
        let node = &mut self.clients[client];
        node.starts += 1;
        *node = ClientNode {
            machine: Client::new(incarnation, START),
            incarnation,
            at: endpoint(20_000, node.index, node.starts),
            starts: node.starts,
            ..ClientNode::new(client)
        };
        self.say(|| format!("client {client} starts as {:016x}", incarnation.0));
        self.after(Nanos(1_000), Event::Renew(Host::Client(client), incarnation.0));
    }

    /// A host tells the controller who it is, unless it is gone or has just done so.
    pub(super) fn renew_if_alive(&mut self, host: Host, life: Life) {
        if self.life_of(host) == life && life != 0 {
            self.renew(host);
            self.after(RENEW_EVERY, Event::Renew(host, life));
        }
    }

    fn renew(&mut self, host: Host) {
        let now = self.now;
        let dealings = self.dealings(host);
        if dealings.asked.is_some_and(|at| now < at + PATIENCE) {
            return;
        }
        dealings.asked = Some(now);
        if self.host_is_cut(host) {
            return;
        }
        let call = self.brain.call(host, self.life_of(host));
        let told = match host {
            Host::Worker(worker) if self.workers[worker].leaving => {
                let node = &self.workers[worker];
                Told::WorkerLeave { call, name: node.name(), life: node.life }
            }
            Host::Worker(worker) => Told::WorkerHello { call, hello: self.worker_hello(worker) },
            Host::Client(client) => Told::ClientHello { call, hello: self.client_hello(client) },
        };
        self.call(told);
    }

    fn worker_hello(&self, worker: usize) -> WorkerHello {
        let node = &self.workers[worker];
        WorkerHello {
            name: node.name(),
            life: node.life,
            at: node.at,
            slice: slice_name(worker % self.scenario.slices),
            types: (0..self.scenario.slices).map(|index| TaskType(index as u16)).collect(),
            quota: self.scenario.quotas[worker],
            capacity: 0,
            held: node.grant.map(|grant| (grant.worker, grant.key, grant.generation)),
        }
    }

    fn client_hello(&self, client: usize) -> ClientHello {
        let node = &self.clients[client];
        ClientHello {
            name: format!("client {client}"),
            incarnation: node.incarnation,
            at: node.at,
            floor: node.machine.floor(),
            held: node.held,
        }
    }

    fn life_of(&self, host: Host) -> Life {
        match host {
            Host::Worker(worker) => self.workers[worker].life,
            Host::Client(client) => self.clients[client].incarnation.0,
        }
    }

    fn dealings(&mut self, host: Host) -> &mut Dealings {
        match host {
            Host::Worker(worker) => &mut self.workers[worker].dealings,
            Host::Client(client) => &mut self.clients[client].dealings,
        }
    }

    pub(super) fn worker_answered(
        &mut self,
        worker: usize,
        life: Life,
        answer: &Answer,
    ) -> Result<(), String> {
        if self.workers[worker].life != life || !self.workers[worker].lives() {
            return Ok(());
        }
        self.workers[worker].dealings.asked = None;
        match answer {
            Answer::Worker(grant) => {
                let grant = worker::Grant {
                    worker: grant.worker,
                    key: grant.key,
                    epoch: grant.epoch,
                    generation: grant.generation,
                    slice: grant.slice,
                    quota: grant.quota,
                    start: grant.start,
                    switch: grant.switch,
                };
                self.workers[worker].grant = Some(grant);
                self.on_worker(worker, |machine, now, settings, out| machine.grant(now, settings, grant, out))
            }
            Answer::Left { final_sent } => {
                let final_sent = *final_sent;
                self.on_worker(worker, |machine, now, _, _| machine.left(now, final_sent))
            }
            Answer::Wait { retry_after, .. } => {
                self.ask_later(Host::Worker(worker), *retry_after);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn client_answered(
        &mut self,
        client: usize,
        life: Life,
        answer: Answer,
    ) -> Result<(), String> {
        if self.clients[client].incarnation.0 != life {
            return Ok(());
        }
        self.clients[client].dealings.asked = None;
        match answer {
            Answer::Client(grant) => {
                self.clients[client].held = Some((grant.client, grant.key));
                let grant = client::ClientGrant {
                    client: grant.client,
                    key: grant.key,
                    epoch: grant.epoch,
                    switch: grant.switch,
                    replay_cells: grant.replay_cells,
                    slices: grant.slices,
                    shares: grant.shares,
                };
                self.on_client(client, |machine, now, settings, out| machine.grant(now, settings, grant, out))
            }
            Answer::Wait { retry_after, .. } => {
                self.ask_later(Host::Client(client), retry_after);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Besides the heartbeat, which goes on.
    fn ask_later(&mut self, host: Host, span: Nanos) {
        let now = self.now;
        let gap = span.max(CALL_GAP);
        self.dealings(host).asked = Some(Nanos((now + gap).0.saturating_sub(PATIENCE.0)));
    }

    /// The operating system says that nobody listens at the switch: half the time.
    pub(super) fn refused_by_switch(&mut self, from: Endpoint) {
        if self.dice.chance(500) {
            return;
        }
        let outcome = match self.host_at(from) {
            Some(Host::Worker(worker)) => self.on_worker(worker, Worker::refused),
            Some(Host::Client(client)) => self.on_client(client, Client::refused),
            None => Ok(()),
        };
        debug_assert!(outcome.is_ok(), "asking for a renewal breaks no promise");
    }

    pub(super) fn wake(&mut self, host: Host) -> Result<(), String> {
        let now = self.now;
        match host {
            Host::Worker(worker) if self.workers[worker].armed == Some(now) => {
                if now < self.workers[worker].stalled_until {
                    self.workers[worker].armed = Some(self.workers[worker].stalled_until);
                    self.agenda.add(self.workers[worker].stalled_until, Event::Wake(host));
                    return Ok(());
                }
                self.workers[worker].armed = None;
                self.on_worker(worker, Worker::tick)
            }
            Host::Client(client) if self.clients[client].armed == Some(now) => {
                self.clients[client].armed = None;
                self.on_client(client, Client::tick)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn at_worker(&mut self, worker: usize, from: Endpoint, packet: Packet) -> Result<(), String> {
        let node = &self.workers[worker];
        if self.now < node.stalled_until {
            let event = Event::Packet { from, to: node.at, packet };
            self.agenda.add(node.stalled_until, event);
            return Ok(());
        }
        let late = node.late();
        self.on_worker(worker, |machine, now, settings, out| {
            machine.packet(now, now, settings, &packet, out);
        })?;
        let node = &mut self.workers[worker];
        if let Packet::Dispatch(dispatch) = packet
            && node.late() > late
        {
            node.late_in_hand.push(dispatch.task);
        }
        Ok(())
    }

    pub(super) fn at_client(&mut self, client: usize, packet: &Packet) -> Result<(), String> {
        self.on_client(client, |machine, now, settings, out| machine.packet(now, settings, packet, out))
    }

    /// A run of the service ends.
    pub(super) fn finish(
        &mut self,
        worker: usize,
        life: Life,
        slot: u64,
        task: TaskId,
        started: Nanos,
    ) -> Result<(), String> {
        let node = &self.workers[worker];
        if node.life != life {
            return Ok(());
        }
        if self.now < node.stalled_until {
            self.agenda.add(node.stalled_until, Event::Finish { worker, life, slot, task, started });
            return Ok(());
        }
        self.workers[worker].late_in_hand.retain(|late| *late != task);
        let status = if fails(life, task) { ReplyStatus::Failed } else { ReplyStatus::Done };
        self.on_worker(worker, |machine, now, settings, out| {
            machine.finished(now, settings, slot, started, status, answer(life, task), out);
        })
    }

    pub(super) fn leave(&mut self, worker: usize) -> Result<(), String> {
        self.workers[worker].leaving = true;
        self.workers[worker].dealings.asked = None;
        self.on_worker(worker, |machine, _, _, _| machine.leave())?;
        self.renew(Host::Worker(worker));
        Ok(())
    }

    fn on_worker(
        &mut self,
        worker: usize,
        act: impl FnOnce(&mut Worker, Nanos, &WorkerSettings, &mut Vec<worker::Action>),
    ) -> Result<(), String> {
        let settings = worker_settings();
        let mut out = Vec::new();
        let Some(machine) = &mut self.workers[worker].machine else { return Ok(()) };
        act(machine, self.now, &settings, &mut out);
        let due = machine.deadline(&settings);
        let done = machine.is_done(self.now, &settings);
        for action in out {
            self.worker_acts(worker, action)?;
        }
        if done {
            self.say(|| format!("worker {worker} has left"));
            self.workers[worker].stop();
            return Ok(());
        }
        self.arm(Host::Worker(worker), due);
        Ok(())
    }

    fn worker_acts(&mut self, worker: usize, action: worker::Action) -> Result<(), String> {
        let WorkerNode { at, life, .. } = self.workers[worker];
        match action {
            worker::Action::ToSwitch(packet) => self.send(at, SwitchNode::AT, packet),
            worker::Action::Reply { to, packet } => self.send(at, to, Packet::Reply(packet)),
            worker::Action::Run { slot, task, payload, .. } => {
                self.oracle.started(life, task, &payload)?;
                self.say(|| format!("worker {worker} runs {task}"));
                let span = self.dice.span(Nanos::from_micros(5), self.scenario.service_max);
                let started = self.now;
                self.after(span, Event::Finish { worker, life, slot, task, started });
            }
            worker::Action::Renew => self.renew(Host::Worker(worker)),
            worker::Action::Release(_) | worker::Action::Forget(_) => {}
        }
        Ok(())
    }

    /// An application offers its next task.
    pub(super) fn submit(&mut self, client: usize) -> Result<(), String> {
        if self.now >= SUBMIT_END {
            return Ok(());
        }
        let gap = self.dice.between(1, 2 * self.scenario.gap_at(self.now).0);
        self.after(Nanos(gap), Event::Submit(client));
        let task_type = TaskType(self.dice.below(self.scenario.slices as u64) as u16);
        let retry = self.now >= FAULTS_END || !self.dice.chance(self.scenario.no_retry);
        let deadline = self.now + DEADLINE;
        let mut taken = None;
        self.on_client(client, |machine, now, settings, out| {
            // The bytes name their task, and its number is the machine's choice: the driver fills them in.
            let submission =
                Submission { task_type, payload: sluice_wire::Payload::EMPTY, deadline, retry, tag: 0 };
            taken = Some(machine.submit(now, settings, submission, out));
        })?;
        match taken {
            Some(Err(busy)) if self.now >= SETTLED && busy == client::Busy::NotRegistered => {
                Err(format!("promise 4: client {client} is not registered in a rack without faults"))
            }
            _ => Ok(()),
        }
    }

    fn on_client(
        &mut self,
        client: usize,
        act: impl FnOnce(&mut Client, Nanos, &ClientSettings, &mut Vec<client::Action>),
    ) -> Result<(), String> {
        let settings = client_settings();
        let mut out = Vec::new();
        let submitted = self.clients[client].machine.stats().submitted;
        act(&mut self.clients[client].machine, self.now, &settings, &mut out);
        if self.clients[client].machine.stats().submitted > submitted {
            self.taken(&out)?;
        }
        for action in out {
            self.client_acts(client, action)?;
        }
        let due = self.clients[client].machine.deadline();
        self.arm(Host::Client(client), due);
        Ok(())
    }

    /// The task that these first actions are about enters the books.
    fn taken(&mut self, out: &[client::Action]) -> Result<(), String> {
        for action in out {
            if let client::Action::ToSwitch(submit) = action {
                return self.oracle.submitted(self.now, submit.task);
            }
        }
        Ok(())
    }

    fn client_acts(&mut self, client: usize, action: client::Action) -> Result<(), String> {
        let at = self.clients[client].at;
        match action {
            client::Action::ToSwitch(mut submit) => {
                submit.payload = request(submit.task);
                self.oracle.tried(submit.task)?;
                self.send(at, SwitchNode::AT, Packet::Submit(submit));
            }
            client::Action::Done { task, outcome, .. } => {
                self.say(|| format!("client {client} hears of {task}: {outcome:?}"));
                let ending = match outcome {
                    Outcome::Reply(reply) => Ending::Replied(reply.payload),
                    Outcome::Refused(_) => Ending::Refused,
                    Outcome::Unknown(_) => Ending::Unknown,
                };
                self.oracle.ended(task, ending)?;
            }
            client::Action::Release(_) => {}
            client::Action::Renew => self.renew(Host::Client(client)),
        }
        Ok(())
    }

    fn arm(&mut self, host: Host, due: Option<Nanos>) {
        let Some(due) = due.map(|due| due.max(self.now + Nanos(1))) else { return };
        let armed = match host {
            Host::Worker(worker) => &mut self.workers[worker].armed,
            Host::Client(client) => &mut self.clients[client].armed,
        };
        if armed.is_none_or(|armed| due < armed) {
            *armed = Some(due);
            self.agenda.add(due, Event::Wake(host));
        }
    }

    /// Promise 3, from what the switch holds and what the worker has in hand.
    pub(super) fn inspect_worker(&mut self, worker: usize) -> Result<(), String> {
        let quota = u32::from(self.scenario.quotas[worker]);
        let (Some(machine), Some(grant)) = (&self.workers[worker].machine, self.workers[worker].grant) else {
            return Ok(());
        };
        let stats = machine.stats();
        let Some(parked) = self.parked(grant.worker, grant) else { return Ok(()) };
        let at_hand = stats.held.saturating_sub(self.workers[worker].late_in_hand.len() as u32);
        if parked + at_hand > quota {
            return Err(format!(
                "promise 3: worker {worker}: {parked} granted and {at_hand} held, quota {quota}"
            ));
        }
        Ok(())
    }

    /// Tokens of this registration that are parked in the switch.
    fn parked(&mut self, worker: WorkerId, grant: worker::Grant) -> Option<u32> {
        let epoch = self.switch.epoch();
        let rain = self.switch.rain.as_mut().filter(|_| epoch == grant.epoch)?;
        match rain.table(TableOp::ReadWorker(worker)) {
            TableAnswer::Worker(state) if state.generation_out == grant.generation => {
                Some(state.seen.since(state.sent).max(0) as u32)
            }
            _ => None,
        }
    }

    /// Promise 4: with nothing to do, every worker's whole quota is parked, and nothing else is.
    pub(super) fn inspect_at_rest(&mut self) -> Result<(), String> {
        let mut all_parked = 0;
        for worker in 0..self.workers.len() {
            let quota = u32::from(self.scenario.quotas[worker]);
            let grant = self.workers[worker].grant.filter(|_| self.workers[worker].lives());
            let parked = grant.and_then(|grant| self.parked(grant.worker, grant));
            if parked != Some(quota) {
                return Err(format!(
                    "promise 4: worker {worker} rests with {parked:?} of {quota} tokens parked"
                ));
            }
            all_parked += quota as i32;
        }
        let balance: i32 = (0..self.scenario.slices).map(|slice| self.balance(slice)).sum();
        if balance == all_parked {
            Ok(())
        } else {
            Err(format!(
                "promise 4: the switch rests with a balance of {balance}, workers parked {all_parked}"
            ))
        }
    }

    fn balance(&mut self, slice: usize) -> i32 {
        let slice = sluice_wire::SliceId(slice as u16);
        match self.switch.rain.as_mut().map(|rain| rain.table(TableOp::ReadSlice(slice))) {
            Some(TableAnswer::Slice(state)) => state.balance,
            _ => 0,
        }
    }
}
