//! The decisions of adaptive agents and of the controller's slice step in a run: printed while they happen,
//! and stored.
//!
//! Intervals of several servers that end together count as one: their workers are added up, and their
//! slowdowns are merged before a percentile is computed.

use std::collections::BTreeMap;

use sluice_net::agent::{Slowdowns, judgement_lines};
use sluice_outcome::run::{Decision, VerdictNumbers};
use sluice_outcome::study::SliceDepths;
use sluice_rpc::v1::{AgentInterval, Judgement, SliceInterval, SliceStep, Verdict, WatchResponse};

/// How many decisions of a run are stored one by one; later ones only appear in the depths.
const KEPT_MAX: usize = 20_000;

/// The decisions so far.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// The names of slices, in the order of their indices.
    slices: Vec<String>,
    rows: Vec<Row>,
    moves: Vec<u64>,
    kept: Vec<Decision>,
    /// Each worker's last judgement: a repetition is not reported.
    last: BTreeMap<(String, u32), Judged>,
}

/// The verdict, the depth before, and the depth after.
type Judged = (i32, u32, u32);

/// A slice at the end of an interval.
#[derive(Clone, Debug, Default)]
struct Row {
    ended_unix_ns: u64,
    lasted_ns: u64,
    slice: u32,
    workers: BTreeMap<u32, u32>,
    deeper: u32,
    shallower: u32,
    overloaded: u32,
    tasks: u64,
    slowdowns: Slowdowns,
    idle_milli: u32,
}

impl Decisions {
    /// No decisions yet; `slices` are the slices' names in the order of their indices.
    pub fn of(slices: Vec<String>) -> Self {
        Self { slices, ..Self::default() }
    }

    /// Takes an event of the controller. Returns the lines about new decisions.
    pub fn on_event(&mut self, event: &WatchResponse) -> Vec<String> {
        if let Some(interval) = &event.interval {
            return self.found(interval);
        }
        if let Some(step) = &event.step {
            self.stepped(event, step);
        }
        if event.text.is_empty() { Vec::new() } else { vec![event.text.clone()] }
    }

    /// The state of the slices, interval by interval, from a moment on; times are divided by the dilation.
    pub fn depths(&self, from_unix_ns: u64, dilation: u32) -> Vec<SliceDepths> {
        let of = |row: &Row| {
            let until = row.ended_unix_ns + row.lasted_ns / 2;
            let moves = self.moves.iter().filter(|at| (from_unix_ns..until).contains(at)).count();
            row.depths(
                row.ended_unix_ns.saturating_sub(from_unix_ns) / u64::from(dilation.max(1)),
                moves as u32,
            )
        };
        self.rows.iter().filter(|row| row.ended_unix_ns > from_unix_ns).map(of).collect()
    }

    /// The stored decisions, with times since this moment.
    pub fn kept(&self, from_unix_ns: u64) -> Vec<Decision> {
        let of = |decision: &Decision| {
            let at_s = (i128::from(decision.at_unix_ns) - i128::from(from_unix_ns)) as f64 / 1e9;
            Decision { at_s, ..decision.clone() }
        };
        self.kept.iter().map(of).collect()
    }

    fn found(&mut self, interval: &AgentInterval) -> Vec<String> {
        let mut news = interval.clone();
        for slice in &mut news.slices {
            self.count(interval, slice);
            slice.judgements.retain(|judgement| self.is_new(&interval.server, judgement));
            let name = self.name(slice.slice);
            for judgement in &slice.judgements {
                let alone = SliceInterval { judgements: vec![*judgement], ..slice.clone() };
                let alone = AgentInterval { slices: vec![alone], ..interval.clone() };
                let text = judgement_lines(&alone, |_| name.clone()).join("; ");
                self.keep(decision(interval, &name, judgement, text));
            }
        }
        self.forget_calm(interval);
        judgement_lines(&news, |slice| self.name(slice))
    }

    fn count(&mut self, interval: &AgentInterval, slice: &SliceInterval) {
        let (ended, lasted) = (interval.ended_unix_ns, interval.lasted_ns);
        let is_same = |row: &Row| row.slice == slice.slice && row.ended_unix_ns.abs_diff(ended) < lasted / 2;
        let place = self.rows.iter().rposition(is_same).unwrap_or_else(|| {
            self.rows.push(Row::new(ended, lasted, slice.slice));
            self.rows.len() - 1
        });
        self.rows[place].add(slice);
    }

    fn is_new(&mut self, server: &str, judgement: &Judgement) -> bool {
        let judged = (judgement.verdict, judgement.from, judgement.to);
        self.last.insert((server.to_owned(), judgement.worker), judged) != Some(judged)
    }

    /// Forgets workers whose verdict has become calm, so that their next verdict is reported.
    fn forget_calm(&mut self, interval: &AgentInterval) {
        let judged = |worker| interval.slices.iter().any(|s| s.judgements.iter().any(|j| j.worker == worker));
        self.last.retain(|(server, worker), _| *server != interval.server || judged(*worker));
    }

    fn stepped(&mut self, event: &WatchResponse, step: &SliceStep) {
        let slice = self.slices.iter().position(|name| *name == step.slice).map(|slice| slice as u32);
        let row = self.rows.iter_mut().rev().find(|row| Some(row.slice) == slice);
        match &step.lending {
            None => {
                if let Some(row) = row {
                    row.workers.values_mut().for_each(|depth| *depth = step.depth);
                }
            }
            Some(lending) => {
                self.moves.push(event.at_unix_ns);
                if let Some(row) =
                    self.rows.iter_mut().rev().find(|row| row.workers.contains_key(&lending.worker))
                {
                    row.workers.remove(&lending.worker);
                }
            }
        }
        self.keep(Decision {
            at_s: 0.0,
            at_unix_ns: event.at_unix_ns,
            what: if step.lending.is_some() { "lent" } else { "evened" },
            advised: false,
            slice: step.slice.clone(),
            worker: step.lending.as_ref().map(|lending| lending.worker),
            from_depth: None,
            to_depth: Some(step.depth),
            from_slice: step.lending.as_ref().map(|lending| lending.from.clone()),
            numbers: None,
            text: event.text.clone(),
        });
    }

    fn keep(&mut self, decision: Decision) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(decision);
        }
    }

    fn name(&self, slice: u32) -> String {
        self.slices.get(slice as usize).cloned().unwrap_or_else(|| slice.to_string())
    }
}

/// A judgement in the form of results.
fn decision(interval: &AgentInterval, slice: &str, judgement: &Judgement, text: String) -> Decision {
    Decision {
        at_s: 0.0,
        at_unix_ns: interval.ended_unix_ns,
        what: match judgement.verdict() {
            Verdict::Deeper => "deeper",
            Verdict::Shallower => "shallower",
            Verdict::Overloaded => "overloaded",
            Verdict::Calm | Verdict::Unspecified => "calm",
        },
        advised: interval.advises,
        slice: slice.to_owned(),
        worker: Some(judgement.worker),
        from_depth: Some(judgement.from),
        to_depth: Some(judgement.to),
        from_slice: None,
        numbers: Some(VerdictNumbers {
            slowdown_p99: judgement.slowdown_p99,
            worker_share: judgement.worker_share,
            occupancy_p99: judgement.occupancy_p99,
            idle_share: judgement.idle_share,
            samples: judgement.samples,
            tasks: judgement.tasks,
        }),
        text,
    }
}

impl Row {
    fn new(ended_unix_ns: u64, lasted_ns: u64, slice: u32) -> Self {
        Self { ended_unix_ns, lasted_ns, slice, ..Self::default() }
    }

    fn add(&mut self, slice: &SliceInterval) {
        self.workers.extend(slice.workers.iter().map(|worker| (worker.worker, worker.depth)));
        let of =
            |verdict| slice.judgements.iter().filter(|judged| judged.verdict() == verdict).count() as u32;
        self.deeper += of(Verdict::Deeper);
        self.shallower += of(Verdict::Shallower);
        self.overloaded += of(Verdict::Overloaded);
        self.tasks += slice.tasks;
        for count in &slice.slowdowns {
            self.slowdowns.add(count.at_least_milli, count.tasks);
        }
        self.idle_milli += slice.idle_milli;
    }

    fn depths(&self, at_ns: u64, moves: u32) -> SliceDepths {
        let depths = || self.workers.values().map(|depth| u8::try_from(*depth).unwrap_or(u8::MAX));
        let sum: f64 = depths().map(f64::from).sum();
        SliceDepths {
            at_ns,
            slice: self.slice,
            workers: self.workers.len() as u32,
            depth_mean: sum / self.workers.len().max(1) as f64,
            depth_min: depths().min().unwrap_or(0),
            depth_max: depths().max().unwrap_or(0),
            deeper: self.deeper,
            shallower: self.shallower,
            overloaded: self.overloaded,
            tasks: self.tasks,
            slowdown_p99: f64::from(self.slowdowns.p99_milli()) / 1e3,
            // Agents count slowdowns only; `live::follow`, which sees the replies, fills in the responses.
            response_p99_ns: 0.0,
            idle_workers: f64::from(self.idle_milli) / 1e3,
            moves,
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_rpc::v1::{Lending, SlowdownCount, WorkerDepth};

    use super::*;

    const MS: u64 = 1_000_000;

    fn judgement(worker: u32, verdict: Verdict, from: u32, to: u32) -> Judgement {
        Judgement { worker, from, to, verdict: verdict.into(), slowdown_p99: 12.0, ..Judgement::default() }
    }

    fn found(
        server: &str,
        ended_ms: u64,
        workers: &[(u32, u32)],
        judgements: Vec<Judgement>,
    ) -> WatchResponse {
        let workers = workers.iter().map(|(worker, depth)| WorkerDepth { worker: *worker, depth: *depth });
        let slice = SliceInterval {
            slice: 1,
            workers: workers.collect(),
            judgements,
            tasks: 50,
            slowdowns: vec![SlowdownCount { at_least_milli: 2_048, tasks: 50 }],
            ..SliceInterval::default()
        };
        let interval = AgentInterval {
            server: server.to_owned(),
            ended_unix_ns: ended_ms * MS,
            lasted_ns: 10 * MS,
            slices: vec![slice],
            ..AgentInterval::default()
        };
        WatchResponse { interval: Some(interval), ..WatchResponse::default() }
    }

    fn decisions() -> Decisions {
        Decisions::of(vec!["get".to_owned(), "scan".to_owned()])
    }

    #[test]
    fn servers_whose_intervals_end_together_are_counted_together() {
        let mut decisions = decisions();
        decisions.on_event(&found("a", 10, &[(0, 2), (1, 2)], vec![judgement(0, Verdict::Deeper, 1, 2)]));
        decisions.on_event(&found("b", 11, &[(2, 5)], Vec::new()));
        decisions.on_event(&found("a", 20, &[(0, 2), (1, 2)], Vec::new()));
        let depths = decisions.depths(0, 1);
        assert_eq!(depths.len(), 2);
        let first = depths[0];
        assert_eq!((first.workers, first.depth_min, first.depth_max, first.deeper), (3, 2, 5, 1));
        assert_eq!((first.tasks, first.at_ns), (100, 10 * MS));
        assert!((first.depth_mean - 3.0).abs() < 1e-9 && (first.slowdown_p99 - 2.048).abs() < 1e-9);
    }

    #[test]
    fn a_judgement_that_repeats_itself_is_told_and_kept_once() {
        let mut decisions = decisions();
        let overloaded = || vec![judgement(0, Verdict::Overloaded, 1, 1)];
        assert_eq!(decisions.on_event(&found("a", 10, &[(0, 1)], overloaded())).len(), 1);
        assert!(decisions.on_event(&found("a", 20, &[(0, 1)], overloaded())).is_empty());
        assert!(decisions.on_event(&found("a", 30, &[(0, 1)], Vec::new())).is_empty());
        let said = decisions.on_event(&found("a", 40, &[(0, 1)], overloaded()));
        assert!(
            said[0].starts_with("slice scan: worker 0 overloaded at depth 1: p99 slowdown 12.0"),
            "{said:?}"
        );
        assert_eq!(decisions.kept(0).len(), 2);
        assert_eq!(decisions.depths(0, 1).iter().map(|depths| depths.overloaded).sum::<u32>(), 3);
    }

    #[test]
    fn a_lent_worker_leaves_its_slice_and_counts_as_a_move_from_then_on() {
        let mut decisions = decisions();
        decisions.on_event(&found("a", 10, &[(0, 1), (1, 1)], Vec::new()));
        let lending = Some(Lending { worker: 1, from: "scan".to_owned() });
        let step = SliceStep { slice: "get".to_owned(), depth: 3, lending };
        let text = "slice scan lends worker w".to_owned();
        let event = WatchResponse { at_unix_ns: 11 * MS, text, step: Some(step), ..WatchResponse::default() };
        assert_eq!(decisions.on_event(&event), ["slice scan lends worker w"]);
        decisions.on_event(&found("a", 20, &[(0, 1)], Vec::new()));
        let depths = decisions.depths(0, 1);
        assert_eq!(depths.iter().map(|d| (d.workers, d.moves)).collect::<Vec<_>>(), [(1, 1), (1, 1)]);
        let kept = &decisions.kept(1_000 * MS)[0];
        assert_eq!((kept.what, kept.worker, kept.from_slice.as_deref()), ("lent", Some(1), Some("scan")));
        assert!(kept.at_s < -0.98);
    }

    #[test]
    fn depths_that_were_evened_out_hold_at_once() {
        let mut decisions = decisions();
        decisions.on_event(&found("a", 10, &[(0, 1), (1, 5)], Vec::new()));
        let step = Some(SliceStep { slice: "scan".to_owned(), depth: 3, lending: None });
        decisions.on_event(&WatchResponse { step, ..WatchResponse::default() });
        let depths = decisions.depths(0, 1)[0];
        assert_eq!((depths.depth_min, depths.depth_max), (3, 3));
    }
}
