//! The worker's thread: socket, state machine, service and registration.

mod paced;
mod processor;

use sluice_control::{WorkerGrant, WorkerHello};
use sluice_host::worker::{Action, EarlySettings, RemainingTime, Worker, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::Feed;
use sluice_wire::{
    Dispatch, Endpoint, Epoch, Generation, Nanos, Need, Packet, Payload, Place, Reply, TASK_BYTES_MAX,
    TaskId, TaskType, WorkerId, check_large, encode, parse, payload_bytes_max,
};

use super::agent_reporter::AgentReporter;
use super::draining::{Drained, Draining, warn_out_of_time};
use super::early::Listener;
use super::metrics::WorkerMeter;
use super::options::WorkerOptions;
use super::recent::{RecentMeter, WayToSwitch};
use super::report::{Dropped, Served, WorkerReport, report};
use super::run::{Runner, ServiceEnd, ServiceObserver};
use super::slots::Slots;
use super::stopper::{StopOrder, Stopper};
use super::traces::{AnsweredTimes, WorkerTraces};
use super::turn::Turn;
use crate::NetError;
use crate::clock::Clock;
use crate::parts::parts;
use crate::payloads::{Payloads, received};
use crate::service::Service;
use crate::udp::{Outbox, Socket, Wait};
pub use processor::EmulatedProcessor;
use processor::{Destination, Processor};
use sluice_rpc::registrar::{RegistrarEvent, WorkerRegistrar};

/// How many switches of former registrations may still send late packets.
const SWITCHES: usize = 4;

/// The thread's state.
pub(super) struct Engine<S> {
    socket: Socket,
    machine: Worker,
    settings: WorkerSettings,
    clock: Clock,
    registrar: WorkerRegistrar,
    /// The connection to the agent that finds the worker's depth.
    reporter: Option<AgentReporter>,
    hello: WorkerHello,
    runner: Runner<S>,
    actions: Vec<Action>,
    effects: Effects,
    busy: Option<Busy>,
    /// Whether the worker tells the switch, in its replies or its tokens, how many tasks it holds.
    tells_held: bool,
    /// The newest first.
    switches: Vec<Endpoint>,
    stopper: Stopper,
    leaving: Option<Draining>,
    drain_limit: Nanos,
    drained: bool,
    dropped: Dropped,
    served: Served,
    began: Nanos,
    dilation: u32,
    recent: RecentMeter,
    meter: WorkerMeter,
    traces: WorkerTraces,
    /// If the capacity is measured: what had been served when it was last reported.
    measured: Option<Served>,
    said: LoggedRegistration,
}

/// A task whose service has returned, but whose dilated time is not over.
struct Busy {
    slot: u64,
    started: Nanos,
    until: Nanos,
    ended: ServiceEnd,
    reply: Payload,
    /// The task, if it is traced.
    traced: Option<(TaskId, TaskType)>,
}

enum Refused {
    No,
    Yes(String),
}

impl<S: Service> Engine<S> {
    pub(super) fn new(
        options: &WorkerOptions,
        socket: Socket,
        hello: WorkerHello,
        (registrar, reporter): (WorkerRegistrar, Option<AgentReporter>),
        service: S,
        (stopper, processor): (Stopper, Option<Box<dyn EmulatedProcessor>>),
    ) -> Self {
        let settings = settings(options);
        let clock = Clock::start();
        let began = clock.now();
        let measured = (options.capacity == 0).then(Served::default);
        let packet_max = payload_bytes_max(options.datagram_max);
        Self {
            machine: Worker::new(),
            effects: Effects {
                processor: Processor::new(processor),
                ..Effects::new(&settings, options, hello.at, packet_max)
            },
            runner: Runner::new(service, TASK_BYTES_MAX as usize, packet_max),
            actions: Vec::new(),
            busy: None,
            tells_held: false,
            switches: Vec::new(),
            leaving: None,
            drain_limit: options.drain_limit,
            drained: false,
            dropped: Dropped::default(),
            served: Served::default(),
            dilation: options.dilation.max(1),
            socket,
            settings,
            clock,
            registrar,
            reporter,
            hello,
            stopper,
            began,
            measured,
            recent: RecentMeter::new(began),
            meter: WorkerMeter::new(options.metrics.as_ref()),
            traces: WorkerTraces::new(options.traces.clone(), &options.name),
            said: LoggedRegistration::default(),
        }
    }

    pub(super) fn run(mut self) -> Result<WorkerReport, NetError> {
        while !self.step(self.next_step().map_or(Wait::Forever, Wait::Until))? {}
        self.socket.flush();
        Ok(self.into_report())
    }

    /// Runs one step of a worker that shares its thread.
    pub(super) fn turn(&mut self) -> Result<Turn, NetError> {
        let over = self.step(Wait::Poll)?;
        self.socket.send_due();
        let next = [self.next_step(), self.socket.next_due()].into_iter().flatten().min();
        Ok(if over { Turn::Over } else { Turn::At(next) })
    }

    pub(super) fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Whether the worker is registered.
    pub(super) fn is_serving(&self) -> bool {
        self.machine.stats().serving
    }

    /// The worker's report over its whole life.
    pub(super) fn into_report(self) -> WorkerReport {
        let name = (self.hello.name.as_str(), self.dilation);
        let ran = self.clock.now().since(self.began);
        let ahead = (self.effects.slots.copied, self.effects.slots.missed);
        let (stats, socket) = (self.machine.stats(), self.socket.counts());
        report(name, ran, self.drained, self.served, (stats, ahead), self.dropped, socket)
    }

    /// Handles what has arrived and what is due. Returns whether the worker has left.
    fn step(&mut self, wait: Wait) -> Result<bool, NetError> {
        self.socket.receive(wait)?;
        self.take_packets();
        self.take_refusals();
        if let Refused::Yes(why) = self.take_registrations() {
            return Err(NetError::Refused { why });
        }
        self.rejoin_if_pair_failed();
        let now = self.clock.now();
        if self.effects.slots.wants_grant(now) {
            self.registrar.renew_now();
        }
        self.catch_up(now);
        self.early(now);
        self.free(now);
        self.apply_ordered_depth();
        self.machine.tick(now, &self.settings, &mut self.actions);
        self.perform(now);
        if let Some(drained) = self.stop(now) {
            self.drained = drained;
            return Ok(true);
        }
        self.serve();
        self.report_recent(now);
        self.publish();
        Ok(false)
    }

    /// If the server's queue pair failed, nothing is written ahead any more: stops tokens until the
    /// controller has registered this worker anew.
    fn rejoin_if_pair_failed(&mut self) {
        if let Some(failures) = self.effects.slots.new_failure() {
            self.machine.suspend();
            self.hello.rejoins = failures;
            self.registrar.set_hello(self.hello.clone());
        }
    }

    /// When the worker has something to do if nothing arrives before.
    fn next_step(&self) -> Option<Nanos> {
        if self.effects.run.is_some() && self.busy.is_none() {
            return Some(Nanos(0));
        }
        let busy = self.busy.as_ref().map(|busy| busy.until);
        let received = busy.is_none().then(|| self.effects.processor.next_received()).flatten();
        let fetched_at = self.effects.fetched_at;
        let leaving = self.leaving.as_ref();
        let leaving = leaving.map(|leaving| leaving.next_turn(self.clock.now(), fetched_at, self.dilation));
        let early = busy.and_then(|_| self.machine.early_at(&self.settings));
        let recent = self.recent.next_turn(self.machine.refused_late() != self.hello.refused_late);
        [self.machine.deadline(&self.settings), busy, early, received, leaving, recent]
            .into_iter()
            .flatten()
            .min()
    }

    fn take_packets(&mut self) {
        let now = self.clock.now();
        let (inbox, outbox) = self.socket.split();
        for datagram in inbox.datagrams() {
            let is_switch = self.switches.contains(&datagram.from);
            let parsed = parse(datagram.bytes);
            // A PART or NEED comes from a client's address; its task id authenticates it.
            if !is_switch && !matches!(parsed, Ok((Packet::Part(_) | Packet::Need(_), _))) {
                self.dropped.foreign += 1;
                continue;
            }
            let Ok((mut packet, body)) = parsed else {
                self.dropped.unreadable += 1;
                continue;
            };
            if !self.effects.keep(&mut packet, body, &mut self.dropped) {
                continue;
            }
            if self.effects.processor.keeps(datagram.received, packet) {
                continue;
            }
            self.machine.packet(now, datagram.received, &self.settings, &packet, &mut self.actions);
            self.effects.perform(now, &mut self.actions, self.switches.first().copied(), outbox);
        }
        self.after_effects();
    }

    fn take_refusals(&mut self) {
        let Some(switch) = self.switches.first().copied() else { return };
        if self.socket.outbox().refused().any(|peer| peer == switch) {
            let now = self.clock.now();
            self.machine.refused(now, &self.settings, &mut self.actions);
            self.perform(now);
        }
    }

    fn take_registrations(&mut self) -> Refused {
        while let Some(event) = self.registrar.try_next() {
            match event {
                RegistrarEvent::Granted(grant) => self.granted(&grant),
                RegistrarEvent::Wait { why, .. } => self.said.waits(&self.hello.name, &why),
                RegistrarEvent::Refused { why } if self.switches.is_empty() => return Refused::Yes(why),
                // The registrar's thread logs the refusal and asks again.
                RegistrarEvent::Lost { .. } | RegistrarEvent::Refused { .. } => {}
                RegistrarEvent::Left { final_sent } => {
                    self.machine.left(self.clock.now(), final_sent);
                    self.leaving.iter_mut().for_each(|leaving| leaving.let_go = true);
                }
            }
        }
        Refused::No
    }

    fn granted(&mut self, grant: &WorkerGrant) {
        remember(&mut self.switches, grant.switch);
        self.said.granted(&self.hello.name, grant);
        self.effects.slots.granted(self.clock.now(), grant.slice, grant.ring);
        self.effects.ranked = grant.feed == Feed::Tokens { ranked: true };
        self.tells_held = self.effects.ranked || grant.feed == Feed::Pushed { reports: true };
        self.settings.retry_horizon = grant.retry_horizon;
        self.settings.transit = grant.transit;
        let now = self.clock.now();
        let mut registration = dilated(grant, self.dilation);
        if let Some(reporter) = &mut self.reporter {
            registration.quota = reporter.granted(now, grant);
            self.renew_with_depth(registration.quota);
        }
        self.machine.grant(now, &self.settings, registration, &mut self.actions);
        self.perform(now);
    }

    /// Takes the depth that the agent wants. A higher depth sends tokens with the next tick; a lower one
    /// takes effect as tokens are spent.
    fn apply_ordered_depth(&mut self) {
        let Some(depth) = self.reporter.as_mut().and_then(AgentReporter::ordered_depth) else { return };
        self.machine.set_quota(depth);
        self.renew_with_depth(depth);
    }

    /// Makes what was counted visible to whoever reads the metrics.
    fn publish(&mut self) {
        let Self { meter, served, machine, effects, dropped, socket, .. } = self;
        let ahead = (effects.slots.copied, effects.slots.missed);
        meter.publish(|| (*served, machine.stats(), ahead, *dropped, socket.counts()));
    }

    /// Updates the depth in the renewals: the controller heard it from the agent, and must not hear another
    /// one.
    fn renew_with_depth(&mut self, depth: u8) {
        if self.hello.quota != depth {
            self.hello.quota = depth;
            self.registrar.set_hello_later(self.hello.clone());
        }
    }

    /// Ends the task whose time is over.
    fn free(&mut self, now: Nanos) {
        let Some(busy) = self.busy.take_if(|busy| busy.until <= now) else { return };
        let Busy { slot, started, ended, reply, until, traced } = busy;
        self.served.tasks += 1;
        self.served.failed += u64::from(ended == ServiceEnd::Failed);
        self.served.panicked += u64::from(ended == ServiceEnd::Panicked);
        self.served.busy = self.served.busy + now.since(started);
        let waited = self.machine.waited(slot, started);
        self.recent.ended(started, now.since(started), waited);
        self.meter.ended(now.since(started), waited);
        let status = ended.status();
        if let Some((reporter, sample)) = self.reporter.as_mut().zip(self.machine.sample(now, started)) {
            reporter.ended(now, &sample);
        }
        self.machine.finished(now, &self.settings, slot, started, status, reply, &mut self.actions);
        self.perform(now);
        if let Some((task, task_type)) = traced {
            let arrived = Nanos(started.0.saturating_sub(waited.0));
            let times = AnsweredTimes { arrived, started, ended: until, answered: now };
            self.traces.answered(task, task_type, ended, &times);
        }
        if let Some(reporter) = self.reporter.as_mut().filter(|_| self.effects.run.is_none()) {
            reporter.set_idle(self.effects.processor.free(now));
        }
    }

    /// Runs the service for the task that the state machine wants to run. Queued packets leave first.
    fn serve(&mut self) {
        if self.busy.is_some() {
            return;
        }
        let Some(run) = self.effects.run.take() else { return };
        self.socket.flush();
        let bytes = self.effects.tasks.bytes(&run.payload);
        let is_real = self.effects.processor.is_real();
        if let Some(reporter) = &mut self.reporter {
            let now = self.effects.processor.free(self.clock.now());
            let waited = self.machine.sample(now, now).map_or(Nanos(0), |sample| sample.worker_wait);
            reporter.set_busy(now - waited);
        }
        let at_once = self.settings.early.is_some() && is_real && self.dilation == 1;
        let words = Listener::new(
            &self.clock,
            (&mut self.machine, &self.settings),
            (self.socket.outbox(), self.switches.first().copied()),
            run.slot,
            at_once,
        );
        let left = |left| words.left(left);
        let observer = ServiceObserver { left: &left, pause: &|| () };
        let ran = self.runner.run(&self.clock, run.task, run.task_type, bytes, observer);
        let outlook = words
            .first()
            .map_or(RemainingTime::Units(1), |left| RemainingTime::Left(left.times(self.dilation.into())));
        let (started, until) = self.effects.processor.service_span(&ran, self.dilation);
        if self.settings.early.is_some() {
            self.machine.expect(started, run.slot, outlook);
        }
        let (ended, reply) =
            match self.effects.replies.keep_first(self.runner.reply(), self.effects.packet_max) {
                Some(reply) => (ran.ended, reply),
                None => (ServiceEnd::Failed, Payload::EMPTY),
            };
        let traced = self.traces.take(run.task).then_some((run.task, run.task_type));
        self.busy = Some(Busy { slot: run.slot, started, until, ended, reply, traced });
        // A worker that tells how many tasks it holds first receives what arrived meanwhile.
        if is_real && !self.tells_held {
            self.free(self.clock.now());
        }
    }

    /// Sends the early token of a busy worker if it is due. With an emulated processor this takes some of
    /// its time.
    fn early(&mut self, now: Nanos) {
        let Some(started) = self.busy.as_ref().map(|busy| busy.started) else { return };
        let due = self.machine.early_at(&self.settings).map(|at| at.max(started));
        let Some(at) = due.filter(|at| *at <= now) else { return };
        let at = self.effects.processor.does(at, now);
        self.machine.early(at, &self.settings, &mut self.actions);
        self.perform(at);
        if let Some(busy) = &mut self.busy {
            busy.until = busy.until + self.effects.processor.took_since(at);
        }
    }

    /// Carries out the actions that the state machine requested at `at`.
    fn perform(&mut self, at: Nanos) {
        let switch = self.switches.first().copied();
        self.effects.perform(at, &mut self.actions, switch, self.socket.outbox());
        self.after_effects();
    }

    fn after_effects(&mut self) {
        while let Some((task, is_right)) = self.effects.checked.pop() {
            let now = self.clock.now();
            self.machine.checked(now, &self.settings, task, is_right, &mut self.actions);
            let switch = self.switches.first().copied();
            self.effects.perform(now, &mut self.actions, switch, self.socket.outbox());
        }
        if std::mem::take(&mut self.effects.renew) {
            self.registrar.renew_now();
        }
    }

    /// Continues to leave, if asked to. Once done, returns whether all held tasks were finished.
    fn stop(&mut self, now: Nanos) -> Option<bool> {
        match self.stopper.asked() {
            StopOrder::Nothing => None,
            StopOrder::Abort => Some(false),
            StopOrder::Drain => {
                let Some(leaving) = &mut self.leaving else {
                    self.registrar.leave();
                    self.leaving = Some(Draining::begin(now, &mut self.machine, self.drain_limit));
                    return None;
                };
                let fetched_at = self.effects.fetched_at;
                match leaving.turn(now, &mut self.machine, &self.settings, fetched_at, self.dilation) {
                    Drained::NotYet => None,
                    Drained::All => Some(true),
                    Drained::OutOfTime(held) => {
                        warn_out_of_time(&self.hello.name, self.drain_limit, held);
                        Some(false)
                    }
                }
            }
        }
    }

    /// Reports the worker's recent work and its capacity to the controller when there is something new.
    fn report_recent(&mut self, now: Nanos) {
        let way = WayToSwitch::of(&self.machine, now);
        let Some(recent) = self.recent.turn(now, way) else { return };
        let late = self.machine.refused_late();
        if (recent, late) != (self.hello.recent, self.hello.refused_late) {
            (self.hello.recent, self.hello.refused_late) = (recent, late);
            self.registrar.set_hello_later(self.hello.clone());
        }
        let Some(before) = &mut self.measured else { return };
        let tasks = self.served.tasks - before.tasks;
        let busy = self.served.busy.since(before.busy);
        *before = self.served;
        if tasks == 0 || busy == Nanos(0) {
            return;
        }
        let capacity = (tasks as f64 * 1e9 / busy.0 as f64) as u32;
        if capacity.abs_diff(self.hello.capacity) > self.hello.capacity / 10 {
            self.hello.capacity = capacity.max(1);
            self.registrar.set_hello(self.hello.clone());
        }
    }
}

/// Puts the switch of a new registration first. Late packets of former switches are still accepted for a
/// while.
pub(super) fn remember(switches: &mut Vec<Endpoint>, switch: Endpoint) {
    if switches.first() != Some(&switch) {
        switches.retain(|known| *known != switch);
        switches.insert(0, switch);
        switches.truncate(SWITCHES);
    }
}

/// The last log message about the registration, so that none is repeated.
#[derive(Default)]
pub(super) struct LoggedRegistration {
    waits: String,
    granted: Option<(WorkerId, Epoch, Generation)>,
}

impl LoggedRegistration {
    pub(super) fn waits(&mut self, name: &str, why: &str) {
        if self.waits != why {
            sluice_log::log!(RegistrationWaits, host = name, why, "{name}: registration waits: {why}");
            why.clone_into(&mut self.waits);
        }
    }

    pub(super) fn granted(&mut self, name: &str, grant: &WorkerGrant) {
        let now = (grant.worker, grant.epoch, grant.generation);
        self.waits.clear();
        if self.granted.replace(now) != Some(now) {
            let WorkerRegistration { worker, slice, generation, epoch, .. } = grant.registration;
            sluice_log::log!(
                WorkerRegistered,
                host = name,
                worker = u64::from(worker.0),
                slice = u64::from(slice.0),
                generation = u64::from(generation.0),
                epoch = u64::from(epoch.0),
                "{name}: worker {worker} of slice {slice}, generation {generation}, epoch {epoch}"
            );
        }
    }
}

/// A task that the state machine wants to run.
pub(super) struct WantedRun {
    pub(super) slot: u64,
    pub(super) task: TaskId,
    pub(super) task_type: TaskType,
    pub(super) payload: Payload,
}

/// Carries out the state machine's actions.
pub(super) struct Effects {
    pub(super) tasks: Payloads,
    pub(super) replies: Payloads,
    pub(super) run: Option<WantedRun>,
    pub(super) renew: bool,
    /// When a part of a long reply was last sent.
    pub(super) fetched_at: Option<Nanos>,
    processor: Processor,
    /// Whether tokens say how many tasks stand before them.
    pub(super) ranked: bool,
    /// This worker's address, for clients that send it bytes or ask for some.
    at: Endpoint,
    pub(super) slots: Slots,
    /// How many payload bytes fit into one packet.
    pub(super) packet_max: usize,
    /// Tasks whose bytes have all come, and whether they match the descriptor.
    pub(super) checked: Vec<(TaskId, bool)>,
}

impl Effects {
    pub(super) fn new(
        settings: &WorkerSettings,
        options: &WorkerOptions,
        at: Endpoint,
        packet_max: usize,
    ) -> Self {
        Self {
            at,
            packet_max,
            slots: Slots::new(options.memory.clone()),
            checked: Vec::new(),
            tasks: Payloads::new(2 * settings.held_max),
            replies: Payloads::new(settings.replies_max + 2 * settings.held_max),
            run: None,
            renew: false,
            fetched_at: None,
            processor: Processor::new(None),
            ranked: false,
        }
    }

    /// Stores a packet's payload. Returns false, and counts the packet as dropped, if it cannot be
    /// accepted.
    pub(super) fn keep(&mut self, packet: &mut Packet, body: &[u8], dropped: &mut Dropped) -> bool {
        let is_dispatch = matches!(packet, Packet::Dispatch(_));
        let body = match packet {
            Packet::Dispatch(dispatch) if matches!(dispatch.place, Place::Ahead { .. }) => {
                let copied = self.slots.copy(dispatch);
                dispatch.place = if copied.is_some() { Place::Here } else { Place::AtClient };
                copied.unwrap_or_default()
            }
            _ => body,
        };
        let brings_all = matches!(packet, Packet::Dispatch(Dispatch { place: Place::Here, .. }));
        let Some(payload) = packet.payload_mut().filter(|payload| payload.is_large()) else { return true };
        let is_all = brings_all && !payload.has_more();
        if is_all && received(payload, body).is_none() || payload.total() > TASK_BYTES_MAX {
            dropped.unreadable += 1;
            return false;
        }
        let total = if is_dispatch { payload.total() as usize } else { body.len() };
        let Some(handle) = self.tasks.begin(body, total.max(body.len())) else {
            dropped.no_room += 1;
            return false;
        };
        payload.handle = handle;
        true
    }

    /// Sends the bytes of a reply that a client's NEED asks for.
    fn send_parts(&mut self, need: &Need, payload: &Payload, outbox: &mut Outbox) {
        for (part, body) in parts(need, payload, self.replies.get(payload.handle), self.packet_max) {
            let write = |out: &mut [u8]| encode(&Packet::Part(part), body, out).unwrap_or(0);
            self.processor.send(Destination::ToClient(need.asker_at), outbox, write);
        }
    }

    /// Writes this worker's address into a long reply: the client asks here for the rest.
    const fn point_here(&mut self, at: Nanos, reply: &mut Reply) {
        if reply.payload.has_more() {
            self.fetched_at = Some(at);
            reply.worker_at = self.at;
        }
    }

    pub(super) fn perform(
        &mut self,
        at: Nanos,
        actions: &mut Vec<Action>,
        switch: Option<Endpoint>,
        outbox: &mut Outbox,
    ) {
        if !actions.is_empty() {
            self.processor.worked(at);
        }
        for action in actions.drain(..) {
            match action {
                Action::ToSwitch(mut packet) => {
                    let Some(switch) = switch else { continue };
                    // Tasks that the emulated processor has not received yet count as held.
                    if let Packet::Token(token) = &mut packet
                        && self.ranked
                    {
                        token.rank = token.rank.further(self.processor.waiting(at));
                    }
                    let write = |out: &mut [u8]| encode(&packet, &[], out).unwrap_or(0);
                    self.processor.send(Destination::ToSwitch(switch), outbox, write);
                }
                Action::Reply { to, mut packet } => {
                    self.point_here(at, &mut packet);
                    let body = self.replies.first(&packet.payload);
                    let write = |out: &mut [u8]| encode(&Packet::Reply(packet), body, out).unwrap_or(0);
                    self.processor.send(Destination::ToClient(to), outbox, write);
                }
                Action::Report(mut packet) => {
                    let Some(switch) = switch else { continue };
                    packet.load += self.processor.waiting(at);
                    self.point_here(at, &mut packet);
                    let body = self.replies.first(&packet.payload);
                    let write = |out: &mut [u8]| encode(&Packet::Reply(packet), body, out).unwrap_or(0);
                    self.processor.send(Destination::ToSwitch(switch), outbox, write);
                }
                Action::Run { slot, task, task_type, payload } => {
                    self.run = Some(WantedRun { slot, task, task_type, payload });
                }
                Action::Need { to, mut packet } => {
                    packet.asker_at = self.at;
                    outbox.send_with(to, |out| encode(&Packet::Need(packet), &[], out).unwrap_or(0));
                }
                Action::Parts { need, payload } => {
                    self.fetched_at = Some(at);
                    self.send_parts(&need, &payload, outbox);
                }
                Action::Place { at, offset, part } => self.tasks.place(at, offset, &part),
                Action::Check { task, payload } => {
                    let is_right = check_large(payload.inline, self.tasks.get(payload.handle));
                    self.checked.push((task, is_right));
                }
                Action::Release(handle) => self.tasks.release(handle),
                Action::Forget(handle) => self.replies.release(handle),
                Action::Renew => self.renew = true,
            }
        }
    }
}

/// The state machine's settings under dilation. The retry horizon comes with each grant.
pub(super) fn settings(options: &WorkerOptions) -> WorkerSettings {
    let plain = WorkerSettings::default();
    let factor = u64::from(options.dilation.max(1));
    let lead_max = EarlySettings::default().lead_max.times(factor);
    WorkerSettings {
        first_rtt: plain.first_rtt.times(factor),
        probe_max_busy: plain.probe_max_busy.times(factor),
        probe_longest: plain.probe_longest.times(factor),
        retry_horizon: plain.retry_horizon.times(factor),
        early: options.early.then_some(EarlySettings { lead_max }),
        patience: options.patience,
        ..plain
    }
}

/// The registration for the state machine, with the poll interval dilated like other network times.
pub(super) const fn dilated(grant: &WorkerGrant, dilation: u32) -> WorkerRegistration {
    let feed = match grant.registration.feed {
        Feed::Polls { every } => Feed::Polls { every: every.times(dilation as u64) },
        feed => feed,
    };
    WorkerRegistration { feed, ..grant.registration }
}
