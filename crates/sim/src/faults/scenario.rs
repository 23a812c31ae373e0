//! What a seed stands for: how large the rack is, how bad the network, and what fails when.

use sluice_switch::registry::Choice;
use sluice_wire::sizes::token_cells;
use sluice_wire::tables::Feed;
use sluice_wire::{Nanos, TaskType};

use super::crossings::cross;
use super::early::EarlyScenario;
use super::labels::Hands;
use super::network::{REPLIES, Rates};
use super::troubles::Trouble;
use crate::dice::Dice;

/// When faults end.
pub(super) const FAULTS_END: Nanos = Nanos::from_millis(30);
/// From here on the rack must have found itself again: every task submitted now is replied to.
pub(super) const SETTLED: Nanos = Nanos::from_millis(50);
/// When clients submit no more.
pub(super) const SUBMIT_END: Nanos = Nanos::from_millis(58);
/// When the last tasks have ended and every worker has had its longest probe interval: all quotas are parked.
pub(super) const REST: Nanos = Nanos::from_millis(63);
/// When the run is over and the books are closed: past every deadline.
pub(super) const END: Nanos = Nanos::from_millis(110);
/// How long a task may take before its client calls it unknown.
pub(super) const DEADLINE: Nanos = Nanos::from_millis(40);
/// The longest that the network holds a packet.
pub(super) const PACKET_LIFETIME: Nanos = Nanos::from_millis(2);
/// How long a registration lives.
pub(super) const LEASE: Nanos = Nanos::from_millis(4);
/// How often it is renewed.
pub(super) const RENEW_EVERY: Nanos = Nanos::from_millis(1);
/// Types that the switch can map; tasks are of the first ones, one for each slice.
pub(super) const TYPES: u16 = 4;
/// Slices that the switch has room for.
pub(super) const SLICES: usize = 2;
/// Room of a worker for more late tasks than there are.
const AMPLE: usize = 64;
/// The longest silence of a worker whose tokens are all known to be parked.
pub(super) const PROBE_LONGEST: Nanos = Nanos::from_millis(2);

/// Something that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disaster {
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

/// One run's settings, all drawn from its seed.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// What the switch runs.
    pub(super) program: Choice,
    pub(super) workers: usize,
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
    pub(super) disasters: Vec<(Nanos, Disaster)>,
    pub(super) troubles: Vec<(Nanos, Trouble)>,
}

/// The stream from which the rings are drawn, so that they change nothing else of a seed.
const RINGS: u64 = 5;
/// The stream that says in which seeds workers forget, so that the others stay what they are.
const FORGETTING: u64 = 6;

impl Scenario {
    /// Whether the bytes of tasks that wait are not the switch's to keep: servers have them, or clients.
    pub(super) fn keeps_no_bytes(&self) -> bool {
        self.writes_ahead || self.program.fetches()
    }

    pub(super) fn of(program: &Choice, seed: u64) -> Self {
        let dice = &mut Dice::new(seed, 1);
        let rings = &mut Dice::new(seed, RINGS);
        let workers = dice.between(1, 6) as usize;
        let slices = dice.between(1, 2.min(workers as u64)) as usize;
        let clients = dice.between(1, 2) as usize;
        let quotas: Vec<u8> = (0..workers).map(|_| dice.pick(&[1, 1, 2, 2, 3, 8])).collect();
        let mut scenario = Self {
            program: *program,
            workers,
            clients,
            slices,
            quotas: if program.hosts_choose_depth() { quotas } else { vec![program.quota().max(1); workers] },
            service_max: Nanos::from_micros(dice.pick(&[20, 60, 200])),
            gap: Nanos::from_micros(dice.between(150, 500)),
            limit: dice.pick(&[Some(1), Some(4), Some(16), None]),
            replay_cells: dice.pick(&[4, 64]) as u32,
            no_retry: dice.pick(&[0, 0, 100]),
            retry_for: if dice.chance(100) { Nanos::from_millis(dice.pick(&[3, 8])) } else { DEADLINE },
            no_room: dice.pick(&[0, 0, 50]),
            held_max: dice.pick(&[AMPLE, AMPLE, 3]),
            replies_max: dice.pick(&[4_096, 4_096, 16, 2]),
            hands: Hands::default(),
            serves: draw_served(&mut Dice::named(seed, "types", 0), workers, slices),
            worker_rows: dice.pick(&[16, workers as u16]),
            client_rows: dice.pick(&[8, clients as u16]),
            token_cells: dice.pick(&[128, just_room_for(program, workers)]),
            round: draw_round(&mut Dice::named(seed, "rounds", 0)),
            early: EarlyScenario::of(seed).filter(|_| program.hosts_choose_depth()),
            writes_ahead: rings.chance(700) && program.writes_ahead(),
            ring_slots: rings.pick(&[1, 2, 8, 64]) as u32 * u32::from(program.classes()),
            copies: rings.pick(&[0, 0, 1]) as u16,
            rates: Rates::draw(dice),
            disasters: Vec::new(),
            troubles: Vec::new(),
        };
        scenario.disasters = scenario.draw_disasters(dice);
        let forgetting = &mut Dice::new(seed, FORGETTING);
        if forgetting.chance(6) {
            scenario.forget();
            let outage = |lasts| Disaster::Outage { lasts };
            scenario.disasters = twice_long(forgetting, outage);
        }
        let troubles = &mut Dice::named(seed, "troubles", 0);
        scenario.troubles = Trouble::draw(troubles, &scenario);
        if troubles.chance(6) {
            scenario.forget();
            let stall = |lasts| Trouble::SwitchStall { lasts };
            (scenario.disasters, scenario.troubles) = (Vec::new(), twice_long(troubles, stall));
        }
        if program.kinds() > 1 {
            scenario.hands = Hands::draw(&mut Dice::named(seed, "labels", 0), workers);
        }
        cross(&mut Dice::named(seed, "crossings", 0), &mut scenario);
        scenario
    }

    /// Many replies are lost, and twice the only worker, or the switch, is to stand still for longer than the
    /// worker remembers a task: a try that waited meanwhile comes to the worker that ran the task and has
    /// forgotten it.
    fn forget(&mut self) {
        (self.workers, self.slices) = (1, 1);
        self.quotas.truncate(1);
        self.retry_for = Nanos::from_millis(3);
        self.rates[REPLIES].lose_many();
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

    /// What a worker says it can bear: tasks per second.
    pub(super) const fn capacity(&self) -> u32 {
        (2_000_000_000 / self.service_max.0) as u32
    }

    /// The mean gap between a client's tasks now: once faults are over, half of what the workers can bear.
    pub(super) fn gap_at(&self, now: Nanos) -> Nanos {
        // Where not all serve all, one worker may have to bear it alone.
        let shared = if self.program.kinds() > 1 { 1 } else { self.workers / self.slices };
        let workers_per_slice = shared as u64;
        // A worker waits while its poll goes round to the last queue.
        let rounds = self.round.times(u64::from(self.program.queues_per_poll()) - 1);
        // The mean service is half of the longest.
        let twice = self.service_max + rounds.times(2);
        let bearable = Nanos(self.clients as u64 * twice.0 / workers_per_slice);
        if now < FAULTS_END { self.gap } else { self.gap.max(bearable) }
    }

    /// Up to five; many come close behind the one before, while that is still being dealt with.
    fn draw_disasters(&self, dice: &mut Dice) -> Vec<(Nanos, Disaster)> {
        let mut at = Nanos(0);
        let mut next = |dice: &mut Dice| {
            let alone = at == Nanos(0) || dice.chance(600);
            let spread = dice.span(Nanos::from_millis(2), Nanos::from_millis(24));
            let behind = at + dice.span(Nanos(0), Nanos::from_micros(300));
            at = if alone { spread } else { behind };
            (at, self.disaster(dice))
        };
        (0..dice.below(6)).map(|_| next(dice)).collect()
    }

    fn disaster(&self, dice: &mut Dice) -> Disaster {
        let short = dice.span(Nanos::from_micros(20), Nanos::from_millis(5));
        let long = dice.span(Nanos::from_micros(50), Nanos::from_millis(8));
        let worker = dice.below(self.workers as u64) as usize;
        let client = dice.below(self.clients as u64) as usize;
        let task_type = dice.below(self.slices as u64) as u16;
        match dice.below(17) {
            0 => Disaster::WorkerCrash { worker, back_after: short },
            1 => Disaster::WorkerStall { worker, lasts: long },
            7 => Disaster::WorkerCut { worker, lasts: long },
            8 => Disaster::ProcessRestart { down_for: short },
            2 => Disaster::WorkerLeave { worker, back_after: short },
            3 => Disaster::SliceMove { worker, slice: (worker + 1) % self.slices },
            4 => Disaster::SwitchRestart { down_for: short },
            5 => Disaster::ClientRestart { client },
            6 => Disaster::WorkerFreeze { worker, lasts: long },
            9 => Disaster::ClientFreeze { client, lasts: long },
            10 => Disaster::ClientCut { client, lasts: long },
            11 => Disaster::QuotaChange { worker, quota: dice.pick(&[1, 2, 5, 8]) },
            12 => Disaster::TypeMove { task_type, slice: (usize::from(task_type) + 1) % self.slices },
            13 => Disaster::ControllerStall { lasts: long },
            14 => Disaster::ControllerCut { lasts: long },
            15 => Disaster::Outage { lasts: long.times(2) },
            _ => Disaster::ControllerRestart { down_for: short },
        }
    }
}

/// Two that last longer than a worker remembers a task that may be tried for three milliseconds.
fn twice_long<T>(dice: &mut Dice, make: impl Fn(Nanos) -> T) -> Vec<(Nanos, T)> {
    let mut lasts = || make(dice.span(Nanos::from_millis(9), Nanos::from_millis(11)));
    vec![(Nanos::from_millis(3), lasts()), (Nanos::from_millis(16), lasts())]
}

/// In half of the seeds half of the workers serve what their own slice is for and nothing else.
fn draw_served(dice: &mut Dice, workers: usize, slices: usize) -> Vec<Vec<TaskType>> {
    let narrow = dice.chance(500);
    let mut of = |worker: usize| {
        let own = TaskType((worker % slices) as u16);
        if narrow && dice.chance(500) { vec![own] } else { (0..TYPES).map(TaskType).collect() }
    };
    (0..workers).map(&mut of).collect()
}

/// The fewest cells that hold the tokens of so many workers.
pub(super) fn just_room_for(program: &Choice, workers: usize) -> u32 {
    token_cells(workers as u32, program.quota_max().into())
}

/// In a quarter of the seeds what goes round stands in a queue first.
fn draw_round(dice: &mut Dice) -> Nanos {
    if dice.chance(750) { Nanos(500) } else { dice.span(Nanos::from_micros(5), Nanos::from_micros(100)) }
}
