//! The messages of a key-value service ([`codec`]) and the arguments of the worker that is one. The service
//! itself is in `crates/run/rocksdb`.

pub mod codec;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sluice_wire::TaskType;

/// The service's name.
pub const KV: &str = "kv";
/// The task type that reads the values of keys.
pub const KV_GET: TaskType = TaskType(20);
/// The task type that lists keys.
pub const KV_SCAN: TaskType = TaskType(21);
/// The task type that stores a value.
pub const KV_SET: TaskType = TaskType(22);
/// The task type that removes keys.
pub const KV_DEL: TaskType = TaskType(23);
/// The types' names and numbers.
pub const KV_TYPES: [(&str, TaskType); 4] =
    [("kv-get", KV_GET), ("kv-scan", KV_SCAN), ("kv-set", KV_SET), ("kv-del", KV_DEL)];

/// The folder of a store, where none is given.
pub const STORE_DEFAULT: &str = "out/store";
/// Memory for the blocks that each worker keeps, in MiB, where none is given.
pub const STORE_CACHE_MIB_DEFAULT: u32 = 64;

/// Where a store is, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvArgs {
    /// The folder of the RocksDB database.
    pub db: PathBuf,
    /// Memory for the blocks that each worker keeps, in MiB.
    pub cache_mib: u32,
    /// Whether a write is on the disk before it is answered.
    pub sync: bool,
}

impl Default for KvArgs {
    fn default() -> Self {
        Self { db: STORE_DEFAULT.into(), cache_mib: STORE_CACHE_MIB_DEFAULT, sync: false }
    }
}

/// What a worker of a store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvRole {
    /// Writes, and reads. A database has one writer.
    Writer,
    /// Reads what the writer of the same machine wrote.
    Reader,
}

impl KvRole {
    /// The role that a worker needs in a slice with these types.
    pub fn among(types: impl IntoIterator<Item = TaskType>) -> Self {
        let writes = types.into_iter().any(|of| !Self::Reader.types().contains(&of));
        if writes { Self::Writer } else { Self::Reader }
    }

    /// The task types that a worker with this role serves.
    pub const fn types(self) -> &'static [TaskType] {
        match self {
            Self::Writer => &[KV_GET, KV_SCAN, KV_SET, KV_DEL],
            Self::Reader => &[KV_GET, KV_SCAN],
        }
    }
}

impl fmt::Display for KvRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Writer => "writer",
            Self::Reader => "reader",
        })
    }
}
