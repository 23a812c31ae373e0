//! The nodes of a rack: what holds a machine, its address and its wake-up, and what follows from what the
//! machine said.
//!
//! A machine says actions, a node makes effects of them ([`ClientEffect`], [`WorkerEffect`]), and each world
//! carries these out, as it does with a switch's verdicts. Curves (`racks`) and fault runs (`faults`) drive
//! the same nodes. In a curve a core's work takes time and results are counted; in a fault run there are
//! bytes, an oracle, a story, and lives that end.
#![forbid(unsafe_code)]

pub mod names;

mod client;
mod core;
mod tag;
mod wakeup;
mod worker;

use sluice_wire::{Nanos, Packet};

pub use client::{ClientEffect, bundled, write_submit};
pub use core::{Core, Duty, TaskRun};
pub use tag::TaskTag;
pub use wakeup::Wakeup;
pub use worker::{WorkerEffect, write_reply, write_token};

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
    #[inline]
    pub const fn sender(&self) -> PacketSource {
        PacketSource { at: self.at, switch: self.switch, pool: self.pool }
    }

    /// Its machine has this deadline now, and is woken no sooner than `soonest`: gives when to remind it, if
    /// that takes another entry.
    #[inline]
    pub fn wakes_at(&mut self, deadline: Option<Nanos>, soonest: Nanos) -> Option<Nanos> {
        let due = deadline?.max(soonest);
        self.wakeup.wake_by(due).then_some(due)
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
