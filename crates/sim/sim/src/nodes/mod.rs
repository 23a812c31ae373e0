//! The nodes of a rack: what holds a machine, its address and its wake-up, makes what comes to it the
//! machine's calls, and what the machine says sends, reminders and callbacks.
//!
//! Curves (`racks`) and fault runs (`faults`) drive the same nodes. A switch says in its verdict what
//! follows, and each of the two carries that out. What they differ in beside they say through the traits
//! [`Scene`], [`ClientSide`] and [`WorkerSide`]: in a curve a core's work takes time and results are counted,
//! in a fault run there are bytes, an oracle, a story, and lives that end.

mod client;
mod core;
mod tag;
mod wakeup;
mod worker;

use sluice_wire::{Nanos, Packet};

pub(crate) use client::{ClientCall, ClientSide};
pub(crate) use core::{Core, TaskRun};
pub(crate) use tag::TaskTag;
pub(crate) use wakeup::Wakeup;
pub(crate) use worker::{Start, WorkerCall, WorkerSide};

use crate::events::{Address, Reused};

/// Packets that are under way or wait to be received.
pub(crate) type PacketPool = Reused<Packet>;

/// A host: its real state machine, where it is, and when it is to be woken.
#[derive(Debug)]
pub(crate) struct Node<M> {
    pub(crate) machine: M,
    pub(crate) at: Address,
    /// The switch that it speaks to.
    pub(crate) switch: Address,
    /// Whose it is, where several applications share a datacenter.
    pub(crate) pool: u16,
    pub(crate) wakeup: Wakeup,
}

impl<M> Node<M> {
    /// A host of the first pool.
    pub(crate) const fn new(machine: M, at: Address, switch: Address) -> Self {
        Self { machine, at, switch, pool: 0, wakeup: Wakeup::NONE }
    }

    pub(crate) const fn sender(&self) -> PacketSource {
        PacketSource { at: self.at, switch: self.switch, pool: self.pool }
    }
}

/// Who sends a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketSource {
    pub(crate) at: Address,
    /// The switch that it speaks to.
    pub(crate) switch: Address,
    pub(crate) pool: u16,
}

/// What a call of a host's machine takes.
pub(crate) struct Call<'a, M, S, A> {
    pub(crate) now: Nanos,
    pub(crate) node: &'a mut Node<M>,
    pub(crate) settings: &'a S,
    pub(crate) packets: &'a PacketPool,
    /// What machines say; empty between calls.
    pub(crate) out: &'a mut Vec<A>,
}

/// What machines said has been done: the room that it took is used again.
#[inline]
fn keep_room<A>(room: &mut Vec<A>, mut said: Vec<A>) {
    said.clear();
    *room = said;
}

/// What all nodes act on.
pub(crate) trait Scene {
    /// Why a run ends before its time.
    type Broken;
    /// How long after now a machine is woken at the soonest.
    const SOONEST: Nanos;

    fn now(&self) -> Nanos;

    /// Where packets lie until they have been received.
    fn packets(&mut self) -> &mut PacketPool;

    /// Sends a packet that leaves then, and is made where it lies.
    fn send(&mut self, from: PacketSource, to: Address, leaves: Nanos, make: impl FnOnce(&mut Packet));
}

/// What a run makes of something, unless it ends there.
pub(crate) type Try<S, T = ()> = Result<T, <S as Scene>::Broken>;
