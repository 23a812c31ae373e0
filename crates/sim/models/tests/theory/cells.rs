//! The grid: 1 to 64 workers, loads from 0.3 to 0.95.
//!
//! The number of tasks of a cell was found with another seed: three times as many as gave intervals of the
//! wanted width there, since widths differ from seed to seed.

use crate::grid::{Cell, Service};

/// A service, a number of workers, and for each load how many million tasks.
type Row = (Service, u32, &'static [(f64, u64)]);

/// Cells that every test run can afford.
const QUICK: &[Row] = &[
    (Service::Exp, 1, &[(0.3, 2), (0.5, 6), (0.95, 130)]),
    (Service::Exp, 2, &[(0.3, 1), (0.5, 3)]),
    (Service::Exp, 4, &[(0.3, 1), (0.5, 1), (0.7, 5)]),
    (Service::Exp, 8, &[(0.3, 1), (0.5, 1), (0.7, 1), (0.8, 4)]),
    (Service::Exp, 16, &[(0.3, 1), (0.5, 1), (0.7, 1), (0.8, 2), (0.9, 12)]),
    (Service::Exp, 32, &[(0.3, 1), (0.5, 1), (0.7, 1), (0.8, 1), (0.9, 6), (0.95, 10)]),
    (Service::Exp, 64, &[(0.3, 1), (0.5, 1), (0.7, 1), (0.8, 1), (0.9, 2), (0.95, 5)]),
    (Service::Const, 1, &[(0.3, 1), (0.5, 3), (0.7, 8), (0.8, 18)]),
    (Service::Uniform, 1, &[(0.3, 1), (0.5, 1), (0.7, 2), (0.8, 4)]),
    (Service::Bimodal, 1, &[(0.3, 1), (0.5, 2), (0.7, 7)]),
    (Service::Lognormal, 1, &[(0.3, 2), (0.5, 4), (0.7, 11)]),
];

/// Cells that take minutes.
const LONG: &[Row] = &[
    (Service::Exp, 1, &[(0.7, 22), (0.8, 55), (0.9, 270)]),
    (Service::Exp, 2, &[(0.7, 16), (0.8, 46), (0.9, 250), (0.95, 130)]),
    (Service::Exp, 4, &[(0.8, 22), (0.9, 210), (0.95, 125)]),
    (Service::Exp, 8, &[(0.9, 105), (0.95, 105)]),
    (Service::Exp, 16, &[(0.95, 50)]),
    (Service::Const, 1, &[(0.9, 80), (0.95, 110)]),
    (Service::Uniform, 1, &[(0.9, 19), (0.95, 20)]),
    (Service::Bimodal, 1, &[(0.8, 14), (0.9, 60), (0.95, 41)]),
    (Service::Lognormal, 1, &[(0.8, 24), (0.9, 80), (0.95, 40)]),
];

pub(crate) fn quick() -> Vec<Cell> {
    QUICK.iter().flat_map(cells).collect()
}

pub(crate) fn all() -> Vec<Cell> {
    QUICK.iter().chain(LONG).flat_map(cells).collect()
}

/// The cells that are cheap enough to be run many times.
pub(crate) fn cheap() -> Vec<Cell> {
    quick().into_iter().filter(|cell| cell.tasks <= 1_000_000).collect()
}

fn cells((service, workers, loads): &Row) -> impl Iterator<Item = Cell> {
    loads.iter().map(|(load, millions)| Cell {
        service: *service,
        workers: *workers,
        load: *load,
        tasks: millions * 1_000_000,
    })
}
