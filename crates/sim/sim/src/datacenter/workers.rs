//! The workers of all racks, each with its core. What happens to them is in `side`.

mod side;

use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_wire::Nanos;
use sluice_wire::tables::Feed;

use super::control::WorkerSeat;
use super::places::WORKERS;
use crate::events::TimerId;
use crate::nodes::{Core, Node};
use crate::testbed::{Testbed, WorkerTimes};

const NEVER: Nanos = Nanos(u64::MAX);
/// The longest that a packet is under way.
const PACKET_LIFETIME: Nanos = Nanos::from_millis(1);
/// A task comes in a SUBMIT and a DISPATCH, and where there is a spine in another DISPATCH.
const PACKETS: u64 = 3;
/// A worker whose tokens were lost asks so often before a task that waits for it ends.
const PROBES_A_DEADLINE: u64 = 20;
/// As long as a task may wait at most.
const MAX_WAIT: Nanos = Nanos::from_millis(2);

/// All workers, a place each.
#[derive(Debug)]
pub(super) struct DatacenterWorkers {
    /// The timer of the first; the others' follow.
    timers: TimerId,
    /// What a packet costs a core.
    costs: WorkerTimes,
    pub(super) all: Vec<Node<Worker>>,
    pub(super) cores: Vec<Core>,
    pub(super) seats: Vec<WorkerSeat>,
    /// Tasks at each: those in service, and those before it.
    pub(super) held: Vec<u32>,
    /// Which life of its process each leads.
    pub(super) lives: Vec<u32>,
    pub(super) settings: WorkerSettings,
    /// Whether their tokens say what stands before them.
    are_ranked: bool,
    actions: Vec<Action>,
}

impl DatacenterWorkers {
    /// Workers that are not registered yet.
    pub(super) fn new(timers: TimerId, seats: &[WorkerSeat], feed: Feed, testbed: &Testbed) -> Self {
        let count = seats.len();
        let node = |worker| Node::new(Worker::new(), WORKERS.at(worker as u32));
        Self {
            timers,
            costs: testbed.worker,
            all: (0..count).map(node).collect(),
            cores: (0..count).map(|_| Core::default()).collect(),
            seats: seats.to_vec(),
            held: vec![0; count],
            lives: vec![0; count],
            settings: settings(testbed),
            are_ranked: matches!(feed, Feed::Tokens { ranked: true }),
            actions: Vec::new(),
        }
    }

    /// The timer at the end of this worker's service.
    #[inline]
    const fn timer(&self, worker: usize) -> TimerId {
        self.timers.of_place(worker as u32)
    }
}

/// Without faults a worker never has to ask how its counters stand, and no task comes twice.
fn settings(testbed: &Testbed) -> WorkerSettings {
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
