//! Rain: one queue per slice that holds either waiting tasks or parked tokens (Rain §3.2.1, §3.2.3).
//!
//! `balance` decides each arrival in one access: positive, that many tokens are parked; negative, that many tasks
//! wait. Neither side ever has to be rolled back. Around it stands what the paper leaves open: each token is
//! granted once and each try of a task enters once, whatever the network repeats, reorders or loses; a token of a
//! worker that died or moved is never used; a task that cannot wait is refused aloud.
//!
//! The stages, in order: source tables and slice map (0), `seen` and replay cells (1), `balance` (2), heads and
//! tails (3), rings (4 to 11), `gen_out` (5), `sent` and `seen_out` (6).
//!
//! Left out: the RDMA engine (§3.2.2); a task's bytes beyond eight stay with the driver, under their handle.

mod arrivals;
mod control;
mod count;
mod memory;

use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::{Endpoint, Epoch, Handle, Nanos, Packet, Serial};

pub use count::{Refusal, Refusals};

use crate::pipeline::Layout;
use memory::{Memory, Tables};

/// How often a task may go round because the tokens that it met were stale (it is rejected then).
pub const ROUNDS_MAX: u8 = 16;
/// How far a TOKEN's count may run ahead of what the switch has granted.
pub const TOKENS_AHEAD_MAX: u32 = 8;

/// How large the program's memory is. Ring and cell counts are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The life of these registers.
    pub epoch: Epoch,
    /// Workers that it can hold.
    pub workers: u16,
    /// Clients that it can hold.
    pub clients: u16,
    /// Slices that it can hold.
    pub slices: u16,
    /// Task types that it can map.
    pub types: u16,
    /// Tasks that can wait in each slice's ring.
    pub tasks_per_slice: u32,
    /// Tokens that can park in each slice's ring.
    pub tokens_per_slice: u32,
    /// Tasks that each client may have outstanding.
    pub replay_cells: u32,
    /// Where all counters start.
    pub counters_start: Serial,
}

impl Config {
    /// The paper's size: 128 Ki waiting tasks, here in 16 slices, and as many outstanding.
    pub const fn full(epoch: Epoch) -> Self {
        Self {
            epoch,
            workers: 1024,
            clients: 32,
            slices: 16,
            types: 256,
            tasks_per_slice: 8 * 1024,
            tokens_per_slice: 4 * 1024,
            replay_cells: 4 * 1024,
            counters_start: Serial(0),
        }
    }

    const fn is_sound(&self) -> bool {
        self.tasks_per_slice.is_power_of_two()
            && self.tokens_per_slice.is_power_of_two()
            && self.replay_cells.is_power_of_two()
            && self.tasks_per_slice <= i32::MAX as u32 / 2
            && self.tokens_per_slice <= i32::MAX as u32 / 2
    }
}

/// What comes to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A packet from a port.
    Wire {
        /// Its source.
        from: Endpoint,
        /// The packet.
        packet: Packet,
        /// Whether the driver could keep its payload if it had to wait.
        room: bool,
    },
    /// A packet that [`Verdict::Again`] sent round.
    Round {
        /// The packet.
        packet: Packet,
        /// How often it has gone round.
        round: u8,
        /// When it first arrived.
        arrived: Nanos,
    },
    /// A SWEEP from the controller.
    Control(Packet),
}

/// What leaves the switch for one arrival: at most one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This packet, to there.
    Send {
        /// Where to.
        to: Endpoint,
        /// The packet.
        packet: Packet,
    },
    /// A task that waited leaves unserved: this REJECT, to there, unless its client is gone too (no port).
    Swept {
        /// Where to.
        to: Endpoint,
        /// The REJECT.
        packet: Packet,
        /// Where its payload lies; no longer needed.
        payload: Handle,
    },
    /// This packet goes round: to be given back as [`Arrival::Round`], behind what has arrived meanwhile.
    Again {
        /// The packet.
        packet: Packet,
        /// How often it has gone round.
        round: u8,
        /// When it first arrived.
        arrived: Nanos,
    },
    /// Nothing: a task waits or a token is parked. A waiting task's payload handle comes back in its DISPATCH.
    Parked,
    /// Nothing, and nothing was kept.
    Drop(Refusal),
}

/// Rain's program and memory.
#[derive(Debug)]
pub struct Rain {
    config: Config,
    tables: Tables,
    memory: Memory,
    layout: Layout,
    refusals: Refusals,
}

impl Rain {
    /// An empty switch: no sources, no slices open.
    ///
    /// # Panics
    /// If a ring or cell count is not a power of two, or the memory does not fit the chip.
    pub fn new(config: Config) -> Self {
        assert!(config.is_sound(), "rain: ring and cell counts must be powers of two");
        let mut layout = Layout::new("rain");
        let tables = Tables::new(&mut layout, &config);
        let memory = Memory::new(&mut layout, &config);
        Self { config, tables, memory, layout, refusals: Refusals::default() }
    }

    /// One packet's pass.
    #[inline]
    pub fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict {
        let verdict = self.arrive(now, arrival);
        if let Verdict::Drop(refusal) = verdict {
            self.refusals.add(refusal);
        }
        verdict
    }

    /// One step of the controller.
    pub fn table(&mut self, op: TableOp) -> TableAnswer {
        self.control(op)
    }

    /// How large this switch is, and which life it leads.
    pub const fn shape(&self) -> Shape {
        Shape {
            epoch: self.config.epoch,
            workers: self.config.workers,
            clients: self.config.clients,
            slices: self.config.slices,
            types: self.config.types,
            tasks_per_slice: self.config.tasks_per_slice,
            tokens_per_slice: self.config.tokens_per_slice,
            replay_cells: self.config.replay_cells,
        }
    }

    /// What the program takes of the chip.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What was refused so far, by reason; some of it was answered, none of it changed anything.
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }
}
