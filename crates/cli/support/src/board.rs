//! The state of a running rack and load: written by both, read by the live view.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use sluice_rpc::v1::RecentWork;

use crate::decisions::Decisions;
use crate::peers::PeerDifference;
use crate::utc;

/// The state of a run, shared between threads.
#[derive(Clone, Default)]
pub struct Board {
    inner: Arc<Mutex<BoardState>>,
    decisions: Arc<Mutex<Decisions>>,
}

/// Everything that the board shows.
#[derive(Clone, Debug, Default)]
pub struct BoardState {
    /// The moment from which all times count, once it has come.
    pub zero: Option<RunStart>,
    /// The load's state, once it runs.
    pub load: Option<LoadNow>,
    /// The rack's state, once it was asked for.
    pub rack: Option<RackNow>,
    /// What happened, in order.
    pub notes: Vec<BoardNote>,
}

/// The moment from which all times of a run count, in events and results.
#[derive(Clone, Debug)]
pub struct RunStart {
    at: Instant,
    /// The time in the format of log files.
    stamp: String,
    pub what: &'static str,
}

/// The state of the load.
#[derive(Clone, Debug, Default)]
pub struct LoadNow {
    /// Since its start.
    pub elapsed: Duration,
    /// The length of the load, including the warm-up.
    pub length: Duration,
    /// The length of the warm-up.
    pub warm_up: Duration,
    /// Tasks so far, including the warm-up.
    pub sent: u64,
    /// Replies so far.
    pub replied: u64,
    /// Refusals so far.
    pub refused: u64,
    /// Those of the refused tasks whose budget was spent.
    pub late: u64,
    /// Unknown outcomes so far.
    pub unknown: u64,
    /// Tasks without an outcome yet.
    pub outstanding: u64,
    /// Tasks that the client library has not accepted yet.
    pub pushed_back: usize,
    /// The last second, by type.
    pub kinds: Vec<KindNow>,
    /// Replies per second in each stretch of the run.
    pub history: Vec<u64>,
    /// The length of a stretch.
    pub history_every: Duration,
    /// The mean number of tasks at each worker over the last second, by the worker's index.
    pub depths: Vec<f64>,
}

impl LoadNow {
    /// How many tasks were refused, and how many of them because their budget was spent.
    pub fn refused_text(&self) -> String {
        let late = if self.late > 0 { format!(" ({} late)", self.late) } else { String::new() };
        format!("{}{late}", self.refused)
    }
}

/// The last second of one type.
#[derive(Clone, Debug, Default)]
pub struct KindNow {
    pub name: String,
    /// Tasks that were due, per second.
    pub due_per_s: f64,
    /// Replies per second.
    pub replied_per_s: f64,
    /// The 50th, 99th and 99.9th percentile of the latency, in ns.
    pub latency_ns: [u64; 3],
    /// The 50th, 99th and 99.9th percentile of the slowdown.
    pub slowdown: [f64; 3],
}

/// The state of the rack, or of racks below spines.
#[derive(Clone, Debug, Default)]
pub struct RackNow {
    /// The state of the switch, or of each spine; empty before it was asked for.
    pub switches: Vec<SwitchNow>,
    pub slices: Vec<SliceNow>,
    pub workers: Vec<WorkerNow>,
}

/// The state of a switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct SwitchNow {
    /// The switch's epoch; 0 before it was reached.
    pub epoch: u32,
    /// Whether the switch's controller answers and reaches the switch.
    pub up: bool,
}

impl RackNow {
    /// Whether all switches are up.
    pub fn is_up(&self) -> bool {
        !self.switches.is_empty() && self.switches.iter().all(|switch| switch.up)
    }

    /// Whether the switch has ever been up.
    pub fn was_up(&self) -> bool {
        self.switches.iter().any(|switch| switch.epoch != 0)
    }

    /// Joins several spines into one: what the spines that are up have, or, if none is up, what all of them
    /// had.
    pub fn all_of(spines: &[Self]) -> Self {
        let switches = spines.iter().map(|spine| spine.switches.first().copied().unwrap_or_default());
        let switches: Vec<SwitchNow> = switches.collect();
        let none_is_up = switches.iter().all(|switch| !switch.up);
        let shown = spines.iter().zip(&switches).filter(|(_, switch)| switch.up || none_is_up);
        let mut all = Self { switches: switches.clone(), ..Self::default() };
        for (spine, _) in shown {
            for slice in &spine.slices {
                match all.slices.iter_mut().find(|known| known.name == slice.name) {
                    Some(known) => known.add(slice),
                    None => all.slices.push(slice.clone()),
                }
            }
            all.workers.extend(spine.workers.iter().cloned());
        }
        all.workers.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }
}

/// The state of a slice.
#[derive(Clone, Debug, Default)]
pub struct SliceNow {
    pub name: String,
    /// Parked tokens (positive) or waiting tasks (negative).
    pub balance: i32,
    /// How many tokens its workers may park.
    pub tokens_max: u32,
    /// How many tasks may wait.
    pub tasks_max: u32,
}

impl SliceNow {
    fn add(&mut self, other: &Self) {
        self.balance = self.balance.saturating_add(other.balance);
        self.tokens_max = self.tokens_max.saturating_add(other.tokens_max);
        self.tasks_max = self.tasks_max.saturating_add(other.tasks_max);
    }
}

/// The state of a worker.
#[derive(Clone, Debug, Default)]
pub struct WorkerNow {
    pub index: u16,
    pub name: String,
    pub slice: String,
    /// How many tasks the worker may have granted or held.
    pub quota: u32,
    /// The worker's phase, in one word.
    pub phase: &'static str,
    /// How many workers it represents, if it is a leaf; otherwise zero.
    pub stands_for: u32,
    /// The worker's work over the last seconds.
    pub recent: RecentWork,
    /// How it differs from its peers, if it does.
    pub apart: Option<PeerDifference>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct BoardNote {
    /// The time of the note; `None` before times count.
    pub at: Option<Duration>,
    /// The wall clock then.
    pub clock: SystemTime,
    pub text: String,
    /// Whether the note is about the begin of a fault, the end of a fault, or neither.
    pub kind: NoteKind,
}

/// The kind of event in a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// Nothing special.
    Plain,
    /// A planned kill.
    Kill,
    /// An unplanned fault.
    Fault,
    /// Something came back.
    Back,
}

impl RunStart {
    /// The moment from which times count, in the format of log files.
    pub fn text(&self) -> String {
        format!("{} ({})", self.what, self.stamp)
    }
}

impl BoardNote {
    /// The time as text of fixed width: seconds, or a mark for a time before times count.
    pub fn when(&self) -> String {
        self.at.map_or_else(|| format!("{:>10}", "before"), |at| format!("{:8.2} s", at.as_secs_f64()))
    }
}

impl Board {
    /// Starts to count times: `what` happened now.
    pub fn begin(&self, what: &'static str) {
        self.lock().zero = Some(RunStart { at: Instant::now(), stamp: utc::stamp(SystemTime::now()), what });
    }

    /// Adds a note about an event that happened now.
    pub fn note(&self, kind: NoteKind, text: impl Into<String>) {
        let mut known = self.lock();
        let at = known.zero.as_ref().map(|zero| zero.at.elapsed());
        known.notes.push(BoardNote { at, clock: SystemTime::now(), text: text.into(), kind });
    }

    /// Sets the names of slices in agents' intervals, in the order of their indices.
    pub fn name_slices(&self, slices: Vec<String>) {
        *self.decided() = Decisions::of(slices);
    }

    /// The decisions of agents and the slice step.
    pub fn decided(&self) -> MutexGuard<'_, Decisions> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the load's state.
    pub fn show_load(&self, load: LoadNow) {
        self.lock().load = Some(load);
    }

    /// Sets the rack's state.
    pub fn show_rack(&self, rack: RackNow) {
        self.lock().rack = Some(rack);
    }

    /// A copy of the whole state.
    pub fn known(&self) -> BoardState {
        self.lock().clone()
    }

    /// The notes from number `first` on.
    pub fn notes_from(&self, first: usize) -> Vec<BoardNote> {
        self.lock().notes.get(first..).unwrap_or_default().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, BoardState> {
        // Every write is one assignment or push, so the data are consistent even after a panic of another
        // thread.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spine(up: bool, leaf: &str, balance: i32) -> RackNow {
        let slice = SliceNow { name: "get".into(), balance, tokens_max: 8, tasks_max: 100 };
        let worker = WorkerNow { name: leaf.into(), stands_for: 2, ..WorkerNow::default() };
        RackNow { switches: vec![SwitchNow { epoch: 7, up }], slices: vec![slice], workers: vec![worker] }
    }

    fn leaves(rack: &RackNow) -> Vec<&str> {
        rack.workers.iter().map(|worker| worker.name.as_str()).collect()
    }

    #[test]
    fn several_spines_are_one_with_the_leaves_of_all_that_are_up() {
        let both = RackNow::all_of(&[spine(true, "rack-2/get", 3), spine(true, "rack-1/get", -5)]);
        assert!(both.is_up());
        assert_eq!(leaves(&both), ["rack-1/get", "rack-2/get"]);
        assert_eq!((both.slices.len(), both.slices[0].balance, both.slices[0].tasks_max), (1, -2, 200));
        let one = RackNow::all_of(&[spine(false, "rack-2/get", 3), spine(true, "rack-1/get", -5)]);
        assert!(!one.is_up() && one.was_up());
        assert_eq!((leaves(&one), one.slices[0].balance), (vec!["rack-1/get"], -5));
        let none = RackNow::all_of(&[spine(false, "rack-2/get", 3), spine(false, "rack-1/get", -5)]);
        assert_eq!(leaves(&none).len(), 2, "as they stood before");
        assert!(!RackNow::all_of(&[RackNow::default()]).was_up());
    }
}
