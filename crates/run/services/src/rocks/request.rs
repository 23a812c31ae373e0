//! What the program for RocksDB is asked to do.

use serde::{Deserialize, Serialize};
use sluice_net::program::WorkerArgs;

use super::RocksArgs;
use super::measure::MeasureArgs;
use crate::kv::{KvArgs, KvRole};

/// What the program for RocksDB is asked, as JSON in its only argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RocksRequest {
    /// To serve GETs and SCANs as a worker of a rack.
    Work { data: RocksArgs, worker: Box<WorkerArgs> },
    /// To serve a key-value store as a worker of a rack.
    Keep { store: KvArgs, role: KvRole, worker: Box<WorkerArgs> },
    /// To load the database if it is not there.
    Load {
        data: RocksArgs,
        /// Whether to show no progress.
        quiet: bool,
    },
    /// To measure operations, and to say a line of JSON for each replication.
    Measure {
        what: MeasureArgs,
        /// How often to measure everything, each time with the next seed.
        replications: u32,
        /// Whether to show no progress.
        quiet: bool,
    },
}
