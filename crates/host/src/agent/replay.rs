//! Our rule: the depth under which what was measured would have gone best.
//!
//! The paper's rule waits until slowdowns are bad and then moves by one. This one asks what each depth would have done to
//! the tasks that it saw: it draws their services again, lets them arrive at the measured rate, and runs a small model of
//! the slice ([`Model`]): one queue, workers with N places each, and the gap between a worker's token and its next task.
//! The depth with the lowest p99 wins, response and slowdown weighed alike; the present one stays unless another is
//! clearly better, and depths change only when two intervals in a row say the same.
//!
//! It has no setting that depends on the load or the services. What it cannot see is an arrival process other than
//! Poisson's, and workers that differ.

use alloc::vec::Vec;

use sluice_wire::Nanos;

/// Services that are kept of a slice; the newest take the oldest ones' places.
const SERVICES_MAX: usize = 4_096;
/// Services that have to be known before anything is said.
const SERVICES_MIN: usize = 200;
/// Tasks of a model run that are measured, and those before.
const TASKS: usize = 12_000;
const WARMUP: usize = 2_000;
/// Depths that are tried.
const DEPTHS: [u8; 5] = [1, 2, 3, 4, 8];
/// How much better another depth has to be, as a share.
const CLEARLY: f64 = 0.03;
/// The rate that is reckoned with is the mean of about this many intervals.
const MEMORY: f64 = 4.0;

/// What lies between a worker and the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// A token's way to the switch and a task's way back.
    pub round_trip: Nanos,
    /// What the worker spends on a task beside its service: receiving it, replying, sending a token.
    pub busy: Nanos,
}

/// What is known of a slice.
#[derive(Debug)]
pub(super) struct Replay {
    services: Vec<u32>,
    next: usize,
    /// Tasks that ended in the present interval.
    tasks: u64,
    rate_per_s: f64,
    intervals: u32,
    wished: Option<u8>,
}

impl Replay {
    pub(super) const fn new() -> Self {
        Self { services: Vec::new(), next: 0, tasks: 0, rate_per_s: 0.0, intervals: 0, wished: None }
    }

    #[inline]
    pub(super) fn finished(&mut self, service: Nanos) {
        let service = u32::try_from(service.0).unwrap_or(u32::MAX).max(1);
        self.tasks += 1;
        if self.services.len() < SERVICES_MAX {
            self.services.push(service);
        } else {
            self.services[self.next] = service;
            self.next = (self.next + 1) % SERVICES_MAX;
        }
    }

    /// The interval has ended: the depth that the slice should have, and whether any is enough.
    pub(super) fn close(&mut self, interval: Nanos, workers: u32, depth: u8, way: Way) -> Option<u8> {
        let rate = self.tasks as f64 * 1e9 / interval.0.max(1) as f64;
        self.tasks = 0;
        self.intervals += 1;
        let weight = 1.0 / MEMORY.min(self.intervals.into());
        self.rate_per_s += (rate - self.rate_per_s) * weight;
        if self.services.len() < SERVICES_MIN || workers == 0 || rate <= 0.0 {
            return None;
        }
        let wished = self.best(workers, depth, way);
        let is_sure = self.wished == Some(wished);
        self.wished = Some(wished);
        (is_sure && wished != depth).then_some(wished)
    }

    fn best(&self, workers: u32, depth: u8, way: Way) -> u8 {
        let costs: Vec<(u8, Cost)> =
            DEPTHS.iter().map(|depth| (*depth, self.model(workers, *depth, way))).collect();
        let least =
            |of: fn(&Cost) -> f64| costs.iter().map(|(_, cost)| of(cost)).fold(f64::INFINITY, f64::min);
        let (response, slowdown) = (least(|c| c.response), least(|c| c.slowdown));
        let regret = |cost: &Cost| (cost.response / response).max(cost.slowdown / slowdown);
        let present =
            costs.iter().find(|(of, _)| *of == depth).map_or(f64::INFINITY, |(_, cost)| regret(cost));
        let mut best = (depth, present * (1.0 - CLEARLY));
        for (depth, cost) in &costs {
            if regret(cost) < best.1 {
                best = (*depth, regret(cost));
            }
        }
        best.0
    }

    fn model(&self, workers: u32, depth: u8, way: Way) -> Cost {
        let mut model = Model::new(workers, depth, way);
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let mean_gap_ns = 1e9 / self.rate_per_s;
        let mut at = 0.0;
        let (mut responses, mut slowdowns) = (Vec::with_capacity(TASKS), Vec::with_capacity(TASKS));
        for task in 0..TASKS + WARMUP {
            at += mean_gap_ns * dice.exponential();
            let service = self.services[dice.below(self.services.len())];
            let response = model.serve(at as u64, service.into());
            if task >= WARMUP {
                responses.push(response);
                slowdowns.push(response * 1_000 / u64::from(service));
            }
        }
        Cost { response: p99(&mut responses), slowdown: p99(&mut slowdowns) }
    }
}

/// What a depth costs.
#[derive(Clone, Copy, Debug)]
struct Cost {
    response: f64,
    slowdown: f64,
}

fn p99(values: &mut [u64]) -> f64 {
    let place = values.len() * 99 / 100;
    let (_, p99, _) = values.select_nth_unstable(place);
    *p99 as f64
}

/// A slice of workers with tokens: each token is free from a time on, in the order of the times, and takes the next task.
#[derive(Debug)]
struct Model {
    /// When each token is at the switch, and whose it is.
    tokens: alloc::collections::BinaryHeap<core::cmp::Reverse<(u64, u16)>>,
    /// When each worker ends what it has.
    free_at: Vec<u64>,
    way: u64,
    busy: u64,
}

impl Model {
    fn new(workers: u32, depth: u8, way: Way) -> Self {
        let tokens =
            (0..depth).flat_map(|_| (0..workers as u16).map(|worker| core::cmp::Reverse((0, worker))));
        Self {
            tokens: tokens.collect(),
            free_at: alloc::vec![0; workers as usize],
            way: way.round_trip.0,
            busy: way.busy.0,
        }
    }

    /// A task arrives; how long it takes until its service ends.
    fn serve(&mut self, at: u64, service: u64) -> u64 {
        let Some(core::cmp::Reverse((token_at, worker))) = self.tokens.pop() else { return 0 };
        let free_at = &mut self.free_at[usize::from(worker)];
        let arrives = at.max(token_at) + self.way / 2;
        *free_at = arrives.max(*free_at) + service + self.busy;
        // The token of this task's end is at the switch half a gap later.
        self.tokens.push(core::cmp::Reverse((*free_at + self.way / 2, worker)));
        *free_at - at
    }
}

/// A stream of its own for each model run, so that all depths meet the same tasks.
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
    use super::*;

    const WAY: Way = Way { round_trip: Nanos(3_100), busy: Nanos(600) };
    const INTERVAL: Nanos = Nanos::from_millis(10);
    const WORKERS: u32 = 32;

    /// What the rule says after some intervals of tasks at this rate, beginning at depth 2.
    fn settled(rate_per_s: u64, service_ns: impl Fn(u64) -> u64) -> u8 {
        let (mut replay, mut depth, mut task) = (Replay::new(), 2, 0);
        for _ in 0..4 {
            for _ in 0..rate_per_s / 100 {
                replay.finished(Nanos(service_ns(task)));
                task += 1;
            }
            depth = replay.close(INTERVAL, WORKERS, depth, WAY).unwrap_or(depth);
        }
        depth
    }

    /// One long task in ten.
    fn bimodal(task: u64) -> u64 {
        if task.is_multiple_of(10) { 100_000 } else { 10_000 }
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
    fn too_few_tasks_say_nothing() {
        assert_eq!(settled(2_000, bimodal), 2);
    }

    #[test]
    fn one_interval_alone_changes_nothing() {
        let mut replay = Replay::new();
        (0..8_000).for_each(|task| replay.finished(Nanos(bimodal(task))));
        assert_eq!(replay.close(INTERVAL, WORKERS, 2, WAY), None);
    }
}
