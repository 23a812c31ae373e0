//! What a controller would have done before the run: tables, registrations, shares.

use sluice_host::client::{Client, ClientSettings};
use sluice_host::worker::{EarlySettings, WorkerSettings};
use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};
use sluice_wire::registrations::{ClientRegistration, WorkerRegistration};
use sluice_wire::sizes::{self, QUOTA_MAX, token_cells};
use sluice_wire::tables::{ClientRow, Feed, SliceRow, TableAnswer, TableOp, WorkerRow};
use sluice_wire::{
    ClientId, Epoch, Generation, Incarnation, Key, Nanos, Serial, SliceId, TaskType, Term, WorkerId,
};

use super::servers::Servers;
use super::stage::Places;
use crate::dice::Dice;
use crate::point::Point;
use crate::testbed::Testbed;

pub(super) const EPOCH: Epoch = Epoch(1);
pub(super) const KEY: Key = Key(1);
pub(super) const GENERATION: Generation = Generation(1);
const START: Serial = Serial(0);
/// What falls due then never does.
const NEVER: Nanos = Nanos(u64::MAX);
/// What a REJECT advises.
const RETRY_AFTER: Nanos = Nanos::from_micros(100);
/// How much longer than a task may be tried again workers remember it: two of its packets may be under way so
/// long.
const TRANSIT: Nanos = Nanos::from_millis(2);

/// How the rack is laid out.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) places: Places,
    slices: Vec<SlicePlan>,
    types: Vec<(TaskType, SliceId)>,
    pub(super) asked: ClassNeeds,
    servers: u16,
    writes_ahead: bool,
    queue: u32,
    /// The largest depth that a worker may come to have.
    depth_max: u8,
    clients: u16,
    pub(super) feed: Feed,
    retry_for: Nanos,
    seed: u64,
    replication: u32,
}

/// What tasks of each class are asked for.
#[derive(Clone, Debug)]
pub(super) struct ClassNeeds {
    /// Which slice they go to.
    pub(super) slice: Vec<usize>,
    /// How many bytes a large one carries.
    pub(super) bytes: Vec<u16>,
}

#[derive(Debug)]
struct SlicePlan {
    first_worker: u32,
    workers: u32,
    quota: u8,
}

impl SlicePlan {
    /// Tasks that the clients may have outstanding here together: C + ΣN.
    fn outstanding(&self, queue: u32, depth_max: u8) -> u32 {
        queue + self.workers * u32::from(depth_max.max(self.quota).max(1))
    }
}

impl Plan {
    pub(super) fn new(places: Places, point: &Point, choice: &Choice, replication: u32) -> Self {
        let Testbed { clients, queue, retries, .. } = point.testbed;
        let quota = choice.quota();
        let mut slices = Vec::new();
        let mut first_worker = 0;
        for workers in point.workers_by_slice() {
            slices.push(SlicePlan { first_worker, workers, quota });
            first_worker += workers;
        }
        let of_class: Vec<usize> = point.workload.classes.iter().map(|class| point.slice_of(class)).collect();
        let classes = point.workload.classes.iter().zip(&of_class);
        let types = classes.map(|(class, slice)| (class.task_type, SliceId(*slice as u16))).collect();
        let depth_max = if choice.adaptive().is_some() { QUOTA_MAX } else { quota };
        let (seed, retry_for) = (point.seed, retries.deadline);
        let bytes = point.workload.classes.iter().map(|class| class.bytes).collect();
        Self {
            places,
            slices,
            types,
            asked: ClassNeeds { slice: of_class, bytes },
            servers: point.testbed.servers.count,
            writes_ahead: choice.writes_ahead(),
            queue,
            depth_max,
            clients,
            feed: choice.feed(),
            retry_for,
            seed,
            replication,
        }
    }

    /// The servers, with rings for all tasks that may wait.
    pub(super) fn servers(&self, testbed: &Testbed) -> Servers {
        let largest = self.asked.bytes.iter().copied().max().unwrap_or(0);
        let slots = self.config().tasks_per_slice;
        Servers::new(self.places, testbed, self.writes_ahead, self.slices.len(), slots, largest)
    }

    /// Their queue pairs and rings enter the switch's tables.
    pub(super) fn set_up_servers(&self, servers: &Servers, switch: &mut dyn Program) {
        servers.set_up(switch);
        for worker in 0..self.workers() {
            servers.serves(switch, worker, self.worker_grant(worker).slice);
        }
    }

    pub(super) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// Whether replies go through the program, and not only past it.
    pub(super) const fn program_sees_replies(&self) -> bool {
        matches!(self.feed, Feed::Pushed { reports: true })
    }

    /// Whether each task that a worker gets answers a poll.
    pub(super) const fn is_polled(&self) -> bool {
        matches!(self.feed, Feed::Polls { .. })
    }

    fn workers(&self) -> u32 {
        self.slices.iter().map(|slice| slice.workers).sum()
    }

    /// How large the switch has to be.
    pub(super) fn config(&self) -> Config {
        let waiting = self.slices.iter().map(|slice| slice.outstanding(self.queue, self.depth_max));
        let types = self.types.iter().map(|(kind, _)| kind.0 + 1).max();
        Config {
            epoch: EPOCH,
            term: Term(0),
            workers: self.workers() as u16,
            clients: self.clients,
            slices: self.slices.len() as u16,
            types: types.unwrap_or(1),
            tasks_per_slice: waiting.max().unwrap_or(1).next_power_of_two(),
            // As many stale ones of workers that moved may lie there until they are swept.
            tokens_per_slice: token_cells(self.workers(), 2 * u32::from(QUOTA_MAX)),
            replay_cells: self.replay_cells(),
            servers: self.servers,
            counters_start: START,
            seed: Dice::named(self.seed, "switch", self.replication).word(),
        }
    }

    fn replay_cells(&self) -> u32 {
        sizes::replay_cells((0..self.slices.len()).map(|slice| self.share(slice)).sum())
    }

    /// What each client may have outstanding in a slice.
    fn share(&self, slice: usize) -> u32 {
        sizes::share(self.slices[slice].outstanding(self.queue, self.depth_max), self.clients.into())
    }

    /// Fills the switch's tables.
    pub(super) fn set_up(&self, switch: &mut dyn Program) {
        for op in self.table_ops() {
            let answer = switch.table(op);
            debug_assert_eq!(answer, TableAnswer::Done, "{op:?}");
        }
    }

    fn table_ops(&self) -> Vec<TableOp> {
        let mut ops = Vec::new();
        for (slice, plan) in self.slices.iter().enumerate() {
            let id = SliceId(slice as u16);
            let limit = plan.outstanding(self.queue, self.depth_max);
            ops.push(TableOp::SetSlice(id, SliceRow { open: true, limit, retry_after: RETRY_AFTER }));
            for worker in plan.first_worker..plan.first_worker + plan.workers {
                ops.extend(self.worker_ops(WorkerId(worker as u16), id, GENERATION));
            }
        }
        ops.extend(self.types.iter().map(|(kind, slice)| TableOp::SetType(*kind, Some(*slice))));
        ops.extend((0..self.clients).map(|client| {
            let (client, incarnation) = (ClientId(client), self.incarnation(client));
            let row =
                ClientRow { key: KEY, at: self.places.clients.at(client.0.into()).endpoint(), incarnation };
            TableOp::SetClient(client, Some((row, START)))
        }));
        ops
    }

    /// Lets a worker in, with new counters.
    pub(super) fn worker_ops(
        &self,
        worker: WorkerId,
        slice: SliceId,
        generation: Generation,
    ) -> [TableOp; 3] {
        let row = self.worker_row(worker, slice, generation, true);
        [
            TableOp::RaiseGeneration(worker, generation),
            TableOp::ResetCounters(worker, START),
            TableOp::SetWorker(worker, Some(row)),
        ]
    }

    pub(super) fn worker_row(
        &self,
        worker: WorkerId,
        slice: SliceId,
        generation: Generation,
        open: bool,
    ) -> WorkerRow {
        let at = self.places.workers.at(worker.0.into()).endpoint();
        WorkerRow { key: KEY, at, slice, generation, open, life: 1 }
    }

    /// A worker's registration.
    pub(super) fn worker_grant(&self, worker: u32) -> WorkerRegistration {
        let serves = |slice: &SlicePlan| slice.first_worker <= worker;
        let slice = self.slices.iter().rposition(serves).unwrap_or(0);
        WorkerRegistration {
            worker: WorkerId(worker as u16),
            key: KEY,
            epoch: EPOCH,
            generation: GENERATION,
            slice: SliceId(slice as u16),
            quota: self.slices[slice].quota,
            start: START,
            switch: self.places.switch.endpoint(),
            feed: self.feed,
        }
    }

    /// The registered clients.
    pub(super) fn clients(&self, settings: &ClientSettings) -> Vec<Client> {
        let client = |index| {
            let mut client = Client::new(self.incarnation(index), START);
            client.grant(Nanos(0), settings, self.client_grant(index), &mut Vec::new());
            client
        };
        (0..self.clients).map(client).collect()
    }

    fn client_grant(&self, index: u16) -> ClientRegistration {
        let share = |slice| (SliceId(slice as u16), self.share(slice));
        ClientRegistration {
            client: ClientId(index),
            key: KEY,
            epoch: EPOCH,
            switch: self.places.switch.endpoint(),
            replay_cells: self.replay_cells(),
            slices: self.types.clone(),
            shares: (0..self.slices.len()).map(share).collect(),
            retry_for: self.retry_for,
        }
    }

    fn incarnation(&self, client: u16) -> Incarnation {
        Incarnation(Dice::named(self.seed, &format!("client {client}"), self.replication).word())
    }
}

/// Without faults nothing is ever tried again, and no timer is needed.
pub(super) fn client_settings(testbed: &Testbed) -> ClientSettings {
    let plain = ClientSettings { outstanding_max: 1 << 20, ..ClientSettings::default() };
    if !testbed.has_faults() {
        return ClientSettings { first_timeout: NEVER, timeout_max: NEVER, deadline_default: NEVER, ..plain };
    }
    ClientSettings {
        first_timeout: testbed.retries.first_timeout,
        timeout_max: testbed.retries.timeout_max,
        deadline_default: testbed.retries.deadline,
        ..plain
    }
}

/// Without faults a worker never has to ask how its counters stand, and no task comes twice.
pub(super) fn worker_settings(testbed: &Testbed, choice: &Choice) -> WorkerSettings {
    let early = choice.early().map(|_| EarlySettings::default());
    let patience = choice.patience();
    let plain = WorkerSettings { transit: TRANSIT, early, patience, ..WorkerSettings::default() };
    if !testbed.has_faults() {
        return WorkerSettings { first_rtt: NEVER, repeats: false, ..plain };
    }
    WorkerSettings { retry_horizon: testbed.retries.deadline + TRANSIT.times(2), ..plain }
}
