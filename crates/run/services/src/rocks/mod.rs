//! The messages of the RocksDB service ([`codec`]) and the arguments of its program: which data it serves,
//! and what [`measure`] measures. The service itself is in `crates/run/rocksdb`.

pub mod codec;
pub mod measure;
pub mod request;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sluice_net::udp::DATAGRAM_BYTES;
use sluice_wire::{TaskType, first_bytes_max};

use crate::kv::{KV, STORE_DEFAULT};

/// The service's name.
pub const NAME: &str = "rocksdb";
/// The task type of a GET.
pub const GET: TaskType = TaskType(1);
/// The task type of a SCAN.
pub const SCAN: TaskType = TaskType(2);
/// How many keys one GET may name: as many as fit into one packet.
pub const GET_KEYS_MAX: u32 = (first_bytes_max(DATAGRAM_BYTES) / codec::KEY_BYTES) as u32;

/// The location and size of the data.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
pub struct RocksArgs {
    /// Folder of the RocksDB database; loaded at the first start [default for kv: out/store].
    #[arg(long, value_name = "FOLDER", default_value = DB_DEFAULT)]
    #[arg(default_value_if("service", KV, STORE_DEFAULT))]
    pub db: PathBuf,
    /// How many keys the database holds.
    #[arg(long, value_name = "COUNT", default_value_t = KEYS_DEFAULT)]
    pub keys: u64,
    /// Length of each value, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = ITEM_BYTES_DEFAULT)]
    pub item_bytes: u32,
    /// Memory for the blocks that each worker keeps, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = CACHE_MIB_DEFAULT)]
    pub cache_mib: u32,
}

const DB_DEFAULT: &str = "out/rocksdb";
const KEYS_DEFAULT: u64 = 200_000;
const ITEM_BYTES_DEFAULT: u32 = 128;
const CACHE_MIB_DEFAULT: u32 = 64;

impl Default for RocksArgs {
    fn default() -> Self {
        Self {
            db: DB_DEFAULT.into(),
            keys: KEYS_DEFAULT,
            item_bytes: ITEM_BYTES_DEFAULT,
            cache_mib: CACHE_MIB_DEFAULT,
        }
    }
}
