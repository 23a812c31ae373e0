//! What happens to the workers of a curve (`nodes::worker`): what their cores' work takes, and what is
//! counted. Of what a core does only the end of a service is an event of its own.

use sluice_host::worker::{Action, Worker};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{self as wire, Nanos, Packet, Payload, ReplyStatus};

use super::Workers;
use crate::events::PacketId;
use crate::nodes::{Core, Start, TaskRun, Try, WorkerCall, WorkerSide};
use crate::rack::books::Place;
use crate::rack::nodes::Staged;
use crate::rack::stage::{Scheduled, Stage};
use crate::stats::Observer;

const NEVER: Nanos = Nanos(u64::MAX);

impl<O: Observer> Staged<'_, O> {
    /// The worker learns of a registration; it sends what tokens it may.
    pub(in crate::rack) fn grant_worker(&mut self, worker: u32, grant: WorkerRegistration) {
        let take = if self.has_cores() { Worker::grant_lane } else { Worker::grant };
        let Ok(()) = self.on_worker(worker as usize, |machine, now, settings, out| {
            take(machine, now, settings, grant, out);
        });
        self.settle_cores(worker as usize);
    }

    /// The worker may have so many tasks granted or held from now on.
    pub(in crate::rack) fn set_quota(&mut self, worker: u32, depth: u8) {
        self.nodes.workers.all[worker as usize].machine.set_quota(depth);
        let Ok(()) = self.wants_a_tick(worker as usize);
    }

    /// A packet comes to a worker's NIC.
    #[inline]
    pub(in crate::rack) fn at_worker(&mut self, worker: u32, packet: PacketId) {
        let Stage { world, meter, books, .. } = &mut *self.stage;
        if matches!(world.packets.get(packet), Packet::Dispatch(_)) {
            meter.at_workers.enter(world.now);
            books.moves(Place::ToWorker, Place::AtWorker);
        }
        self.nodes.workers.hears_of_work(world.now, worker);
        let Ok(()) = self.worker_hears(worker as usize, packet);
    }

    /// A worker's timer expires: its service ends, if it has not got longer.
    #[inline]
    pub(in crate::rack) fn timer(&mut self, worker: u32) {
        if self.core_rings(worker) {
            return;
        }
        let Ok(runs) = self.service_ends(worker as usize);
        if !runs {
            let timer = self.nodes.workers.timer(worker as usize);
            self.stage.world.engine.timer(timer, NEVER);
        }
    }

    /// Bytes that are fetched cost packets and passes.
    fn count_fetch(&mut self) {
        self.stage.meter.counts.packets += 4;
        self.stage.meter.counts.passes += 2;
    }
}

impl<O: Observer> WorkerSide for Staged<'_, O> {
    #[inline]
    fn worker(&mut self, worker: usize) -> Option<WorkerCall<'_>> {
        let Workers { all, settings, actions: out, .. } = &mut self.nodes.workers;
        let world = &self.stage.world;
        let node = &mut all[worker];
        Some(WorkerCall { now: world.now, node, settings, packets: &world.packets, out })
    }

    #[inline]
    fn workers_say(&mut self) -> &mut Vec<Action> {
        &mut self.nodes.workers.actions
    }

    #[inline]
    fn desk(&mut self, worker: usize) -> usize {
        self.nodes.workers.desk_of(worker as u32, self.stage.world.now)
    }

    #[inline]
    fn core(&mut self, desk: usize) -> &mut Core {
        &mut self.nodes.workers.taken[desk].core
    }

    fn is_ranked(&self) -> bool {
        self.nodes.workers.ranked
    }

    #[inline]
    fn unpacks(&mut self, worker: usize, from: Nanos, _: Nanos, id: PacketId) -> Try<Self, Nanos> {
        let workers = &mut self.nodes.workers;
        if workers.of_cores.is_some() {
            return Ok(from);
        }
        // The fetch is a wait before the service, and not its packets.
        if workers.fetches
            && let Packet::Dispatch(dispatch) = self.stage.world.packets.get_mut(id)
        {
            dispatch.place = wire::Place::Here;
        }
        let takes = match self.stage.world.packets.get(id) {
            Packet::Dispatch(dispatch) => workers.servers.takes(worker as u32, dispatch),
            _ => Some(Nanos(0)),
        };
        let takes_all = workers.costs.receive + takes.unwrap_or(workers.fetch_unwritten);
        let at = workers.cores.spend(worker as u32, from, takes_all);
        if takes.is_none() {
            self.count_fetch();
        }
        Ok(at)
    }

    fn has_cores(&self) -> bool {
        self.nodes.workers.of_cores.is_some()
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
    fn received(&mut self, _: usize, at: Nanos, packet: PacketId, runs: bool) {
        if !runs && !self.has_cores() && matches!(self.stage.world.packets.get(packet), Packet::Dispatch(_)) {
            self.stage.meter.at_workers.leave(at);
        }
    }

    #[inline]
    fn spends_sending(&mut self, worker: usize, from: Nanos) -> Nanos {
        let Workers { cores, costs, of_cores, .. } = &mut self.nodes.workers;
        if of_cores.is_some() {
            return from;
        }
        cores.spend(worker as u32, from, costs.send)
    }

    #[inline]
    fn passes_by(&mut self) {
        self.stage.meter.counts.passes += 1;
        self.stage.meter.counts.packets += 1;
    }

    #[inline]
    fn starts(&mut self, worker: usize, run: &mut TaskRun) -> Try<Self, Start> {
        if run.payload.is_large() && self.nodes.workers.fetch > Nanos(0) {
            run.started = run.started + self.nodes.workers.fetch;
            self.count_fetch();
        }
        let (workers, Stage { world, meter, books, .. }) = (&mut self.nodes.workers, &mut *self.stage);
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
        let (workers, Stage { world, meter, books, .. }) = (&mut self.nodes.workers, &mut *self.stage);
        meter.serving.leave(world.now);
        books.moves(Place::Running, Place::ToClient);
        if let Some(adaptation) = &mut workers.adaptation
            && let Some(sample) = workers.all[worker].machine.sample(world.now, run.started)
        {
            adaptation.finished(world.now, worker as u32, sample);
        }
        Ok((ReplyStatus::Done, Payload { len: 8, inline: run.payload.inline, ..Payload::EMPTY }))
    }

    fn goes_on(&mut self, worker: usize, desk: usize) {
        let workers = &mut self.nodes.workers;
        let (timer, core) = (workers.timer(worker), &mut workers.taken[desk].core);
        core.free_at = core.free_at + workers.costs.send;
        self.stage.world.engine.timer(timer, core.free_at);
    }

    fn wakes_workers(&self) -> bool {
        self.nodes.workers.needs_ticks
    }

    fn wake_worker(&mut self, at: Nanos, worker: usize) {
        self.stage.schedule(at, self.nodes.workers.all[worker].at, Scheduled::Tick);
    }

    fn sends_early(&self) -> bool {
        self.nodes.workers.estimates.is_some()
    }

    fn wake_early(&mut self, at: Nanos, worker: usize) {
        self.stage.schedule(at, self.nodes.workers.all[worker].at, Scheduled::Early);
    }
}
