//! The tables that a controller writes into a switch, and reads back from it.
//!
//! Each [`TableOp`] is answered by one [`TableAnswer`], in order. The operations are the small steps that a
//! real switch offers. The controller composes them into larger changes (a worker joins, moves, dies).

use crate::serving::{Labels, Serving};
pub use crate::sizes::KINDS_MAX;
use crate::{
    ClientId, Endpoint, Epoch, Generation, Incarnation, Key, Nanos, Psn, Qpn, Rkey, Serial, ServerId,
    SliceId, Sweep, TaskType, Term, WorkerId,
};

/// The sizes of a switch, and its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The epoch of the switch's registers.
    pub epoch: Epoch,
    /// The controller that the switch obeys: the one with the highest term so far.
    pub term: Term,
    /// Worker indices are below this.
    pub workers: u16,
    /// Client indices are below this.
    pub clients: u16,
    /// Slice indices are below this.
    pub slices: u16,
    /// Task types are below this.
    pub types: u16,
    /// Server indices are below this; zero if the switch writes nothing ahead.
    pub servers: u16,
    /// Tasks that one slice's ring can hold.
    pub tasks_per_slice: u32,
    /// Tokens that one slice's ring can hold.
    pub tokens_per_slice: u32,
    /// The largest quota of a worker that the switch accepts. Each worker counts with so many tokens in a
    /// ring.
    pub quota_max: u8,
    /// Replay cells per client: no client may have more tasks outstanding. A power of two.
    pub replay_cells: u32,
    /// How workers get their tasks from the switch.
    pub feed: Feed,
    /// How many classes of tasks the switch tells apart, by their priority; each has a ring of
    /// `tasks_per_slice`. 1 if it tells none.
    pub classes: u8,
    /// How many kinds of workers the switch tells apart, by what they serve; 1 if any worker takes any task
    /// of its slice. With several kinds, the class of a task goes by what it needs, not by its priority.
    pub kinds: u8,
    /// The most tasks in one submission; 1 if each task comes alone.
    pub jobs: u8,
    /// Whether the switch writes over unreliable queue pairs only, and without an iCRC, because it cannot
    /// sum a packet's bytes.
    pub plain_writes: bool,
}

/// How workers get their tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Each TOKEN gets one task, as soon as there is one.
    Tokens {
        /// Whether TOKENs tell their rank: how many tasks stand before them at their worker.
        ranked: bool,
    },
    /// At most one TOKEN is out; it is answered at once, with a task or with EMPTY.
    Polls {
        /// How long after an EMPTY the worker asks again; zero: at once.
        every: Nanos,
    },
    /// Tasks are pushed without tokens.
    Pushed {
        /// Whether REPLYs go through the switch and tell it how much the worker holds.
        reports: bool,
    },
}

impl Feed {
    /// A task for each TOKEN; tokens have no ranks.
    pub const TOKENS: Self = Self::Tokens { ranked: false };
}

impl Default for Feed {
    fn default() -> Self {
        Self::TOKENS
    }
}

/// A worker's row in the source table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerRow {
    /// Each of the worker's packets shows this key.
    pub key: Key,
    /// The address that the worker sends from and is sent to.
    pub at: Endpoint,
    /// The slice to which the worker's tokens go.
    pub slice: SliceId,
    /// The generation whose packets are admitted (`gen_in`).
    pub generation: Generation,
    /// Whether the worker's tokens are admitted, and its packets answered with counters; false while the
    /// generation changes.
    pub open: bool,
    /// The host's life, for a controller that reads the table back.
    pub life: u64,
    /// The worker's kind in its slice, if the switch tells kinds apart.
    pub kind: u8,
    /// If the worker is a leaf and the switch its spine: how many workers it stands for; else 0.
    pub workers: u16,
}

/// A leaf's row of a spine: where a pool's tasks come from, and the number by which the spine knows the
/// leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpineRow {
    pub at: Endpoint,
    pub epoch: Epoch,
    /// The leaf's number at the spine.
    pub leaf: WorkerId,
    /// The generation in which the leaf has that number.
    pub generation: Generation,
    /// The spine numbers its tasks from the one behind this on.
    pub start: Serial,
}

/// A client's row in the source table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientRow {
    /// Each of the client's packets shows this key.
    pub key: Key,
    /// The address that the client sends from and is sent to.
    pub at: Endpoint,
    /// The start of the client that holds the index.
    pub incarnation: Incarnation,
}

/// A slice's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceRow {
    /// Whether the slice takes tasks; closed while it has no workers.
    pub open: bool,
    /// How many tasks may wait (C), at most as many as the ring holds.
    pub limit: u32,
    /// The retry hint that a REJECT carries.
    pub retry_after: Nanos,
    /// Which kind of worker serves which class, if the switch tells kinds of workers apart.
    pub serving: Serving,
    /// The classes that have no worker now, one bit each: their tasks are refused.
    pub closed: u8,
    /// The longest wait in the switch that is worth having; zero: the program's, if it has one.
    pub target: Nanos,
    /// How many tasks the slice's workers are expected to take within the target: so many may wait until
    /// the switch has measured how many they take. Zero if nothing is known.
    pub expected: u32,
}

/// A server's row: the queue pair through which tasks are written into its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerRow {
    /// The address of the server's end of the queue pair.
    pub at: Endpoint,
    /// The queue pair's number at the server.
    pub qpn: Qpn,
    /// Whether the pair is reliable: then the server answers, and a NAK sets the packet number back.
    pub reliable: bool,
    /// Whether the server checks the iCRC; if not, the switch computes none.
    pub icrc: bool,
}

/// The ring that a server keeps for a slice, in registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingRow {
    /// The key that lets a WRITE in.
    pub rkey: Rkey,
    /// The address of the first slot in the server's memory.
    pub address: u64,
    /// How many slots the ring has: a power of two.
    pub slots: u32,
    /// How many bytes a slot has, with the task's id.
    pub slot_bytes: u32,
}

/// The state that the switch holds of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// The server's row, if it has one.
    pub row: Option<ServerRow>,
    /// The number of the next packet to the server.
    pub next: Psn,
}

/// The state that the switch holds of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerState {
    /// The worker's row, if it has one.
    pub row: Option<WorkerRow>,
    /// The generation that popped tokens must have.
    pub generation_out: Generation,
    /// Tokens granted.
    pub seen: Serial,
    /// Tasks sent.
    pub sent: Serial,
}

/// A cumulative count for each of a slice's rings: for parked tokens one per rank, for waiting tasks one
/// per class, in order. Counts of rings that the switch does not have never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts(pub [Serial; KINDS_MAX]);

impl RingCounts {
    /// The counts of a switch with one ring.
    #[must_use]
    pub const fn of_one(count: Serial) -> Self {
        Self([count, Serial(0), Serial(0), Serial(0)])
    }

    /// How far the ring that is furthest behind `other` is behind it.
    #[must_use]
    pub fn behind(self, other: Self) -> u32 {
        self.0.iter().zip(other.0).map(|(own, other)| other.since(*own).max(0) as u32).max().unwrap_or(0)
    }

    /// Each ring's count advanced by so much, but not past `end`.
    #[must_use]
    pub fn towards(mut self, end: Self, by: u32) -> Self {
        for (own, end) in self.0.iter_mut().zip(end.0) {
            *own = own.plus(by.min(end.since(*own).max(0) as u32));
        }
        self
    }

    /// How far these counts are past `other`, summed over all rings.
    #[must_use]
    pub fn since(self, other: Self) -> u32 {
        self.0.iter().zip(other.0).map(|(own, other)| own.since(other).max(0) as u32).sum()
    }
}

/// The state that the switch holds of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceState {
    pub row: SliceRow,
    /// Tokens parked if positive, tasks waiting if negative.
    pub balance: i32,
    /// Cumulative counts of tokens that were parked.
    pub tokens_in: RingCounts,
    /// Cumulative counts of parked tokens that were taken.
    pub tokens_out: RingCounts,
    /// Cumulative counts of tasks that waited; constant if tasks do not wait in rings.
    pub tasks_in: RingCounts,
    /// Cumulative counts of waiting tasks that were taken.
    pub tasks_out: RingCounts,
    /// How many tasks may wait by what was measured for the slice's target; `None` while nothing was, or
    /// without a target.
    pub measured_limit: Option<u32>,
    /// How many tasks were refused because they would have waited for longer than the target.
    pub refused_busy: u64,
    /// How many tasks the switch refused because their budget was spent.
    pub refused_late: u64,
}

/// One step that a controller takes on a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableOp {
    /// Ask for the [`Shape`].
    ReadShape,
    /// Obey the controller of this term from now on, if the term is the next one after the term obeyed now.
    Claim(Term),
    /// Map a task type to a slice, or to none.
    SetType(TaskType, Option<SliceId>),
    /// Ask which slice a type maps to.
    ReadType(TaskType),
    /// Set the labels of their slice that tasks of a type need, beside those that a task names itself.
    SetNeeds(TaskType, Labels),
    SetSlice(SliceId, SliceRow),
    /// Ask for a slice's state.
    ReadSlice(SliceId),
    /// Set or clear a worker's row.
    SetWorker(WorkerId, Option<WorkerRow>),
    /// Ask for a worker's state.
    ReadWorker(WorkerId),
    /// Let popped tokens through only if they are of this generation (`gen_out`).
    RaiseGeneration(WorkerId, Generation),
    /// Set a worker's `seen`, `seen_out` and `sent` to this start.
    ResetCounters(WorkerId, Serial),
    /// Set or clear a client's row. Setting it also starts its replay cells anew: only tries with this
    /// sequence number or a later one pass.
    SetClient(ClientId, Option<(ClientRow, Serial)>),
    /// Ask for a client's row.
    ReadClient(ClientId),
    /// Set or clear a server's row. Setting it starts its packet numbers at this one.
    SetServer(ServerId, Option<(ServerRow, Psn)>),
    /// Ask for a server's state.
    ReadServer(ServerId),
    /// Set or clear the ring that a server keeps for a slice. While it is set, the slice's tasks are
    /// written there.
    SetRing(SliceId, ServerId, Option<RingRow>),
    /// Ask for the ring that a server keeps for a slice.
    ReadRing(SliceId, ServerId),
    /// Write each of a slice's tasks to at most so many of its servers; zero: to all.
    SetCopies(SliceId, u16),
    /// Take a pool's tasks from this spine, and tell the spine the rack's state. A row that the pool has
    /// already changes nothing, but the spine is told again.
    SetSpine(SliceId, SpineRow),
    /// Send a SWEEP through the slice's queue.
    Inject(Sweep),
    /// Answer after every pass that had begun has ended.
    Drain,
}

/// The answer to a [`TableOp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableAnswer {
    /// Done; there is nothing to tell.
    Done,
    /// The index or value lies outside the switch's shape; nothing was changed.
    OutOfRange,
    /// Nothing was changed: the switch obeys the controller of this term, not the one that asked.
    Superseded(Term),
    Shape(Shape),
    Type(Option<SliceId>),
    Slice(SliceState),
    Worker(WorkerState),
    Client(Option<ClientRow>),
    Server(ServerState),
    Ring(Option<RingRow>),
}

impl TableOp {
    /// Whether the operation changes nothing at the switch.
    pub const fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::ReadShape
                | Self::ReadType(_)
                | Self::ReadSlice(_)
                | Self::ReadWorker(_)
                | Self::ReadClient(_)
                | Self::ReadServer(_)
                | Self::ReadRing(..)
        )
    }
}

impl Term {
    /// Whether a switch that obeys this term carries out an operation of the controller of term `by`. Any
    /// caller may ask for the shape, which holds the term, and claim the next term. A caller that is no
    /// controller (term 0) may read. A superseded controller may not even read, so it learns at once that
    /// it is superseded.
    pub const fn obeys(self, by: Self, op: &TableOp) -> bool {
        by.0 == self.0
            || matches!(op, TableOp::ReadShape | TableOp::Claim(_))
            || (by.0 == 0 && op.only_reads())
    }

    /// The term that a controller claims to take the switch over from this term; `None` after the last
    /// term.
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }

    /// Takes a claim of the next term. No other term is granted, so that no caller can use the terms up.
    pub fn claim(&mut self, term: Self) -> TableAnswer {
        if self.next() != Some(term) {
            return TableAnswer::Superseded(*self);
        }
        *self = term;
        TableAnswer::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: [u32; KINDS_MAX]) -> RingCounts {
        RingCounts(counts.map(Serial))
    }

    #[test]
    fn counts_of_rings_are_compared_ring_by_ring_also_past_a_wrap() {
        let (first, later) = (counts([u32::MAX, 5, 9, 0]), counts([1, 9, 8, 0]));
        assert_eq!((first.behind(later), later.behind(first), later.since(first)), (4, 1, 6));
        assert_eq!(first.towards(later, 3), counts([1, 8, 9, 0]));
    }

    #[test]
    fn a_switch_obeys_the_newest_controller_and_only_answers_who_is_none() {
        let (obeyed, superseded, none) = (Term(7), Term(6), Term(0));
        let (read, write) = (TableOp::ReadType(TaskType(1)), TableOp::Drain);
        assert!(obeyed.obeys(obeyed, &read) && obeyed.obeys(obeyed, &write));
        assert!(obeyed.obeys(none, &read) && !obeyed.obeys(none, &write));
        assert!(!obeyed.obeys(superseded, &read) && !obeyed.obeys(superseded, &write));
        for anyones in [TableOp::ReadShape, TableOp::Claim(Term(8))] {
            assert!(obeyed.obeys(superseded, &anyones) && obeyed.obeys(none, &anyones), "{anyones:?}");
        }
    }

    #[test]
    fn only_the_next_term_is_granted_and_none_after_the_last() {
        let mut term = Term(7);
        for claimed in [7, 9] {
            assert_eq!(term.claim(Term(claimed)), TableAnswer::Superseded(Term(7)));
        }
        assert_eq!((term.claim(Term(8)), term), (TableAnswer::Done, Term(8)));
        assert_eq!(Term(u32::MAX).next(), None);
    }
}
