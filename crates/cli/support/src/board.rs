//! What is known while a run is under way: written by the load and the rack, read by the live view.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use sluice_rpc::v1::RecentWork;

use crate::decisions::Decisions;
use crate::peers::Apart;
use crate::utc;

/// The present state of a run, shared between threads.
#[derive(Clone, Default)]
pub struct Board {
    inner: Arc<Mutex<Known>>,
    decisions: Arc<Mutex<Decisions>>,
}

/// Everything that the board shows.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// What all times count from, once it happened, and what it was.
    pub zero: Option<Zero>,
    /// The load, once it runs.
    pub load: Option<LoadNow>,
    /// The rack, once it was asked.
    pub rack: Option<RackNow>,
    /// What happened, in order.
    pub notes: Vec<Note>,
}

/// The moment that all times of a run count from: those of events and those of results.
#[derive(Clone, Debug)]
pub struct Zero {
    at: Instant,
    /// As logs stamp it.
    stamp: String,
    pub what: &'static str,
}

/// How the load stands.
#[derive(Clone, Debug, Default)]
pub struct LoadNow {
    /// Since its start.
    pub elapsed: Duration,
    /// How long it is to last, warm-up included.
    pub length: Duration,
    /// How much of that is warm-up.
    pub warm_up: Duration,
    /// Tasks so far, warm-up included.
    pub sent: u64,
    /// Replies so far.
    pub replied: u64,
    /// Refusals so far.
    pub refused: u64,
    /// Unknown outcomes so far.
    pub unknown: u64,
    /// Tasks without an outcome yet.
    pub outstanding: u64,
    /// Tasks that the client library would not take yet.
    pub pushed_back: usize,
    /// The last second, type by type.
    pub kinds: Vec<KindNow>,
    /// Replies per second, one number for each stretch of the run.
    pub history: Vec<u64>,
    /// How long a stretch is.
    pub history_every: Duration,
    /// Tasks at each worker on average over the last second, by its index.
    pub depths: Vec<f64>,
}

/// The last second of one type.
#[derive(Clone, Debug, Default)]
pub struct KindNow {
    pub name: String,
    /// Tasks that were due, per second.
    pub due_per_s: f64,
    /// Replies per second.
    pub replied_per_s: f64,
    /// 50th, 99th and 99.9th percentile of the latency, ns.
    pub latency_ns: [u64; 3],
    /// The same of the slowdown.
    pub slowdown: [f64; 3],
}

/// How the rack stands, or racks below spines do.
#[derive(Clone, Debug, Default)]
pub struct RackNow {
    /// Its switch, or each spine; none before it was asked.
    pub switches: Vec<SwitchNow>,
    pub slices: Vec<SliceNow>,
    pub workers: Vec<WorkerNow>,
}

/// How a switch stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct SwitchNow {
    /// Its life; 0 before it was reached.
    pub epoch: u32,
    /// Whether its controller answers and reaches it.
    pub up: bool,
}

impl RackNow {
    /// Whether all its switches are up.
    pub fn is_up(&self) -> bool {
        !self.switches.is_empty() && self.switches.iter().all(|switch| switch.up)
    }

    /// Whether it has been up.
    pub fn was_up(&self) -> bool {
        self.switches.iter().any(|switch| switch.epoch != 0)
    }

    /// Several spines as one: what those have that are up, or what all had that are away.
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

/// How a slice stands.
#[derive(Clone, Debug, Default)]
pub struct SliceNow {
    pub name: String,
    /// Tokens parked (positive) or tasks waiting (negative).
    pub balance: i32,
    /// Tokens that its workers may have parked.
    pub tokens_max: u32,
    /// Tasks that may wait.
    pub tasks_max: u32,
}

impl SliceNow {
    fn add(&mut self, other: &Self) {
        self.balance = self.balance.saturating_add(other.balance);
        self.tokens_max = self.tokens_max.saturating_add(other.tokens_max);
        self.tasks_max = self.tasks_max.saturating_add(other.tasks_max);
    }
}

/// How a worker stands.
#[derive(Clone, Debug, Default)]
pub struct WorkerNow {
    pub index: u16,
    pub name: String,
    pub slice: String,
    /// How many tasks it may have granted or held.
    pub quota: u32,
    /// What it is doing, in one word.
    pub phase: &'static str,
    /// How many workers it stands for, if it is a leaf; else zero.
    pub stands_for: u32,
    /// What it did over the last seconds.
    pub recent: RecentWork,
    /// In what it differs from its peers, if it does.
    pub apart: Option<Apart>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Note {
    /// Since the zero of all times; `None` for what was before.
    pub at: Option<Duration>,
    pub text: String,
    /// Whether it is a fault, or the end of one.
    pub kind: NoteKind,
}

/// What kind of event a note tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// Nothing special.
    Plain,
    /// Something was killed, as the plan says.
    Kill,
    /// Something was found broken.
    Fault,
    /// Something came back.
    Back,
}

impl Zero {
    /// What times count from, as logs stamp it too.
    pub fn told(&self) -> String {
        format!("{} ({})", self.what, self.stamp)
    }
}

impl Note {
    /// When it happened, as wide as any other time: seconds, or that it was before they are counted.
    pub fn when(&self) -> String {
        self.at.map_or_else(|| format!("{:>10}", "before"), |at| format!("{:8.2} s", at.as_secs_f64()))
    }
}

impl Board {
    /// All times count from now, when `what` happened.
    pub fn begin(&self, what: &'static str) {
        self.lock().zero = Some(Zero { at: Instant::now(), stamp: utc::stamp(SystemTime::now()), what });
    }

    /// Notes something that happened now.
    pub fn note(&self, kind: NoteKind, text: impl Into<String>) {
        let mut known = self.lock();
        let at = known.zero.as_ref().map(|zero| zero.at.elapsed());
        known.notes.push(Note { at, text: text.into(), kind });
    }

    /// The slices of agents' intervals are called so, in the order of their indices.
    pub fn name_slices(&self, slices: Vec<String>) {
        *self.decided() = Decisions::of(slices);
    }

    /// What agents and the slice step decided.
    pub fn decided(&self) -> MutexGuard<'_, Decisions> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows how the load stands.
    pub fn show_load(&self, load: LoadNow) {
        self.lock().load = Some(load);
    }

    /// Shows how the rack stands.
    pub fn show_rack(&self, rack: RackNow) {
        self.lock().rack = Some(rack);
    }

    /// A copy of everything.
    pub fn known(&self) -> Known {
        self.lock().clone()
    }

    /// The notes from number `first` on.
    pub fn notes_from(&self, first: usize) -> Vec<Note> {
        self.lock().notes.get(first..).unwrap_or_default().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Every write is one assignment or push: what another thread left when it panicked is whole.
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
