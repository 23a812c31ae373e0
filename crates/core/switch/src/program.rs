//! The interface between a scheduler and its driver: packets and the time go in, at most one packet comes
//! out.

use alloc::vec::Vec;
use core::fmt::Debug;

use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::{
    Endpoint, Generation, Handle, Nanos, Packet, Payload, Psn, Qpn, Reject, Rkey, ServerId, SliceId, Submit,
    Sweep, TaskId, TaskJob, Update, WorkerId,
};

use crate::pipeline::Layout;
use crate::refusal::{Refusal, Refusals};

/// A scheduler, written against the [`pipeline`](crate::pipeline). It has no I/O, no clock and no thread.
pub trait Program: Debug + Send {
    /// One packet's pass.
    fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict;

    /// The egress pass of one copy of a WRITE; `None` if the copy's server has left. Copies are counted
    /// from zero, and each passes once. A program that writes nothing ahead returns `None`.
    fn replica(&mut self, _write: &WriteAhead, _copy: u16) -> Option<Replica> {
        None
    }

    /// The UPDATE of the last pass to the switch above, beside the one packet that leaves. It is small, it
    /// is mirrored from that packet, and it is never a task. Only leaves of a fabric have any.
    fn mirrored(&mut self) -> Option<Mirror> {
        None
    }

    /// Carries out one step of the controller. The driver gives an injected SWEEP its first pass, as
    /// [`Arrival::Control`].
    fn table(&mut self, op: TableOp) -> TableAnswer;

    /// The sizes of this switch, its epoch, and how it feeds its workers.
    fn shape(&self) -> Shape;

    /// What the program takes of the chip.
    fn layout(&self) -> &Layout;

    /// How many packets were refused so far, by reason. Some of them were answered; none changed anything.
    fn refusals(&self) -> &Refusals;

    /// How many tasks wait in the switch's memory, without those that recirculate. For statistics: too slow
    /// to call per packet.
    fn waiting(&self) -> u32;

    /// The contents of the queue of a slice that exists, for tests that compare data planes. Empty if the
    /// program has no such queue.
    fn parked(&self, _slice: SliceId) -> Parked {
        Parked::default()
    }
}

/// The contents of a slice's queue, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parked {
    /// Tasks that wait.
    pub tasks: Vec<Submit>,
    /// Tokens that no task has met yet, with the generations in which they were granted.
    pub tokens: Vec<(WorkerId, Generation)>,
}

/// A packet that comes to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A packet from a port.
    Wire {
        from: Endpoint,
        packet: Packet,
        /// Whether the driver could keep its payload if it had to wait.
        room: bool,
    },
    /// A server's NAK of a WRITE, with the packet number that it expects.
    Nak {
        from: Endpoint,
        /// The server whose queue pair the NAK names.
        server: ServerId,
        /// The packet number that the server expects next.
        expected: Psn,
    },
    /// A packet that [`Verdict::Again`] recirculated.
    Round(Circulating),
    /// A SWEEP from the controller.
    Control(Sweep),
}

/// A packet that recirculates. It enters again behind the packets that arrived meanwhile, and is never
/// dropped on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circulating {
    pub cargo: Cargo,
    /// When its task arrived at the switch for the first time.
    pub arrived: Nanos,
    /// The program's note for the packet's next pass: on the chip a header of its own, which nobody else
    /// reads.
    pub memo: u64,
}

/// What a recirculating packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cargo {
    /// A task without a decision yet. The driver keeps its payload.
    Task(Submit),
    /// The tasks of one submission that have not entered yet. Their bytes are in it.
    Job(TaskJob),
    Sweep(Sweep),
    /// No task: a note of the program to itself. If a task came in the same pass, it waits, as in
    /// [`Verdict::Parked`].
    Note,
}

impl Circulating {
    /// A note of the program to itself.
    pub const fn note(memo: u64) -> Self {
        Self { cargo: Cargo::Note, arrived: Nanos(0), memo }
    }

    /// The handle of the payload of a recirculating task; [`Handle::NONE`] if there is none.
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
    /// The task's bytes.
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
    /// The key that lets the WRITE into the server's memory.
    pub rkey: Rkey,
    /// The address of the slot in the server's memory.
    pub address: u64,
    /// Whether the queue pair is reliable.
    pub reliable: bool,
    /// Whether the server checks an iCRC.
    pub icrc: bool,
}

/// An UPDATE for the switch above, beside a pass's one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    pub to: Endpoint,
    /// The news.
    pub update: Update,
}

/// What leaves the switch after a pass: at most one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Sends this packet to this address.
    Send { to: Endpoint, packet: Packet },
    /// A task that waited leaves unserved. This REJECT goes to its client; an address with port 0 means
    /// that the client has left, and nothing is sent.
    Swept {
        to: Endpoint,
        packet: Packet,
        /// The handle of the task's payload, which is no longer needed.
        payload: Handle,
    },
    /// A token takes a waiting task whose budget is spent. This REJECT goes to the task's client, as in
    /// [`Verdict::Swept`]. The token stays granted: it recirculates as a mirrored copy,
    /// [`Circulating::note`] with this memo.
    Late {
        to: Endpoint,
        reject: Reject,
        /// The handle of the task's payload, which is no longer needed.
        payload: Handle,
        token: u64,
    },
    /// Recirculates this packet: the driver passes it again as [`Arrival::Round`].
    Again(Circulating),
    /// A large task waits, and its bytes leave for the servers of its slice.
    Ahead(WriteAhead),
    /// Sends nothing: a task waits, a token is parked, or a leaf's update is noted. The payload handle of a
    /// waiting task comes back in its DISPATCH.
    Parked,
    /// Sends nothing and keeps nothing.
    Drop(Refusal),
}
