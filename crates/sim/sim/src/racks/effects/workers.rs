//! What happens to the workers of a curve, and what follows from what they say (`nodes::worker`): what their
//! cores' work takes, and what is counted. Of what a core does only the end of a service is an event of its
//! own.

use std::mem;

use sluice_events::PacketId;
use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_nodes::{Duty, PacketSource, TaskRun, WorkerEffect, write_reply, write_token};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{self as wire, Nanos, Packet, Payload, ReplyStatus};

use crate::racks::meter::Meter;
use crate::racks::places::Scheduled;
use crate::racks::task_places::Place;
use crate::racks::watch::TaskObserver;
use crate::racks::workers::Workers;
use crate::racks::world::SimulatedRacks;

const NEVER: Nanos = Nanos(u64::MAX);

impl<O: TaskObserver> SimulatedRacks<O> {
    /// The worker learns of a registration; it sends what tokens it may.
    pub(in crate::racks) fn grant_worker(&mut self, worker: usize, grant: WorkerRegistration) {
        let take = if self.workers.of_cores.is_some() { Worker::grant_lane } else { Worker::grant };
        self.on_worker(worker, |machine, now, settings, out| take(machine, now, settings, grant, out));
        self.settle_cores(worker);
    }

    /// The worker may have so many tasks granted or held from now on.
    pub(in crate::racks) fn set_quota(&mut self, worker: u32, depth: u8) {
        self.workers.all[worker as usize].machine.set_quota(depth);
        self.arm_tick(worker as usize);
    }

    /// A worker's process dies with all that it held. What comes to its address from then on finds one that
    /// is not registered.
    pub(in crate::racks) fn restart_worker(&mut self, worker: usize) {
        let (now, timer) = (self.world.now, self.workers.timer(worker));
        let (mut core, had) = self.workers.restart(worker);
        core.lost().for_each(|packet| self.world.packets.free(packet));
        self.world.engine.timer(timer, NEVER);
        let pool = usize::from(self.workers.all[worker].pool);
        let (meter, running) = (&mut self.pools[pool].meter, u32::from(core.running.is_some()));
        (0..running).for_each(|_| meter.serving.leave(now));
        (running..had).for_each(|_| meter.at_workers.leave(now));
    }

    /// A packet comes to a worker's NIC.
    #[inline]
    pub(in crate::racks) fn at_worker(&mut self, worker: u32, packet: PacketId) {
        let at = worker as usize;
        let Self { world, workers, pools, task_places, .. } = self;
        if matches!(world.packets.get(packet), Packet::Dispatch(_)) {
            pools[usize::from(workers.all[at].pool)].meter.at_workers.enter(world.now);
            workers.held[at] += 1;
            task_places.move_task(Place::ToWorker, Place::AtWorker);
        }
        workers.report_busy(world.now, worker);
        let active = workers.active_of(worker, world.now);
        let core = &mut workers.taken[active].core;
        let Some(packet) = core.deliver(world.now, packet) else { return };
        let (from, arrived) = (core.free_from(world.now), world.now);
        self.receives(at, active, from, (arrived, packet));
        self.arm_worker(at, active);
    }

    /// A worker's timer expires: its service ends, if it has not got longer.
    #[inline]
    pub(in crate::racks) fn timer(&mut self, worker: u32) {
        if self.core_rings(worker) {
            return;
        }
        if !self.on_service_end(worker as usize) {
            let timer = self.workers.timer(worker as usize);
            self.world.engine.timer(timer, NEVER);
        }
    }

    /// Bytes that are fetched cost packets and passes.
    fn count_fetch(&mut self, worker: usize) {
        let counts = &mut self.meter_of(worker).counts;
        counts.packets += 4;
        counts.passes += 2;
    }

    #[inline]
    fn meter_of(&mut self, worker: usize) -> &mut Meter<O> {
        &mut self.pools[usize::from(self.workers.all[worker].pool)].meter
    }
}

impl<O: TaskObserver> SimulatedRacks<O> {
    /// Where a worker's core is.
    #[inline]
    pub(in crate::racks) fn active(&mut self, worker: usize) -> usize {
        self.workers.active_of(worker as u32, self.world.now)
    }

    /// Calls a worker's machine, and does what it says once the core has time.
    fn on_worker(
        &mut self,
        worker: usize,
        call: impl FnOnce(&mut Worker, Nanos, &WorkerSettings, &mut Vec<Action>),
    ) {
        let (now, active) = (self.world.now, self.active(worker));
        let Workers { all, settings, actions, taken, .. } = &mut self.workers;
        let from = taken[active].core.free_from(now);
        call(&mut all[worker].machine, now, settings, actions);
        self.perform_worker_actions(worker, active, from);
        self.arm_worker(worker, active);
    }

    /// A worker was to be woken now, unless that has changed.
    pub(in crate::racks) fn on_worker_timer(&mut self, worker: usize) {
        if self.workers.all[worker].wakeup.fires(self.world.now) {
            self.arm_tick(worker);
        }
    }

    /// The machine has something to do: at once, or when the core has time.
    fn arm_tick(&mut self, worker: usize) {
        let (now, active) = (self.world.now, self.active(worker));
        let core = &mut self.workers.taken[active].core;
        if core.may_call(now) {
            let from = core.free_from(now);
            self.tick_worker(worker, active, from);
            self.arm_worker(worker, active);
        }
    }

    /// A deadline of the machine has come.
    fn tick_worker(&mut self, worker: usize, active: usize, at: Nanos) {
        let Workers { all, settings, actions, .. } = &mut self.workers;
        all[worker].machine.tick(at, settings, actions);
        self.perform_worker_actions(worker, active, at);
    }

    /// The running service's early token leaves; the service goes on afterwards.
    pub(in crate::racks) fn worker_sends_early(&mut self, worker: usize) {
        let (now, active) = (self.world.now, self.active(worker));
        let Workers { all, settings, actions, taken, .. } = &mut self.workers;
        if !taken[active].core.early.fires(now) {
            return;
        }
        all[worker].machine.early(now, settings, actions);
        let (sender, mut actions) = (all[worker].sender(), mem::take(actions));
        for action in &actions {
            self.does((worker, active), sender, now, WorkerEffect::of(action, sender, now));
            let workers = &mut self.workers;
            let (timer, core) = (workers.timer(worker), &mut workers.taken[active].core);
            core.free_at = core.free_at + workers.costs.send;
            self.world.engine.timer(timer, core.free_at);
        }
        actions.clear();
        self.workers.actions = actions;
        self.arm_worker(worker, active);
    }

    /// A service ends: the reply leaves, then the token; then what waits in the NIC is received until there
    /// is a task. Says whether one runs then.
    #[inline]
    fn on_service_end(&mut self, worker: usize) -> bool {
        let (now, active) = (self.world.now, self.active(worker));
        let Some(run) = self.workers.taken[active].core.running.take() else { return false };
        let Self { workers, pools, task_places, .. } = self;
        let Workers { all, settings, actions, held, adaptation, .. } = workers;
        let node = &mut all[worker];
        pools[usize::from(node.pool)].meter.serving.leave(now);
        held[worker] -= 1;
        task_places.move_task(Place::Running, Place::ToClient);
        if let Some(adaptation) = adaptation
            && let Some(sample) = node.machine.sample(now, run.started)
        {
            adaptation.finished(now, worker as u32, sample);
        }
        let reply = Payload { len: 8, inline: run.payload.inline, ..Payload::EMPTY };
        node.machine.finished(now, settings, run.slot, run.started, ReplyStatus::Done, reply, actions);
        self.perform_worker_actions(worker, active, now);
        self.serve_duties(worker, active)
    }

    /// The core turns to what waits for it: says whether a service runs then.
    #[inline]
    fn serve_duties(&mut self, worker: usize, active: usize) -> bool {
        let now = self.world.now;
        loop {
            let core = &mut self.workers.taken[active].core;
            let from = core.free_from(now);
            match core.next_duty() {
                Some(Duty::Packet(arrived, packet)) => self.receives(worker, active, from, (arrived, packet)),
                Some(Duty::Call) => self.tick_worker(worker, active, from),
                None => break,
            }
        }
        self.arm_worker(worker, active);
        self.workers.taken[active].core.running.is_some()
    }

    /// A core receives a packet from then on. A repeated task is not run again.
    #[inline]
    fn receives(&mut self, worker: usize, active: usize, from: Nanos, (arrived, packet): (Nanos, PacketId)) {
        if self.workers.of_cores.is_some() {
            self.on_lane_packet(worker, from, arrived, packet);
            return self.world.packets.free(packet);
        }
        let at = self.unpacks(worker, from, packet);
        let Workers { all, settings, actions, .. } = &mut self.workers;
        let received = self.world.packets.get(packet);
        let is_task = matches!(received, Packet::Dispatch(_));
        all[worker].machine.packet(at, arrived, settings, received, actions);
        let runs = self.perform_worker_actions(worker, active, at);
        if is_task && !runs {
            self.meter_of(worker).at_workers.leave(at);
            self.workers.held[worker] -= 1;
        }
        self.world.packets.free(packet);
    }

    /// Until when a packet is received from then on, its bytes with it.
    #[inline]
    fn unpacks(&mut self, worker: usize, from: Nanos, id: PacketId) -> Nanos {
        let workers = &mut self.workers;
        // The fetch is a wait before the service, and not its packets.
        if workers.fetches
            && let Packet::Dispatch(dispatch) = self.world.packets.get_mut(id)
        {
            dispatch.place = wire::Place::Here;
        }
        let takes = match self.world.packets.get(id) {
            Packet::Dispatch(dispatch) => workers.servers.bytes_at(worker as u32, dispatch),
            _ => Some(Nanos(0)),
        };
        let takes_all = workers.costs.receive + takes.unwrap_or(workers.fetch_unwritten);
        let at = workers.cores.spend(worker as u32, from, takes_all);
        if takes.is_none() {
            self.count_fetch(worker);
        }
        at
    }

    /// Lets a core do what its machine said: packets leave one after the other, then a service starts. Says
    /// whether one does.
    #[inline]
    pub(in crate::racks) fn perform_worker_actions(
        &mut self,
        worker: usize,
        active: usize,
        from: Nanos,
    ) -> bool {
        let (sender, has_cores) = (self.workers.all[worker].sender(), self.workers.of_cores.is_some());
        let mut actions = mem::take(&mut self.workers.actions);
        let (mut free_at, mut next) = (from, None);
        for action in &actions {
            match WorkerEffect::of(action, sender, free_at) {
                WorkerEffect::Run(run) if has_cores => self.offer_to_cores(worker, run),
                WorkerEffect::Run(run) => next = Some(run),
                effect => free_at = self.does((worker, active), sender, free_at, effect),
            }
        }
        actions.clear();
        self.workers.actions = actions;
        let Some(run) = next else {
            self.workers.taken[active].core.free_at = free_at;
            return false;
        };
        self.starts(worker, active, TaskRun { started: free_at, ..run });
        true
    }

    /// Does one thing that a machine said, from then on: says until when.
    #[inline]
    fn does(
        &mut self,
        (worker, active): (usize, usize),
        sender: PacketSource,
        from: Nanos,
        effect: WorkerEffect<'_>,
    ) -> Nanos {
        match effect {
            WorkerEffect::Token(packet) => {
                let sent = self.charge_sending(worker, from);
                let unread = if self.workers.ranked { self.unread(active) } else { 0 };
                self.send(sender, sender.switch, sent, |place| write_token(place, packet, unread));
                sent
            }
            WorkerEffect::Report(reply) => {
                if reply.status == ReplyStatus::Late {
                    self.is_refused(worker, from);
                }
                let (sent, unread) = (self.charge_sending(worker, from), self.unread(active));
                self.send(sender, sender.switch, sent, |place| write_reply(place, reply, unread));
                sent
            }
            // It passes the switch all the same.
            WorkerEffect::Reply(to, reply) => {
                if reply.status == ReplyStatus::Late {
                    self.is_refused(worker, from);
                }
                let sent = self.charge_sending(worker, from);
                let counts = &mut self.pools[usize::from(sender.pool)].meter.counts;
                counts.passes += 1;
                counts.packets += 1;
                self.send(sender, to, sent, |place| write_reply(place, reply, 0));
                sent
            }
            WorkerEffect::Ask(to, packet) => {
                self.send(sender, to, from, |place| *place = packet);
                from
            }
            // The bytes of a curve's tasks are nowhere, and its controller is asked elsewhere.
            WorkerEffect::Run(_) | WorkerEffect::Keep(_) => from,
        }
    }

    /// A task ends without a run: its budget was spent. A worker without cores of its own accounts for each
    /// task that it receives and does not run ([`Self::receives`]).
    #[cold]
    fn is_refused(&mut self, worker: usize, at: Nanos) {
        self.task_places.move_task(Place::AtWorker, Place::ToClient);
        if self.workers.of_cores.is_some() {
            self.meter_of(worker).at_workers.leave(at);
            self.workers.held[worker] -= 1;
        }
    }

    #[inline]
    fn unread(&self, active: usize) -> u32 {
        self.workers.taken[active].core.unread(&self.world.packets)
    }

    /// A packet is sent from then on: says until when.
    #[inline]
    fn charge_sending(&mut self, worker: usize, from: Nanos) -> Nanos {
        let Workers { cores, costs, of_cores, .. } = &mut self.workers;
        if of_cores.is_some() { from } else { cores.spend(worker as u32, from, costs.send) }
    }

    /// A service starts at `run.started`, or later if its bytes have to be fetched first.
    #[inline]
    fn starts(&mut self, worker: usize, active: usize, mut run: TaskRun) {
        if run.payload.is_large() && self.workers.fetch > Nanos(0) {
            run.started = run.started + self.workers.fetch;
            self.count_fetch(worker);
        }
        let Self { world, workers, pools, task_places, .. } = self;
        let node = &mut workers.all[worker];
        let meter = &mut pools[usize::from(node.pool)].meter;
        meter.observer.started((worker, workers.lives[worker]), run.task);
        let service = Nanos(u64::from_le_bytes(run.payload.inline));
        let busy_until = workers.cores.spend(worker as u32, run.started, service);
        meter.at_workers.leave(run.started);
        meter.serving.enter(run.started);
        task_places.move_task(Place::AtWorker, Place::Running);
        if let Some(estimates) = &mut workers.estimates {
            node.machine.expect(run.started, run.slot, estimates.outlook(service));
        }
        workers.taken[active].core.serve(run, busy_until);
        world.engine.timer(workers.timer(worker), busy_until);
    }

    /// Asks to be woken for what the machine wants next.
    #[inline]
    fn arm_worker(&mut self, worker: usize, active: usize) {
        if self.workers.needs_ticks || self.workers.estimates.is_some() {
            self.arm_tick_and_early(worker, active);
        }
    }

    #[inline(never)]
    fn arm_tick_and_early(&mut self, worker: usize, active: usize) {
        let now = self.world.now;
        let Workers { all, settings, needs_ticks, estimates, taken, .. } = &mut self.workers;
        let node = &mut all[worker];
        let deadline = if *needs_ticks { node.machine.deadline(settings) } else { None };
        let tick = node.wakes_at(deadline, now);
        let early = if estimates.is_some() { node.machine.early_at(settings) } else { None };
        let early = taken[active].core.early_wakes_at(early, now, now);
        let whom = node.at;
        for (at, what) in [(tick, Scheduled::Tick), (early, Scheduled::Early)] {
            if let Some(at) = at {
                self.schedule(at, whom, what);
            }
        }
    }
}
