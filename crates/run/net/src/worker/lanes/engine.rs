//! The packet thread of a server of many cores.

use std::time::Duration;

use sluice_cores::{CoreDispatcher, CoreThreads, CoresError, Overdue, RequestTable};
use sluice_host::orchestrator::ServiceId;
use sluice_host::worker::{Action, Lanes, WorkerSettings};
use sluice_wire::{Nanos, Packet, Payload, TaskId, TaskType, parse};

use super::lane::ServerLane;
use super::options::LaneServerOptions;
use super::report::{of_lanes, of_server};
use super::serving::ServedTask;
use crate::NetError;
use crate::clock::Clock;
use crate::udp::{Socket, Wait};
use crate::worker::draining::{Drained, warn_out_of_time};
use crate::worker::engine::{WantedRun, settings as of_worker};
use crate::worker::metrics::WorkerMeter;
use crate::worker::report::{Dropped, Served, WorkerReport};
use crate::worker::run::ServiceEnd;
use crate::worker::stopper::{StopOrder, Stopper};
use crate::worker::traces::{AnsweredTimes, WorkerTraces};

/// How long the cores may take to finish their tasks when the server ends.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// How often the measured capacity is reported, and coroutines are checked that do not yield.
const LOOK_EVERY: Nanos = Nanos::from_millis(1_000);

/// The cores behind the lanes.
pub(super) struct BehindLanes {
    pub(super) dispatcher: CoreDispatcher<ServedTask>,
    /// `None` once the threads have ended.
    pub(super) threads: Option<CoreThreads>,
}

/// The thread's state.
pub(super) struct LanesEngine {
    socket: Socket,
    clock: Clock,
    machines: Lanes,
    lanes: Vec<ServerLane>,
    services: Vec<OwnLanes>,
    settings: WorkerSettings,
    behind: BehindLanes,
    /// For each place, the run of its task.
    places: Vec<Option<PlacedRun>>,
    actions: Vec<Action>,
    runs: Vec<(usize, WantedRun)>,
    stopper: Stopper,
    /// Why an unregistered lane was refused: the server ends once it has answered the tasks that it holds.
    refused: Option<String>,
    name: String,
    drain_limit: Nanos,
    dilation: u32,
    cores: usize,
    measures: bool,
    /// Whether the server is a plain pool: one queue for all services.
    is_pool: bool,
    /// How many tasks of a service may wait here beyond the room of its cores.
    beyond_room: u32,
    overdue_after: Nanos,
    overdue: Vec<Overdue>,
    look_at: Nanos,
    began: Nanos,
    dropped: Dropped,
    served: Served,
    meter: WorkerMeter,
    traces: WorkerTraces,
}

/// A service's lanes, and what it served since the last report to the controller.
struct OwnLanes {
    service: ServiceId,
    slice: String,
    lanes: Vec<usize>,
    tasks: u64,
    busy: Nanos,
}

/// A task's run in its lane.
#[derive(Clone, Copy)]
struct PlacedRun {
    lane: usize,
    slot: u64,
}

/// The state machines' settings: each lane runs all that it holds; all lanes together keep as much as one
/// worker.
pub(super) fn settings(options: &LaneServerOptions) -> WorkerSettings {
    let plain = of_worker(&options.worker);
    let lanes = (options.lanes() * options.services.len()).max(1);
    WorkerSettings {
        at_once: plain.held_max,
        finished_max: plain.finished_max / lanes,
        replies_max: plain.replies_max / lanes,
        reply_bytes_max: plain.reply_bytes_max / lanes,
        ..plain
    }
}

impl LanesEngine {
    pub(super) fn new(
        options: &LaneServerOptions,
        settings: WorkerSettings,
        socket: Socket,
        lanes: Vec<ServerLane>,
        behind: BehindLanes,
        stopper: Stopper,
    ) -> Self {
        let of = |service: usize| lanes.iter().enumerate().filter(move |(_, lane)| lane.service == service);
        let services = options.services.iter().enumerate().filter_map(|(number, of_service)| {
            let lanes = of(number).map(|(lane, _)| lane).collect();
            let (service, slice) = (ServiceId::new(number)?, of_service.slice.clone());
            Some(OwnLanes { service, slice, lanes, tasks: 0, busy: Nanos(0) })
        });
        let (clock, places) = (Clock::start(), behind.dispatcher.requests().places());
        let began = clock.now();
        Self {
            machines: Lanes::new(lanes.len()),
            services: services.collect(),
            places: vec![None; places],
            actions: Vec::new(),
            runs: Vec::new(),
            refused: None,
            name: options.worker.name.clone(),
            drain_limit: options.worker.drain_limit,
            dilation: options.worker.dilation.max(1),
            cores: options.cores,
            measures: options.worker.capacity == 0,
            is_pool: options.pool,
            beyond_room: options.beyond_room(),
            overdue_after: options.overdue_after,
            overdue: Vec::new(),
            look_at: began + LOOK_EVERY,
            dropped: Dropped::default(),
            served: Served::default(),
            meter: WorkerMeter::new(options.worker.metrics.as_ref()),
            traces: WorkerTraces::new(options.worker.traces.clone(), &options.worker.name),
            began,
            socket,
            clock,
            lanes,
            settings,
            behind,
            stopper,
        }
    }

    pub(super) fn run(mut self) -> Result<WorkerReport, NetError> {
        let drained = loop {
            let wait = self.next_step().map_or(Wait::Forever, Wait::Until);
            if let Some(drained) = self.step(wait)? {
                break drained;
            }
        };
        self.socket.flush();
        let drained = self.end_cores(drained)?;
        if let Some(why) = self.refused {
            return Err(NetError::Refused { why });
        }
        let ran = self.clock.now().since(self.began);
        let of = (self.name.as_str(), self.dilation, self.cores);
        let served = Served { batch: self.behind.dispatcher.batch_time(), ..self.served };
        let counts = (served, self.dropped);
        Ok(of_server(of, (ran, drained), counts, (&self.machines, &self.lanes), &self.socket))
    }

    /// Handles what has arrived and what is due. Once the server has left, returns whether all held tasks
    /// were finished.
    fn step(&mut self, wait: Wait) -> Result<Option<bool>, NetError> {
        self.socket.receive(wait)?;
        self.take_packets();
        self.take_refusals();
        self.take_registrations();
        let now = self.clock.now();
        self.start_runs(now);
        self.behind.dispatcher.tick(now);
        self.behind.dispatcher.dispatch(now)?;
        self.end_runs(now)?;
        self.behind.dispatcher.dispatch(now)?;
        self.send_tokens(now);
        self.start_runs(now);
        self.run_checks(now)?;
        self.publish();
        Ok(self.stop(now))
    }

    /// When the server has something to do if nothing arrives before.
    fn next_step(&self) -> Option<Nanos> {
        let machines = self.machines.iter().filter_map(|lane| lane.deadline(&self.settings));
        let now = self.clock.now();
        let leaving = self.lanes.iter().filter_map(|lane| lane.leaves_at(now));
        let own = [Some(self.look_at), self.behind.dispatcher.next_deadline(), self.socket.next_due()];
        machines.chain(leaving).chain(own.into_iter().flatten()).min()
    }

    fn take_packets(&mut self) {
        let now = self.clock.now();
        let (inbox, outbox) = self.socket.split();
        for datagram in inbox.datagrams() {
            let Ok((mut packet, body)) = parse(datagram.bytes) else {
                self.dropped.unreadable += 1;
                continue;
            };
            let index = self.machines.of(&packet);
            let Some(lane) = self.lanes.get_mut(index) else { continue };
            // A PART or NEED comes from a client's address; its task id authenticates it.
            let is_foreign = !lane.switches.contains(&datagram.from)
                && !matches!(packet, Packet::Part(_) | Packet::Need(_));
            if is_foreign {
                self.dropped.foreign += 1;
                continue;
            }
            if !lane.effects.keep(&mut packet, body, &mut self.dropped) {
                continue;
            }
            let times = (now, datagram.received);
            let answers = self.machines.packet(index, times, &self.settings, &packet, &mut self.actions);
            lane.perform(index, now, &mut self.actions, &mut self.runs, outbox);
            if let (Some(other), Packet::Dispatch(dispatch)) = (answers, &packet) {
                self.machines.answer_repeat(
                    other,
                    datagram.received,
                    &self.settings,
                    dispatch,
                    &mut self.actions,
                );
                self.lanes[other].perform(other, now, &mut self.actions, &mut self.runs, outbox);
            }
        }
    }

    fn take_refusals(&mut self) {
        let refused: Vec<_> = self.socket.outbox().refused().collect();
        for index in 0..self.lanes.len() {
            if self.lanes[index].switches.first().is_some_and(|switch| refused.contains(switch)) {
                let now = self.clock.now();
                self.machines.lane(index).refused(now, &self.settings, &mut self.actions);
                self.perform(index, now);
            }
        }
    }

    fn take_registrations(&mut self) {
        let now = self.clock.now();
        for index in 0..self.lanes.len() {
            let (lane, machine) = (&mut self.lanes[index], self.machines.lane(index));
            let times = (now, self.dilation);
            let why = lane.take_registrations(machine, &mut self.settings, times, &mut self.actions);
            self.refused = self.refused.take().or(why);
            lane.rejoin_if_pair_failed(machine);
            if lane.effects.slots.wants_grant(now) {
                lane.registrar.renew_now();
            }
            self.perform(index, now);
        }
    }

    /// Gives the dispatcher the tasks that the lanes want to run.
    fn start_runs(&mut self, now: Nanos) {
        let mut runs = std::mem::take(&mut self.runs);
        for (lane, run) in runs.drain(..) {
            if let Err(why) = self.start_run(lane, &run, now) {
                self.fail_run(lane, run.slot, &why, now);
            }
        }
        self.runs = runs;
    }

    fn start_run(&mut self, lane: usize, run: &WantedRun, now: Nanos) -> Result<(), CoresError> {
        let dispatcher = &mut self.behind.dispatcher;
        let queue = if self.is_pool { 0 } else { self.lanes[lane].service };
        let service = self.services[queue].service;
        let place = dispatcher.place()?;
        {
            let mut served = dispatcher.requests().at(place);
            let bytes = self.lanes[lane].effects.tasks.bytes(&run.payload);
            (served.task, served.task_type, served.ended) = (run.task, run.task_type, None);
            served.bytes.clear();
            served.bytes.extend_from_slice(bytes);
        }
        self.places[place as usize] = Some(PlacedRun { lane, slot: run.slot });
        dispatcher.offer(service, place, now)
    }

    /// Answers a task that found no place, with an error for its client. This is a bug, since there is a
    /// place for each task that the lanes may hold.
    fn fail_run(&mut self, lane: usize, slot: u64, why: &CoresError, now: Nanos) {
        sluice_log::log!(TaskUnplaced, host = self.name, %why, "{}: a task was not taken: {why}", self.name);
        self.served.failed += 1;
        let reply = (ServiceEnd::Failed.status(), Payload::EMPTY);
        self.machines.finished(lane, now, &self.settings, (slot, now), reply, &mut self.actions);
        self.perform(lane, now);
    }

    /// Answers the tasks that have ended.
    fn end_runs(&mut self, now: Nanos) -> Result<(), NetError> {
        let Self { behind, lanes, places, machines, actions, runs, services, .. } = self;
        let (settings, served, socket) = (&self.settings, &mut self.served, &mut self.socket);
        let (meter, traces) = (&mut self.meter, &self.traces);
        behind.dispatcher.collect(|table, request| {
            let Some(PlacedRun { lane: index, slot }) = places[request.place as usize].take() else { return };
            let lane = &mut lanes[index];
            let (ended, reply) = answer(lane, table, request.place);
            let (task, task_type) = task_at(table, request.place);
            let took = request.ended.since(request.began);
            let waited = machines.lane(index).waited(slot, request.began);
            lane.recent.ended(request.began, took, waited);
            meter.ended(took, waited);
            let service = &mut services[lane.service];
            (service.tasks, service.busy) = (service.tasks + 1, service.busy + took);
            served.tasks += 1;
            served.failed += u64::from(ended == ServiceEnd::Failed);
            served.panicked += u64::from(ended == ServiceEnd::Panicked);
            served.busy = served.busy + took;
            let times = (slot, request.began);
            machines.finished(index, now, settings, times, (ended.status(), reply), actions);
            lane.perform(index, now, actions, runs, socket.outbox());
            let arrived = Nanos(request.began.0.saturating_sub(waited.0));
            let (started, at) = (request.began, request.ended);
            traces.answered(
                task,
                task_type,
                ended,
                &AnsweredTimes { arrived, started, ended: at, answered: now },
            );
        })?;
        Ok(())
    }

    /// Adjusts the tokens to the cores' room, and handles everything else that is due.
    fn send_tokens(&mut self, now: Nanos) {
        for index in 0..self.lanes.len() {
            self.machines.fetch_due(index, now, &self.settings, &mut self.actions);
            self.perform(index, now);
        }
        for service in &self.services {
            // A pool's queue accepts all tasks that its lanes may hold.
            let room = if self.is_pool {
                u32::MAX
            } else {
                self.behind.dispatcher.room(service.service, self.beyond_room)
            };
            self.machines.share_room(&service.lanes, room);
        }
        for index in 0..self.lanes.len() {
            self.machines.lane(index).tick(now, &self.settings, &mut self.actions);
            self.perform(index, now);
        }
    }

    /// Carries out the actions that a lane requested at `at`.
    fn perform(&mut self, index: usize, at: Nanos) {
        let lane = &mut self.lanes[index];
        lane.perform(index, at, &mut self.actions, &mut self.runs, self.socket.outbox());
        while let Some((task, is_right)) = lane.effects.checked.pop() {
            self.machines.lane(index).checked(at, &self.settings, task, is_right, &mut self.actions);
            lane.perform(index, at, &mut self.actions, &mut self.runs, self.socket.outbox());
        }
    }

    /// Regular checks: whether the threads still run, which coroutines do not yield, and the capacity.
    fn run_checks(&mut self, now: Nanos) -> Result<(), NetError> {
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + LOOK_EVERY;
        if self.behind.threads.as_ref().is_some_and(CoreThreads::has_ended) {
            self.end_cores(false)?;
        }
        if !self.is_pool {
            self.name_overdue(now);
        }
        for (lane, machine) in self.lanes.iter_mut().zip(self.machines.iter()) {
            lane.report_recent(now, machine);
        }
        if self.measures {
            self.report_capacity();
        }
        Ok(())
    }

    /// Makes what was counted visible to whoever reads the metrics.
    fn publish(&mut self) {
        let Self { meter, served, machines, lanes, dropped, socket, .. } = self;
        meter.publish(|| {
            let (stats, ahead) = of_lanes(machines, lanes);
            (*served, stats, ahead, *dropped, socket.counts())
        });
    }

    /// Logs each coroutine that does not yield, once.
    fn name_overdue(&mut self, now: Nanos) {
        let found: Vec<Overdue> = self.behind.dispatcher.overdue(self.overdue_after, now).collect();
        for overdue in &found {
            let of = |said: &&Overdue| (said.core, said.service) == (overdue.core, overdue.service);
            if !self.overdue.iter().any(|said| of(&said)) {
                let Overdue { core, service, ran } = overdue;
                let of = service.and_then(|service| self.services.get(service.index()));
                let whose = of.map_or_else(
                    || "the batch service".to_owned(),
                    |of| format!("a task of slice {}", of.slice),
                );
                let ran_ms = ran.0 / 1_000_000;
                sluice_log::log!(
                    TaskOverdue,
                    host = self.name,
                    ran_ms,
                    "{}: {whose} has run for {ran_ms} ms on {core} without a pause, and nothing else runs \
                     there: let its service pause",
                    self.name
                );
            }
        }
        self.overdue = found;
    }

    /// Reports how many tasks a second a lane could serve if its service had all cores.
    fn report_capacity(&mut self) {
        for service in &mut self.services {
            let (tasks, busy) = (std::mem::take(&mut service.tasks), std::mem::take(&mut service.busy));
            if tasks == 0 || busy == Nanos(0) {
                continue;
            }
            let of_core = tasks as f64 * 1e9 / busy.0 as f64;
            let of_lane = of_core * self.cores as f64 / service.lanes.len() as f64;
            service.lanes.iter().for_each(|lane| self.lanes[*lane].report_capacity(of_lane as u32));
        }
    }

    /// Continues to leave, if asked to. Once done, returns whether all held tasks were finished.
    fn stop(&mut self, now: Nanos) -> Option<bool> {
        match self.stopper.asked() {
            StopOrder::Nothing if self.refused.is_none() => None,
            StopOrder::Abort => Some(false),
            StopOrder::Nothing | StopOrder::Drain => {
                let (mut all_gone, mut held) = (true, None);
                for (index, lane) in self.lanes.iter_mut().enumerate() {
                    match lane.leave(self.machines.lane(index), &self.settings, now) {
                        Drained::All => {}
                        Drained::NotYet => all_gone = false,
                        Drained::OutOfTime(of_lane) => held = Some(held.unwrap_or(0) + of_lane),
                    }
                }
                if let Some(held) = held {
                    warn_out_of_time(&self.name, self.drain_limit, held);
                    return Some(false);
                }
                all_gone.then_some(true)
            }
        }
    }

    /// Stops the threads of cores. Returns whether they finished all tasks.
    fn end_cores(&mut self, drained: bool) -> Result<bool, NetError> {
        let Some(threads) = self.behind.threads.take() else { return Ok(drained) };
        let patience = if drained { END_PATIENCE } else { Duration::ZERO };
        let stuck = threads.end(patience)?;
        Ok(drained && stuck == 0)
    }
}

/// The task at a place.
fn task_at(table: &RequestTable<ServedTask>, place: u32) -> (TaskId, TaskType) {
    let served = table.at(place);
    (served.task, served.task_type)
}

/// Stores a task's answer, and returns it for the client.
fn answer(lane: &mut ServerLane, table: &RequestTable<ServedTask>, place: u32) -> (ServiceEnd, Payload) {
    let served = table.at(place);
    let packet_max = lane.effects.packet_max;
    let kept = lane.effects.replies.keep_first(&served.reply, packet_max);
    kept.zip(served.ended).map_or((ServiceEnd::Failed, Payload::EMPTY), |(reply, ended)| (ended, reply))
}
