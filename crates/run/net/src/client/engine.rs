//! The client's packet thread: one socket, the state machine, and the tasks that wait to be sent.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use sluice_control::ClientHello;
use sluice_host::client::{
    Action, Bundle, Client, ClientSettings, Outcome as HostOutcome, Submission, still_counts,
};
use sluice_rpc::registrar::{ClientRegistrar, RegistrarEvent};
use sluice_wire::{Endpoint, Handle, INLINE_BYTES, Nanos, Packet, TaskId, check_large, encode, parse};

use super::ended::Completion;
use super::joining::Joining;
use super::metrics::ClientMeter;
use super::outcome::{EndedTask, Outcome, RefusedWhy};
use super::queue::Bells;
use super::shared::{ClientReport, ClientShared, Command, OverOnDrop, Task};
use super::submit_gate::{LANES, lane};
use super::traces::ClientTraces;
use crate::NetError;
use crate::clock::Clock;
use crate::parts::parts;
use crate::payloads::{Payloads, received};
use crate::udp::{Outbox, Socket, SocketCounts, Wait};

/// How often waiting tasks are searched for passed deadlines.
const EXPIRE_EVERY: Nanos = Nanos::from_millis(20);
/// How often the controller is told the oldest outstanding sequence number.
const FLOOR_EVERY: Nanos = Nanos::from_millis(50);
/// How long a client that ends waits for the controller to end its registration.
const LEAVE_PATIENCE: Nanos = Nanos::from_millis(500);

/// The thread's state.
pub(super) struct Engine {
    socket: Socket,
    client: Client,
    settings: ClientSettings,
    clock: Clock,
    registrar: ClientRegistrar,
    left: bool,
    floor_at: Nanos,
    shared: Arc<ClientShared>,
    joining: Option<Sender<Joining>>,
    said: String,
    lanes: Vec<Lane>,
    waiting: usize,
    expire_at: Nanos,
    /// Empty between rounds; it keeps its capacity.
    commands: Vec<Command>,
    actions: Vec<Action>,
    effects: Effects,
    /// The rack's labels, in the order of their bits.
    labels: Vec<String>,
    /// Switches of earlier registrations.
    behind: Vec<Endpoint>,
    closing: bool,
    aborted: bool,
}

#[derive(Default)]
struct Lane {
    tasks: VecDeque<Task>,
    /// Whether the lane's first task was refused and nothing has changed since.
    stuck: bool,
}

/// The parts of the engine.
pub(super) struct Parts {
    pub(super) socket: Socket,
    pub(super) settings: ClientSettings,
    /// How many bytes of a task fit into one packet.
    pub(super) first_max: usize,
    pub(super) registrar: ClientRegistrar,
    pub(super) hello: ClientHello,
    pub(super) shared: Arc<ClientShared>,
    pub(super) joining: Sender<Joining>,
    pub(super) meter: ClientMeter,
    pub(super) traces: ClientTraces,
}

impl Engine {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            client: Client::new(parts.hello.incarnation, parts.hello.floor),
            clock: Clock::start(),
            left: false,
            floor_at: Nanos(0),
            joining: Some(parts.joining),
            said: String::new(),
            lanes: (0..LANES).map(|_| Lane::default()).collect(),
            waiting: 0,
            expire_at: Nanos(0),
            commands: Vec::new(),
            actions: Vec::new(),
            effects: Effects {
                meter: parts.meter,
                traces: parts.traces,
                ..Effects::new(parts.settings.outstanding_max as usize, parts.first_max, parts.hello.at)
            },
            labels: Vec::new(),
            behind: Vec::new(),
            closing: false,
            aborted: false,
            socket: parts.socket,
            settings: parts.settings,
            registrar: parts.registrar,
            shared: parts.shared,
        }
    }

    /// Runs until the client is closed or the socket fails.
    pub(super) fn run(mut self) -> Result<ClientReport, NetError> {
        let over = OverOnDrop(Arc::clone(&self.shared));
        let worked = self.work();
        self.shared.room.close();
        self.client.tick(Nanos(u64::MAX), &self.settings, &mut self.actions);
        self.perform(Nanos(0), &[]);
        self.publish();
        drop(over);
        worked.and_then(|()| self.leave()).map(|()| self.report())
    }

    fn leave(&mut self) -> Result<(), NetError> {
        self.registrar.leave();
        let give_up = self.clock.now() + LEAVE_PATIENCE;
        while !self.left && self.clock.now() < give_up {
            self.socket.receive(Wait::Until(give_up))?;
            self.take_registrations();
        }
        Ok(())
    }

    fn work(&mut self) -> Result<(), NetError> {
        loop {
            self.socket.receive(self.wait())?;
            self.take_packets();
            self.take_refusals();
            self.take_registrations();
            self.take_commands();
            let now = self.clock.now();
            self.client.tick(now, &self.settings, &mut self.actions);
            self.perform(now, &[]);
            self.send_waiting();
            self.report_floor(now);
            self.publish();
            let idle = self.client.outstanding() == 0 && self.waiting == 0;
            if self.aborted || (self.closing && idle) {
                return Ok(());
            }
        }
    }

    fn wait(&self) -> Wait {
        let expire = (self.waiting > 0).then_some(self.expire_at);
        let until = [self.client.deadline(), expire].into_iter().flatten().min();
        until.map_or(Wait::Forever, Wait::Until)
    }

    fn take_packets(&mut self) {
        let now = self.clock.now();
        let (inbox, outbox) = self.socket.split();
        for datagram in inbox.datagrams() {
            let Ok((mut packet, body)) = parse(datagram.bytes) else {
                self.effects.unreadable += 1;
                continue;
            };
            if self.behind.contains(&datagram.from) && !still_counts(&mut packet) {
                continue;
            }
            let Some(bytes) = bytes(&packet, body) else {
                self.effects.unreadable += 1;
                continue;
            };
            self.client.packet(now, &self.settings, &packet, &mut self.actions);
            let to = self.client.switch();
            self.effects.perform(&mut self.actions, to, outbox, datagram.received, bytes);
        }
        self.after_effects();
    }

    fn take_refusals(&mut self) {
        let Some(switch) = self.client.switch() else { return };
        if self.socket.outbox().refused().any(|peer| peer == switch) {
            let now = self.clock.now();
            self.client.refused(now, &self.settings, &mut self.actions);
            self.perform(now, &[]);
        }
    }

    fn take_registrations(&mut self) {
        while let Some(event) = self.registrar.try_next() {
            let now = self.clock.now();
            match event {
                RegistrarEvent::Granted(grant) => {
                    self.effects.first_granted = grant.first_bytes as usize;
                    self.shared.weights.set(&grant.slices, &grant.workers);
                    self.labels = grant.labels;
                    self.shared.name_types(grant.type_names);
                    let before = self.client.switch().filter(|at| *at != grant.registration.switch);
                    self.behind.retain(|at| *at != grant.registration.switch);
                    self.behind.extend(before);
                    self.client.grant(now, &self.settings, grant.registration, &mut self.actions);
                    self.perform(now, &[]);
                    self.unstick();
                    self.tell(Joining::Joined);
                    self.joining = None;
                }
                RegistrarEvent::Wait { why, .. } | RegistrarEvent::Lost { why } => {
                    self.tell(Joining::Waiting(why));
                }
                RegistrarEvent::Refused { why } => self.tell(Joining::Refused(why)),
                RegistrarEvent::Left { .. } => self.left = true,
            }
        }
    }

    /// Reports the state of the registration to the thread that waits for it; later, to the log, without
    /// repetitions.
    fn tell(&mut self, joining: Joining) {
        match (&self.joining, joining) {
            // A thread that gives up waiting drops the client, which ends this thread.
            (Some(waiter), joining) => drop(waiter.send(joining)),
            (None, Joining::Joined) => self.said.clear(),
            (None, Joining::Waiting(why)) => {
                if self.said != why {
                    sluice_log::log!(RegistrationWaits, why, "registration waits: {why}");
                    self.said = why;
                }
            }
            // The registrar's thread logs the refusal and asks again.
            (None, Joining::Refused(_)) => {}
        }
    }

    fn take_commands(&mut self) {
        let mut commands = std::mem::take(&mut self.commands);
        self.shared.take_commands(&mut commands);
        for command in commands.drain(..) {
            match command {
                Command::Task(task) => {
                    self.waiting += 1;
                    self.lanes[lane(task.spec.of)].tasks.push_back(task);
                }
                Command::Report(to) => drop(to.send(self.report())),
                Command::Close => self.closing = true,
                Command::Abort => self.aborted = true,
            }
        }
        self.commands = commands;
    }

    /// Sends the waiting tasks that the state machine accepts, lane by lane, and ends those whose deadline
    /// has passed.
    fn send_waiting(&mut self) {
        if self.waiting == 0 {
            return;
        }
        let now = self.clock.now();
        for index in 0..LANES {
            while let Some(task) = self.lanes[index].next_to_send() {
                if let Some(task) = self.submit(now, task) {
                    let lane = &mut self.lanes[index];
                    lane.tasks.push_front(task);
                    lane.stuck = true;
                } else {
                    self.waiting -= 1;
                    self.shared.room.give(index);
                }
            }
        }
        self.effects.close(self.client.switch(), self.socket.outbox());
        if now >= self.expire_at {
            self.expire_at = now + EXPIRE_EVERY;
            self.expire(now);
        }
    }

    /// Hands a task to the state machine; returns it if it was not accepted.
    fn submit(&mut self, now: Nanos, mut task: Task) -> Option<Task> {
        let Some(payload) = self.effects.payloads.keep_first(&task.bytes, self.effects.first_bytes()) else {
            return Some(task);
        };
        let tag = self.effects.completions.next_tag();
        let needs = task.spec.needs.among(&self.labels);
        let submission = Submission {
            task_type: task.spec.of,
            urgency: task.spec.urgency,
            needs: needs.unwrap_or_default(),
            payload,
            deadline: task.deadline,
            begin_by: task.begin_by,
            retry: task.retry,
            tag,
        };
        if needs.is_none() && self.client.switch().is_some() {
            self.client.refuse(&submission, RefusedWhy::UnknownLabel, &mut self.actions);
        } else if self.client.submit(now, &self.settings, submission, &mut self.actions).is_err() {
            self.effects.payloads.release(payload.handle);
            return Some(task);
        }
        task.completion.sent();
        self.shared.recycle(task.bytes);
        self.effects
            .completions
            .put(tag, SentTask { completion: task.completion, submitted: task.submitted });
        self.perform_first(now, &[]);
        None
    }

    fn expire(&mut self, now: Nanos) {
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let before = lane.tasks.len();
            // Dropping an unsent completion reports that the task was never sent.
            lane.tasks.retain(|task| task.deadline > now);
            let gone = before - lane.tasks.len();
            self.waiting -= gone;
            (0..gone).for_each(|_| self.shared.room.give(index));
        }
    }

    fn perform(&mut self, at: Nanos, bytes: &[u8]) {
        self.perform_first(at, bytes);
        self.effects.close(self.client.switch(), self.socket.outbox());
    }

    /// Carries out actions after which more may leave in the same packet.
    fn perform_first(&mut self, at: Nanos, bytes: &[u8]) {
        self.effects.bundle.allow(self.client.jobs());
        let to = self.client.switch();
        self.effects.perform(&mut self.actions, to, self.socket.outbox(), at, bytes);
        self.after_effects();
    }

    fn after_effects(&mut self) {
        while let Some((task, is_right)) = self.effects.checked.pop() {
            let now = self.clock.now();
            self.client.checked(now, &self.settings, task, is_right, &mut self.actions);
            let to = self.client.switch();
            self.effects.perform(&mut self.actions, to, self.socket.outbox(), now, &[]);
        }
        if std::mem::take(&mut self.effects.renew) {
            self.registrar.renew_now();
        }
        if std::mem::take(&mut self.effects.ended) {
            self.unstick();
            self.effects.bells.ring();
        }
    }

    fn unstick(&mut self) {
        for lane in &mut self.lanes {
            lane.stuck = false;
        }
    }

    /// Makes what was counted visible to whoever reads the metrics.
    fn publish(&mut self) {
        let Self { client, waiting, socket, effects, .. } = self;
        let unreadable = effects.unreadable;
        effects.meter.publish(|| client_report(client, *waiting, unreadable, socket.counts()));
    }

    /// Tells the controller the oldest outstanding sequence number. The search for it takes time in
    /// proportion to the tasks, so it does not run in each round.
    fn report_floor(&mut self, now: Nanos) {
        if now >= self.floor_at {
            self.floor_at = now + FLOOR_EVERY;
            self.registrar.set_floor(self.client.floor());
        }
    }

    fn report(&self) -> ClientReport {
        client_report(&self.client, self.waiting, self.effects.unreadable, self.socket.counts())
    }
}

fn client_report(client: &Client, waiting: usize, unreadable: u64, socket: SocketCounts) -> ClientReport {
    ClientReport {
        tasks: client.stats(),
        outstanding: client.outstanding(),
        waiting,
        unreadable: unreadable + socket.oversized,
        socket,
    }
}

impl Lane {
    fn next_to_send(&mut self) -> Option<Task> {
        if self.stuck { None } else { self.tasks.pop_front() }
    }
}

/// Carries out the state machine's actions.
struct Effects {
    payloads: Payloads,
    /// How many bytes of a task fit into one packet.
    first_max: usize,
    /// How many bytes of a task the rack allows in its first packet.
    first_granted: usize,
    /// This client's address, for workers that send it bytes.
    at: Endpoint,
    completions: Completions,
    /// The bytes of replies that come in parts.
    replies: HashMap<Handle, Vec<u8>>,
    /// Replies whose bytes have all come, and whether they match the descriptor.
    checked: Vec<(TaskId, bool)>,
    unreadable: u64,
    renew: bool,
    ended: bool,
    bells: Bells,
    /// Tasks that are about to leave in one packet.
    bundle: Bundle,
    meter: ClientMeter,
    traces: ClientTraces,
}

impl Effects {
    fn new(outstanding_max: usize, first_max: usize, at: Endpoint) -> Self {
        Self {
            first_max,
            first_granted: 0,
            at,
            replies: HashMap::new(),
            checked: Vec::new(),
            payloads: Payloads::new(outstanding_max),
            completions: Completions::default(),
            unreadable: 0,
            renew: false,
            ended: false,
            bells: Bells::default(),
            bundle: Bundle::new(1),
            meter: ClientMeter::new(None),
            traces: ClientTraces::default(),
        }
    }

    /// How many bytes of a task its first packet brings; a task with more is a large one.
    fn first_bytes(&self) -> usize {
        self.first_max.min(self.first_granted.max(INLINE_BYTES + 1))
    }

    /// Sends the tasks that were bundled so far.
    fn close(&mut self, switch: Option<Endpoint>, outbox: &mut Outbox) {
        if let (Some(packet), Some(switch)) = (self.bundle.close(), switch) {
            outbox.send_with(switch, |out| encode(&packet, &[], out).unwrap_or(0));
        }
    }

    /// Carries out `actions`. `bytes` are those of the reply or part that caused them; it arrived at `at`.
    fn perform(
        &mut self,
        actions: &mut Vec<Action>,
        switch: Option<Endpoint>,
        outbox: &mut Outbox,
        at: Nanos,
        bytes: &[u8],
    ) {
        for action in actions.drain(..) {
            match action {
                Action::ToSwitch(submit) => {
                    let Some(switch) = switch else { continue };
                    self.traces.sent(submit.task, submit.task_type, at);
                    let (before, is_alone) = self.bundle.put(&submit);
                    if let Some(before) = before {
                        outbox.send_with(switch, |out| encode(&before, &[], out).unwrap_or(0));
                    }
                    if is_alone {
                        let body = self.payloads.first(&submit.payload);
                        let packet = Packet::Submit(submit);
                        outbox.send_with(switch, |out| encode(&packet, body, out).unwrap_or(0));
                    }
                }
                Action::Done { tag, task, attempts, outcome } => {
                    self.ended = true;
                    let sent = attempts > 0;
                    let Some(SentTask { completion, submitted }) = self.completions.take(tag) else {
                        continue;
                    };
                    let bytes = self.replied(&outcome, bytes);
                    let outcome = Outcome::new(&outcome, bytes, || completion.buffer());
                    if let Outcome::Reply(reply) = &outcome {
                        self.meter.replied(at.since(submitted), reply);
                    }
                    self.traces.ended(task, attempts, &outcome, (submitted, at));
                    let task = sent.then_some(task);
                    self.bells.add(completion.tell(EndedTask { task, attempts, at, outcome }));
                }
                Action::Parts { need, payload } => {
                    for (part, body) in
                        parts(&need, &payload, self.payloads.bytes(&payload), self.first_bytes())
                    {
                        let write = |out: &mut [u8]| encode(&Packet::Part(part), body, out).unwrap_or(0);
                        outbox.send_with(need.asker_at, write);
                    }
                }
                Action::Gone { to, packet } => {
                    outbox.send_with(to, |out| encode(&Packet::Part(packet), &[], out).unwrap_or(0));
                }
                Action::Need { to, mut packet } => {
                    packet.asker_at = self.at;
                    outbox.send_with(to, |out| encode(&Packet::Need(packet), &[], out).unwrap_or(0));
                }
                Action::Begin { at, payload, have } => {
                    let mut whole = bytes.get(..usize::from(have)).unwrap_or_default().to_vec();
                    whole.resize(payload.total() as usize, 0);
                    self.replies.insert(at, whole);
                }
                Action::Place { at, offset } => self.place(at, offset, bytes),
                Action::Check { task, at, payload } => {
                    let whole = self.replies.get(&at).map(Vec::as_slice).unwrap_or_default();
                    self.checked.push((task, check_large(payload.inline, whole)));
                }
                Action::Forget(at) => drop(self.replies.remove(&at)),
                Action::Release(handle) => self.payloads.release(handle),
                Action::Renew => self.renew = true,
            }
        }
    }
}

impl Effects {
    /// A reply's bytes: those of its packet, or those that were fetched.
    fn replied<'a>(&'a self, outcome: &HostOutcome, bytes: &'a [u8]) -> &'a [u8] {
        match outcome {
            HostOutcome::Reply(reply) if reply.payload.has_more() => {
                self.replies.get(&reply.payload.handle).map(Vec::as_slice).unwrap_or_default()
            }
            _ => bytes,
        }
    }

    fn place(&mut self, at: Handle, offset: u32, bytes: &[u8]) {
        let start = offset as usize;
        let whole = self.replies.get_mut(&at);
        if let Some(room) = whole.and_then(|whole| whole.get_mut(start..start + bytes.len())) {
            room.copy_from_slice(bytes);
        }
    }
}

/// The bytes in a packet; `None` if they contradict the packet's descriptor.
fn bytes<'a>(packet: &'a Packet, body: &'a [u8]) -> Option<&'a [u8]> {
    match packet {
        Packet::Reply(reply) if reply.payload.has_more() => Some(body),
        Packet::Reply(reply) => received(&reply.payload, body),
        Packet::Part(part) if part.payload.is_large() => Some(body),
        Packet::Part(part) => part.payload.inline.get(..usize::from(part.payload.len)),
        _ => Some(&[]),
    }
}

/// A task that was sent and has not ended.
struct SentTask {
    completion: Completion,
    submitted: Nanos,
}

/// The completions of the tasks that were sent, by tag.
#[derive(Default)]
struct Completions {
    completions: Vec<Option<SentTask>>,
    free: Vec<u64>,
}

impl Completions {
    /// The tag that the next [`Completions::put`] has to use.
    fn next_tag(&self) -> u64 {
        self.free.last().copied().unwrap_or(self.completions.len() as u64)
    }

    fn put(&mut self, tag: u64, task: SentTask) {
        if self.free.pop().is_none() {
            self.completions.push(None);
        }
        self.completions[tag as usize] = Some(task);
    }

    fn take(&mut self, tag: u64) -> Option<SentTask> {
        let task = self.completions.get_mut(tag as usize)?.take()?;
        self.free.push(tag);
        Some(task)
    }
}
