use std::io;
use std::path::PathBuf;

use sluice_net::service::ServiceError;
use sluice_services::AppError;
use sluice_system::{Attempt, advice};

/// Why a database cannot be opened, loaded or measured, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum RocksError {
    /// What is to be measured makes no sense: it says why.
    #[error(transparent)]
    Asked(#[from] AppError),
    /// The data must be loaded but the place for it cannot be written: choose another, or change its rights.
    #[error("cannot load data in {} (--db): {source}; {}", path.display(), advice(Attempt::Write, source))]
    NotWritable {
        /// The file or folder that failed.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is a folder already, and not one that Sluice loaded: choose another path.
    #[error("{} is not a database that Sluice loaded; choose another path with --db", path.display())]
    NotOurs { path: PathBuf },
    /// The database holds other data than asked for: remove it, or choose another path.
    #[error("the database at {} holds {holds}, not {asked}; remove it or choose another path with --db", path.display())]
    OtherData {
        path: PathBuf,
        /// What it says that it holds.
        holds: String,
        asked: String,
    },
    /// The asked-for size is out of range: stay inside the stated bounds.
    #[error("{what} is {value}, outside {least} to {most}")]
    OutOfRange {
        what: &'static str,
        /// What it was set to.
        value: u64,
        /// The smallest that is allowed.
        least: u64,
        /// The largest that is allowed.
        most: u64,
    },
    /// RocksDB itself failed.
    #[error("RocksDB at {}: {source}", path.display())]
    Database { path: PathBuf, source: rocksdb::Error },
    /// An operation that is measured failed: the database is damaged, or was changed meanwhile.
    #[error("an operation that was to be measured failed: {0}")]
    Operation(ServiceError),
}

impl RocksError {
    /// Whether what was asked for is at fault, and not this machine or this program.
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Operation(_))
    }
}
