//! The layout of a rack for a point: the sizes of its switch, the plan of its controller, and the
//! registration requests of its hosts.

use sluice_control::{ClientHello, Plan, RdmaPlan, SlicePlan, WorkerGrant, WorkerHello};
use sluice_events::dice::Dice;
use sluice_host::client::ClientSettings;
use sluice_host::worker::{EarlySettings, WorkerSettings};
use sluice_nodes::names;
use sluice_switch::Config;
use sluice_switch::registry::{Choice, Software};
use sluice_testbed::Testbed;
use sluice_testbed::capacity::Capacity;
use sluice_testbed::compatibility::LabelCompatibility;
use sluice_testbed::control_plan::control_plan;
use sluice_testbed::cores_layout::CoresLayout;
use sluice_wire::sizes::{QUOTA_MAX, token_cells};
use sluice_wire::tables::{Feed, RingRow};
use sluice_wire::{Epoch, INLINE_BYTES, Incarnation, Nanos, Rkey, SLOT_HEAD_BYTES, Serial, SliceId, Term};
use sluice_workload::Class;

use super::guess::Guesses;
use super::places::{CLIENTS, LEAVES, WORKERS};
use crate::point::Point;

const START: Serial = Serial(0);
/// The end of time, at which nothing is ever due.
const NEVER: Nanos = Nanos(u64::MAX);
/// The retry hint of a REJECT.
const RETRY_AFTER: Nanos = Nanos::from_micros(100);
/// The longest time that a packet is under way. Workers remember a task for twice as long beyond the time
/// for which it may be tried, and it may wait for as long again.
const PACKET_LIFETIME: Nanos = Nanos::from_millis(1);

/// A task takes a SUBMIT and a DISPATCH, and another DISPATCH if there is a spine.
const PACKETS: u64 = 3;
/// A worker whose tokens were lost probes so often before the deadline of a task that waits for it.
const PROBES_A_DEADLINE: u64 = 20;
/// The longest time that a task may wait.
const MAX_WAIT: Nanos = Nanos::from_millis(2);

/// The layout of a rack.
#[derive(Debug)]
pub(super) struct RackSetup {
    slices: Vec<SliceLayout>,
    pub(super) asked: ClassNeeds,
    /// The labels of workers and tasks, if there are any.
    pub(super) suits: Option<LabelCompatibility>,
    servers: u16,
    writes_ahead: bool,
    classes: u8,
    /// The error of stated sizes, in percent.
    size_error: u8,
    room: Capacity,
    quota: u8,
    /// The largest quota that the switch accepts.
    quota_max: u8,
    /// Whether depths are found at run time.
    pub(super) is_adaptive: bool,
    clients: u16,
    pub(super) feed: Feed,
    /// The costs of the scheduler, if it is a server's program.
    pub(super) software: Option<Software>,
    /// The layout of the servers of many cores, if the workers are their lanes.
    pub(super) of_cores: Option<CoresLayout>,
    retry_for: Nanos,
    seed: u64,
    replication: u32,
}

/// The properties of each class's tasks.
#[derive(Clone, Debug)]
pub(super) struct ClassNeeds {
    pub(super) slice: Vec<usize>,
    /// How many bytes a large task has.
    pub(super) bytes: Vec<u16>,
    /// The switch's class of a task, if the workload gives priorities.
    pub(super) priority: Vec<Option<u8>>,
    /// For how long a task is worth beginning, from when it is due.
    pub(super) budget: Vec<Option<Nanos>>,
}

impl ClassNeeds {
    /// The properties in a pool, which is one slice.
    pub(super) fn of_pool(classes: &[Class]) -> Self {
        let bytes = classes.iter().map(|class| class.bytes).collect();
        let budget = classes.iter().map(|class| class.budget).collect();
        Self { slice: vec![0; classes.len()], bytes, priority: vec![None; classes.len()], budget }
    }
}

/// The mean service of a slice's tasks.
fn mean_service_ns<'c>(classes: impl Iterator<Item = &'c Class> + Clone) -> f64 {
    let share: f64 = classes.clone().map(|class| class.share).sum();
    classes.map(|class| class.share * class.service.mean_ns()).sum::<f64>() / share
}

#[derive(Debug)]
struct SliceLayout {
    plan: SlicePlan,
    first_worker: u32,
    workers: u32,
}

impl RackSetup {
    pub(super) fn new(point: &Point, choice: &Choice, replication: u32) -> Self {
        let Testbed { clients, retries, servers, .. } = point.testbed;
        // Workers that are pushed tasks have no tokens, and register with one task.
        let quota = choice.traits().quota.max(1);
        let (classes, mut first_worker) = (&point.workload.classes, 0);
        let room = Capacity::of(&point.testbed, choice);
        let slice = |(slice, workers): (usize, u32)| {
            let here = classes.iter().filter(|class| point.slice_of(class) == slice);
            let (name, limit) = (names::slice(slice), room.waiting(workers));
            let service = Nanos(mean_service_ns(here.clone()) as u64);
            let plan = point.testbed.slice_plan(name, here, choice.traits().classes, limit);
            let plan = SlicePlan { target: choice.traits().target, service: Some(service), ..plan };
            first_worker += workers;
            SliceLayout { plan, first_worker: first_worker - workers, workers }
        };
        let slices = point.workers_by_slice().into_iter().enumerate().map(slice).collect();
        // If workers differ, classes go by what tasks need.
        let urgencies = if choice.traits().kinds > 1 { 1 } else { choice.traits().classes };
        let asked = ClassNeeds {
            slice: classes.iter().map(|class| point.slice_of(class)).collect(),
            bytes: classes.iter().map(|class| class.bytes).collect(),
            priority: classes.iter().map(|class| priority(class, urgencies)).collect(),
            budget: classes.iter().map(|class| class.budget).collect(),
        };
        Self {
            slices,
            asked,
            suits: point.suits().unwrap_or_default(),
            servers: servers.count,
            writes_ahead: choice.traits().writes_ahead,
            classes: choice.traits().classes,
            size_error: choice.traits().size_error,
            room,
            quota,
            quota_max: choice.quota_max(),
            of_cores: None,
            is_adaptive: choice.traits().adaptive.is_some_and(|asked| !asked.advises),
            clients,
            feed: choice.traits().feed,
            software: choice.traits().software,
            retry_for: retries.deadline,
            seed: point.seed,
            replication,
        }
    }

    /// This layout with workers that are lanes of servers of many cores.
    pub(super) fn with_cores(self, of_cores: Option<CoresLayout>) -> Self {
        match of_cores {
            None => self,
            Some(_) => Self { quota: QUOTA_MAX, quota_max: QUOTA_MAX, of_cores, ..self },
        }
    }

    pub(super) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// The slice in which a worker begins.
    pub(super) fn slice_of(&self, worker: u32) -> SliceId {
        let begins = |slice: &SliceLayout| slice.first_worker <= worker;
        SliceId(self.slices.iter().rposition(begins).unwrap_or(0) as u16)
    }

    /// Whether each task that a worker gets answers a poll.
    pub(super) const fn is_polled(&self) -> bool {
        matches!(self.feed, Feed::Polls { .. })
    }

    pub(super) fn workers(&self) -> u32 {
        self.slices.iter().map(|slice| slice.workers).sum()
    }

    pub(super) const fn clients(&self) -> u16 {
        self.clients
    }

    /// How many servers tasks are written ahead to.
    pub(super) const fn servers(&self) -> u16 {
        if self.writes_ahead { self.servers } else { 0 }
    }

    /// The sizes that clients state.
    pub(super) fn sizes(&self) -> Option<Guesses> {
        (self.classes > 1).then(|| Guesses::new("stated sizes", self.size_error, self.seed, self.replication))
    }

    /// A stream of randomness of this replication.
    pub(super) fn dice(&self, name: &str) -> Dice {
        Dice::named(self.seed, name, self.replication)
    }

    /// The sizes of the switch.
    pub(super) fn config(&self) -> Config {
        let types = self.slices.iter().flat_map(|slice| &slice.plan.types).map(|kind| kind.0 + 1).max();
        Config {
            epoch: Epoch(1),
            term: Term(0),
            workers: self.workers() as u16,
            clients: self.clients,
            slices: self.slices.len() as u16,
            types: types.unwrap_or(1),
            tasks_per_slice: self.slots(),
            // Stale tokens of workers that moved may take as much room as the live ones until they are
            // swept.
            tokens_per_slice: token_cells(self.workers(), 2 * u32::from(self.quota_max)),
            replay_cells: self.replay_cells(),
            servers: self.servers,
            counters_start: START,
            polls_ahead: 0,
            seed: self.dice("switch").word(),
        }
    }

    /// What the controller is told.
    pub(super) fn of_controller(&self) -> Plan {
        let slices = self.slices.iter().map(|slice| slice.plan.clone()).collect();
        Plan {
            max_wait: PACKET_LIFETIME.times(2),
            retry_after: RETRY_AFTER,
            retry_for: self.retry_for,
            packet_lifetime: PACKET_LIFETIME,
            counters_start: START,
            rdma: RdmaPlan { first_bytes: self.first_bytes(), tiny_rings: true, ..RdmaPlan::default() },
            ..control_plan(LEAVES.endpoint(), slices, self.suits.as_ref())
        }
    }

    /// The registration request of a worker, which serves all types, so that it may be lent.
    pub(super) fn worker_hello(&self, worker: u32, server: String) -> WorkerHello {
        WorkerHello {
            name: names::worker(worker as usize),
            life: u64::from(worker) + 1,
            at: WORKERS.at(worker).endpoint(),
            slice: names::slice(self.slice_of(worker).0.into()),
            types: self.slices.iter().flat_map(|slice| &slice.plan.types).copied().collect(),
            labels: self.labels_of(worker),
            quota: self.quota,
            capacity: 0,
            recent: sluice_control::RecentWork::default(),
            refused_late: 0,
            server,
            rejoins: 0,
            workers: 0,
            held: None,
        }
    }

    fn labels_of(&self, worker: u32) -> Vec<String> {
        let Some(suits) = &self.suits else { return Vec::new() };
        suits.names.of_bits(suits.has[worker as usize])
    }

    /// The registration request of a client.
    pub(super) fn client_hello(&self, client: u16) -> ClientHello {
        ClientHello {
            name: names::client(client.into()),
            incarnation: self.incarnation(client),
            at: CLIENTS.at(client.into()).endpoint(),
            floor: START,
            held: None,
        }
    }

    /// The ring that a server keeps for a slice: slots for all tasks that may wait in each class, as long
    /// as the controller needs them, in whole words.
    pub(super) fn ring(&self) -> RingRow {
        let slots = self.slots() * u32::from(self.classes);
        let slot_bytes = (SLOT_HEAD_BYTES as u32 + self.first_bytes()).next_multiple_of(8);
        RingRow { rkey: Rkey(1), address: 0, slots, slot_bytes }
    }

    /// The longest task that may be written ahead; a task that fits its queue entry never is.
    fn first_bytes(&self) -> u32 {
        let largest = self.asked.bytes.iter().copied().max().unwrap_or(0);
        u32::from(largest).max(INLINE_BYTES as u32 + 1)
    }

    /// How many tasks of each class of a slice the switch has room for.
    fn slots(&self) -> u32 {
        self.room.cells(self.slices.iter().map(|slice| slice.workers))
    }

    fn replay_cells(&self) -> u32 {
        self.room.replay_cells(self.slices.iter().map(|slice| slice.workers), self.clients)
    }

    pub(super) fn incarnation(&self, client: u16) -> Incarnation {
        Incarnation(self.dice(&format!("client {client}")).word())
    }
}

/// The switch's class of tasks of a priority; the last class also holds all later priorities.
fn priority(class: &Class, classes: u8) -> Option<u8> {
    class.priority.filter(|_| classes > 1).map(|priority| priority.min(classes - 1))
}

/// The clients' settings. Without faults no task is ever tried again, so no timer is needed.
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

/// The workers' settings. Without faults a worker never has to probe, and no task comes twice.
pub(super) fn worker_settings(testbed: &Testbed, choice: &Choice, grant: &WorkerGrant) -> WorkerSettings {
    let early = choice.traits().early.map(|_| EarlySettings::default());
    let patience = choice.traits().patience;
    let plain = WorkerSettings { transit: grant.transit, early, patience, ..WorkerSettings::default() };
    if !testbed.has_faults() {
        return WorkerSettings { first_rtt: NEVER, repeats: false, ..plain };
    }
    WorkerSettings { retry_horizon: grant.retry_horizon, ..plain }
}

/// The workers' settings below spines, where tasks and their retries end soon.
pub(super) fn settings_below_spines(testbed: &Testbed) -> WorkerSettings {
    let transit = PACKET_LIFETIME.times(PACKETS);
    if !testbed.has_faults() {
        return WorkerSettings { first_rtt: NEVER, repeats: false, transit, ..WorkerSettings::default() };
    }
    let (plain, deadline) = (WorkerSettings::default(), testbed.retries.deadline);
    WorkerSettings {
        transit,
        retry_horizon: deadline + MAX_WAIT + transit,
        probe_longest: plain.probe_longest.min(Nanos(deadline.0 / PROBES_A_DEADLINE)),
        probe_max_busy: plain.probe_max_busy.min(Nanos(deadline.0 / PROBES_A_DEADLINE)),
        ..plain
    }
}
