//! Which answer belongs to which question: the switch answers in order, so a queue is enough.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sluice_wire::tables::TableOp;
use sluice_wire::{ClientId, SliceId, WorkerId};

use crate::message::{Action, CallId};

/// What the next answers are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Must be `Done`; nothing waits for it.
    Done,
    /// Asked before the tables were read again; whatever it says.
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
    /// The token ring that a worker's stale tokens may lie in, between two generations.
    Mark(WorkerId),
    /// A client's row was written or cleared.
    Client(ClientId),
    Slice(SliceId),
    /// A type was mapped on someone's call.
    Type(CallId),
}

/// The open questions, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: VecDeque<Expect>,
}

impl Ledger {
    /// Asks, and remembers what the answer is for.
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

    /// Lets go of all meanings, since they are void; gives the calls that waited for one. The answers still
    /// come unless the switch is `gone`.
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
