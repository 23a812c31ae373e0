//! The seats of workers, from which tasks are pushed: rows of Pallas' schedule and of RackSched's choices.
//!
//! A worker has a seat while its row is open. When it leaves, the last worker of the slice takes its seat.

use sluice_switch::{Config, Random};
use sluice_wire::tables::WorkerRow;
use sluice_wire::{SliceId, WorkerId};

use crate::sizes::bits;

/// The workers of each slice, in the order of their seats.
#[derive(Debug)]
pub(crate) struct SeatTable {
    slices: Vec<Vec<WorkerId>>,
    per_slice: u16,
}

/// How a new row changed the seats.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeatChange {
    /// The seat that the worker left, and the seat whose worker moved there, perhaps the same.
    pub(crate) left: Option<(SeatPlace, SeatPlace)>,
    /// The seat that the worker got.
    pub(crate) taken: Option<SeatPlace>,
}

/// A seat of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeatPlace {
    pub(crate) slice: SliceId,
    pub(crate) position: u16,
}

impl SeatTable {
    pub(crate) fn new(config: &Config) -> Self {
        let per_slice = 1 << bits(config.workers.into());
        Self { slices: vec![Vec::new(); config.slices.into()], per_slice }
    }

    /// The workers of a slice.
    pub(crate) fn of(&self, slice: SliceId) -> &[WorkerId] {
        &self.slices[usize::from(slice.0)]
    }

    /// The seat of a worker, if it has one.
    pub(crate) fn seat(&self, worker: WorkerId) -> Option<SeatPlace> {
        let place = |workers: &Vec<WorkerId>| workers.iter().position(|seated| *seated == worker);
        let mut places = self.slices.iter().map(place).zip(0..);
        places.find_map(|(at, slice)| Some(SeatPlace { slice: SliceId(slice), position: at? as u16 }))
    }

    /// The worker of a seat, if it is taken.
    pub(crate) fn worker(&self, seat: SeatPlace) -> Option<WorkerId> {
        self.of(seat.slice).get(usize::from(seat.position)).copied()
    }

    /// The number of a seat among all slices' seats.
    pub(crate) const fn index(&self, seat: SeatPlace) -> u16 {
        seat.slice.0 * self.per_slice + seat.position
    }

    /// Changes the seats as a worker's row says.
    pub(crate) fn set(&mut self, worker: WorkerId, row: Option<&WorkerRow>) -> SeatChange {
        let (held, wanted) = (self.seat(worker), row.filter(|row| row.open).map(|row| row.slice));
        if held.map(|seat| seat.slice) == wanted {
            return SeatChange::default();
        }
        let left = held.map(|seat| {
            let workers = &mut self.slices[usize::from(seat.slice.0)];
            workers.swap_remove(seat.position.into());
            (seat, SeatPlace { position: workers.len() as u16, ..seat })
        });
        let taken = wanted.map(|slice| {
            let workers = &mut self.slices[usize::from(slice.0)];
            workers.push(worker);
            SeatPlace { slice, position: workers.len() as u16 - 1 }
        });
        SeatChange { left, taken }
    }
}

/// The draws of a frame, and the random unit behind them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) numbers: [u16; 2],
    pub(crate) after: Random,
}

impl Draws {
    /// What the model draws for a task of a slice with so many workers, as numbers of `draw_bits` that the
    /// driver's tables share out.
    pub(crate) fn of(mut random: Random, workers: u16, draw_bits: u32) -> Self {
        if workers == 0 {
            return Self { numbers: [0; 2], after: random };
        }
        let further = workers.saturating_sub(1).max(1);
        let (first, second) = (random.below(workers), random.below(further));
        if workers > 1 {
            // The model draws behind its last choice too.
            random.below(further);
        }
        let numbers = [share_start(first, workers, draw_bits), share_start(second, further, draw_bits)];
        Self { numbers, after: random }
    }
}

/// The place of a draw among so many shares.
pub(crate) fn share(draw: u16, shares: u16, draw_bits: u32) -> u16 {
    ((u32::from(draw) * u32::from(shares)) >> draw_bits) as u16
}

/// The first draw of a share.
fn share_start(place: u16, shares: u16, draw_bits: u32) -> u16 {
    (u32::from(place) << draw_bits).div_ceil(shares.into()) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_draw_of_a_share_is_in_it_and_the_draw_before_is_not() {
        for shares in 1..=16 {
            for place in 0..shares {
                let draw = share_start(place, shares, 4);
                assert_eq!(share(draw, shares, 4), place);
                assert!(draw == 0 || share(draw - 1, shares, 4) < place);
            }
        }
    }
}
