//! Draws a seed's scenario.

use sluice_events::dice::Dice;
use sluice_host::worker::QUOTA_MAX;
use sluice_switch::registry::Choice;
use sluice_wire::tables::Feed;
use sluice_wire::{Nanos, TaskType};

use super::cores::CoresScenario;
use super::crossings::cross;
use super::early::EarlyScenario;
use super::hosts::Host;
use super::kind::RackKind;
use super::labels::DrawnLabels;
use super::limits::{AMPLE, DEADLINE, LEASE, REPLIES_AMPLE, SETTLED, TYPES};
use super::long_times::LongTimes;
use super::network::{REPLIES, Rates};
use super::partitions::End;
use super::scenario::{GrayFailure, ProcessFailure, Scenario, just_room_for};

/// The longest time that the switch stands still.
const STALL_MAX: Nanos = Nanos::from_millis(8);

/// The stream of the rings' sizes. It is separate, so that the rings change nothing else of a seed.
const RINGS: u64 = 5;
/// The stream that decides in which seeds workers forget. It is separate, so that the other seeds stay
/// unchanged.
const FORGETTING: u64 = 6;
/// How many of a thousand seeds with servers of many cores let workers forget: a task that one lane forgot,
/// another lane must not run.
const FORGETFUL_SERVERS: u64 = 60;

/// How many of a thousand seeds only have planned replacements.
const PLANNED: u64 = 40;

/// How long after the last fault a rack may take to be in order.
fn settled(kind: &RackKind) -> Nanos {
    match (kind.has_standbys, kind.has_store) {
        (false, _) => SETTLED,
        // A leader that is gone keeps its lease.
        (true, false) => SETTLED + LEASE,
        // The store's lease ends too, and is asked for from time to time.
        (true, true) => SETTLED + LEASE + Nanos(LEASE.0 / 4),
    }
}

/// How many times as often the first client sends: in half of the racks with a target, as often as makes a
/// slice busy.
fn draw_greed(dice: &mut Dice, program: &Choice) -> u64 {
    if program.traits().target.is_some() { dice.pick(&[1, 1, 8, 32]) } else { 1 }
}

impl Scenario {
    pub(super) fn of(kind: &RackKind, seed: u64) -> Self {
        let program = &kind.program;
        let (dice, rings) = (&mut Dice::new(seed, 1), &mut Dice::new(seed, RINGS));
        let workers = dice.between(1, 6) as usize;
        let slices = dice.between(1, 2.min(workers as u64)) as usize;
        let cores = kind.has_cores.then(|| CoresScenario::of(seed));
        let workers = cores.map_or(workers, |cores| cores.lanes_of_all(slices));
        let clients = dice.between(1, 2) as usize;
        let quotas: Vec<u8> = (0..workers).map(|_| dice.pick(&[1, 1, 2, 2, 3, 8])).collect();
        let mut scenario = Self {
            program: *program,
            workers,
            cores,
            clients,
            slices,
            quotas: quotas_of(kind, quotas),
            service_max: Nanos::from_micros(dice.pick(&[20, 60, 200])),
            gap: Nanos::from_micros(dice.between(150, 500)),
            greed: draw_greed(&mut Dice::named(seed, "greedy client", 0), program),
            limit: dice.pick(&[Some(1), Some(4), Some(16), None]),
            replay_cells: dice.pick(&[4, 64]) as u32,
            no_retry: dice.pick(&[0, 0, 100]),
            retry_for: if dice.chance(100) { Nanos::from_millis(dice.pick(&[3, 8])) } else { DEADLINE },
            no_room: dice.pick(&[0, 0, 50]),
            held_max: dice.pick(&[AMPLE, AMPLE, if kind.has_cores { AMPLE } else { 3 }]),
            replies_max: dice.pick(&[REPLIES_AMPLE, REPLIES_AMPLE, 16, 2]),
            worker_labels: DrawnLabels::default(),
            serves: draw_served(&mut Dice::named(seed, "types", 0), kind, workers, slices),
            worker_rows: dice.pick(&[16, workers as u16]),
            client_rows: dice.pick(&[8, clients as u16]),
            token_cells: dice.pick(&[128, just_room_for(program, workers)]),
            round: draw_round(&mut Dice::named(seed, "rounds", 0)),
            early: EarlyScenario::of(seed).filter(|_| program.traits().hosts_choose_depth && !kind.has_cores),
            writes_ahead: rings.chance(700) && program.traits().writes_ahead,
            ring_slots: rings.pick(&[1, 2, 8, 64]) as u32 * u32::from(program.traits().classes),
            copies: rings.pick(&[0, 0, 1]) as u16,
            rates: Rates::draw(dice),
            long: LongTimes::default(),
            is_planned: false,
            settled: settled(kind),
            process_failures: Vec::new(),
            gray_failures: Vec::new(),
        };
        scenario.process_failures = scenario.draw_process_failures(dice);
        let forgetting = &mut Dice::new(seed, FORGETTING);
        let per_mille = if kind.has_cores { FORGETFUL_SERVERS } else { 6 };
        if forgetting.chance(per_mille) {
            scenario.forget();
            let outage = |lasts| ProcessFailure::Outage { lasts };
            scenario.process_failures = twice_long(forgetting, outage);
        }
        // The stream keeps its first name: another name would change all seeds.
        let gray_failures = &mut Dice::named(seed, "troubles", 0);
        scenario.gray_failures = GrayFailure::draw(gray_failures, &scenario);
        if gray_failures.chance(per_mille) {
            scenario.forget();
            let stall = |lasts| GrayFailure::SwitchStall { lasts };
            (scenario.process_failures, scenario.gray_failures) =
                (Vec::new(), twice_long(gray_failures, stall));
        }
        if program.traits().kinds > 1 {
            scenario.worker_labels = scenario.draw_labels(&mut Dice::named(seed, "labels", 0), workers);
        }
        cross(&mut Dice::named(seed, "crossings", 0), &mut scenario);
        scenario.long = LongTimes::draw(&mut Dice::named(seed, "long times", 0));
        scenario.trickle_or_plan(kind, seed);
        scenario
    }

    /// In some seeds nothing else happens than what these draws say.
    fn trickle_or_plan(&mut self, kind: &RackKind, seed: u64) {
        // Other programs promise no order, so they need no slow overload that shows it.
        let is_few = self.cores.is_none() && self.workers <= 2 * self.slices;
        if self.long.trickles && is_few && matches!(self.program.traits().feed, Feed::Tokens { .. }) {
            self.trickle();
        }
        let planned = &mut Dice::named(seed, "planned", 0);
        // While a worker or the switch is replaced, a task may end unknown if only that worker may serve
        // it, if it is soon late, or if it is refused because others wait.
        let traits = self.program.traits();
        let may_wait = !kind.has_budgets && traits.kinds == 1 && traits.target.is_none();
        if self.cores.is_none() && may_wait && planned.chance(PLANNED) {
            self.plan_replacements(planned);
        }
    }

    /// Nothing fails. Workers, the switch and the controller are replaced, often together. Nothing is so
    /// small that it could run out.
    fn plan_replacements(&mut self, dice: &mut Dice) {
        self.is_planned = true;
        (self.no_retry, self.no_room, self.retry_for) = (0, 0, DEADLINE);
        (self.held_max, self.replies_max) = (AMPLE, REPLIES_AMPLE);
        self.rates.fill(Rates::default());
        self.long = LongTimes::default();
        self.gray_failures = Vec::new();
        let count = dice.between(1, 6);
        self.process_failures = spread(count, dice, |dice| {
            let back_after = dice.span(Nanos::from_micros(20), Nanos::from_millis(5));
            match dice.below(4) {
                0 | 1 => ProcessFailure::SwitchReplaced { back_after },
                2 => ProcessFailure::ControllerRestart { down_for: back_after },
                _ => ProcessFailure::WorkerLeave {
                    worker: dice.below(self.workers as u64) as usize,
                    back_after,
                },
            }
        });
    }

    /// A server's lanes have the labels of their server.
    fn draw_labels(&self, dice: &mut Dice, workers: usize) -> DrawnLabels {
        let each = if self.cores.is_some() { self.workers_per_server() } else { 1 };
        DrawnLabels::draw(dice, workers.div_ceil(each)).of_each(each)
    }

    /// Makes workers forget. Many replies are lost, and twice the only worker, or the switch, stands still
    /// for longer than the worker remembers a task. A try that waited meanwhile comes to the worker that
    /// ran the task and has forgotten it.
    fn forget(&mut self) {
        self.slices = 1;
        self.cores = self.cores.map(CoresScenario::alone);
        self.workers = self.cores.map_or(1, |cores| cores.lanes_of_all(1));
        self.quotas.truncate(self.workers);
        self.retry_for = Nanos::from_millis(3);
        self.rates[REPLIES].lose_many();
    }

    /// Tasks come slightly faster than they are served, and wait in queues that are long enough for all
    /// classes. The network loses little, and workers keep replies until they are fetched; otherwise so
    /// many tasks would be most of those that end unknown.
    fn trickle(&mut self) {
        self.service_max = Nanos::from_micros(20);
        self.gap = Nanos(Nanos::from_micros(10).0 * self.clients as u64 / self.workers as u64);
        self.limit = Some(16);
        self.replay_cells = 64;
        self.no_retry = 0;
        self.replies_max = REPLIES_AMPLE;
        self.rates.fill(Rates::default());
    }

    /// Draws up to five process failures.
    fn draw_process_failures(&self, dice: &mut Dice) -> Vec<(Nanos, ProcessFailure)> {
        let count = dice.below(6);
        spread(count, dice, |dice| self.process_failure(dice))
    }

    fn process_failure(&self, dice: &mut Dice) -> ProcessFailure {
        let short = dice.span(Nanos::from_micros(20), Nanos::from_millis(5));
        let long = dice.span(Nanos::from_micros(50), Nanos::from_millis(8));
        let worker = dice.below(self.workers as u64) as usize;
        let client = dice.below(self.clients as u64) as usize;
        let task_type = dice.below(self.slices as u64) as u16;
        match dice.below(17) {
            0 => ProcessFailure::WorkerCrash { worker, back_after: short },
            1 => ProcessFailure::WorkerStall { worker, lasts: long },
            7 => ProcessFailure::WorkerCut { worker, lasts: long },
            8 => ProcessFailure::ProcessRestart { down_for: short },
            2 => ProcessFailure::WorkerLeave { worker, back_after: short },
            3 => ProcessFailure::SliceMove { worker, slice: (worker + 1) % self.slices },
            4 => ProcessFailure::SwitchRestart { down_for: short },
            5 => ProcessFailure::ClientRestart { client },
            6 => ProcessFailure::WorkerFreeze { worker, lasts: long },
            9 => ProcessFailure::ClientFreeze { client, lasts: long },
            10 => ProcessFailure::ClientCut { client, lasts: long },
            11 => ProcessFailure::QuotaChange { worker, quota: dice.pick(&[1, 2, 5, 8]) },
            12 => ProcessFailure::TypeMove { task_type, slice: (usize::from(task_type) + 1) % self.slices },
            13 => ProcessFailure::ControllerStall { lasts: long },
            14 => ProcessFailure::ControllerCut { lasts: long },
            15 => ProcessFailure::Outage { lasts: long.times(2) },
            _ => ProcessFailure::ControllerRestart { down_for: short },
        }
    }
}

/// Draws the times of failures. Many come soon after the one before, while the rack still recovers from
/// that.
fn spread<T>(count: u64, dice: &mut Dice, mut draw: impl FnMut(&mut Dice) -> T) -> Vec<(Nanos, T)> {
    let mut at = Nanos(0);
    let mut next = |_| {
        let alone = at == Nanos(0) || dice.chance(600);
        let spread = dice.span(Nanos::from_millis(2), Nanos::from_millis(24));
        let behind = at + dice.span(Nanos(0), Nanos::from_micros(300));
        at = if alone { spread } else { behind };
        (at, draw(dice))
    };
    (0..count).map(&mut next).collect()
}

/// Draws two failures that last longer than a worker remembers a task, with retries for three milliseconds.
fn twice_long<T>(dice: &mut Dice, make: impl Fn(Nanos) -> T) -> Vec<(Nanos, T)> {
    let mut lasts = || make(dice.span(Nanos::from_millis(9), Nanos::from_millis(11)));
    vec![(Nanos::from_millis(3), lasts()), (Nanos::from_millis(16), lasts())]
}

/// The workers' quotas. If hosts choose depths, they are drawn. A lane always has the largest quota: the
/// room of its server's cores is what limits it.
fn quotas_of(kind: &RackKind, drawn: Vec<u8>) -> Vec<u8> {
    match &kind.program {
        _ if kind.has_cores => vec![QUOTA_MAX; drawn.len()],
        program if program.traits().hosts_choose_depth => drawn,
        program => vec![program.traits().quota.max(1); drawn.len()],
    }
}

/// The types that each worker serves. In half of the seeds half of the workers serve only the types of
/// their own slice. A server's lanes serve what its program does.
fn draw_served(dice: &mut Dice, kind: &RackKind, workers: usize, slices: usize) -> Vec<Vec<TaskType>> {
    let narrow = dice.chance(500) && !kind.has_cores;
    let mut of = |worker: usize| {
        let own = TaskType((worker % slices) as u16);
        if narrow && dice.chance(500) { vec![own] } else { (0..TYPES).map(TaskType).collect() }
    };
    (0..workers).map(&mut of).collect()
}

impl GrayFailure {
    /// Draws up to four gray failures.
    pub(super) fn draw(dice: &mut Dice, scenario: &Scenario) -> Vec<(Nanos, Self)> {
        let count = dice.pick(&[0, 0, 1, 2, 4]);
        spread(count, dice, |dice| Self::one(dice, scenario))
    }

    fn one(dice: &mut Dice, scenario: &Scenario) -> Self {
        let lasts = dice.span(Nanos::from_micros(50), Nanos::from_millis(8));
        let short = dice.span(Nanos::from_micros(20), Nanos::from_millis(3));
        let worker = dice.below(scenario.workers as u64) as usize;
        let client = dice.below(scenario.clients as u64) as usize;
        let host = if dice.chance(500) { Host::Worker(worker) } else { Host::Client(client) };
        match dice.below(8) {
            0..=2 => {
                let (from, to) = one_way(dice, End::Host(host), worker, client);
                Self::OneWay { from, to, lasts }
            }
            3 => Self::SwitchStall { lasts: dice.span(Nanos::from_micros(50), STALL_MAX) },
            4 | 5 => Self::NewAddress(host),
            6 => Self::ClientLeave(client),
            _ => Self::WorkerQuits { worker, gone_after: Nanos(short.0 / 20), back_after: short },
        }
    }
}

fn one_way(dice: &mut Dice, host: End, worker: usize, client: usize) -> (End, End) {
    let (worker, client) = (End::Host(Host::Worker(worker)), End::Host(Host::Client(client)));
    let there =
        dice.pick(&[(host, End::Anyone), (host, End::Switch), (host, End::Controller), (worker, client)]);
    if dice.chance(500) { there } else { (there.1, there.0) }
}

/// Draws how long a recirculation takes. In a quarter of the seeds the packet stands in a queue first.
fn draw_round(dice: &mut Dice) -> Nanos {
    if dice.chance(750) { Nanos(500) } else { dice.span(Nanos::from_micros(5), Nanos::from_micros(100)) }
}
