//! What is known while a run is under way: written by the load and the rack, read by the live view.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::decisions::Decisions;

/// The present state of a run, shared between threads.
#[derive(Clone)]
pub(crate) struct Board {
    inner: Arc<Mutex<Known>>,
    decisions: Arc<Mutex<Decisions>>,
}

/// Everything that the board shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// What all times count from, once it happened, and what it was.
    pub(crate) zero: Option<Zero>,
    /// The load, once it runs.
    pub(crate) load: Option<LoadNow>,
    /// The rack, once it was asked.
    pub(crate) rack: Option<RackNow>,
    /// What happened, in order.
    pub(crate) notes: Vec<Note>,
}

/// The moment that all times of a run count from: those of events and those of results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zero {
    at: Instant,
    /// What happened then.
    pub(crate) what: &'static str,
}

/// How the load stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadNow {
    /// Since its start.
    pub(crate) elapsed: Duration,
    /// How long it is to last, warm-up included.
    pub(crate) length: Duration,
    /// How much of that is warm-up.
    pub(crate) warm_up: Duration,
    /// Tasks so far, warm-up included.
    pub(crate) sent: u64,
    /// Replies so far.
    pub(crate) replied: u64,
    /// Refusals so far.
    pub(crate) refused: u64,
    /// Unknown outcomes so far.
    pub(crate) unknown: u64,
    /// Tasks without an outcome yet.
    pub(crate) outstanding: u64,
    /// Tasks that the client library would not take yet.
    pub(crate) pushed_back: usize,
    /// The last second, type by type.
    pub(crate) kinds: Vec<KindNow>,
    /// Replies per second, one number for each stretch of the run.
    pub(crate) history: Vec<u64>,
    /// How long a stretch is.
    pub(crate) history_every: Duration,
    /// Tasks at each worker on average over the last second, by its index.
    pub(crate) depths: Vec<f64>,
}

/// The last second of one type.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindNow {
    /// Its name.
    pub(crate) name: String,
    /// Tasks that were due, per second.
    pub(crate) due_per_s: f64,
    /// Replies per second.
    pub(crate) replied_per_s: f64,
    /// 50th, 99th and 99.9th percentile of the latency, ns.
    pub(crate) latency_ns: [u64; 3],
    /// The same of the slowdown.
    pub(crate) slowdown: [f64; 3],
}

/// How the rack stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct RackNow {
    /// The switch's life; 0 while it is away.
    pub(crate) epoch: u32,
    /// Whether its controller answers and reaches it.
    pub(crate) up: bool,
    /// Its slices.
    pub(crate) slices: Vec<SliceNow>,
    /// Its workers.
    pub(crate) workers: Vec<WorkerNow>,
}

/// How a slice stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct SliceNow {
    /// Its name.
    pub(crate) name: String,
    /// Tokens parked (positive) or tasks waiting (negative).
    pub(crate) balance: i32,
    /// Tokens that its workers may have parked.
    pub(crate) tokens_max: u32,
    /// Tasks that may wait.
    pub(crate) tasks_max: u32,
}

/// How a worker stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerNow {
    /// Its index.
    pub(crate) index: u16,
    /// Its name.
    pub(crate) name: String,
    /// Its slice's name.
    pub(crate) slice: String,
    /// How many tasks it may have granted or held.
    pub(crate) quota: u32,
    /// What it is doing, in one word.
    pub(crate) phase: &'static str,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    /// Since the zero of all times; `None` for what was before.
    pub(crate) at: Option<Duration>,
    /// What.
    pub(crate) text: String,
    /// Whether it is a fault, or the end of one.
    pub(crate) kind: NoteKind,
}

/// What kind of event a note tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteKind {
    /// Nothing special.
    Plain,
    /// Something was killed, as the plan says.
    Kill,
    /// Something was found broken.
    Fault,
    /// Something came back.
    Back,
}

impl Note {
    /// When it happened, as wide as any other time: seconds, or that it was before they are counted.
    pub(crate) fn when(&self) -> String {
        self.at.map_or_else(|| format!("{:>10}", "before"), |at| format!("{:8.2} s", at.as_secs_f64()))
    }
}

impl Board {
    /// An empty board.
    pub(crate) fn new() -> Self {
        Self { inner: Arc::default(), decisions: Arc::default() }
    }

    /// All times count from now, when `what` happened.
    pub(crate) fn begin(&self, what: &'static str) {
        self.lock().zero = Some(Zero { at: Instant::now(), what });
    }

    /// Notes something that happened now.
    pub(crate) fn note(&self, kind: NoteKind, text: impl Into<String>) {
        let mut known = self.lock();
        let at = known.zero.map(|zero| zero.at.elapsed());
        known.notes.push(Note { at, text: text.into(), kind });
    }

    /// The slices of agents' intervals are called so, in the order of their indices.
    pub(crate) fn name_slices(&self, slices: Vec<String>) {
        *self.decided() = Decisions::of(slices);
    }

    /// What agents and the slice step decided.
    pub(crate) fn decided(&self) -> MutexGuard<'_, Decisions> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows how the load stands.
    pub(crate) fn show_load(&self, load: LoadNow) {
        self.lock().load = Some(load);
    }

    /// Shows how the rack stands.
    pub(crate) fn show_rack(&self, rack: RackNow) {
        self.lock().rack = Some(rack);
    }

    /// A copy of everything.
    pub(crate) fn known(&self) -> Known {
        self.lock().clone()
    }

    /// The notes from number `first` on.
    pub(crate) fn notes_from(&self, first: usize) -> Vec<Note> {
        self.lock().notes.get(first..).unwrap_or_default().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Every write is one assignment or push: what another thread left when it panicked is whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
