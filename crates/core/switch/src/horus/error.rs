//! What a fabric's control software asks of Horus that it cannot do.

use sluice_wire::{Generation, SliceId, WorkerId};

/// Why a step was refused; it has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HorusError {
    /// Take the rack out of the pool instead.
    #[error("a rack without workers has no weight: take it out of the pool instead")]
    NoWorkers,
    /// A rack has fewer workers.
    #[error(
        "{workers} workers in one rack are more than 65,535: 16 bits of an average's fraction cannot tell one"
    )]
    TooManyWorkers {
        /// How many it was to have.
        workers: u32,
    },
    /// A worker has fewer tasks before it.
    #[error(
        "{tasks} tasks do not fit an average of 16 bits before the point: expect at most 65,535 a worker"
    )]
    AverageTooLarge {
        /// How many there were.
        tasks: u32,
    },
    /// Give the leaf a row first.
    #[error("leaf {} is not linked to this spine: give it a row first", .leaf.0)]
    UnknownLeaf {
        /// Its number at the spine.
        leaf: WorkerId,
    },
    /// The leaf came in anew meanwhile: ask for its row.
    #[error(
        "leaf {} is of generation {} here, not {}: the number was given anew, read the row again",
        .leaf.0, .is.0, .said.0
    )]
    StaleLeaf {
        /// Its number at the spine.
        leaf: WorkerId,
        /// What the caller took it for.
        said: Generation,
        is: Generation,
    },
    /// Make the spine with more pools, or name one that it has.
    #[error("pool {} is beyond the {pools} that this switch has", .pool.0)]
    UnknownPool {
        pool: SliceId,
        /// How many it has.
        pools: u16,
    },
    /// Make the leaf with more spines, or name one that it has.
    #[error("spine {spine} is beyond the {spines} that this leaf has room for")]
    UnknownSpine {
        spine: u16,
        /// How many it has.
        spines: u16,
    },
    /// Split the fabric into more spines.
    #[error("a spine with {leaves} leaves is too large: at most {most} fit what a removal carries round")]
    TooManyLeaves {
        /// How many were asked for.
        leaves: u16,
        most: u16,
    },
}
