//! The events of a run.

use sluice_control::{Answer, CallId};
use sluice_events::{Address, Mail};
use sluice_wire::tables::TableOp;
use sluice_wire::{Nanos, Psn, ServerId, Term};

use super::controller::Await;
use super::hosts::Host;
use super::oracle::Life;
use super::orders::Order;
use super::scenario::{GrayFailure, ProcessFailure};
use super::servers::{SealedWrite, ServerFailure};
use super::standbys::StandbyEvent;

/// An event. Large and rare content is boxed: every packet's event is moved several times through the event
/// queue, and with polling workers these moves are most of a run's time.
#[derive(Debug)]
pub(super) enum Event {
    /// A packet or recirculation arrives at an address.
    Mail(Address, Mail),
    Op {
        life: u32,
        switch: u32,
        by: Term,
        op: Box<TableOp>,
    },
    /// An answer of the switch arrives over this connection of a controller.
    OpDone(u32),
    Call(Box<sluice_control::Event>),
    CallAnswered {
        call: CallId,
        answer: Box<Answer>,
    },
    ControllerWakes(u32),
    Wake(Host),
    Renew(Host, Life),
    Finish {
        worker: usize,
        life: Life,
        slot: u64,
    },
    Early {
        worker: usize,
        life: Life,
    },
    /// A WRITE arrives at a server.
    Write {
        server: usize,
        write: SealedWrite,
    },
    /// A server that stood still reads a WRITE that waited.
    WriteWaited(usize),
    /// A server's NAK of a missing packet number arrives at the switch.
    Nak {
        server: usize,
        /// The server's index at the switch.
        id: ServerId,
        expected: Psn,
    },
    ServerFailure(usize, ServerFailure),
    Submit(usize),
    ProcessFailure(ProcessFailure),
    GrayFailure(GrayFailure),
    Order(Order),
    Look,
    FaultsEnd,
    WorkerBack(usize),
    WorkerGoesOn(usize),
    SwitchBack,
    /// A switch that drains looks whether it is empty. It ends at `until` in any case.
    SwitchDrains {
        back_after: Nanos,
        until: Nanos,
    },
    SwitchGoesOn,
    ControllerBack,
    LinkBack,
    FormerLooks,
    Standby(Box<StandbyEvent>),
    /// A worker asks to be told of a change, or is told of it.
    Await(Await),
    Changed {
        worker: usize,
        life: Life,
    },
    Inspect,
    Rest,
    Close,
}

const _: () = assert!(size_of::<Event>() <= 96, "put what is large into a box");
