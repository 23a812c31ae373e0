use std::io;
use std::path::PathBuf;

use sluice_net::service::ServiceError;
use sluice_services::AppError;
use sluice_system::{Attempt, advice};

/// Why a database cannot be opened, loaded or measured, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum RocksError {
    /// The requested measurement is invalid.
    #[error(transparent)]
    Asked(#[from] AppError),
    /// The data must be loaded, but its folder cannot be written: choose another, or change its
    /// permissions.
    #[error("cannot load data in {} (--db): {source}; {}", path.display(), advice(Attempt::Write, source))]
    NotWritable {
        /// The file or folder that failed.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder exists, but Sluice did not create it: choose another path.
    #[error("{} is not a database that Sluice loaded; choose another path with --db", path.display())]
    NotOurs { path: PathBuf },
    /// The database holds other data than requested: remove it, or choose another path.
    #[error("the database at {} holds {holds}, not {asked}; remove it or choose another path with --db", path.display())]
    OtherData {
        path: PathBuf,
        /// The data that the database says it holds.
        holds: String,
        asked: String,
    },
    /// The folder of a key-value store cannot be read or written: choose another, or change its permissions.
    #[error("{} (--db) cannot hold a store: {source}; {}", path.display(), advice(Attempt::Write, source))]
    StoreFolder {
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The store has a writer already: stop that one, or be a reader.
    #[error("the store at {} has a writer: stop that one, or be a reader (--role reader)", path.display())]
    SecondWriter { path: PathBuf },
    /// No writer has created the store: start one, or choose another path.
    #[error("there is no store at {} (--db): start its writer (--role writer)", path.display())]
    NoStore { path: PathBuf },
    /// The store cannot be read: the sentence says why.
    #[error("{0}")]
    Unreadable(ServiceError),
    /// The folder has data, and lacks the file that names the list of them: restore it.
    #[error("the store at {} is damaged, it has no file CURRENT: restore it from a copy", path.display())]
    Damaged { path: PathBuf },
    /// A size is out of range: stay inside the stated bounds.
    #[error("{what} is {value}, outside {least} to {most}")]
    OutOfRange {
        what: &'static str,
        /// The given value.
        value: u64,
        /// The smallest allowed value.
        least: u64,
        /// The largest allowed value.
        most: u64,
    },
    /// RocksDB itself failed.
    #[error("RocksDB at {}: {source}", path.display())]
    Database { path: PathBuf, source: rocksdb::Error },
    /// A measured operation failed: the database is damaged, or was changed meanwhile.
    #[error("an operation that was to be measured failed: {0}")]
    Operation(ServiceError),
}

impl RocksError {
    /// Whether the caller's request is at fault, not this machine or program.
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Operation(_))
    }
}
