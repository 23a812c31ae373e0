//! What a seed stands for: how large the rack is, how bad the network, and what fails when.

use std::ops::Range;

use sluice_switch::registry::Choice;
use sluice_wire::sizes::token_cells;
use sluice_wire::tables::Feed;
use sluice_wire::{Nanos, TaskType};

use super::cores::CoresScenario;
use super::early::EarlyScenario;
use super::hosts::Host;
use super::labels::Hands;
use super::limits::{AMPLE, FAULTS_END, TYPES};
use super::long_times::LongTimes;
use super::network::Rates;
use super::partitions::End;

/// Workers of one core that share a server's memory.
const WORKERS_PER_SERVER: usize = 2;

/// Something that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessFailure {
    /// The process is gone, and a new life of it starts after a while.
    WorkerCrash { worker: usize, back_after: Nanos },
    /// The thread that serves stands still, and then goes on as if nothing had been; the lease is renewed.
    WorkerStall { worker: usize, lasts: Nanos },
    /// All workers' serving threads stand still together, and so do the queues.
    Outage { lasts: Nanos },
    /// The process stands still with all its threads: also the one that renews its lease.
    WorkerFreeze { worker: usize, lasts: Nanos },
    /// Nothing comes to the process or from it for a while; it goes on.
    WorkerCut { worker: usize, lasts: Nanos },
    /// The process finishes what it holds and leaves; a new life of it starts after a while.
    WorkerLeave { worker: usize, back_after: Nanos },
    /// The controller moves the worker to another slice.
    SliceMove { worker: usize, slice: usize },
    /// The switch loses its memory.
    SwitchRestart { down_for: Nanos },
    /// The switch and the controller in its process are gone together.
    ProcessRestart { down_for: Nanos },
    /// The client forgets everything and starts anew.
    ClientRestart { client: usize },
    /// The client stands still, and then goes on as if nothing had been.
    ClientFreeze { client: usize, lasts: Nanos },
    /// Nothing comes to the client or from it for a while; it goes on.
    ClientCut { client: usize, lasts: Nanos },
    /// From its next renewal on the worker has another quota.
    QuotaChange { worker: usize, quota: u8 },
    /// The controller maps a task type to another slice.
    TypeMove { task_type: u16, slice: usize },
    /// The controller stands still.
    ControllerStall { lasts: Nanos },
    /// The controller cannot reach the switch, which goes on.
    ControllerCut { lasts: Nanos },
    /// The controller forgets everything and reads it back from the switch.
    ControllerRestart { down_for: Nanos },
}

/// Something else that fails (`gray_failures`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrayFailure {
    /// Nothing gets from one end to the other; what goes back does.
    OneWay { from: End, to: End, lasts: Nanos },
    /// The switch's thread stands still. Its memory stays, and what comes meanwhile waits.
    SwitchStall { lasts: Nanos },
    /// The process has another address from now on, in the same life.
    NewAddress(Host),
    /// The client says that it leaves, with tasks outstanding; a new life of it starts at once.
    ClientLeave(usize),
    /// The worker says that it leaves, and is gone before it has ended.
    WorkerQuits { worker: usize, gone_after: Nanos, back_after: Nanos },
    /// The second half of that.
    WorkerGone { worker: usize, back_after: Nanos },
}

/// One run's settings, all drawn from its seed.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// What the switch runs.
    pub(super) program: Choice,
    pub(super) workers: usize,
    /// The servers of many cores whose lanes these workers are, if they are none of one core.
    pub(super) cores: Option<CoresScenario>,
    pub(super) clients: usize,
    pub(super) slices: usize,
    pub(super) quotas: Vec<u8>,
    /// Service takes from a floor up to this.
    pub(super) service_max: Nanos,
    /// The mean gap between a client's tasks while faults last; it may be more than the workers can bear.
    pub(super) gap: Nanos,
    /// Tasks that may wait in a slice; `None`: as many as the workers' reports allow for.
    pub(super) limit: Option<u32>,
    /// Tasks that each client may have outstanding: with few, their numbers soon share a cell.
    pub(super) replay_cells: u32,
    /// Of a thousand tasks, those that a client never retries.
    pub(super) no_retry: u64,
    /// How long tasks may be tried, as the controller says; some have longer until their deadline.
    pub(super) retry_for: Nanos,
    /// Of a thousand large tasks, those that the switch's slab has no room for.
    pub(super) no_room: u64,
    /// How many late tasks bring a worker to its bound.
    pub(super) held_max: usize,
    /// How many replies a worker keeps for repeats.
    pub(super) replies_max: usize,
    /// Who serves whom, where the program tells kinds of workers apart.
    pub(super) hands: Hands,
    /// The types that each worker serves: of all, or of its own slice's only.
    pub(super) serves: Vec<Vec<TaskType>>,
    /// Rows for workers and clients in the switch, and tokens that fit a slice's ring.
    pub(super) worker_rows: u16,
    pub(super) client_rows: u16,
    pub(super) token_cells: u32,
    /// How long a packet takes to go round in the switch: longer where much does.
    pub(super) round: Nanos,
    /// Whether workers send early tokens.
    pub(super) early: Option<EarlyScenario>,
    /// Whether tasks that wait are written ahead, or the switch's driver keeps their bytes.
    pub(super) writes_ahead: bool,
    /// Slots of each ring: with few, tasks that wait are written over.
    pub(super) ring_slots: u32,
    /// Servers that a task is written to at most; zero: all.
    pub(super) copies: u16,
    pub(super) rates: Vec<Rates>,
    pub(super) long: LongTimes,
    pub(super) process_failures: Vec<(Nanos, ProcessFailure)>,
    pub(super) gray_failures: Vec<(Nanos, GrayFailure)>,
}

impl Scenario {
    /// Whether the bytes of tasks that wait are not the switch's to keep: servers have them, or clients.
    pub(super) fn keeps_no_bytes(&self) -> bool {
        self.writes_ahead || self.program.fetches()
    }

    /// Whether some worker cannot serve every slice.
    pub(super) fn has_narrow_workers(&self) -> bool {
        self.serves.iter().any(|types| types.len() < usize::from(TYPES))
    }

    /// Whether workers have room for all that comes: one that is pushed more than it may hold drops it, and
    /// its client tries again.
    pub(super) fn has_room_for_what_is_pushed(&self) -> bool {
        !matches!(self.program.feed(), Feed::Pushed { .. }) || self.held_max >= AMPLE
    }

    /// Workers whose memory is one server's.
    pub(super) fn workers_per_server(&self) -> usize {
        self.cores.map_or(WORKERS_PER_SERVER, |cores| cores.lanes_of_server(self.slices))
    }

    /// Workers that are one process with this one: itself, or all lanes of its server.
    pub(super) fn process_of(&self, worker: usize) -> Range<usize> {
        let Some(cores) = self.cores else { return worker..worker + 1 };
        let lanes = cores.lanes_of_server(self.slices);
        let first = worker - worker % lanes;
        first..(first + lanes).min(self.workers)
    }

    /// What a worker says it can bear: tasks per second. The time that its polls go round is counted: of what
    /// it cannot bear so many would wait that all are sent again meanwhile, and again.
    pub(super) fn capacity(&self) -> u32 {
        let of_core = (2_000_000_000 / self.twice_a_task().0) as u32;
        self.cores.map_or(of_core, |of| of_core * of.cores as u32 / of.lanes as u32)
    }

    /// The mean gap between a client's tasks now: once faults are over, half of what the workers can bear.
    pub(super) fn gap_at(&self, now: Nanos) -> Nanos {
        // Where not all serve all, one worker may have to bear it alone.
        let cores = self.cores.map_or(self.workers, |of| of.servers * of.cores);
        let shared = if self.program.kinds() > 1 { 1 } else { (cores / self.slices).max(1) };
        let workers_per_slice = shared as u64;
        let bearable = Nanos(self.clients as u64 * self.twice_a_task().0 / workers_per_slice);
        if now < FAULTS_END { self.gap } else { self.gap.max(bearable) }
    }

    /// Twice what a task takes of a worker's time. The mean service is half of the longest, and the worker
    /// waits before it while its poll goes round to the last queue.
    fn twice_a_task(&self) -> Nanos {
        let rounds = self.round.times(u64::from(self.program.queues_per_poll()) - 1);
        self.service_max + rounds.times(2)
    }
}

/// The fewest cells that hold the tokens of so many workers.
pub(super) fn just_room_for(program: &Choice, workers: usize) -> u32 {
    token_cells(workers as u32, program.quota_max().into())
}
