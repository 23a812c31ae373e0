//! The adaptive agent of a server: it finds each worker's depth from how long the worker's tasks waited
//! (Rain §3.3).
//!
//! The driver tells [`Agent`] about each task that ended and about the time for which a worker was blocked.
//! The paper's sampler looks at every worker's last finished task each [`AgentSettings::sample_every`] (10
//! µs); the agent computes the same samples without looking. At the end of an interval (10 ms) the agent
//! judges each worker by three numbers: the p99 slowdown of its samples, the share of the wait that was
//! spent at the worker, and the p99 of the switch's queue. It also adds up, per slice, the numbers that the
//! controller needs for its slice step. Every decision comes with the numbers behind it.
//!
//! Two points are our reading of the paper. A sample without any wait counts for the slowdown only, since
//! its share would be 0/0. An interval in which a worker ended no task says nothing about its depth, only
//! that the worker was idle.
//!
//! A slice may have workers on other servers. To judge a worker by its own samples, an agent needs no
//! numbers of other servers. [`Rule::Replay`] does need them: the controller hears every agent and passes
//! on what the others did ([`Agent::told`]).
//!
//! Left out: moving workers between slices and evening out depths. Only the controller does this, from the
//! tallies of all agents.

mod gauge;
mod replay;
mod settings;
mod verdict;

use alloc::vec::Vec;

use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{Nanos, SliceId, WorkerId};

pub use gauge::{Numbers, Sample};
pub use replay::WorkerOverhead;
pub use settings::{AgentError, AgentSettings, Mode, Rule};
pub use verdict::{Decision, Verdict};

use crate::worker::QUOTA_MAX;
use gauge::{Sampling, WorkerGauge};
use replay::{Replay, Wish};
use verdict::{count, tally_of};

/// The agent of one server.
#[derive(Debug)]
pub struct Agent {
    settings: AgentSettings,
    sampling: Sampling,
    members: Vec<Member>,
    slices: Vec<(SliceId, Replay)>,
    interval_ends: Nanos,
    /// When the previous interval was closed.
    last_ended: Nanos,
}

#[derive(Debug)]
struct Member {
    worker: WorkerId,
    slice: SliceId,
    depth: u8,
    gauge: WorkerGauge,
}

impl Agent {
    /// An agent without workers; its first interval begins now.
    ///
    /// # Errors
    /// [`AgentError`] if a setting is out of its range.
    pub fn new(now: Nanos, settings: AgentSettings) -> Result<Self, AgentError> {
        settings.check()?;
        let interval_ends = now + settings.interval;
        let sampling = Sampling::new(settings.sample_every);
        Ok(Self {
            settings,
            sampling,
            members: Vec::new(),
            slices: Vec::new(),
            interval_ends,
            last_ended: now,
        })
    }

    /// Notes that a worker serves a slice with this depth from now on. Samples of the worker in another
    /// slice are dropped.
    pub fn serves(&mut self, now: Nanos, worker: WorkerId, slice: SliceId, depth: u8) {
        let depth = depth.clamp(1, QUOTA_MAX);
        let gauge = || WorkerGauge::new(now, self.sampling, self.settings.interval);
        match self.members.iter_mut().find(|member| member.worker == worker) {
            Some(member) if member.slice == slice => member.depth = depth,
            Some(member) => *member = Member { worker, slice, depth, gauge: gauge() },
            None => self.members.push(Member { worker, slice, depth, gauge: gauge() }),
        }
    }

    /// Forgets a worker that has left.
    pub fn gone(&mut self, worker: WorkerId) {
        self.members.retain(|member| member.worker != worker);
    }

    /// Takes the measurements of a task that a worker ended.
    #[inline]
    pub fn finished(&mut self, now: Nanos, worker: WorkerId, sample: Sample) {
        if let Some(mut account) = self.account(worker) {
            account.finished(now, sample);
        }
    }

    /// The account of one worker, if the worker is this agent's. A driver that reports several tasks looks
    /// the worker up once.
    ///
    /// Workers mostly stand in the order of their indices, so the first guess is usually right.
    #[inline]
    pub fn account(&mut self, worker: WorkerId) -> Option<Account<'_>> {
        let guess = usize::from(worker.0);
        let is_his = |member: &Member| member.worker == worker;
        let is_right = self.members.get(guess).is_some_and(is_his);
        let place = if is_right { guess } else { self.members.iter().position(is_his)? };
        let Member { slice, gauge, .. } = self.members.get_mut(place)?;
        let replays = matches!(self.settings.rule, Rule::Replay(_)).then_some(&mut self.slices);
        Some(Account { gauge, sampling: self.sampling, slice: *slice, replays })
    }

    /// Notes that a worker was blocked for this long, when it got a task or when the interval ended.
    #[inline]
    pub fn idled(&mut self, worker: WorkerId, blocked: Nanos) {
        if let Some(account) = self.account(worker) {
            account.gauge.idled(blocked);
        }
    }

    /// Takes what other servers' workers did in the interval that ended at `ended`. Until the next such
    /// report the agent assumes that they go on as before; before the first report it assumes that there
    /// are none.
    pub fn told(&mut self, ended: Nanos, others: &[SliceOthers]) {
        if !matches!(self.settings.rule, Rule::Replay(_)) {
            return;
        }
        let is_of_last = ended == self.last_ended;
        for of_slice in others {
            replay_of(&mut self.slices, of_slice.slice).told(of_slice, is_of_last);
        }
    }

    /// When the present interval ends.
    pub const fn deadline(&self) -> Nanos {
        self.interval_ends
    }

    /// Ends the interval and judges every worker. In [`Mode::On`] the depths in the
    /// decisions hold from now on, and the driver hands them to the workers.
    pub fn tick(&mut self, now: Nanos, decisions: &mut Vec<Decision>, tallies: &mut Vec<SliceTally>) {
        if now < self.interval_ends {
            return;
        }
        let settings = self.settings;
        let began = self.interval_ends - settings.interval;
        let wishes = self.wishes(now.since(began));
        for member in &mut self.members {
            let numbers = member.gauge.close(now, self.sampling, now.since(began));
            let wish = wishes.iter().find(|wish| wish.0 == member.slice).and_then(|wish| wish.1);
            let (verdict, to) = match (settings.rule, wish) {
                (Rule::Steps, _) => {
                    let verdict = Verdict::of(&settings, member.depth, &numbers);
                    (verdict, verdict.depth(member.depth))
                }
                (Rule::Replay(_), wish) => Verdict::of_wish(&settings, member.depth, wish, &numbers),
            };
            if verdict != Verdict::Calm {
                let Member { worker, slice, depth, .. } = *member;
                decisions.push(Decision { at: now, worker, slice, from: depth, to, verdict, numbers });
            }
            if settings.mode == Mode::On {
                member.depth = to;
            }
            let tally = tally_of(member.slice, tallies);
            count(tally, member.worker, member.depth, verdict, &numbers);
        }
        for tally in tallies.iter_mut().filter(|_| !settings.lends) {
            tally.idle_milli = 0;
        }
        self.last_ended = now;
        // Intervals of all servers end together, however late a driver calls.
        let next = self.interval_ends + settings.interval;
        self.interval_ends = if next > now { next } else { now + settings.interval };
    }

    /// For each slice, the depth that all of its workers together should have, under [`Rule::Replay`].
    fn wishes(&mut self, interval: Nanos) -> Vec<(SliceId, Option<Wish>)> {
        let Rule::Replay(way) = self.settings.rule else { return Vec::new() };
        let members = &self.members;
        let of = |(slice, replay): &mut (SliceId, Replay)| {
            let mut depths =
                members.iter().filter(|member| member.slice == *slice).map(|member| member.depth);
            let depth = depths.next()?;
            let workers = 1 + depths.count() as u32;
            Some((*slice, replay.close(interval, workers, depth, way)))
        };
        self.slices.iter_mut().filter_map(of).collect()
    }

    /// The depth that a worker has, as far as this agent knows.
    pub fn depth(&self, worker: WorkerId) -> Option<u8> {
        self.members.iter().find(|member| member.worker == worker).map(|member| member.depth)
    }
}

/// What an agent knows of a worker's tasks.
#[derive(Debug)]
pub struct Account<'a> {
    gauge: &'a mut WorkerGauge,
    sampling: Sampling,
    slice: SliceId,
    /// The slices' replays, if [`Rule::Replay`] decides about depths.
    replays: Option<&'a mut Vec<(SliceId, Replay)>>,
}

impl Account<'_> {
    /// The worker ended a task.
    #[inline]
    pub fn finished(&mut self, now: Nanos, sample: Sample) {
        self.gauge.finished(now, self.sampling, sample);
        if let Some(replays) = &mut self.replays {
            replay_of(replays, self.slice).finished(sample);
        }
    }
}

fn replay_of(all: &mut Vec<(SliceId, Replay)>, slice: SliceId) -> &mut Replay {
    let place = all.iter().position(|(known, _)| *known == slice).unwrap_or_else(|| {
        all.push((slice, Replay::new()));
        all.len() - 1
    });
    &mut all[place].1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Nanos = Nanos::from_millis(1);
    const SLICE: SliceId = SliceId(0);
    const WORKER: WorkerId = WorkerId(3);

    fn agent(depth: u8, settings: AgentSettings) -> Agent {
        let mut agent = Agent::new(Nanos(0), settings).expect("sound settings");
        agent.serves(Nanos(0), WORKER, SLICE, depth);
        agent
    }

    fn sample(switch_us: u64, worker_us: u64, occupancy: u32) -> Sample {
        let (switch_wait, worker_wait) = (Nanos::from_micros(switch_us), Nanos::from_micros(worker_us));
        Sample { switch_wait, worker_wait, occupancy, service: Nanos::from_micros(10) }
    }

    /// One interval in which a task ends every 20 µs.
    fn interval(agent: &mut Agent, sample: Sample) -> (Vec<Decision>, Vec<SliceTally>) {
        let (mut decisions, mut tallies) = (Vec::new(), Vec::new());
        let end = agent.deadline();
        let mut now = end - agent.settings.interval;
        while now < end {
            agent.finished(now, WORKER, sample);
            now = now + Nanos::from_micros(20);
        }
        agent.tick(end, &mut decisions, &mut tallies);
        (decisions, tallies)
    }

    #[test]
    fn waits_at_the_worker_before_an_empty_switch_make_it_shallower() {
        let mut agent = agent(3, AgentSettings::default());
        let (decisions, _) = interval(&mut agent, sample(0, 200, 0));
        assert_eq!((decisions[0].from, decisions[0].to, decisions[0].verdict), (3, 2, Verdict::Shallower));
        assert_eq!(agent.depth(WORKER), Some(2));
    }

    #[test]
    fn waits_in_the_switch_make_it_deeper_up_to_the_largest_depth() {
        let mut agent = agent(7, AgentSettings::default());
        assert_eq!(interval(&mut agent, sample(200, 10, 5)).0[0].to, 8);
        let (decisions, tallies) = interval(&mut agent, sample(200, 10, 5));
        assert_eq!(decisions[0].verdict, Verdict::Overloaded);
        assert_eq!(tallies[0].overloads, 1);
    }

    #[test]
    fn waits_at_the_worker_behind_a_busy_switch_or_at_depth_one_are_overload() {
        for (depth, occupancy) in [(3, 4), (1, 0)] {
            let mut agent = agent(depth, AgentSettings::default());
            let (decisions, _) = interval(&mut agent, sample(0, 200, occupancy));
            assert_eq!(decisions[0].verdict, Verdict::Overloaded);
            assert_eq!(agent.depth(WORKER), Some(depth));
        }
    }

    #[test]
    fn a_calm_worker_is_left_alone_and_its_idle_time_is_told() {
        let mut agent = agent(2, AgentSettings::default());
        agent.idled(WORKER, MS.times(4));
        let (decisions, tallies) = interval(&mut agent, sample(20, 20, 1));
        assert!(decisions.is_empty());
        let depths = alloc::vec![(WORKER, 2)];
        let told = SliceTally { slice: SLICE, overloads: 0, idle_milli: 400, depths, tasks: 500 };
        assert_eq!(tallies, [told]);
    }

    #[test]
    fn workers_that_are_to_stay_are_never_said_to_be_idle() {
        let mut agent = agent(2, AgentSettings { lends: false, ..AgentSettings::default() });
        agent.idled(WORKER, MS.times(4));
        assert_eq!(interval(&mut agent, sample(20, 20, 1)).1[0].idle_milli, 0);
    }

    #[test]
    fn an_adviser_says_what_it_would_do_and_does_it_not() {
        let mut agent = agent(2, AgentSettings { mode: Mode::Advise, ..AgentSettings::default() });
        for _ in 0..2 {
            assert_eq!(interval(&mut agent, sample(200, 0, 3)).0[0].to, 3);
            assert_eq!(agent.depth(WORKER), Some(2));
        }
    }

    #[test]
    fn an_interval_without_tasks_says_nothing_of_the_depth() {
        let mut agent = agent(2, AgentSettings::default());
        interval(&mut agent, sample(200, 0, 3));
        let mut decisions = Vec::new();
        agent.tick(agent.deadline(), &mut decisions, &mut Vec::new());
        assert_eq!((decisions.len(), agent.depth(WORKER)), (0, Some(3)));
    }

    #[test]
    fn another_slice_begins_with_new_samples() {
        let mut agent = agent(2, AgentSettings::default());
        agent.finished(Nanos(1), WORKER, sample(200, 0, 3));
        agent.serves(MS, WORKER, SliceId(1), 4);
        let mut decisions = Vec::new();
        agent.tick(agent.deadline(), &mut decisions, &mut Vec::new());
        assert_eq!((decisions.len(), agent.depth(WORKER)), (0, Some(4)));
        agent.gone(WORKER);
        assert_eq!(agent.depth(WORKER), None);
    }

    #[test]
    fn the_same_slice_again_keeps_what_was_sampled() {
        let mut agent = agent(2, AgentSettings::default());
        let end = agent.deadline();
        for at in 0..250 {
            agent.finished(Nanos::from_micros(20).times(at), WORKER, sample(200, 0, 3));
        }
        agent.serves(MS.times(5), WORKER, SLICE, 4);
        let (mut decisions, mut tallies) = (Vec::new(), Vec::new());
        agent.tick(end, &mut decisions, &mut tallies);
        assert_eq!((decisions[0].from, decisions[0].to, tallies[0].tasks), (4, 5, 250));
    }

    #[test]
    fn intervals_end_together_however_late_one_was_closed() {
        let mut agent = agent(2, AgentSettings::default());
        let interval = agent.settings.interval;
        let ends = agent.deadline();
        let tick = |agent: &mut Agent, at| agent.tick(at, &mut Vec::new(), &mut Vec::new());
        tick(&mut agent, ends + MS);
        assert_eq!(agent.deadline(), ends + interval, "a little late");
        let late = agent.deadline() + interval;
        tick(&mut agent, late);
        assert_eq!(agent.deadline(), late + interval, "late by a whole interval");
    }

    #[test]
    fn samples_are_their_worker_s_in_whatever_order_workers_came() {
        let mut agent = Agent::new(Nanos(0), AgentSettings::default()).expect("sound settings");
        for worker in [1, 0] {
            agent.serves(Nanos(0), WorkerId(worker), SLICE, 2);
        }
        for at in 0..500 {
            agent.finished(Nanos::from_micros(20).times(at), WorkerId(0), sample(200, 0, 3));
        }
        agent.tick(agent.deadline(), &mut Vec::new(), &mut Vec::new());
        assert_eq!([0, 1].map(|worker| agent.depth(WorkerId(worker))), [Some(3), Some(2)]);
    }

    #[test]
    fn two_slices_are_judged_as_by_an_agent_each() {
        let way = WorkerOverhead { round_trip: Nanos::from_micros(3), busy: Nanos::from_micros(1) };
        let settings = AgentSettings { rule: Rule::Replay(way), ..AgentSettings::default() };
        let other = WorkerId(8);
        let mut both = agent(2, settings);
        both.serves(Nanos(0), other, SliceId(1), 5);
        let mut one = agent(2, settings);
        let mut two = Agent::new(Nanos(0), settings).expect("in range");
        two.serves(Nanos(0), other, SliceId(1), 5);
        for _ in 0..4 {
            let ends = both.deadline();
            let mut now = ends - settings.interval;
            while now < ends {
                for agent in [&mut both, &mut one] {
                    agent.finished(now, WORKER, sample(0, 0, 0));
                }
                for agent in [&mut both, &mut two] {
                    agent.finished(now, other, sample(300, 150, 6));
                }
                now = now + Nanos::from_micros(12);
            }
            let closed = |agent: &mut Agent| {
                let (mut decisions, mut tallies) = (Vec::new(), Vec::new());
                agent.tick(ends, &mut decisions, &mut tallies);
                (decisions, tallies)
            };
            let (mut expected, (decisions, tallies)) = (closed(&mut one), closed(&mut two));
            expected.0.extend(decisions);
            expected.1.extend(tallies);
            assert_eq!(closed(&mut both), expected);
            assert_eq!((both.depth(WORKER), both.depth(other)), (one.depth(WORKER), two.depth(other)));
        }
        assert!(both.depth(other) != Some(5), "something was decided");
    }

    #[test]
    fn what_others_did_is_heard_where_depths_are_replayed_and_reckoned_with_once_for_the_last_interval() {
        let way = WorkerOverhead { round_trip: Nanos::from_micros(3), busy: Nanos::from_micros(1) };
        let settings = AgentSettings { rule: Rule::Replay(way), ..AgentSettings::default() };
        let others = [SliceOthers { slice: SLICE, workers: 1, heard: 1, tasks: 9_000 }];
        let after = |told: &[Nanos]| {
            let mut agent = agent(2, settings);
            interval(&mut agent, sample(10, 10, 0));
            for ended in told {
                agent.told(*ended, &others);
            }
            alloc::format!("{:?}", agent.slices)
        };
        let [before, last] = [Nanos(0), settings.interval];
        let known = after(&[]);
        assert!(after(&[before]) != known && after(&[before]).contains("last: Some"));
        assert!(after(&[last]).contains("last: None"), "the last one was put right");
        assert_eq!(after(&[last, last]), after(&[last]));
        let mut stepping = agent(2, AgentSettings::default());
        stepping.told(Nanos(0), &others);
        assert!(stepping.slices.is_empty());
    }

    #[test]
    fn settings_out_of_range_are_refused_in_one_line() {
        let plain = AgentSettings::default();
        for settings in [
            AgentSettings { theta: 1.5, ..plain },
            AgentSettings { theta: f64::NAN, ..plain },
            AgentSettings { slowdown_max: 1.0, ..plain },
            AgentSettings { depth_max: 9, ..plain },
            AgentSettings { interval: Nanos(1), ..plain },
        ] {
            let said = alloc::format!("{}", Agent::new(Nanos(0), settings).expect_err("out of range"));
            assert!(!said.contains('\n') && said.contains(':') || said.contains("outside"), "{said}");
        }
    }

    #[test]
    fn an_interval_of_one_sample_is_one() {
        let plain = AgentSettings::default();
        assert!(Agent::new(Nanos(0), AgentSettings { interval: plain.sample_every, ..plain }).is_ok());
    }

    #[test]
    fn a_decision_reads_as_one_line_with_its_numbers() {
        let mut agent = agent(2, AgentSettings::default());
        let said = alloc::format!("{}", interval(&mut agent, sample(150, 50, 3)).0[0]);
        let meant =
            "worker 3: depth 2 to 3: p99 slowdown 21.0, 25 % of the wait at the worker, p99 switch queue 3";
        assert_eq!(said, meant);
    }

    proptest! {
        #[test]
        fn depths_move_by_one_and_stay_within_their_bounds(
            tasks in proptest::collection::vec((0_u64..500, 0_u64..500, 0_u32..4), 1..60),
            start in 1_u8..=8,
            most in 1_u8..=8,
        ) {
            let mut agent = agent(start.min(most), AgentSettings { depth_max: most, ..AgentSettings::default() });
            for (switch_us, worker_us, occupancy) in tasks {
                let before = agent.depth(WORKER).expect("it is a member");
                let (decisions, tallies) = interval(&mut agent, sample(switch_us, worker_us, occupancy));
                let after = agent.depth(WORKER).expect("it is a member");
                prop_assert!(after.abs_diff(before) <= 1 && (1..=most).contains(&after));
                prop_assert_eq!(decisions.iter().any(|decision| decision.to != before), after != before);
                prop_assert_eq!(&tallies[0].depths, &[(WORKER, after)]);
            }
        }

        #[test]
        fn samples_count_as_if_each_had_been_looked_at(
            gaps in proptest::collection::vec(1_u64..90_000, 1..200),
            waits in proptest::collection::vec(0_u64..900, 200),
        ) {
            let mut agent = agent(2, AgentSettings::default());
            let every = agent.settings.sample_every.0;
            let (mut now, mut seen, mut last) = (0, Vec::new(), None);
            for (gap, wait) in gaps.iter().zip(&waits) {
                let next = (now + gap).min(agent.deadline().0);
                seen.extend((now / every..next / every).filter_map(|_| last));
                now = next;
                agent.finished(Nanos(now), WORKER, sample(*wait, 0, 0));
                last = Some(*wait);
            }
            seen.extend((now / every..agent.deadline().0 / every).filter_map(|_| last));
            seen.sort_unstable();
            let end = agent.deadline();
            let numbers = agent.members[0].gauge.close(end, Sampling::new(Nanos(every)), MS);
            prop_assert_eq!(numbers.samples, seen.len() as u64);
            let p99 = seen.len().checked_sub(1 + seen.len() / 100).map_or(0.0, |at| 1.0 + seen[at] as f64 / 10.0);
            prop_assert!((numbers.slowdown_p99 - p99).abs() < 1e-9, "{} {p99}", numbers.slowdown_p99);
        }
    }
}
