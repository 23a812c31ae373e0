//! What every scheduler is to those who drive it: packets and the time go in, at most one packet comes out.

use alloc::vec::Vec;
use core::fmt::Debug;

use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::{
    Endpoint, Generation, Handle, Nanos, Packet, Payload, Psn, Qpn, Rkey, ServerId, SliceId, Submit, Sweep,
    TaskId, TaskJob, Update, WorkerId,
};

use crate::pipeline::Layout;
use crate::refusal::{Refusal, Refusals};

/// A scheduler, written against the [`pipeline`](crate::pipeline). It has no I/O, no clock and no thread.
pub trait Program: Debug + Send {
    /// One packet's pass.
    fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict;

    /// One copy's pass at egress of a WRITE that a pass decided on; `None` if its server has gone. Copies are
    /// counted from zero, and each passes once. A program that writes nothing ahead has none.
    fn replica(&mut self, _write: &WriteAhead, _copy: u16) -> Option<Replica> {
        None
    }

    /// What the last pass tells the switch above, beside the one packet that leaves: at most one small
    /// update, mirrored from it, and never a task. Only the leaves of a fabric have any.
    fn mirrored(&mut self) -> Option<Mirror> {
        None
    }

    /// One step of the controller. Whoever drives the switch gives an injected SWEEP its first pass, as
    /// [`Arrival::Control`].
    fn table(&mut self, op: TableOp) -> TableAnswer;

    /// How large this switch is, which life it leads, and how it feeds its workers.
    fn shape(&self) -> Shape;

    /// What the program takes of the chip.
    fn layout(&self) -> &Layout;

    /// What was refused so far, by reason; some of it was answered, none of it changed anything.
    fn refusals(&self) -> &Refusals;

    /// How many tasks wait in the switch's memory; those that go round do not. For statistics, not per
    /// packet.
    fn waiting(&self) -> u32;

    /// What stands in the queue of a slice that exists. For those that compare data planes; empty where the
    /// program has no such queue.
    fn parked(&self, _slice: SliceId) -> Parked {
        Parked::default()
    }
}

/// What stands in a slice's queue, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parked {
    /// Tasks that wait.
    pub tasks: Vec<Submit>,
    /// Tokens that no task has met yet, and the generations they were granted in.
    pub tokens: Vec<(WorkerId, Generation)>,
}

/// What comes to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A packet from a port.
    Wire {
        from: Endpoint,
        packet: Packet,
        /// Whether the driver could keep its payload if it had to wait.
        room: bool,
    },
    /// A server's NAK of a WRITE: the packet number that it expects.
    Nak {
        from: Endpoint,
        /// Whose queue pair it names.
        server: ServerId,
        /// What it expects next.
        expected: Psn,
    },
    /// What [`Verdict::Again`] sent round.
    Round(Circulating),
    /// A SWEEP from the controller.
    Control(Sweep),
}

/// What goes round: it enters again behind what has arrived meanwhile, and is never dropped on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circulating {
    pub cargo: Cargo,
    /// When its task arrived first.
    pub arrived: Nanos,
    /// What the program noted for its next pass: a header of its own on the chip, and its own affair.
    pub memo: u64,
}

/// What a circulating packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cargo {
    /// A task that is not settled yet. The driver keeps its payload.
    Task(Submit),
    /// Several tasks of one submission that have not entered yet. Their bytes are in it.
    Job(TaskJob),
    Sweep(Sweep),
    /// Nothing: the program sends a note to itself. A task that came in the same pass waits, as in
    /// [`Verdict::Parked`].
    Note,
}

impl Circulating {
    /// Where the payload of a task lies that goes round; [`Handle::NONE`] if there is none.
    pub const fn payload(&self) -> Handle {
        match &self.cargo {
            Cargo::Task(submit) => submit.payload.handle,
            Cargo::Job(_) | Cargo::Sweep(_) | Cargo::Note => Handle::NONE,
        }
    }
}

/// A WRITE that carries a task's id and bytes to the servers of its slice: one packet, multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteAhead {
    pub slice: SliceId,
    /// The task's number in the slice's queue, from which its slot follows.
    pub ticket: u32,
    pub task: TaskId,
    /// Its bytes.
    pub payload: Payload,
    pub copies: u16,
}

/// What one copy of a WRITE carries for its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    pub server: ServerId,
    pub to: Endpoint,
    /// The server's queue pair.
    pub qpn: Qpn,
    pub psn: Psn,
    /// What lets it in.
    pub rkey: Rkey,
    /// Where the slot lies in the server's memory.
    pub address: u64,
    /// Whether the queue pair is reliable.
    pub reliable: bool,
    /// Whether it wants an iCRC.
    pub icrc: bool,
}

/// An update beside a pass's one packet, for the switch above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    pub to: Endpoint,
    /// What it is told.
    pub update: Update,
}

/// What leaves the switch for one arrival: at most one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This packet, to there.
    Send { to: Endpoint, packet: Packet },
    /// A task that waited leaves unserved: this REJECT, to there, unless its client is gone too (no port).
    Swept {
        to: Endpoint,
        packet: Packet,
        /// Where its payload lies; no longer needed.
        payload: Handle,
    },
    /// This goes round: to be given back as [`Arrival::Round`].
    Again(Circulating),
    /// A large task waits, and its bytes leave for the servers of its slice.
    Ahead(WriteAhead),
    /// Nothing: a task waits, a token is parked, or a leaf's update is noted. A waiting task's payload handle
    /// comes back in its DISPATCH.
    Parked,
    /// Nothing, and nothing was kept.
    Drop(Refusal),
}
