//! Our rule: choose the depth under which the measured load would have been served best.
//!
//! The paper's rule waits until slowdowns are bad and then changes the depth by one. This rule asks for
//! each depth what it would have done to the measured tasks. It draws their service times again, lets tasks
//! arrive at the measured rate, and runs a small model of the slice ([`Model`]): one queue, workers with N
//! places each, and the gap between a worker's token and its next task. The depth with the lowest p99 wins,
//! with response time and slowdown weighed alike; the present depth stays unless another is clearly better.
//!
//! An agent sees tasks that end, not tasks that arrive. The arrivals of an interval are the tasks that
//! ended plus the growth of the switch's queue, which each DISPATCH reports. The rate and the service times
//! are means over many intervals. If one interval is too far from them to be chance, the rule forgets what
//! it knew: so it answers a step in the load at once, and hardly reacts to noise. Each model run adds to
//! what earlier runs found for the same load.
//!
//! A slice may span servers, and an agent sees its own workers only, while the switch's queue belongs to
//! all. So the agent scales its own count of ended tasks by `scale`, from the last [`SliceOthers`] that it
//! received. When it receives what the others ended in the interval itself, it corrects its estimate. On a
//! single server the factor is 1.
//!
//! No setting depends on the load or the service times. The rule assumes Poisson arrivals and equal
//! workers.

use alloc::vec::Vec;

use sluice_wire::Nanos;
use sluice_wire::tallies::SliceOthers;

use super::gauge::Sample;

/// How many service times are kept for a slice; new ones replace the oldest.
const SERVICES_MAX: usize = 16_384;
/// How many service times must be known before the rule gives an answer.
const SERVICES_MIN: usize = 200;
/// Tasks of a model run. A new model first serves as many again, which do not count.
const TASKS: usize = 12_000;
const WARMUP: usize = 2_000;
/// The depths that are tried.
const DEPTHS: [u8; 5] = [1, 2, 3, 4, 8];
/// By what share another depth must be better to replace the present one.
const CLEARLY: f64 = 0.03;
/// The arrival rate is the mean of at most this many intervals.
const MEMORY: f64 = 64.0;
/// The pace of other servers' workers is the mean of at most this many intervals.
const PACES: f64 = 16.0;
/// A difference of more standard deviations than this is not chance.
const NO_CHANCE: f64 = 4.0;
/// Model runs of one load before the rule gives an answer.
const RUNS_MIN: f64 = 2.0;
/// Model runs that are remembered. After so many, a run follows only in each sixteenth interval.
const RUNS: f64 = 16.0;
const INTERVALS_A_RUN: u64 = 16;

/// The unit of slowdowns is a thousandth.
const MILLI: f64 = 1_000.0;

/// The costs that lie between a worker's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerOverhead {
    /// A token's time to the switch plus a task's time back.
    pub round_trip: Nanos,
    /// A worker's time for a task beside its service: receiving it, replying, sending a token.
    pub busy: Nanos,
}

/// Measurements and models of a slice.
#[derive(Debug)]
pub(super) struct Replay {
    services: Vec<u32>,
    next: usize,
    interval: Interval,
    others: OtherServers,
    /// The last interval, until the agent receives what the other servers ended in it.
    last: Option<Reckoned>,
    /// How many tasks waited in the switch at the end of the last interval.
    queue: u32,
    rate_per_s: f64,
    intervals: f64,
    /// One model for each depth. Models continue from run to run, so that a queue that builds up slowly
    /// becomes visible.
    models: Vec<Model>,
    costs: [Cost; DEPTHS.len()],
    runs: f64,
    /// The arrival time of the models' last task, in the models' own time.
    at: f64,
    closed: u64,
}

/// The depth that a slice should have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wish {
    pub(super) depth: u8,
    /// The p99 slowdown at that depth, over the waits in switch and worker that the agent samples.
    pub(super) slowdown: f64,
}

/// What the agent knows about the slice's workers on other servers.
#[derive(Clone, Copy, Debug)]
struct OtherServers {
    workers: u32,
    /// How many tasks one of their workers ends while one of this server's ends one.
    pace: f64,
    /// How many intervals `pace` is the mean of.
    heard: f64,
}

/// The figures with which the last interval was evaluated.
#[derive(Clone, Copy, Debug)]
struct Reckoned {
    tasks: f64,
    workers: f64,
    scale: f64,
    grown: f64,
    arrived: f64,
    length: Nanos,
}

/// Sums of the present interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    tasks: u64,
    service_sum: f64,
    queue: u32,
}

impl Replay {
    pub(super) const fn new() -> Self {
        Self {
            services: Vec::new(),
            next: 0,
            interval: Interval { tasks: 0, service_sum: 0.0, queue: 0 },
            others: OtherServers { workers: 0, pace: 1.0, heard: 0.0 },
            last: None,
            queue: 0,
            rate_per_s: 0.0,
            intervals: 0.0,
            models: Vec::new(),
            costs: [Cost { response: 0.0, slowdown: 0.0, sampled: 0.0 }; DEPTHS.len()],
            runs: 0.0,
            at: 0.0,
            closed: 0,
        }
    }

    #[inline]
    pub(super) fn finished(&mut self, sample: Sample) {
        let service = u32::try_from(sample.service.0).unwrap_or(u32::MAX).max(1);
        self.interval.tasks += 1;
        self.interval.service_sum += f64::from(service);
        self.interval.queue = sample.occupancy;
        if self.services.len() < SERVICES_MAX {
            self.services.push(service);
        } else {
            self.services[self.next] = service;
            self.next = (self.next + 1) % SERVICES_MAX;
        }
    }

    /// Ends an interval in which the agent saw `workers` workers. Returns the depth that the slice should
    /// have, if it is known.
    pub(super) fn close(
        &mut self,
        interval: Nanos,
        workers: u32,
        depth: u8,
        way: WorkerOverhead,
    ) -> Option<Wish> {
        let ended = core::mem::take(&mut self.interval);
        self.last = None;
        if ended.tasks == 0 {
            return None;
        }
        let reckoned = self.reckon(&ended, workers, interval);
        self.queue = ended.queue;
        let is_new = self.is_another_load(&ended, &reckoned);
        if is_new {
            self.forget(ended.tasks);
        }
        self.learn(reckoned.arrived, interval);
        self.last = Some(reckoned);
        if self.services.len() < SERVICES_MIN || workers == 0 {
            return None;
        }
        self.closed += 1;
        if self.runs < RUNS || self.closed.is_multiple_of(INTERVALS_A_RUN) {
            self.run(workers + self.others.workers, way);
        }
        (self.runs >= RUNS_MIN).then(|| self.best(depth))
    }

    /// Takes what other servers' workers of the slice did: in the last interval if `is_of_last`, else in an
    /// earlier one.
    pub(super) fn told(&mut self, others: &SliceOthers, is_of_last: bool) {
        self.others.workers = others.workers;
        if !is_of_last || (others.heard == 0 && others.workers > 0) {
            return;
        }
        let Some(last) = self.last.take() else { return };
        let each = others.tasks as f64 / f64::from(others.heard.max(1));
        let arrived = (last.tasks + each * f64::from(others.workers) + last.grown).max(1.0);
        let was_chance = libm::sqrt(arrived * (last.scale - 1.0)).max(1.0);
        if libm::fabs(arrived - last.arrived) > NO_CHANCE * was_chance {
            // The models ran with a wrong load.
            self.runs = 0.0;
            self.models.clear();
        }
        self.rate_per_s += (arrived - last.arrived) * 1e9 / last.length.0.max(1) as f64 / self.intervals;
        if others.heard > 0 && last.workers > 0.0 {
            self.others.learn(each * last.workers / last.tasks);
        }
    }

    fn reckon(&self, ended: &Interval, workers: u32, length: Nanos) -> Reckoned {
        let (tasks, workers) = (ended.tasks as f64, f64::from(workers));
        let scale = 1.0 + self.others.pace * f64::from(self.others.workers) / workers.max(1.0);
        let grown = f64::from(ended.queue) - f64::from(self.queue);
        Reckoned { tasks, workers, scale, grown, arrived: (tasks * scale + grown).max(1.0), length }
    }

    /// Whether the ended interval differs so much from the known rate or service times that chance cannot
    /// explain it.
    fn is_another_load(&self, ended: &Interval, reckoned: &Reckoned) -> bool {
        if self.intervals < 1.0 {
            return false;
        }
        let expected = self.rate_per_s * reckoned.length.0 as f64 / 1e9;
        // The deviation includes chance in which server each task came to.
        let deviation = libm::sqrt(expected * (reckoned.scale + 1.0 / self.intervals));
        let is_other_rate = libm::fabs(reckoned.arrived - expected) > NO_CHANCE * deviation.max(1.0);
        let known = self.services.len() as f64 - ended.tasks as f64;
        if is_other_rate || known < SERVICES_MIN as f64 {
            return is_other_rate;
        }
        let (mean, variance) = self.moments();
        let spread = libm::sqrt(variance * (1.0 / ended.tasks as f64 + 1.0 / known));
        let of_interval = ended.service_sum / ended.tasks as f64;
        libm::fabs(of_interval - mean) > NO_CHANCE * spread.max(mean * 1e-6)
    }

    /// Keeps only what the last interval brought.
    fn forget(&mut self, tasks: u64) {
        let keep = usize::try_from(tasks).unwrap_or(usize::MAX).min(self.services.len());
        if self.services.len() == SERVICES_MAX {
            self.services.rotate_left(self.next);
        }
        self.services.drain(..self.services.len() - keep);
        self.next = 0;
        (self.intervals, self.runs) = (0.0, 0.0);
        self.models.clear();
    }

    fn learn(&mut self, arrived: f64, interval: Nanos) {
        let rate = arrived * 1e9 / interval.0.max(1) as f64;
        self.intervals = (self.intervals + 1.0).min(MEMORY);
        self.rate_per_s += (rate - self.rate_per_s) / self.intervals;
    }

    fn moments(&self) -> (f64, f64) {
        let count = self.services.len() as f64;
        let mean = self.services.iter().map(|service| f64::from(*service)).sum::<f64>() / count;
        let square = |service: &u32| (f64::from(*service) - mean) * (f64::from(*service) - mean);
        (mean, self.services.iter().map(square).sum::<f64>() / count)
    }

    /// Runs each depth's model once more, all on the same tasks.
    fn run(&mut self, workers: u32, way: WorkerOverhead) {
        if self.models.first().is_none_or(|model| model.free_at.len() != workers as usize) {
            self.models = DEPTHS.iter().map(|depth| Model::new(workers, *depth, way)).collect();
            // One worker more or less does not change the load: earlier results for the depths still count.
            (self.at, self.runs) = (0.0, self.runs.min(1.0));
        }
        let skipped = if self.at > 0.0 { 0 } else { WARMUP };
        self.runs = (self.runs + 1.0).min(RUNS);
        let mean_gap_ns = 1e9 / self.rate_per_s;
        let mut ended_at = self.at;
        for (model, known) in self.models.iter_mut().zip(&mut self.costs) {
            let mut tasks =
                Tasks { dice: Dice(self.closed), at: self.at, mean_gap_ns, services: &self.services };
            let cost = model.cost(&mut tasks, skipped);
            known.response += (cost.response - known.response) / self.runs;
            known.slowdown += (cost.slowdown - known.slowdown) / self.runs;
            known.sampled += (cost.sampled - known.sampled) / self.runs;
            ended_at = tasks.at;
        }
        self.at = ended_at;
    }

    fn best(&self, depth: u8) -> Wish {
        let costs = || DEPTHS.into_iter().zip(self.costs);
        let least = |of: fn(&Cost) -> f64| costs().map(|(_, cost)| of(&cost)).fold(f64::INFINITY, f64::min);
        let (response, slowdown) = (least(|c| c.response), least(|c| c.slowdown));
        let regret = |cost: &Cost| (cost.response / response).max(cost.slowdown / slowdown);
        let present = costs().find(|(of, _)| *of == depth).map_or(f64::INFINITY, |(_, cost)| regret(&cost));
        let mut best = (depth, present * (1.0 - CLEARLY));
        for (depth, cost) in costs() {
            if regret(&cost) < best.1 {
                best = (depth, regret(&cost));
            }
        }
        let of_best = costs().find(|(of, _)| *of == best.0);
        Wish { depth: best.0, slowdown: of_best.map_or(f64::INFINITY, |(_, cost)| cost.sampled / MILLI) }
    }
}

impl OtherServers {
    fn learn(&mut self, pace: f64) {
        self.heard = (self.heard + 1.0).min(PACES);
        self.pace += (pace - self.pace) / self.heard;
    }
}

/// Tasks with measured service times and random arrival times.
#[derive(Debug)]
struct Tasks<'s> {
    dice: Dice,
    at: f64,
    mean_gap_ns: f64,
    services: &'s [u32],
}

impl Tasks<'_> {
    /// The arrival time and the service time of the next task.
    fn next(&mut self) -> (u64, u32) {
        self.at += self.mean_gap_ns * self.dice.exponential();
        (self.at as u64, self.services[self.dice.below(self.services.len())])
    }
}

/// The p99 figures of one depth.
#[derive(Clone, Copy, Debug)]
struct Cost {
    response: f64,
    slowdown: f64,
    /// The slowdown as an agent samples it: without the packets' way and the core's other work.
    sampled: f64,
}

fn p99(values: &mut [u64]) -> f64 {
    let place = values.len() * 99 / 100;
    let (_, p99, _) = values.select_nth_unstable(place);
    *p99 as f64
}

/// A slice of workers with tokens. Each token becomes free at some time; tokens take tasks in the order of
/// these times.
#[derive(Debug)]
struct Model {
    /// For each token: when it reaches the switch, and its worker.
    tokens: alloc::collections::BinaryHeap<core::cmp::Reverse<(u64, u16)>>,
    /// When each worker finishes the tasks that it has.
    free_at: Vec<u64>,
    way: u64,
    busy: u64,
}

impl Model {
    fn new(workers: u32, depth: u8, way: WorkerOverhead) -> Self {
        let tokens =
            (0..depth).flat_map(|_| (0..workers as u16).map(|worker| core::cmp::Reverse((0, worker))));
        Self {
            tokens: tokens.collect(),
            free_at: alloc::vec![0; workers as usize],
            way: way.round_trip.0,
            busy: way.busy.0,
        }
    }

    /// Serves `TASKS` tasks after `skipped` ones that do not count, and returns their cost.
    fn cost(&mut self, tasks: &mut Tasks<'_>, skipped: usize) -> Cost {
        let [mut responses, mut slowdowns, mut sampled] = [(); 3].map(|()| Vec::with_capacity(TASKS));
        let beside = self.way / 2 + self.busy;
        for task in 0..skipped + TASKS {
            let (at, service) = tasks.next();
            let response = self.serve(at, service.into());
            if task >= skipped {
                responses.push(response);
                slowdowns.push(response * MILLI as u64 / u64::from(service));
                sampled.push(response.saturating_sub(beside) * MILLI as u64 / u64::from(service));
            }
        }
        Cost { response: p99(&mut responses), slowdown: p99(&mut slowdowns), sampled: p99(&mut sampled) }
    }

    /// Serves a task that arrives at `at`; returns the time until its service ends.
    fn serve(&mut self, at: u64, service: u64) -> u64 {
        let Some(core::cmp::Reverse((token_at, worker))) = self.tokens.pop() else { return 0 };
        let free_at = &mut self.free_at[usize::from(worker)];
        let arrives = at.max(token_at) + self.way / 2;
        *free_at = arrives.max(*free_at) + service + self.busy;
        // The token that follows this task reaches the switch half a round trip after the task's end.
        self.tokens.push(core::cmp::Reverse((*free_at + self.way / 2, worker)));
        *free_at - at
    }
}

/// One random stream for each model run, so that all depths meet the same tasks.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    /// SplitMix64.
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.word()) * count as u128) >> 64) as usize
    }

    fn exponential(&mut self) -> f64 {
        let uniform = ((self.word() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -libm::log(uniform)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use sluice_wire::SliceId;

    use super::*;

    const WAY: WorkerOverhead = WorkerOverhead { round_trip: Nanos(3_100), busy: Nanos(600) };
    const INTERVAL: Nanos = Nanos::from_millis(10);
    const WORKERS: u32 = 32;

    /// A slice under the rule, driven by the tests.
    struct Slice {
        replay: Replay,
        depth: u8,
        changes: u32,
        tasks: u64,
    }

    impl Slice {
        fn new() -> Self {
            Self { replay: Replay::new(), depth: 2, changes: 0, tasks: 0 }
        }

        /// Runs intervals in which tasks end at this rate while the switch's queue grows by `grows_per_s`.
        fn runs(&mut self, intervals: u32, rate_per_s: u64, grows_per_s: u64, service: fn(u64) -> u64) -> u8 {
            let mut waiting = 0;
            for interval in 0..intervals {
                for _ in 0..rate_per_s / 100 {
                    let occupancy = waiting as u32;
                    self.replay.finished(Sample { occupancy, ..sample(service(self.tasks)) });
                    self.tasks += 1;
                }
                waiting = u64::from(interval + 1) * grows_per_s / 100;
                let wish = self.replay.close(INTERVAL, WORKERS, self.depth, WAY);
                if let Some(Wish { depth, .. }) = wish.filter(|wish| wish.depth != self.depth) {
                    self.depth = depth;
                    self.changes += 1;
                }
            }
            self.depth
        }
    }

    /// The depth that the rule chooses after some intervals at this rate, starting at depth 2.
    fn settled(rate_per_s: u64, service: fn(u64) -> u64) -> u8 {
        Slice::new().runs(8, rate_per_s, 0, service)
    }

    fn sample(service_ns: u64) -> Sample {
        Sample { service: Nanos(service_ns), ..Sample::default() }
    }

    #[test]
    fn the_oldest_services_make_room_for_the_newest() {
        let mut replay = Replay::new();
        (1..=SERVICES_MAX as u64 + 3).for_each(|service| replay.finished(sample(service)));
        let first = SERVICES_MAX as u32;
        assert_eq!(replay.services.len(), SERVICES_MAX);
        assert_eq!(replay.services[..4], [first + 1, first + 2, first + 3, 4]);
    }

    fn is_about(found: f64, meant: f64) -> bool {
        libm::fabs(found - meant) < 1e-6 * meant.max(1.0)
    }

    #[test]
    fn what_others_ended_in_the_last_interval_puts_rate_and_pace_right() {
        let length = Nanos::from_millis(1);
        let mut replay = Replay::new();
        let closes = |replay: &mut Replay| {
            (0..10).for_each(|_| replay.finished(Sample { occupancy: 4, ..sample(1_000) }));
            assert_eq!(replay.close(length, 2, 1, WAY), None);
        };
        let others = |workers, heard, tasks| SliceOthers { slice: SliceId(0), workers, heard, tasks };
        closes(&mut replay);
        assert!(is_about(replay.rate_per_s, 14_000.0), "ten ended, and four wait that did not before");
        replay.told(&others(2, 1, 99), false);
        replay.told(&others(2, 0, 0), true);
        assert!(is_about(replay.rate_per_s, 14_000.0), "of an interval before, or nothing");
        replay.told(&others(2, 1, 6), true);
        assert!(is_about(replay.rate_per_s, 26_000.0) && is_about(replay.others.pace, 1.2));
        replay.runs = 3.0;
        closes(&mut replay);
        assert!(is_about(replay.rate_per_s, 24_000.0), "22 this time, if the others were as fast as before");
        replay.told(&others(2, 1, 5), true);
        assert!(is_about(replay.rate_per_s, 23_000.0) && is_about(replay.others.pace, 1.1));
        assert!(is_about(replay.runs, 3.0), "chance, and no other slice");
        closes(&mut replay);
        replay.told(&others(0, 0, 0), true);
        assert!(is_about(replay.others.pace, 1.1), "who is not there has no pace");
        assert!(replay.last.is_none(), "that nobody else is there was heard");
        closes(&mut replay);
        replay.told(&others(2, 1, 60), true);
        assert!(is_about(replay.runs, 0.0), "another slice than the models ran");
    }

    #[test]
    fn more_tasks_or_longer_ones_than_chance_brings_are_another_load() {
        let mut replay = Replay::new();
        (replay.rate_per_s, replay.intervals) = (1e6, 1.0);
        let with = |replay: &Replay, tasks: u64, service_sum: f64, arrived: f64| {
            let length = Nanos::from_millis(1);
            let ended = Interval { tasks, service_sum, queue: 0 };
            let (workers, scale, grown) = (2.0, 1.0, 0.0);
            let reckoned = Reckoned { tasks: tasks as f64, workers, scale, grown, arrived, length };
            replay.is_another_load(&ended, &reckoned)
        };
        // The bound: four times the square root of 2,000.
        let arrived = [821.0, 822.0, 1_178.0, 1_179.0];
        assert_eq!(arrived.map(|arrived| with(&replay, 10, 1.0, arrived)), [true, false, false, true]);
        replay.services = (0..400).map(|task| if task % 2 == 0 { 900 } else { 1_100 }).collect();
        assert_eq!(replay.moments(), (1_000.0, 10_000.0));
        // The bound: four times the square root of 10,000 · (1/100 + 1/300).
        let sums = [95_300.0, 95_400.0, 104_600.0, 104_700.0];
        assert_eq!(sums.map(|sum| with(&replay, 100, sum, 1_000.0)), [true, false, false, true]);
        replay.intervals = 0.0;
        assert!(!with(&replay, 100, 1e9, 1e9), "nothing was known before");
    }

    #[test]
    fn few_tasks_or_known_services_prove_nothing_and_one_beyond_chance_does() {
        let mut replay = Replay::new();
        let length = Nanos::from_millis(1);
        let with = |replay: &Replay, service_sum: f64, arrived: f64| {
            let ended = Interval { tasks: 1, service_sum, queue: 0 };
            let reckoned = Reckoned { tasks: 1.0, workers: 2.0, scale: 1.0, grown: 0.0, arrived, length };
            replay.is_another_load(&ended, &reckoned)
        };
        (replay.rate_per_s, replay.intervals) = (1e6, 2.0);
        // The bound: four times the square root of 1,500. With more known intervals, chance explains less.
        assert_eq!([1_150.0, 1_160.0].map(|arrived| with(&replay, 1.0, arrived)), [false, true]);
        replay.rate_per_s = 0.0;
        assert_eq!([4.0, 4.1].map(|arrived| with(&replay, 1.0, arrived)), [false, true], "of a few tasks");
        replay.services = vec![1_000_000; SERVICES_MIN];
        assert!(!with(&replay, 1e9, 0.0), "the service that ended is among those that are known");
        replay.services.push(1_000_000);
        assert_eq!([1_000_004.0, 1_000_005.0].map(|sum| with(&replay, sum, 0.0)), [false, true]);
    }

    #[test]
    fn other_servers_end_another_load_only_beyond_the_chance_of_whose_task_it_was() {
        let told = |tasks: u64, workers: f64| {
            let mut replay = Replay::new();
            let length = Nanos::from_millis(1);
            let of = Reckoned { tasks: 1_000.0, workers, scale: 1.5, grown: 0.0, arrived: 1_500.0, length };
            (replay.last, replay.runs, replay.intervals) = (Some(of), 2.0, 1.0);
            replay.told(&SliceOthers { slice: SliceId(0), workers: 1, heard: 1, tasks }, true);
            (replay.runs, replay.others.pace)
        };
        // The bounds: four times the square root of half of 1,605, and of half of 1,620.
        assert!(is_about(told(605, 2.0).0, 2.0) && is_about(told(620, 2.0).0, 0.0));
        assert!(is_about(told(605, 2.0).1, 1.21), "as fast as 605 by one is to 1,000 by two");
        assert!(is_about(told(605, 0.0).1, 1.0), "who has no workers has no pace to compare");
    }

    #[test]
    fn models_warm_up_once_and_run_rarely_once_they_know() {
        let mut replay = Replay::new();
        (replay.services, replay.rate_per_s) = (vec![10_000; SERVICES_MIN - 1], 1e5);
        replay.finished(sample(10_000));
        let length = Nanos(10_000);
        let gaps = |replay: &Replay, since: f64| (replay.at - since) * replay.rate_per_s / 1e9;
        let close = |replay: &mut Replay| {
            (replay.interval.tasks, replay.interval.service_sum) = (1, 10_000.0);
            let before = replay.at;
            replay.close(length, 1, 1, WAY);
            gaps(replay, before)
        };
        let is_near = |gaps: f64, tasks: usize| libm::fabs(gaps - tasks as f64) < 0.1 * tasks as f64;
        assert!(is_near(close(&mut replay), WARMUP + TASKS), "so many services are enough");
        assert!(is_near(close(&mut replay), TASKS));
        replay.runs = RUNS;
        let ran = (0..4 * INTERVALS_A_RUN).filter(|_| close(&mut replay) > 0.0).count();
        assert_eq!(ran, 4);
    }

    #[test]
    fn what_models_cost_is_the_mean_of_their_runs() {
        let mut replay = Replay::new();
        (replay.services, replay.rate_per_s, replay.runs) = (vec![10_000; 10], 1.0, 3.0);
        replay.models = DEPTHS.iter().map(|depth| Model::new(1, *depth, WAY)).collect();
        replay.costs = [Cost { response: 4_150.0, slowdown: 415.0, sampled: 200.0 }; DEPTHS.len()];
        replay.run(1, WAY);
        for Cost { response, slowdown, sampled } in replay.costs {
            assert!(is_about(response, 6_150.0) && is_about(slowdown, 615.0) && is_about(sampled, 400.0));
        }
    }

    #[test]
    fn runs_of_one_load_are_averaged_and_one_is_left_when_a_worker_comes() {
        let mut replay = Replay::new();
        (replay.services, replay.rate_per_s) = (vec![10_000; 10], 1.0);
        for (workers, runs) in [(1, 1.0), (1, 2.0), (1, 3.0), (2, 2.0)] {
            replay.run(workers, WAY);
            assert!(is_about(replay.runs, runs), "{}", replay.runs);
            for Cost { response, slowdown, sampled } in replay.costs {
                // Without waiting: half a round trip, the service, and the worker's other work.
                assert!(
                    is_about(response, 12_150.0) && is_about(slowdown, 1_215.0) && is_about(sampled, 1_000.0)
                );
            }
        }
    }

    #[test]
    fn what_is_forgotten_is_all_but_the_newest() {
        let mut replay = Replay::new();
        (1..=SERVICES_MAX as u64 + 3).for_each(|service| replay.finished(sample(service)));
        replay.forget(4);
        let newest = SERVICES_MAX as u32 + 3;
        assert_eq!(replay.services, [newest - 3, newest - 2, newest - 1, newest]);
        replay.forget(9);
        assert_eq!((replay.services.len(), replay.next), (4, 0));
    }

    #[test]
    fn another_depth_has_to_be_clearly_better_in_what_it_costs_most() {
        let mut replay = Replay::new();
        replay.costs = [Cost { response: 100.0, slowdown: 10.0, sampled: 7_000.0 }; DEPTHS.len()];
        for (response, slowdown, depth) in [(98.0, 9.8, 2), (96.0, 9.6, 3), (90.0, 10.0, 3), (90.0, 11.0, 2)]
        {
            replay.costs[2] = Cost { response, slowdown, sampled: 5_000.0 };
            let sampled = if depth == 3 { 5.0 } else { 7.0 };
            assert_eq!(replay.best(2), Wish { depth, slowdown: sampled }, "{response} {slowdown}");
        }
        assert_eq!(p99(&mut [3, 1, 2]).to_bits(), 3_f64.to_bits());
        assert_eq!(p99(&mut (1..=200).rev().collect::<Vec<_>>()).to_bits(), 199_f64.to_bits());
    }

    #[test]
    fn a_task_waits_for_a_token_and_its_worker_and_the_next_token_leaves_at_its_end() {
        let way = WorkerOverhead { round_trip: Nanos(100), busy: Nanos(10) };
        for (depth, second) in [(1, 1_110 + 50 + 1_010 - 200), (2, 1_060 + 1_010 - 200)] {
            let mut model = Model::new(1, depth, way);
            assert_eq!((model.serve(0, 1_000), model.serve(200, 1_000)), (50 + 1_010, second), "{depth}");
        }
    }

    #[test]
    fn dice_give_the_same_words_everywhere_and_gaps_of_one_on_average() {
        assert_eq!(Dice(0).word(), 0xe220_a839_7b1d_cdaf);
        let mut dice = Dice(7);
        let mean = (0..100_000).map(|_| dice.exponential()).sum::<f64>() / 1e5;
        assert!((0.98..1.02).contains(&mean), "{mean}");
        let tens = (0..10_000).filter(|_| dice.below(10) == 9).count();
        assert!((900..1_100).contains(&tens), "{tens}");
        let mut tasks = Tasks { dice, at: 0.0, mean_gap_ns: 1e6, services: &[7] };
        let arrived = [(); 100].map(|()| tasks.next().0);
        let gaps = || arrived.windows(2).map(|two| two[1] - two[0]);
        assert!(gaps().any(|gap| gap < 100_000) && gaps().any(|gap| gap > 2_000_000), "{arrived:?}");
    }

    /// Service times of which one in ten is long.
    fn bimodal(task: u64) -> u64 {
        if task.is_multiple_of(10) { 100_000 } else { 10_000 }
    }

    /// Services of 10 us on average, in an order that repeats after 1,000.
    fn exponential(task: u64) -> u64 {
        let uniform = ((task * 617 % 1_000) as f64 + 0.5) / 1_000.0;
        (-libm::log(uniform) * 10_000.0) as u64
    }

    #[test]
    fn long_tasks_among_short_ones_want_depth_one_until_near_saturation() {
        assert_eq!(settled(800_000, bimodal), 1);
        assert_eq!(settled(1_550_000, bimodal), 2);
    }

    #[test]
    fn tasks_that_are_all_alike_want_two_places_under_load() {
        assert_eq!(settled(2_600_000, |_| 10_000), 2);
    }

    #[test]
    fn a_queue_that_grows_is_load_too() {
        // With one token each, 32 workers end 2,330 kRPS, however many tasks arrive.
        assert_eq!(Slice::new().runs(6, 2_100_000, 0, exponential), 1);
        assert!(Slice::new().runs(6, 2_300_000, 400_000, exponential) > 1);
    }

    /// The depths that the agents of two servers with 16 workers each choose in the end. If `skewed`, half
    /// of all tasks end at the server that is twice as fast. Each agent hears of the other after every
    /// interval but the first `unheard`.
    fn two_agents(rate_per_s: u64, skewed: bool, unheard: u32) -> [(u8, f64); 2] {
        let mut agents = [Replay::new(), Replay::new()];
        let mut depths = [2; 2];
        let mut task = 0;
        for interval in 0..12 {
            let mut ended = [0_u64; 2];
            for _ in 0..rate_per_s / 100 {
                let one = if skewed { task % 3 / 2 } else { task % 2 } as usize;
                agents[one].finished(sample(exponential(task)));
                ended[one] += 1;
                task += 1;
            }
            for (agent, depth) in agents.iter_mut().zip(&mut depths) {
                *depth = agent.close(INTERVAL, WORKERS / 2, *depth, WAY).map_or(*depth, |wish| wish.depth);
            }
            for one in (0..2).filter(|_| interval >= unheard) {
                let workers = WORKERS / 2;
                let tasks = ended[1 - one];
                agents[one].told(&SliceOthers { slice: SliceId(0), workers, heard: workers, tasks }, true);
            }
        }
        [0, 1].map(|one| (depths[one], agents[one].rate_per_s))
    }

    #[test]
    fn agents_of_two_servers_say_what_one_would_say_that_sees_all() {
        for (rate_per_s, depth) in [(2_000_000, 1), (2_600_000, 2)] {
            assert_eq!(settled(rate_per_s, exponential), depth);
            for skewed in [false, true] {
                for unheard in [0, 3] {
                    for (found, rate) in two_agents(rate_per_s, skewed, unheard) {
                        assert_eq!(found, depth, "{rate_per_s} {skewed} {unheard}");
                        assert!((rate / rate_per_s as f64 - 1.0).abs() < 0.001, "{rate}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_agent_that_hears_nothing_of_others_goes_on_with_what_it_knew() {
        let mut agent = Replay::new();
        let half = |agent: &mut Replay| {
            (0..10_000).for_each(|task| agent.finished(sample(exponential(task))));
            agent.close(INTERVAL, WORKERS / 2, 1, WAY);
        };
        let others = |workers, heard, tasks| SliceOthers { slice: SliceId(0), workers, heard, tasks };
        half(&mut agent);
        assert!((agent.rate_per_s - 1e6).abs() < 1.0, "nothing is known of others yet");
        agent.told(&others(16, 16, 10_000), true);
        for _ in 0..3 {
            half(&mut agent);
            assert!((agent.rate_per_s - 2e6).abs() < 1.0, "{}", agent.rate_per_s);
        }
        agent.told(&others(16, 0, 0), true);
        assert!((agent.rate_per_s - 2e6).abs() < 1.0, "the other agent was late");
        agent.told(&others(0, 0, 0), true);
        half(&mut agent);
        assert!((agent.rate_per_s - 1e6).abs() < 1.0, "the other server is gone");
    }

    #[test]
    fn another_load_is_answered_in_two_intervals_and_the_same_one_changes_nothing() {
        let mut slice = Slice::new();
        assert_eq!(slice.runs(40, 800_000, 0, bimodal), 1);
        assert_eq!(slice.changes, 1);
        assert_eq!(slice.runs(2, 2_600_000, 0, |_| 10_000), 2);
        assert_eq!(slice.runs(40, 2_600_000, 0, |_| 10_000), 2);
        assert_eq!(slice.changes, 2);
    }

    #[test]
    fn too_few_tasks_say_nothing() {
        assert_eq!(settled(2_000, bimodal), 2);
    }

    #[test]
    fn one_interval_alone_changes_nothing() {
        let mut replay = Replay::new();
        (0..8_000).for_each(|task| replay.finished(sample(bimodal(task))));
        assert_eq!(replay.close(INTERVAL, WORKERS, 2, WAY), None);
    }
}
