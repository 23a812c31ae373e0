//! A worker in virtual time: its machine, and a core that does one thing at a time ([`Core`]). Since
//! nothing can come between, a whole stretch (receive, send, start to serve) is worked out when it
//! begins.

use std::mem;

use sluice_events::{Address, PacketId};
use sluice_host::worker::{Action, Outlook, Worker, WorkerSettings};
use sluice_wire::{Nanos, Need, Packet, Payload, Reply, ReplyStatus};

use super::core::{Core, Duty, TaskRun};
use super::{Call, PacketSource, Scene, Try, Wakeup, keep_room};

/// A call of a worker's machine.
pub type WorkerCall<'a> = Call<'a, Worker, WorkerSettings, Action>;

/// A service that starts.
pub struct Start {
    /// Until when its core has no time for anything else.
    pub busy_until: Nanos,
    /// What it says of its end.
    pub outlook: Option<Outlook>,
}

/// A rack's workers, and what becomes of what they say. A core is found by its desk.
pub trait WorkerSide: Scene {
    /// `None` if the process is gone.
    fn worker(&mut self, worker: usize) -> Option<WorkerCall<'_>>;

    /// What workers' machines say; empty between calls.
    fn workers_say(&mut self) -> &mut Vec<Action>;

    /// Where a worker's core is.
    fn desk(&mut self, worker: usize) -> usize;

    /// A core by its desk.
    fn core(&mut self, desk: usize) -> &mut Core;

    /// A packet is received from then on: says until when, and puts its bytes where the machine wants them.
    fn unpacks(&mut self, worker: usize, from: Nanos, arrived: Nanos, packet: PacketId) -> Try<Self, Nanos>;

    /// Whom of those at its place a packet is for.
    fn meant(&mut self, worker: usize, _packet: PacketId) -> usize {
        worker
    }

    /// Whether workers are lanes of servers of many cores, so that this core goes on while tasks run.
    fn has_cores(&self) -> bool {
        false
    }

    /// Such a lane takes a packet whose bytes are where it wants them.
    fn lane_takes(&mut self, _lane: usize, _at: Nanos, _arrived: Nanos, _packet: PacketId) -> Try<Self> {
        Ok(())
    }

    /// … and hands a task to the cores.
    fn hands_over(&mut self, _worker: usize, _run: TaskRun) -> Try<Self> {
        Ok(())
    }

    /// A packet was received by then, and a task that it brought runs or does not.
    fn received(&mut self, worker: usize, at: Nanos, packet: PacketId, runs: bool);

    /// A packet is sent from then on: says until when.
    fn spends_sending(&mut self, _worker: usize, from: Nanos) -> Nanos {
        from
    }

    /// A reply with its bytes, if the machine does not know them.
    fn with_bytes(&mut self, _worker: usize, _reply: &Reply) -> Try<Self, Option<Reply>> {
        Ok(None)
    }

    /// A reply passes the switch, whose program does not look at it.
    fn passes_by(&mut self, _worker: usize) {}

    /// A service starts then, or as soon as its bytes are there.
    fn starts(&mut self, worker: usize, run: &mut TaskRun) -> Try<Self, Start>;

    /// A service has ended: gives its reply.
    fn served(&mut self, worker: usize, run: &TaskRun) -> Try<Self, (ReplyStatus, Payload)>;

    /// A token left while a service ran, which goes on afterwards.
    fn goes_on(&mut self, _worker: usize, _desk: usize) {}

    /// What concerns bytes beyond packets, and the controller.
    fn worker_keeps(&mut self, _worker: usize, _action: &Action) -> Try<Self> {
        Ok(())
    }

    /// After all that a machine said was done.
    fn acted(&mut self, _worker: usize) -> Try<Self> {
        Ok(())
    }

    /// After a tick.
    fn ticked(&mut self, _worker: usize) -> Try<Self> {
        Ok(())
    }

    /// Whether tokens say how many tasks stand before them.
    fn is_ranked(&self) -> bool {
        true
    }

    /// Whether workers ever have to be woken.
    fn wakes_workers(&self) -> bool {
        true
    }

    /// Reminds of `worker_wakes` then.
    fn wake_worker(&mut self, at: Nanos, worker: usize);

    /// Whether workers send early tokens.
    fn sends_early(&self) -> bool;

    /// Reminds of `worker_sends_early` then.
    fn wake_early(&mut self, at: Nanos, worker: usize);

    /// A packet comes to a worker's NIC.
    #[inline]
    fn worker_hears(&mut self, worker: usize, packet: PacketId) -> Try<Self> {
        let (now, desk) = (self.now(), self.desk(worker));
        let core = self.core(desk);
        let Some(packet) = core.comes(now, packet) else { return Ok(()) };
        let from = core.free_at.max(now);
        self.receives(worker, desk, from, now, packet)?;
        self.arm_worker(worker, desk);
        Ok(())
    }

    /// A service ends: the reply leaves, then the token; then what waits in the NIC is received until there
    /// is a task. Says whether one runs then.
    #[inline]
    fn service_ends(&mut self, worker: usize) -> Try<Self, bool> {
        let desk = self.desk(worker);
        let Some(run) = self.core(desk).running.take() else { return Ok(false) };
        let (status, reply) = self.served(worker, &run)?;
        let Some(WorkerCall { now, node, settings, out, .. }) = self.worker(worker) else { return Ok(false) };
        node.machine.finished(now, settings, run.slot, run.started, status, reply, out);
        self.worker_acts(worker, desk, now)?;
        self.turns_to_duties(worker, desk)
    }

    /// A worker was to be woken now, unless that has changed.
    fn worker_wakes(&mut self, worker: usize) -> Try<Self> {
        let comes = |WorkerCall { now, node, .. }: WorkerCall<'_>| node.wakeup.comes(now);
        if self.worker(worker).is_some_and(comes) { self.wants_a_tick(worker) } else { Ok(()) }
    }

    /// The machine has something to do: at once, or when the core has time.
    fn wants_a_tick(&mut self, worker: usize) -> Try<Self> {
        let (now, desk) = (self.now(), self.desk(worker));
        let core = self.core(desk);
        if !core.may_call(now) {
            return Ok(());
        }
        let from = core.free_at.max(now);
        self.ticks(worker, desk, from)?;
        self.arm_worker(worker, desk);
        Ok(())
    }

    /// The running service's early token leaves.
    fn worker_sends_early(&mut self, worker: usize) -> Try<Self> {
        let (now, desk) = (self.now(), self.desk(worker));
        if !self.core(desk).early.comes(now) {
            return Ok(());
        }
        let Some(WorkerCall { node, settings, out, .. }) = self.worker(worker) else { return Ok(()) };
        node.machine.early(now, settings, out);
        let (sender, actions) = (node.sender(), mem::take(out));
        for action in &actions {
            self.does(worker, sender, now, action)?;
            self.goes_on(worker, desk);
        }
        keep_room(self.workers_say(), actions);
        self.arm_worker(worker, desk);
        Ok(())
    }

    /// The core turns to what waits for it: says whether a service runs then.
    #[inline]
    fn turns_to_duties(&mut self, worker: usize, desk: usize) -> Try<Self, bool> {
        loop {
            let now = self.now();
            let core = self.core(desk);
            let from = core.free_at.max(now);
            let Some(duty) = core.next() else { break };
            match duty {
                Duty::Packet(arrived, packet) => self.receives(worker, desk, from, arrived, packet)?,
                Duty::Call => self.ticks(worker, desk, from)?,
            }
        }
        self.arm_worker(worker, desk);
        Ok(self.core(desk).running.is_some())
    }

    /// Calls a worker's machine, and does what it says once the core has time.
    fn on_worker(
        &mut self,
        worker: usize,
        call: impl FnOnce(&mut Worker, Nanos, &WorkerSettings, &mut Vec<Action>),
    ) -> Try<Self> {
        let desk = self.desk(worker);
        let from = self.core(desk).free_at.max(self.now());
        let Some(WorkerCall { now, node, settings, out, .. }) = self.worker(worker) else { return Ok(()) };
        call(&mut node.machine, now, settings, out);
        self.worker_acts(worker, desk, from)?;
        self.arm_worker(worker, desk);
        Ok(())
    }

    /// A deadline of the machine has come.
    fn ticks(&mut self, worker: usize, desk: usize, at: Nanos) -> Try<Self> {
        let Some(WorkerCall { node, settings, out, .. }) = self.worker(worker) else { return Ok(()) };
        node.machine.tick(at, settings, out);
        self.worker_acts(worker, desk, at)?;
        self.ticked(worker)
    }

    /// A core receives a packet from then on.
    #[inline]
    fn receives(
        &mut self,
        worker: usize,
        desk: usize,
        from: Nanos,
        arrived: Nanos,
        packet: PacketId,
    ) -> Try<Self> {
        let worker = self.meant(worker, packet);
        let at = self.unpacks(worker, from, arrived, packet)?;
        let runs = if self.has_cores() {
            self.lane_takes(worker, at, arrived, packet)?;
            false
        } else {
            if let Some(WorkerCall { node, settings, packets, out, .. }) = self.worker(worker) {
                node.machine.packet(at, arrived, settings, packets.get(packet), out);
            }
            self.worker_acts(worker, desk, at)?
        };
        self.received(worker, at, packet, runs);
        self.packets().free(packet);
        Ok(())
    }

    /// Lets a core do what its machine said: packets leave one after the other, then a service starts. Says
    /// whether one does.
    #[inline]
    fn worker_acts(&mut self, worker: usize, desk: usize, from: Nanos) -> Try<Self, bool> {
        let Some(WorkerCall { node, out, .. }) = self.worker(worker) else { return Ok(false) };
        let (sender, actions) = (node.sender(), mem::take(out));
        let (mut free_at, mut runs) = (from, None);
        for action in &actions {
            match action {
                Action::Run { .. } if self.has_cores() => {
                    if let Some(run) = run_of(action, free_at) {
                        self.hands_over(worker, run)?;
                    }
                }
                Action::Run { .. } => runs = Some(action),
                _ => free_at = self.does(worker, sender, free_at, action)?,
            }
        }
        let runs = if let Some(run) = runs.and_then(|action| run_of(action, free_at)) {
            self.serves(worker, desk, run)?;
            true
        } else {
            self.core(desk).free_at = free_at;
            false
        };
        keep_room(self.workers_say(), actions);
        self.acted(worker)?;
        Ok(runs)
    }

    /// How many tasks wait in a worker's NIC.
    fn unread(&mut self, worker: usize) -> u32 {
        let desk = self.desk(worker);
        let mail = mem::take(&mut self.core(desk).mail);
        let packets = self.packets();
        let is_task = |(_, id): &&(Nanos, PacketId)| matches!(packets.get(*id), Packet::Dispatch(_));
        let unread = mail.iter().filter(is_task).count() as u32;
        self.core(desk).mail = mail;
        unread
    }

    /// Does one thing that a machine said, from then on: says until when.
    #[inline]
    fn does(
        &mut self,
        worker: usize,
        sender: PacketSource,
        from: Nanos,
        action: &Action,
    ) -> Try<Self, Nanos> {
        match action {
            Action::ToSwitch(packet) => {
                let sent = self.spends_sending(worker, from);
                let unread = if self.is_ranked() { self.unread(worker) } else { 0 };
                self.send(sender, sender.switch, sent, |place| {
                    *place = *packet;
                    count_unread(place, unread);
                });
                return Ok(sent);
            }
            Action::Report(reply) => {
                let sent = self.spends_sending(worker, from);
                let (known, unread) = (self.with_bytes(worker, reply)?, self.unread(worker));
                self.send(sender, sender.switch, sent, |place| {
                    reply_into(place, known.as_ref().unwrap_or(reply));
                    count_unread(place, unread);
                });
                return Ok(sent);
            }
            Action::Reply { to, packet: reply } => {
                let sent = self.spends_sending(worker, from);
                let known = self.with_bytes(worker, reply)?;
                self.passes_by(worker);
                self.send(sender, Address::of(to), sent, |place| {
                    reply_into(place, known.as_ref().unwrap_or(reply));
                });
                return Ok(sent);
            }
            Action::Need { to, packet } => {
                let need = Need { asker_at: sender.at.endpoint(), ..*packet };
                self.send(sender, Address::of(to), from, |place| *place = Packet::Need(need));
            }
            bytes_or_controller => self.worker_keeps(worker, bytes_or_controller)?,
        }
        Ok(from)
    }

    /// A task runs from then on.
    #[inline]
    fn serves(&mut self, worker: usize, desk: usize, mut run: TaskRun) -> Try<Self> {
        let Start { busy_until, outlook } = self.starts(worker, &mut run)?;
        let core = self.core(desk);
        (core.running, core.free_at, core.early) = (Some(run), busy_until, Wakeup::NONE);
        if let Some(outlook) = outlook
            && let Some(WorkerCall { node, .. }) = self.worker(worker)
        {
            node.machine.expect(run.started, run.slot, outlook);
        }
        Ok(())
    }

    /// Asks to be woken for what the machine wants next.
    #[inline]
    fn arm_worker(&mut self, worker: usize, desk: usize) {
        if self.wakes_workers()
            && let Some(WorkerCall { now, node, settings, .. }) = self.worker(worker)
        {
            let due = node.machine.deadline(settings).map(|due| due.max(now + Self::SOONEST));
            if let Some(due) = due.filter(|due| node.wakeup.by(*due)) {
                self.wake_worker(due, worker);
            }
        }
        if self.sends_early() {
            self.arm_early(worker, desk);
        }
    }

    /// The same for its early token, which does not leave before its service has started.
    fn arm_early(&mut self, worker: usize, desk: usize) {
        let Some(WorkerCall { now, node, settings, .. }) = self.worker(worker) else { return };
        let Some(due) = node.machine.early_at(settings) else { return };
        let core = self.core(desk);
        let started = core.running.as_ref().map_or(now, |run| run.started);
        let due = due.max(started).max(now + Self::SOONEST);
        if core.early.by(due) {
            self.wake_early(due, worker);
        }
    }
}

/// The run that a machine asks for, from then on.
#[inline]
const fn run_of(action: &Action, started: Nanos) -> Option<TaskRun> {
    match *action {
        Action::Run { slot, task, task_type, payload } => {
            Some(TaskRun { slot, task, task_type, payload, started })
        }
        _ => None,
    }
}

/// What a worker says of how much it has before it, with the tasks that it has not looked at yet.
#[inline]
fn count_unread(packet: &mut Packet, unread: u32) {
    match packet {
        Packet::Token(token) => token.rank = token.rank.further(unread),
        Packet::Reply(reply) => reply.load += unread,
        _ => {}
    }
}

/// In two steps, so that the reply is copied to where it belongs as it was written.
#[inline]
fn reply_into(place: &mut Packet, reply: &Reply) {
    *place = Packet::Reply(Reply::default());
    if let Packet::Reply(place) = place {
        *place = *reply;
    }
}
