//! Matches answers with questions. The switch answers in order, so a queue is enough.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sluice_wire::tables::TableOp;
use sluice_wire::{ClientId, SliceId, WorkerId};

use crate::message::{Action, CallId};

/// The question that an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The answer must be `Done`; nothing waits for it.
    Done,
    /// Asked before the tables were read again; the answer is ignored.
    Ignored,
    Claim,
    /// The shape, after an answer that fitted no question.
    Shape,
    /// One of the questions of a read-back.
    ReadBack,
    /// The last operation of a step in a worker's change.
    Step(WorkerId),
    /// A worker's counters between two generations.
    Counters(WorkerId),
    /// The token ring in which a worker's stale tokens may lie, between two generations.
    Mark(WorkerId),
    /// A client's row was written or cleared.
    Client(ClientId),
    Slice(SliceId),
    /// A call asked to map a type.
    Type(CallId),
}

/// The open questions, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: VecDeque<Expect>,
}

impl Ledger {
    /// Asks the switch `op`, and remembers what the answer is for.
    pub(crate) fn ask(&mut self, op: TableOp, expect: Expect, out: &mut Vec<Action>) {
        self.open.push_back(expect);
        out.push(Action::Table(op));
    }

    pub(crate) fn next(&mut self) -> Option<Expect> {
        self.open.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Forgets what the open answers are for; returns the calls that waited for one. The answers still
    /// arrive, and are ignored, unless the switch is `gone`.
    pub(crate) fn void(&mut self, gone: bool) -> Vec<CallId> {
        let call = |expect: &Expect| if let Expect::Type(call) = expect { Some(*call) } else { None };
        let calls = self.open.iter().filter_map(call).collect();
        if gone {
            self.open.clear();
        } else {
            self.open.iter_mut().for_each(|expect| *expect = Expect::Ignored);
        }
        calls
    }
}
