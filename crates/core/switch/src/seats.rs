//! The workers of each slice as a dense list, so that a program can name the third worker of a slice.
//!
//! A worker has a seat while its row is open. The switch's own control software keeps the list, from the
//! rows that the controller writes. When a worker leaves, the last worker of the slice takes its seat.

use alloc::boxed::Box;
use alloc::vec;

use sluice_wire::tables::WorkerRow;
use sluice_wire::{SliceId, WorkerId};

use crate::config::Config;
use crate::pipeline::Layout;

/// A place in the list of a slice's workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) slice: u16,
    pub(crate) position: u16,
}

/// The lists of all slices.
#[derive(Debug)]
pub(crate) struct Seats {
    workers: Box<[WorkerId]>,
    taken: Box<[u16]>,
    held: Box<[Option<Seat>]>,
    per_slice: u16,
}

/// How a new row changed the seats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The seat that the worker left, and the last seat of the slice, whose worker moved there (perhaps the
    /// same seat).
    pub(crate) left: Option<(Seat, Seat)>,
    /// The seat that the worker got.
    pub(crate) taken: Option<Seat>,
}

impl Seats {
    /// No worker has a seat.
    pub(crate) fn new(config: &Config) -> Self {
        let (workers, slices) = (config.workers as usize, config.slices as usize);
        Self {
            workers: vec![WorkerId::default(); slices * workers].into_boxed_slice(),
            taken: vec![0; slices].into_boxed_slice(),
            held: vec![None; workers].into_boxed_slice(),
            per_slice: config.workers,
        }
    }

    /// Accounts for the match tables: workers by their seats in `stage`, and seats by their workers in
    /// stage 0.
    pub(crate) fn tables(layout: &mut Layout, stage: u8, config: &Config) {
        let (workers, slices) = (config.workers as usize, config.slices as usize);
        layout.table("seats of workers", 0, 16, workers);
        layout.table("workers of seats", stage, 16, slices * workers);
    }

    /// How many workers a slice has.
    #[inline]
    pub(crate) fn of(&self, slice: SliceId) -> u16 {
        self.taken[slice.0 as usize]
    }

    /// The worker of a taken seat.
    #[inline]
    pub(crate) fn worker(&self, seat: Seat) -> WorkerId {
        self.workers[self.index(seat)]
    }

    /// The seat of a worker, if it has one.
    #[inline]
    pub(crate) fn seat(&self, worker: WorkerId) -> Option<Seat> {
        self.held.get(worker.0 as usize).copied().flatten()
    }

    /// The index of a seat among all slices' seats.
    #[inline]
    pub(crate) const fn index(&self, seat: Seat) -> usize {
        seat.slice as usize * self.per_slice as usize + seat.position as usize
    }

    /// Changes the seats as the row that the controller wrote says.
    pub(crate) fn set(&mut self, worker: WorkerId, row: Option<&WorkerRow>) -> Change {
        let wanted = row.filter(|row| row.open).map(|row| row.slice.0);
        let held = self.seat(worker);
        if held.map(|seat| seat.slice) == wanted {
            return Change::default();
        }
        let left = held.map(|seat| (seat, self.leave(worker, seat)));
        let taken = wanted.map(|slice| self.take(worker, slice));
        Change { left, taken }
    }

    fn leave(&mut self, worker: WorkerId, seat: Seat) -> Seat {
        let taken = &mut self.taken[seat.slice as usize];
        *taken -= 1;
        let last = Seat { slice: seat.slice, position: *taken };
        let moved = self.worker(last);
        self.workers[self.index(seat)] = moved;
        self.held[moved.0 as usize] = Some(seat);
        self.held[worker.0 as usize] = None;
        last
    }

    fn take(&mut self, worker: WorkerId, slice: u16) -> Seat {
        let taken = &mut self.taken[slice as usize];
        let seat = Seat { slice, position: *taken };
        *taken += 1;
        self.workers[self.index(seat)] = worker;
        self.held[worker.0 as usize] = Some(seat);
        seat
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::Epoch;

    use super::*;

    fn row(slice: u16, open: bool) -> WorkerRow {
        WorkerRow { slice: SliceId(slice), open, ..WorkerRow::default() }
    }

    #[test]
    fn the_last_worker_takes_the_seat_of_one_that_leaves() {
        let config = Config { workers: 4, slices: 2, ..Config::full(Epoch(1)) };
        let mut seats = Seats::new(&config);
        (0..3).for_each(|worker| {
            seats.set(WorkerId(worker), Some(&row(1, true)));
        });
        let [first, last] = [0, 2].map(|position| Seat { slice: 1, position });
        assert_eq!(seats.set(WorkerId(0), Some(&row(1, true))), Change::default(), "as before");
        let change = seats.set(WorkerId(0), Some(&row(0, true)));
        let new = Seat { slice: 0, position: 0 };
        assert_eq!(change, Change { left: Some((first, last)), taken: Some(new) });
        assert_eq!((seats.of(SliceId(1)), seats.worker(first)), (2, WorkerId(2)));
        assert_eq!(seats.seat(WorkerId(2)), Some(first));
        let gone = seats.set(WorkerId(0), Some(&row(0, false)));
        assert_eq!(gone, Change { left: Some((new, new)), taken: None });
        assert_eq!((seats.of(SliceId(0)), seats.seat(WorkerId(0))), (0, None));
    }
}
