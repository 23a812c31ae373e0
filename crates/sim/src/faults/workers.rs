//! The workers' processes: the real machine, and the work that its core does (`worker_core`, as in curves).
//! Here receiving and sending take no time.

use sluice_control::RingPlace;
use sluice_host::worker::{self, Worker, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{Handle, Nanos, Packet, Reply, ReplyStatus, TaskId};

use super::bytes::Bytes;
use super::controller::{TRANSIT, retry_horizon};
use super::dealings::Dealings;
use super::early::EarlyBook;
use super::hosts::{Host, SWITCH, worker_at};
use super::inspection::nothing_is_due;
use super::large::{Pieces, content, content_of};
use super::oracle::{Life, answer, fails};
use super::rack::{Event, Rack};
use super::scenario::{PROBE_LONGEST, Scenario};
use super::story::Who;
use crate::names;
use crate::wakeup::Wakeup;
use crate::worker_core::{Core, Duty, count_unread};
use crate::world::Address;

/// A worker's process, if it lives.
#[derive(Debug)]
pub(super) struct WorkerNode {
    pub(super) machine: Option<Worker>,
    pub(super) life: Life,
    pub(super) at: Address,
    pub(super) stalled_until: Nanos,
    pub(super) leaving: bool,
    index: u16,
    starts: u16,
    pub(super) grant: Option<WorkerRegistration>,
    /// Where its server keeps what is written ahead for its slice, as the controller last said.
    pub(super) ring: Option<RingPlace>,
    /// The highest quota that this life was granted.
    pub(super) quota_highest: u8,
    pub(super) dealings: Dealings,
    pub(super) wakeup: Wakeup,
    /// The bytes of the tasks that it holds, and of the replies that it keeps.
    pub(super) tasks: Bytes,
    pub(super) replies: Bytes,
    /// What each task's bytes consist of.
    pub(super) pieces: Pieces,
    /// Tasks in hand that came after they were given up for lost.
    pub(super) late_in_hand: Vec<TaskId>,
    pub(super) core: Core<Packet, TaskId>,
    pub(super) early: EarlyBook,
    /// How often its server's queue pair failed.
    pub(super) rejoins: u32,
}

impl WorkerNode {
    pub(super) fn new(index: usize) -> Self {
        Self {
            machine: None,
            life: 0,
            at: worker_at(0, 0),
            stalled_until: Nanos(0),
            leaving: false,
            index: index as u16,
            starts: 0,
            grant: None,
            ring: None,
            quota_highest: 0,
            dealings: Dealings::default(),
            wakeup: Wakeup::NONE,
            tasks: Bytes::default(),
            replies: Bytes::default(),
            pieces: Pieces::new(),
            late_in_hand: Vec::new(),
            core: Core::default(),
            early: EarlyBook::default(),
            rejoins: 0,
        }
    }

    /// The process is gone, with everything in it.
    pub(super) fn stop(&mut self) {
        self.machine = None;
        self.life = 0;
        self.core = Core::default();
    }

    /// The process goes on behind another address.
    pub(super) fn change_address(&mut self) {
        self.starts += 1;
        self.at = worker_at(self.index, self.starts);
    }

    pub(super) const fn lives(&self) -> bool {
        self.machine.is_some()
    }

    fn late(&self) -> u64 {
        self.machine.as_ref().map_or(0, |machine| machine.stats().late)
    }

    pub(super) fn name(&self) -> String {
        names::worker(self.index.into())
    }
}

pub(super) fn worker_settings(scenario: &Scenario) -> WorkerSettings {
    WorkerSettings {
        first_rtt: Nanos::from_micros(20),
        probe_longest: PROBE_LONGEST,
        probe_max_busy: Nanos::from_millis(1),
        retry_horizon: retry_horizon(scenario),
        transit: TRANSIT,
        held_max: scenario.held_max,
        replies_max: scenario.replies_max,
        reply_bytes_max: 5_000 * scenario.replies_max.max(10),
        early: scenario.early.map(|early| early.settings),
        patience: scenario.program.patience(),
        ..WorkerSettings::default()
    }
}

impl Rack<'_> {
    pub(super) fn start_worker(&mut self, worker: usize) {
        let life = self.dice.word() | 1;
        self.world.network.weather.mend(Host::Worker(worker));
        let node = &mut self.workers[worker];
        node.starts += 1;
        *node = WorkerNode {
            machine: Some(Worker::new()),
            life,
            at: worker_at(node.index, node.starts),
            starts: node.starts,
            ..WorkerNode::new(worker)
        };
        self.say(Who::Worker(worker), || format!("starts, life {life:016x}"));
        self.after(Nanos(1_000), Event::Renew(Host::Worker(worker), life));
    }

    /// A packet comes to a worker's NIC.
    pub(super) fn at_worker(&mut self, worker: usize, packet: Packet) -> Result<(), String> {
        let (node, now) = (&mut self.workers[worker], self.world.now);
        if now < node.stalled_until {
            node.core.holds(now, packet);
            return Ok(());
        }
        match node.core.comes(now, packet) {
            Some(packet) => self.receive(worker, now, packet),
            None => Ok(()),
        }
    }

    /// The core turns to what waits for it.
    fn turn_to_duties(&mut self, worker: usize) -> Result<(), String> {
        while let Some(duty) = self.workers[worker].core.next() {
            match duty {
                Duty::Packet(received, packet) => self.receive(worker, received, packet)?,
                Duty::Call => self.call_worker(worker)?,
            }
        }
        Ok(())
    }

    /// A process that stood still goes on, unless it does so for longer than was first thought.
    pub(super) fn worker_goes_on(&mut self, worker: usize) -> Result<(), String> {
        if self.world.now < self.workers[worker].stalled_until { Ok(()) } else { self.turn_to_duties(worker) }
    }

    /// The machine's deadline has come.
    pub(super) fn worker_wakes(&mut self, worker: usize) -> Result<(), String> {
        let node = &mut self.workers[worker];
        if self.world.now < node.stalled_until {
            node.core.owes_a_call();
            return Ok(());
        }
        if node.core.may_call() { self.call_worker(worker) } else { Ok(()) }
    }

    fn call_worker(&mut self, worker: usize) -> Result<(), String> {
        self.on_worker(worker, Worker::tick)?;
        let due = self.workers[worker].machine.as_ref();
        let due = due.and_then(|machine| machine.deadline(&worker_settings(&self.scenario)));
        nothing_is_due("a worker", due, self.world.now)
    }

    fn receive(&mut self, worker: usize, received: Nanos, mut packet: Packet) -> Result<(), String> {
        let node = &mut self.workers[worker];
        let late = node.late();
        match &mut packet {
            Packet::Dispatch(dispatch) => {
                self.scenario.hands.check_sent(worker, dispatch)?;
                let pieces = self.copy(worker, received, dispatch)?;
                let node = &mut self.workers[worker];
                dispatch.payload = node.tasks.keep(dispatch.payload);
                node.pieces.insert(dispatch.payload.handle, pieces);
            }
            Packet::Part(part) => part.payload = node.tasks.keep(part.payload),
            _ => {}
        }
        self.on_worker(worker, |machine, now, settings, out| {
            machine.packet(now, received, settings, &packet, out);
        })?;
        let node = &mut self.workers[worker];
        if let Packet::Dispatch(dispatch) = packet
            && node.late() > late
        {
            node.late_in_hand.push(dispatch.task);
        }
        Ok(())
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
        if self.world.now < node.stalled_until {
            self.remind(node.stalled_until, Event::Finish { worker, life, slot, task, started });
            return Ok(());
        }
        let node = &mut self.workers[worker];
        node.core.running = None;
        node.late_in_hand.retain(|late| *late != task);
        node.early.ended();
        let reply = node.replies.keep(answer(life, task));
        let status = if fails(life, task) { ReplyStatus::Failed } else { ReplyStatus::Done };
        self.on_worker(worker, |machine, now, settings, out| {
            machine.finished(now, settings, slot, started, status, reply, out);
        })?;
        self.turn_to_duties(worker)
    }

    pub(super) fn leave(&mut self, worker: usize) -> Result<(), String> {
        self.workers[worker].leaving = true;
        self.workers[worker].dealings.asked = None;
        self.on_worker(worker, |machine, _, _, _| machine.leave())?;
        self.renew(Host::Worker(worker));
        Ok(())
    }

    pub(super) fn on_worker(
        &mut self,
        worker: usize,
        act: impl FnOnce(&mut Worker, Nanos, &WorkerSettings, &mut Vec<worker::Action>),
    ) -> Result<(), String> {
        let settings = worker_settings(&self.scenario);
        let mut out = Vec::new();
        let Some(machine) = &mut self.workers[worker].machine else { return Ok(()) };
        act(machine, self.world.now, &settings, &mut out);
        let due = machine.deadline(&settings);
        let done = machine.is_done(self.world.now, &settings);
        for action in out {
            self.worker_acts(worker, action)?;
        }
        if done {
            self.say(Who::Worker(worker), || "has left".to_owned());
            self.workers[worker].stop();
            return Ok(());
        }
        self.arm(Host::Worker(worker), due);
        let early = self.workers[worker].machine.as_ref().and_then(|machine| machine.early_at(&settings));
        self.arm_early(worker, early);
        Ok(())
    }

    /// A reply as its worker's driver sends it.
    fn with_its_bytes(&self, worker: usize, mut packet: Reply) -> Result<Reply, String> {
        let node = &self.workers[worker];
        if !matches!(packet.status, ReplyStatus::Gone | ReplyStatus::Old) {
            packet.payload = node.replies.find(packet.payload.handle)?;
        }
        if packet.payload.has_more() {
            packet.worker_at = node.at.endpoint();
        }
        Ok(packet)
    }

    /// What waits in the NIC stands before what the packet speaks of.
    fn send_to_switch(&mut self, worker: usize, mut packet: Packet) {
        let node = &self.workers[worker];
        count_unread(&mut packet, node.core.unread(|packet| packet));
        self.send(node.at, SWITCH, packet);
    }

    fn worker_acts(&mut self, worker: usize, action: worker::Action) -> Result<(), String> {
        let WorkerNode { at, life, .. } = self.workers[worker];
        match action {
            worker::Action::ToSwitch(packet) => self.send_to_switch(worker, packet),
            worker::Action::Reply { to, packet } => {
                let packet = self.with_its_bytes(worker, packet)?;
                self.send(at, Address::of(&to), Packet::Reply(packet));
            }
            worker::Action::Report(packet) => {
                let packet = self.with_its_bytes(worker, packet)?;
                self.send_to_switch(worker, Packet::Reply(packet));
            }
            worker::Action::Run { slot, task, payload, task_type } => {
                if !self.scenario.serves[worker].contains(&task_type) {
                    return Err(format!(
                        "promise 7: worker {worker} got {task} of type {task_type}, which it does not serve"
                    ));
                }
                let node = &self.workers[worker];
                let mut asked = node.tasks.find(payload.handle)?;
                if asked.is_large() {
                    asked.handle =
                        node.pieces.get(&payload.handle).map_or(Handle::NONE, |all| content_of(all));
                }
                let payload = asked;
                self.oracle.started(life, task, &payload)?;
                self.tell(Who::Worker(worker), None, Some(task), |task| format!("runs task {task}"));
                self.workers[worker].core.running = Some(task);
                let span = self.dice.span(Nanos::from_micros(5), self.scenario.service_max);
                let started = self.world.now;
                self.after(span, Event::Finish { worker, life, slot, task, started });
                self.service_says(worker, slot, span);
            }
            worker::Action::Renew => self.renew(Host::Worker(worker)),
            worker::Action::Need { to, mut packet } => {
                packet.asker_at = at.endpoint();
                self.send(at, Address::of(&to), Packet::Need(packet));
            }
            worker::Action::Parts { need, payload } => {
                let asked = self.workers[worker].replies.find(payload.handle)?;
                self.send_parts(at, &need, &asked);
            }
            worker::Action::Place { at, offset, part } => self.place(worker, at, offset, &part)?,
            worker::Action::Check { task, payload } => {
                let pieces = self.workers[worker].pieces.get(&payload.handle);
                let is_right = pieces.is_some_and(|all| content_of(all) == content(payload.inline));
                self.on_worker(worker, |machine, now, settings, out| {
                    machine.checked(now, settings, task, is_right, out);
                })?;
            }
            worker::Action::Release(handle) => {
                self.workers[worker].pieces.remove(&handle);
                self.workers[worker].tasks.give_back(handle)?;
            }
            worker::Action::Forget(handle) => {
                self.workers[worker].replies.give_back(handle)?;
            }
        }
        Ok(())
    }
}
