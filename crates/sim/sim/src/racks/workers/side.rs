//! What happens to the workers of a curve (`nodes::worker`): what their cores' work takes, and what is
//! counted. Of what a core does only the end of a service is an event of its own.

use sluice_events::PacketId;
use sluice_host::worker::{Action, Worker};
use sluice_nodes::{Core, Start, TaskRun, Try, WorkerCall, WorkerSide};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{self as wire, Nanos, Packet, Payload, ReplyStatus};

use super::Workers;
use crate::racks::books::Place;
use crate::racks::meter::Meter;
use crate::racks::places::Scheduled;
use crate::racks::watch::TaskWatch;
use crate::racks::world::SimulatedRacks;

const NEVER: Nanos = Nanos(u64::MAX);

impl<O: TaskWatch> SimulatedRacks<O> {
    /// The worker learns of a registration; it sends what tokens it may.
    pub(in crate::racks) fn grant_worker(&mut self, worker: usize, grant: WorkerRegistration) {
        let take = if self.has_cores() { Worker::grant_lane } else { Worker::grant };
        let Ok(()) = self.on_worker(worker, |machine, now, settings, out| {
            take(machine, now, settings, grant, out);
        });
        self.settle_cores(worker);
    }

    /// The worker may have so many tasks granted or held from now on.
    pub(in crate::racks) fn set_quota(&mut self, worker: u32, depth: u8) {
        self.workers.all[worker as usize].machine.set_quota(depth);
        let Ok(()) = self.wants_a_tick(worker as usize);
    }

    /// A worker's process dies with all that it held. What comes to its address from then on finds one that
    /// is not registered.
    pub(in crate::racks) fn worker_dies(&mut self, worker: usize) {
        let (now, timer) = (self.world.now, self.workers.timer(worker));
        let (mut core, had) = self.workers.dies(worker);
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
        let Self { world, workers, pools, books, .. } = self;
        if matches!(world.packets.get(packet), Packet::Dispatch(_)) {
            pools[usize::from(workers.all[at].pool)].meter.at_workers.enter(world.now);
            workers.held[at] += 1;
            books.moves(Place::ToWorker, Place::AtWorker);
        }
        workers.hears_of_work(world.now, worker);
        let Ok(()) = self.worker_hears(at, packet);
    }

    /// A worker's timer expires: its service ends, if it has not got longer.
    #[inline]
    pub(in crate::racks) fn timer(&mut self, worker: u32) {
        if self.core_rings(worker) {
            return;
        }
        let Ok(runs) = self.service_ends(worker as usize);
        if !runs {
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

impl<O: TaskWatch> WorkerSide for SimulatedRacks<O> {
    #[inline]
    fn worker(&mut self, worker: usize) -> Option<WorkerCall<'_>> {
        let Workers { all, settings, actions: out, .. } = &mut self.workers;
        let world = &self.world;
        let node = &mut all[worker];
        Some(WorkerCall { now: world.now, node, settings, packets: &world.packets, out })
    }

    #[inline]
    fn workers_say(&mut self) -> &mut Vec<Action> {
        &mut self.workers.actions
    }

    #[inline]
    fn desk(&mut self, worker: usize) -> usize {
        self.workers.desk_of(worker as u32, self.world.now)
    }

    #[inline]
    fn core(&mut self, desk: usize) -> &mut Core {
        &mut self.workers.taken[desk].core
    }

    fn is_ranked(&self) -> bool {
        self.workers.ranked
    }

    #[inline]
    fn unpacks(&mut self, worker: usize, from: Nanos, _: Nanos, id: PacketId) -> Try<Self, Nanos> {
        let workers = &mut self.workers;
        if workers.of_cores.is_some() {
            return Ok(from);
        }
        // The fetch is a wait before the service, and not its packets.
        if workers.fetches
            && let Packet::Dispatch(dispatch) = self.world.packets.get_mut(id)
        {
            dispatch.place = wire::Place::Here;
        }
        let takes = match self.world.packets.get(id) {
            Packet::Dispatch(dispatch) => workers.servers.takes(worker as u32, dispatch),
            _ => Some(Nanos(0)),
        };
        let takes_all = workers.costs.receive + takes.unwrap_or(workers.fetch_unwritten);
        let at = workers.cores.spend(worker as u32, from, takes_all);
        if takes.is_none() {
            self.count_fetch(worker);
        }
        Ok(at)
    }

    fn has_cores(&self) -> bool {
        self.workers.of_cores.is_some()
    }

    fn lane_takes(&mut self, lane: usize, at: Nanos, arrived: Nanos, packet: PacketId) -> Try<Self> {
        self.lane_hears(lane, at, arrived, packet);
        Ok(())
    }

    fn hands_over(&mut self, worker: usize, run: TaskRun) -> Try<Self> {
        self.offer_to_cores(worker, run);
        Ok(())
    }

    /// A repeated task is not run again.
    #[inline]
    fn received(&mut self, worker: usize, at: Nanos, packet: PacketId, runs: bool) {
        if !runs && !self.has_cores() && matches!(self.world.packets.get(packet), Packet::Dispatch(_)) {
            self.meter_of(worker).at_workers.leave(at);
            self.workers.held[worker] -= 1;
        }
    }

    #[inline]
    fn spends_sending(&mut self, worker: usize, from: Nanos) -> Nanos {
        let Workers { cores, costs, of_cores, .. } = &mut self.workers;
        if of_cores.is_some() {
            return from;
        }
        cores.spend(worker as u32, from, costs.send)
    }

    #[inline]
    fn passes_by(&mut self, worker: usize) {
        let counts = &mut self.meter_of(worker).counts;
        counts.passes += 1;
        counts.packets += 1;
    }

    #[inline]
    fn starts(&mut self, worker: usize, run: &mut TaskRun) -> Try<Self, Start> {
        if run.payload.is_large() && self.workers.fetch > Nanos(0) {
            run.started = run.started + self.workers.fetch;
            self.count_fetch(worker);
        }
        let Self { world, workers, pools, books, .. } = self;
        let meter = &mut pools[usize::from(workers.all[worker].pool)].meter;
        meter.observer.started((worker, workers.lives[worker]), run.task);
        let service = Nanos(u64::from_le_bytes(run.payload.inline));
        let busy_until = workers.cores.spend(worker as u32, run.started, service);
        meter.at_workers.leave(run.started);
        meter.serving.enter(run.started);
        books.moves(Place::AtWorker, Place::Running);
        world.engine.timer(workers.timer(worker), busy_until);
        let outlook = workers.estimates.as_mut().map(|estimates| estimates.outlook(service));
        Ok(Start { busy_until, outlook })
    }

    #[inline]
    fn served(&mut self, worker: usize, run: &TaskRun) -> Try<Self, (ReplyStatus, Payload)> {
        let Self { world, workers, pools, books, .. } = self;
        pools[usize::from(workers.all[worker].pool)].meter.serving.leave(world.now);
        workers.held[worker] -= 1;
        books.moves(Place::Running, Place::ToClient);
        if let Some(adaptation) = &mut workers.adaptation
            && let Some(sample) = workers.all[worker].machine.sample(world.now, run.started)
        {
            adaptation.finished(world.now, worker as u32, sample);
        }
        Ok((ReplyStatus::Done, Payload { len: 8, inline: run.payload.inline, ..Payload::EMPTY }))
    }

    fn goes_on(&mut self, worker: usize, desk: usize) {
        let workers = &mut self.workers;
        let (timer, core) = (workers.timer(worker), &mut workers.taken[desk].core);
        core.free_at = core.free_at + workers.costs.send;
        self.world.engine.timer(timer, core.free_at);
    }

    fn wakes_workers(&self) -> bool {
        self.workers.needs_ticks
    }

    fn wake_worker(&mut self, at: Nanos, worker: usize) {
        let whom = self.workers.all[worker].at;
        self.schedule(at, whom, Scheduled::Tick);
    }

    fn sends_early(&self) -> bool {
        self.workers.estimates.is_some()
    }

    fn wake_early(&mut self, at: Nanos, worker: usize) {
        let whom = self.workers.all[worker].at;
        self.schedule(at, whom, Scheduled::Early);
    }
}
