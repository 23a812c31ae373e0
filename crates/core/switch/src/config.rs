//! How large a program's memory is.

use sluice_wire::{Epoch, Serial, Term};

/// How large a program's memory is, and the life that it leads. Ring and cell counts are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The life of these registers.
    pub epoch: Epoch,
    /// The controller that it obeys from the start: the one that it obeyed in the life before, or none.
    pub term: Term,
    /// Workers that it can hold.
    pub workers: u16,
    /// Clients that it can hold.
    pub clients: u16,
    /// Slices that it can hold.
    pub slices: u16,
    /// Task types that it can map.
    pub types: u16,
    /// Tasks that can wait in each slice.
    pub tasks_per_slice: u32,
    /// Tokens that can park in each slice.
    pub tokens_per_slice: u32,
    /// Tasks that each client may have outstanding.
    pub replay_cells: u32,
    /// Servers whose memory tasks can be written into ahead. With none, whoever drives the switch keeps the
    /// bytes of the tasks that wait; with some, nobody does, and tasks that were not written ahead are asked
    /// for.
    pub servers: u16,
    /// Where all counters start.
    pub counters_start: Serial,
    /// How far counters that idle polls alone move on stand ahead at the start: as after so many.
    pub polls_ahead: u32,
    /// What the chip's random unit starts from.
    pub seed: u64,
}

impl Config {
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

    /// The same where tasks are told apart by class: the classes' rings share the room, so that each slice
    /// may have that much less waiting. Where workers are told apart by kind too, as many tokens as tasks
    /// fit.
    pub const fn full_of(epoch: Epoch, classes: u8, kinds: u8) -> Self {
        let full = Self::full(epoch);
        let tasks_per_slice = full.tasks_per_slice / classes as u32;
        let tokens_per_slice = if kinds > 1 { tasks_per_slice } else { full.tokens_per_slice };
        Self { tasks_per_slice, tokens_per_slice, ..full }
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
