//! The nodes of a rack: what holds a machine, its address and its wake-up, makes what comes to it the
//! machine's calls, and what the machine says sends, reminders and callbacks.
//!
//! Curves (`rack`) and fault runs (`faults`) drive the same nodes. What they differ in they say through the
//! traits [`Scene`], [`ClientSide`],
//! [`SwitchSide`] and [`WorkerSide`]: in a curve a core's work takes time and results are counted, in a fault
//! run there are bytes, an oracle, a story, and lives that end.
#![forbid(unsafe_code)]

pub mod names;

mod client;
mod core;
mod switch;
mod tag;
mod wakeup;
mod worker;

use sluice_wire::{Nanos, Packet};

pub use client::{ClientCall, ClientSide};
pub use core::{Core, TaskRun};
pub use switch::SwitchSide;
pub use tag::TaskTag;
pub use wakeup::Wakeup;
pub use worker::{Start, WorkerCall, WorkerSide};

use sluice_events::{Address, Reused};

/// Packets that are under way or wait to be received.
pub type PacketPool = Reused<Packet>;

/// A host: its real state machine, where it is, and when it is to be woken.
#[derive(Debug)]
pub struct Node<M> {
    /// Its state machine.
    pub machine: M,
    /// Where it is.
    pub at: Address,
    /// When it is to be woken.
    pub wakeup: Wakeup,
}

impl<M> Node<M> {
    /// A machine that nobody has to wake yet.
    pub const fn new(machine: M, at: Address) -> Self {
        Self { machine, at, wakeup: Wakeup::NONE }
    }
}

/// What a call of a host's machine takes.
pub struct Call<'a, M, S, A> {
    /// The time.
    pub now: Nanos,
    /// Whose machine is called.
    pub node: &'a mut Node<M>,
    /// What it was set up with.
    pub settings: &'a S,
    /// Where packets lie.
    pub packets: &'a PacketPool,
    /// What machines say; empty between calls.
    pub out: &'a mut Vec<A>,
}

/// What machines said has been done: the room that it took is used again.
#[inline]
fn keep_room<A>(room: &mut Vec<A>, mut said: Vec<A>) {
    said.clear();
    *room = said;
}

/// What all nodes act on.
pub trait Scene {
    /// Why a run ends before its time.
    type Broken;
    /// How long after now a machine is woken at the soonest.
    const SOONEST: Nanos;

    /// The time.
    fn now(&self) -> Nanos;

    /// Where the switch is.
    fn switch_at(&self) -> Address;

    /// Where packets lie until they have been received.
    fn packets(&mut self) -> &mut PacketPool;

    /// Sends a packet that leaves then, and is made where it lies.
    fn send(&mut self, from: Address, to: Address, leaves: Nanos, make: impl FnOnce(&mut Packet));
}

/// What a run makes of something, unless it ends there.
pub type Try<S, T = ()> = Result<T, <S as Scene>::Broken>;
