//! The errors of steps that a fabric's control software asks of Horus.

use sluice_wire::{Generation, SliceId, WorkerId};

/// Why a step was refused. A refused step has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HorusError {
    /// The rack has no workers: take it out of the pool instead.
    #[error("a rack without workers has no weight: take it out of the pool instead")]
    NoWorkers,
    /// The rack has more workers than an average can count: give it fewer.
    #[error(
        "{workers} workers in one rack are more than 65,535: 16 bits of an average's fraction cannot tell one"
    )]
    TooManyWorkers {
        /// How many workers the rack was to have.
        workers: u32,
    },
    /// The average is too large: give a worker fewer tasks.
    #[error(
        "{tasks} tasks do not fit an average of 16 bits before the point: expect at most 65,535 a worker"
    )]
    AverageTooLarge { tasks: u32 },
    /// The leaf has no row: give it one first.
    #[error("leaf {} is not linked to this spine: give it a row first", .leaf.0)]
    UnknownLeaf {
        /// The leaf's number at the spine.
        leaf: WorkerId,
    },
    /// The leaf registered anew meanwhile: read its row again.
    #[error(
        "leaf {} is of generation {} here, not {}: the number was given anew, read the row again",
        .leaf.0, .is.0, .said.0
    )]
    StaleLeaf {
        /// The leaf's number at the spine.
        leaf: WorkerId,
        /// The generation that the caller named.
        said: Generation,
        is: Generation,
    },
    /// The spine has no such pool: make the spine with more pools, or name one that it has.
    #[error("pool {} is beyond the {pools} that this switch has", .pool.0)]
    UnknownPool {
        pool: SliceId,
        /// How many pools the spine has.
        pools: u16,
    },
    /// The leaf has no such spine: make the leaf with more spines, or name one that it has.
    #[error("spine {spine} is beyond the {spines} that this leaf has room for")]
    UnknownSpine {
        spine: u16,
        /// How many spines the leaf has room for.
        spines: u16,
    },
    /// A spine cannot have so many leaves: split the fabric into more spines.
    #[error("a spine with {leaves} leaves is too large: at most {most} fit what a removal carries round")]
    TooManyLeaves {
        /// How many leaves were asked for.
        leaves: u16,
        most: u16,
    },
}
