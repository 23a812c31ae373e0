//! The sizes of a program's memory.

use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tables::{Feed, Shape};
use sluice_wire::{Epoch, Serial, Term};

/// The most tasks that can wait in the chip's memory, and the most tokens that can park.
pub(crate) const TASKS_MAX: u32 = 128 * 1024;
pub(crate) const TOKENS_MAX: u32 = 64 * 1024;

/// The sizes of a program's memory, its epoch and its controller. Ring and cell counts are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The epoch of this life of the registers.
    pub epoch: Epoch,
    /// The controller that the switch obeys at start: the one that it obeyed in its last life, or none.
    pub term: Term,
    /// Workers that the switch can hold.
    pub workers: u16,
    /// Clients that the switch can hold.
    pub clients: u16,
    /// Slices that the switch can hold.
    pub slices: u16,
    /// Task types that the switch can map.
    pub types: u16,
    /// Tasks that can wait in each slice.
    pub tasks_per_slice: u32,
    /// Tokens that can park in each slice.
    pub tokens_per_slice: u32,
    /// Tasks that each client may have outstanding.
    pub replay_cells: u32,
    /// Servers into whose memory tasks can be written ahead. With none, the driver of the switch keeps the
    /// bytes of waiting tasks. With some, the switch keeps no bytes, and a worker asks the client for those
    /// of a task that was not written ahead.
    pub servers: u16,
    /// Where all counters start.
    pub counters_start: Serial,
    /// How far the counters that idle polls advance start ahead of the others, as if there had been so many
    /// polls.
    pub polls_ahead: u32,
    /// The seed of the chip's random unit.
    pub seed: u64,
}

impl Config {
    /// What a switch that runs plain Rain in a data plane of its own says of itself: one class, one kind, and
    /// workers that send tokens.
    pub const fn shape_of_plain_rain(&self, term: Term) -> Shape {
        Shape {
            epoch: self.epoch,
            term,
            workers: self.workers,
            clients: self.clients,
            slices: self.slices,
            types: self.types,
            servers: self.servers,
            tasks_per_slice: self.tasks_per_slice,
            tokens_per_slice: self.tokens_per_slice,
            replay_cells: self.replay_cells,
            feed: Feed::TOKENS,
            classes: 1,
            kinds: 1,
            jobs: 1,
            plain_writes: true,
            quota_max: QUOTA_MAX,
        }
    }

    /// How many tasks can wait in a rack of Rain below spines: half as many as in one that is alone, because
    /// an entry is longer, and what spines were told stands behind it.
    pub const LEAF_TASKS: u32 = TASKS_MAX / 2;

    /// The size of Rain's paper: 128 Ki waiting tasks, here in 16 slices, and as many outstanding.
    pub const fn full(epoch: Epoch) -> Self {
        Self {
            epoch,
            term: Term(0),
            workers: 1024,
            clients: 32,
            slices: 16,
            types: 256,
            tasks_per_slice: 8 * 1024,
            tokens_per_slice: 4 * 1024,
            replay_cells: 4 * 1024,
            servers: 0,
            counters_start: Serial(0),
            polls_ahead: 0,
            seed: 0,
        }
    }

    /// The size of a rack of Rain below spines.
    pub const fn full_below_spines(epoch: Epoch) -> Self {
        let full = Self::full(epoch);
        Self { tasks_per_slice: Self::LEAF_TASKS / full.slices as u32, ..full }
    }

    pub(crate) const fn is_sound(&self) -> bool {
        self.tasks_per_slice.is_power_of_two()
            && self.tokens_per_slice.is_power_of_two()
            && self.replay_cells.is_power_of_two()
            && self.tasks_per_slice <= i32::MAX as u32 / 2
            && self.tokens_per_slice <= i32::MAX as u32 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_and_a_signed_count_tells_two_rings_apart() {
        let full = Config::full(Epoch(1));
        let largest = Config { tasks_per_slice: 1 << 29, tokens_per_slice: 1 << 29, ..full };
        assert!(full.is_sound() && largest.is_sound());
        for size in [3, 1 << 30] {
            assert!(!Config { tasks_per_slice: size, ..full }.is_sound(), "{size}");
            assert!(!Config { tokens_per_slice: size, ..full }.is_sound(), "{size}");
        }
        assert!(!Config { replay_cells: 3, ..full }.is_sound());
    }
}
