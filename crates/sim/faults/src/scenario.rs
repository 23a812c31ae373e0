//! A seed's scenario: the size of the rack, the rates of the network, and which failures happen when.

use std::ops::Range;

use sluice_switch::registry::Choice;
use sluice_wire::sizes::token_cells;
use sluice_wire::tables::Feed;
use sluice_wire::{Nanos, TaskType};

use super::cores::CoresScenario;
use super::early::EarlyScenario;
use super::hosts::Host;
use super::labels::DrawnLabels;
use super::limits::{AMPLE, FAULTS_END, TYPES};
use super::long_times::LongTimes;
use super::network::Rates;
use super::partitions::End;

/// Workers of one core that share a server's memory.
const WORKERS_PER_SERVER: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessFailure {
    /// The process dies, and a new life of it starts after a while.
    WorkerCrash { worker: usize, back_after: Nanos },
    /// The serving thread stands still, and then goes on; the lease is renewed meanwhile.
    WorkerStall { worker: usize, lasts: Nanos },
    /// The serving threads of all workers stand still together, and so do the queues.
    Outage { lasts: Nanos },
    /// The process stands still with all its threads, also the one that renews its lease.
    WorkerFreeze { worker: usize, lasts: Nanos },
    /// No packet reaches the process or leaves it for a while; the process goes on.
    WorkerCut { worker: usize, lasts: Nanos },
    /// The process finishes its tasks and leaves; a new life of it starts after a while.
    WorkerLeave { worker: usize, back_after: Nanos },
    /// The controller moves the worker to another slice.
    SliceMove { worker: usize, slice: usize },
    /// The switch loses its memory.
    SwitchRestart { down_for: Nanos },
    /// The switch takes no new tasks, ends once it is empty, and is back after a while in a new epoch.
    SwitchReplaced { back_after: Nanos },
    /// The switch and the controller in its process die together.
    ProcessRestart { down_for: Nanos },
    /// The client forgets everything and starts anew.
    ClientRestart { client: usize },
    /// The client stands still, and then goes on.
    ClientFreeze { client: usize, lasts: Nanos },
    /// No packet reaches the client or leaves it for a while; the client goes on.
    ClientCut { client: usize, lasts: Nanos },
    /// From its next renewal on the worker has another quota.
    QuotaChange { worker: usize, quota: u8 },
    /// The controller maps a task type to another slice.
    TypeMove { task_type: u16, slice: usize },
    /// The controller stands still.
    ControllerStall { lasts: Nanos },
    /// The controller cannot reach the switch; both go on.
    ControllerCut { lasts: Nanos },
    /// The controller forgets everything and reads the tables back from the switch.
    ControllerRestart { down_for: Nanos },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrayFailure {
    /// No packet gets from one end to the other; the opposite direction works.
    OneWay { from: End, to: End, lasts: Nanos },
    /// The switch's thread stands still. Its memory stays, and packets that arrive meanwhile wait.
    SwitchStall { lasts: Nanos },
    /// The process has another address from now on, in the same life.
    NewAddress(Host),
    /// The client says that it leaves, with tasks outstanding; a new life of it starts at once.
    ClientLeave(usize),
    /// The worker says that it leaves, and dies before it has finished its tasks.
    WorkerQuits { worker: usize, gone_after: Nanos, back_after: Nanos },
    /// The worker of `WorkerQuits` dies.
    WorkerGone { worker: usize, back_after: Nanos },
}

/// The settings of one run, all drawn from its seed.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// The switch's program.
    pub(super) program: Choice,
    pub(super) workers: usize,
    /// The servers of many cores whose lanes the workers are; `None` if workers have one core.
    pub(super) cores: Option<CoresScenario>,
    pub(super) clients: usize,
    pub(super) slices: usize,
    pub(super) quotas: Vec<u8>,
    /// The longest service time; the shortest is a constant.
    pub(super) service_max: Nanos,
    /// The mean gap between a client's tasks while faults last. The rate may be more than the workers can
    /// serve.
    pub(super) gap: Nanos,
    /// Whether the first client sends so many times as often while faults last, in a rack with a target.
    pub(super) greed: u64,
    /// How many tasks may wait in a slice; `None`: as many as the workers' reports allow for.
    pub(super) limit: Option<u32>,
    /// How many tasks each client may have outstanding; with few, their numbers soon share a cell.
    pub(super) replay_cells: u32,
    /// How many of a thousand tasks a client never retries.
    pub(super) no_retry: u64,
    /// How long tasks may be tried, as the controller says; some tasks have a later deadline.
    pub(super) retry_for: Nanos,
    /// How many of a thousand large tasks the switch's slab has no room for.
    pub(super) no_room: u64,
    /// How many late tasks a worker may hold.
    pub(super) held_max: usize,
    /// How many replies a worker keeps for repeats.
    pub(super) replies_max: usize,
    /// Which worker serves which task, if the program tells kinds of workers apart.
    pub(super) worker_labels: DrawnLabels,
    /// The types that each worker serves: all, or those of its own slice.
    pub(super) serves: Vec<Vec<TaskType>>,
    /// Rows for workers and clients in the switch, and tokens that fit a slice's ring.
    pub(super) worker_rows: u16,
    pub(super) client_rows: u16,
    pub(super) token_cells: u32,
    /// How long a packet takes to recirculate in the switch: longer if many packets do.
    pub(super) round: Nanos,
    /// The settings of early tokens, if workers send any.
    pub(super) early: Option<EarlyScenario>,
    /// Whether waiting tasks are written ahead; otherwise the switch's driver keeps their bytes.
    pub(super) writes_ahead: bool,
    /// Slots of each ring; with few, the slots of waiting tasks are written over.
    pub(super) ring_slots: u32,
    /// The most servers that a task is written to; zero: all.
    pub(super) copies: u16,
    pub(super) rates: Vec<Rates>,
    pub(super) long: LongTimes,
    /// Whether nothing fails, and processes are replaced as planned: then no task may end unknown.
    pub(super) is_planned: bool,
    /// From this time on the rack must have recovered: every task submitted later gets a reply. With standbys
    /// it is later by the lease of a leader that is gone.
    pub(super) settled: Nanos,
    pub(super) process_failures: Vec<(Nanos, ProcessFailure)>,
    pub(super) gray_failures: Vec<(Nanos, GrayFailure)>,
}

impl Scenario {
    /// Whether the switch keeps no bytes of waiting tasks: servers or clients have them.
    pub(super) fn keeps_no_bytes(&self) -> bool {
        self.writes_ahead || self.program.traits().fetches
    }

    /// Changes a worker's quota from its next renewal on, if hosts choose depths.
    pub(super) fn change_quota(&mut self, worker: usize, quota: u8) {
        if self.program.traits().hosts_choose_depth && self.cores.is_none() {
            self.quotas[worker] = quota;
        }
    }

    /// Whether some worker cannot serve every slice.
    pub(super) fn has_narrow_workers(&self) -> bool {
        self.serves.iter().any(|types| types.len() < usize::from(TYPES))
    }

    /// Whether workers have room for all tasks that arrive. A worker that is pushed more than it may hold
    /// drops the task, and the task's client tries again.
    pub(super) fn has_room_for_what_is_pushed(&self) -> bool {
        !matches!(self.program.traits().feed, Feed::Pushed { .. }) || self.held_max >= AMPLE
    }

    /// How many workers share one server's memory.
    pub(super) fn workers_per_server(&self) -> usize {
        self.cores.map_or(WORKERS_PER_SERVER, |cores| cores.lanes_of_server(self.slices))
    }

    /// The workers in the process of this worker: itself, or all lanes of its server.
    pub(super) fn process_of(&self, worker: usize) -> Range<usize> {
        let Some(cores) = self.cores else { return worker..worker + 1 };
        let lanes = cores.lanes_of_server(self.slices);
        let first = worker - worker % lanes;
        first..(first + lanes).min(self.workers)
    }

    /// The capacity that a worker reports, in tasks per second. The recirculation of its polls and tokens
    /// counts. Otherwise so many tasks would wait that clients send all of them again, and again.
    pub(super) fn capacity(&self) -> u32 {
        let of_core = (2_000_000_000 / self.twice_a_task().0) as u32;
        self.cores.map_or(of_core, |of| of_core * of.cores as u32 / of.lanes as u32)
    }

    /// The mean gap between a client's tasks now; after the faults, half of what the workers can serve.
    pub(super) fn gap_at(&self, now: Nanos) -> Nanos {
        // If not every worker serves every task, one worker may have to serve the whole load of a slice.
        let cores = self.cores.map_or(self.workers, |of| of.servers * of.cores);
        let shared = if self.program.traits().kinds > 1 { 1 } else { (cores / self.slices).max(1) };
        let workers_per_slice = shared as u64;
        let bearable = Nanos(self.clients as u64 * self.twice_a_task().0 / workers_per_slice);
        if now < FAULTS_END { self.gap } else { self.gap.max(bearable) }
    }

    /// Twice the time of a worker that a task takes. The mean service is half of the longest. Before it a
    /// worker with one token waits while that recirculates.
    fn twice_a_task(&self) -> Nanos {
        self.service_max + self.round.times(self.rounds_to_a_task()).times(2)
    }

    /// How often a poll or a token may recirculate before it meets a task of a queue in which many wait. A
    /// poll may have to look at every queue. A token of a labelled worker looks first for a task whose wish
    /// it meets, or for the class that has its turn, and once more for any that it serves.
    fn rounds_to_a_task(&self) -> u64 {
        let traits = self.program.traits();
        match traits.feed {
            Feed::Tokens { .. } => u64::from(traits.kinds > 1),
            _ => u64::from(traits.queues_per_poll) - 1,
        }
    }
}

/// The fewest cells that hold the tokens of so many workers.
pub(super) fn just_room_for(program: &Choice, workers: usize) -> u32 {
    token_cells(workers as u32, program.quota_max().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RackKind;
    use crate::limits::FAULTS_END;

    const ROUND: Nanos = Nanos::from_micros(100);
    const SERVICE_MAX: Nanos = Nanos::from_micros(20);

    /// One client and one worker, in which packets recirculate slowly.
    fn slow_rounds(policy: &str) -> Scenario {
        let kind = RackKind::of(Choice::parse(policy).expect("a policy"));
        let drawn = Scenario::of(&kind, 0);
        let (workers, clients, slices) = (1, 1, 1);
        let (round, service_max, gap) = (ROUND, SERVICE_MAX, Nanos(1));
        Scenario { workers, clients, slices, cores: None, round, service_max, gap, ..drawn }
    }

    #[test]
    fn load_and_capacity_leave_a_worker_the_time_in_which_its_poll_or_token_recirculates() {
        for (policy, rounds) in [
            ("rain:2", 0),
            ("r2p2:2", 0),
            ("server:1", 0),
            ("rain:2,classes=4", 0),
            ("rain:2,labels", 1),
            ("rain:2,labels,wait=4", 1),
            ("draconis:poll=20us", 0),
            ("draconis:poll=20us,classes=4", 3),
        ] {
            let a_task = Nanos(SERVICE_MAX.0 / 2) + ROUND.times(rounds);
            let scenario = slow_rounds(policy);
            assert_eq!(
                scenario.gap_at(FAULTS_END),
                a_task.times(2),
                "{policy}: half of what a worker can do"
            );
            assert_eq!(u64::from(scenario.capacity()), 1_000_000_000 / a_task.0, "{policy}");
        }
    }
}
