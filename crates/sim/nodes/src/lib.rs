//! The nodes of a rack: what holds a machine, its address and its wake-up, makes what comes to it the
//! machine's calls, and what the machine says sends, reminders and callbacks.
//!
//! Curves (`racks`) and fault runs (`faults`) drive the same nodes. A switch says in its verdict what
//! follows, and each of the two carries that out. What they differ in beside they say through the traits
//! [`Scene`], [`ClientSide`] and [`WorkerSide`]: in a curve a core's work takes time and results are
//! counted, in a fault run there are bytes, an oracle, a story, and lives that end.
#![forbid(unsafe_code)]

pub mod names;

mod client;
mod core;
mod tag;
mod wakeup;
mod worker;

use sluice_wire::{Nanos, Packet};

pub use client::{ClientCall, ClientSide};
pub use core::{Core, TaskRun};
pub use tag::TaskTag;
pub use wakeup::Wakeup;
pub use worker::{Start, WorkerCall, WorkerSide};

use sluice_events::{Address, Reused};

/// Packets that are under way or wait to be received.
pub type PacketPool = Reused<Packet>;

/// A host: its real state machine, where it is, and when it is to be woken.
#[derive(Debug)]
pub struct Node<M> {
    pub machine: M,
    pub at: Address,
    /// The switch that it speaks to.
    pub switch: Address,
    /// Whose it is, where several applications share a datacenter.
    pub pool: u16,
    /// When it is to be woken.
    pub wakeup: Wakeup,
}

impl<M> Node<M> {
    /// A host of the first pool, which nobody has to wake yet.
    pub const fn new(machine: M, at: Address, switch: Address) -> Self {
        Self { machine, at, switch, pool: 0, wakeup: Wakeup::NONE }
    }

    /// As the sender of a packet.
    pub const fn sender(&self) -> PacketSource {
        PacketSource { at: self.at, switch: self.switch, pool: self.pool }
    }
}

/// Who sends a packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketSource {
    pub at: Address,
    /// The switch that it speaks to.
    pub switch: Address,
    /// Whose it is, where several applications share a datacenter.
    pub pool: u16,
}

/// What a call of a host's machine takes.
pub struct Call<'a, M, S, A> {
    pub now: Nanos,
    /// Whose machine is called.
    pub node: &'a mut Node<M>,
    /// What it was set up with.
    pub settings: &'a S,
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

    /// Where packets lie until they have been received.
    fn packets(&mut self) -> &mut PacketPool;

    /// Sends a packet that leaves then, and is made where it lies.
    fn send(&mut self, from: PacketSource, to: Address, leaves: Nanos, make: impl FnOnce(&mut Packet));
}

/// What a run makes of something, unless it ends there.
pub type Try<S, T = ()> = Result<T, <S as Scene>::Broken>;
