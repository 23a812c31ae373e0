//! What a controller writes into a switch, and reads back from it.
//!
//! Each [`TableOp`] is answered by one [`TableAnswer`], in order. The operations are the small steps that a
//! real switch offers; what they add up to (a worker joins, moves, dies) is the controller's affair.

use crate::serving::{Labels, Serving};
pub use crate::sizes::KINDS_MAX;
use crate::{
    ClientId, Endpoint, Epoch, Generation, Incarnation, Key, Nanos, Psn, Qpn, Rkey, Serial, ServerId,
    SliceId, Sweep, TaskType, Term, WorkerId,
};

/// How large a switch is, and which life it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The life of its registers.
    pub epoch: Epoch,
    /// The controller that it obeys: the newest one.
    pub term: Term,
    /// Worker indices are below this.
    pub workers: u16,
    /// Client indices are below this.
    pub clients: u16,
    /// Slice indices are below this.
    pub slices: u16,
    /// Task types are below this.
    pub types: u16,
    /// Server indices are below this; zero if nothing is written ahead.
    pub servers: u16,
    /// Tasks that one slice's ring can hold.
    pub tasks_per_slice: u32,
    /// Tokens that one slice's ring can hold.
    pub tokens_per_slice: u32,
    /// The largest quota of a worker that it believes; each worker's room in a ring is counted so.
    pub quota_max: u8,
    /// Replay cells per client: no client may have more tasks outstanding. A power of two.
    pub replay_cells: u32,
    /// How its workers get their tasks.
    pub feed: Feed,
    /// How many classes of tasks it tells apart, by their priority; each has a ring of `tasks_per_slice`. 1
    /// where all are alike.
    pub classes: u8,
    /// How many kinds of workers it tells apart, by what they serve; 1 where any worker takes any task of its
    /// slice. Then tasks are told apart by what they need, not by their priority.
    pub kinds: u8,
    /// The most tasks that it takes in one submission; 1 where each comes alone.
    pub jobs: u8,
    /// Whether it writes over unreliable queue pairs only, and without an iCRC: it cannot sum a packet's
    /// bytes.
    pub plain_writes: bool,
}

/// How workers get their tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Each TOKEN brings one task, whenever there is one.
    Tokens {
        /// Whether TOKENs say their rank: how many tasks stand before them at their worker.
        ranked: bool,
    },
    /// One TOKEN is out at most; it is answered at once, with a task or with EMPTY.
    Polls {
        /// How long after an EMPTY the worker asks again; zero: at once.
        every: Nanos,
    },
    /// Tasks come unasked.
    Pushed {
        /// Whether REPLYs go through the switch and tell it how much the worker holds.
        reports: bool,
    },
}

impl Feed {
    /// A task for each TOKEN, whoever sent it.
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
    /// Shown by each of its packets.
    pub key: Key,
    /// Where it sends from and is sent to.
    pub at: Endpoint,
    /// Where its tokens go.
    pub slice: SliceId,
    /// The generation that is let in (`gen_in`).
    pub generation: Generation,
    /// Whether TOKEN and PROBE are answered with counters; closed while the generation changes.
    pub open: bool,
    /// The host's life, for a controller that reads the table back.
    pub life: u64,
    /// What kind it is in its slice, where the switch tells kinds apart.
    pub kind: u8,
    /// How many workers it stands for, if it is a leaf and the switch its spine; else zero.
    pub workers: u16,
}

/// A spine's row at a leaf: where a pool's tasks come from, and under which number its rack is known there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpineRow {
    pub at: Endpoint,
    pub epoch: Epoch,
    /// The leaf's number there.
    pub leaf: WorkerId,
    /// The generation in which it has that number.
    pub generation: Generation,
    /// Tasks are numbered from the one behind this on.
    pub start: Serial,
}

/// A client's row in the source table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientRow {
    /// Shown by each of its packets.
    pub key: Key,
    /// Where it sends from and is sent to.
    pub at: Endpoint,
    /// The start of the client that holds the index.
    pub incarnation: Incarnation,
}

/// A slice's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceRow {
    /// Whether it takes tasks; closed while it has no workers.
    pub open: bool,
    /// Tasks that may wait (C); at most the ring.
    pub limit: u32,
    /// The hint that a REJECT carries.
    pub retry_after: Nanos,
    /// Who serves whom, where the switch tells kinds of workers apart.
    pub serving: Serving,
    /// The classes that have no worker now, a bit each: their tasks are refused.
    pub closed: u8,
}

/// A server's row: the queue pair through which tasks are written into its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerRow {
    /// Where its end of the queue pair is.
    pub at: Endpoint,
    /// The queue pair's number there.
    pub qpn: Qpn,
    /// Whether it is reliable: then it answers, and a NAK takes the packet number back.
    pub reliable: bool,
    /// Whether it looks at the iCRC; if not, the switch computes none.
    pub icrc: bool,
}

/// The ring that a server keeps for a slice, in registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingRow {
    /// What lets a WRITE in.
    pub rkey: Rkey,
    /// Where the first slot lies in the server's memory.
    pub address: u64,
    /// How many slots: a power of two.
    pub slots: u32,
    /// How long a slot is, the task's id included.
    pub slot_bytes: u32,
}

/// What the switch holds of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Its row, if it has one.
    pub row: Option<ServerRow>,
    /// The number of the next packet to it.
    pub next: Psn,
}

/// What the switch holds of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerState {
    /// Its row, if it has one.
    pub row: Option<WorkerRow>,
    /// The generation that popped tokens must have.
    pub generation_out: Generation,
    /// Tokens granted.
    pub seen: Serial,
    /// Tasks sent.
    pub sent: Serial,
}

/// A cumulative count for each of a slice's rings: of parked tokens one for each rank that the switch tells
/// apart, of waiting tasks one for each class, the first first. What is not there stands still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts(pub [Serial; KINDS_MAX]);

impl RingCounts {
    /// Of a switch that has one ring.
    #[must_use]
    pub const fn of_one(count: Serial) -> Self {
        Self([count, Serial(0), Serial(0), Serial(0)])
    }

    /// How far the ring that lies furthest behind `other` lies behind it.
    #[must_use]
    pub fn behind(self, other: Self) -> u32 {
        self.0.iter().zip(other.0).map(|(own, other)| other.since(*own).max(0) as u32).max().unwrap_or(0)
    }

    /// Each ring's count so much further, but not past `end`.
    #[must_use]
    pub fn towards(mut self, end: Self, by: u32) -> Self {
        for (own, end) in self.0.iter_mut().zip(end.0) {
            *own = own.plus(by.min(end.since(*own).max(0) as u32));
        }
        self
    }

    /// How many more than `other`, in all rings together.
    #[must_use]
    pub fn since(self, other: Self) -> u32 {
        self.0.iter().zip(other.0).map(|(own, other)| own.since(other).max(0) as u32).sum()
    }
}

/// What the switch holds of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceState {
    pub row: SliceRow,
    /// Tokens parked if positive, tasks waiting if negative.
    pub balance: i32,
    /// Cumulative counts of tokens that were parked.
    pub tokens_in: RingCounts,
    /// Cumulative counts of parked tokens that were taken.
    pub tokens_out: RingCounts,
    /// Cumulative counts of tasks that waited; they stand still where tasks do not wait in rings.
    pub tasks_in: RingCounts,
    /// Cumulative counts of waiting tasks that were taken.
    pub tasks_out: RingCounts,
}

/// One step that a controller takes on a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableOp {
    /// Ask for the [`Shape`].
    ReadShape,
    /// Obey the controller of this term from now on, if it is the one after the term that was obeyed before.
    Claim(Term),
    /// Map a task type to a slice, or to none.
    SetType(TaskType, Option<SliceId>),
    /// Ask which slice a type maps to.
    ReadType(TaskType),
    /// Let tasks of a type need these labels of their slice, beside what they say themselves.
    SetNeeds(TaskType, Labels),
    /// Set a slice's row.
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
    /// Set or clear a client's row. Setting it also starts its replay cells anew: only pairs of this sequence
    /// number or later pass.
    SetClient(ClientId, Option<(ClientRow, Serial)>),
    /// Ask for a client's row.
    ReadClient(ClientId),
    /// Set or clear a server's row. Setting it starts its packet numbers there.
    SetServer(ServerId, Option<(ServerRow, Psn)>),
    /// Ask for a server's state.
    ReadServer(ServerId),
    /// Set or clear the ring that a server keeps for a slice: while it is set, the slice's tasks are written
    /// there.
    SetRing(SliceId, ServerId, Option<RingRow>),
    /// Ask for the ring that a server keeps for a slice.
    ReadRing(SliceId, ServerId),
    /// Write each of a slice's tasks to so many of its servers at most; zero: to all.
    SetCopies(SliceId, u16),
    /// Take a pool's tasks from this spine, and tell it how the rack stands. The row that the pool has
    /// already changes nothing, and the spine is told again.
    SetSpine(SliceId, SpineRow),
    /// Send a SWEEP round.
    Inject(Sweep),
    /// Ask to be answered once every pass that had begun has ended.
    Drain,
}

/// The answer to a [`TableOp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableAnswer {
    /// Done; nothing to say.
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
    /// Whether nothing at the switch changes.
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
    /// Whether a switch that obeys this term does what the controller of term `by` asks for. Anyone may ask
    /// for the shape, which tells the term, and claim the next one; who is no controller (term 0) may read. A
    /// controller that was superseded may not even read: so it hears of it at once.
    pub const fn obeys(self, by: Self, op: &TableOp) -> bool {
        by.0 == self.0
            || matches!(op, TableOp::ReadShape | TableOp::Claim(_))
            || (by.0 == 0 && op.only_reads())
    }

    /// What who takes the switch over from this one claims; none after the last of all.
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }

    /// Takes a claim of the next term. No other is taken, so that nobody uses the numbers up.
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
