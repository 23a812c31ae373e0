//! The database of a store: its options, and the number of its last write.

use std::path::Path;

use rocksdb::{BlockBasedOptions, Cache, DB, Options};
use sluice_net::service::ServiceError;
use sluice_services::kv::KvArgs;
use sluice_services::kv::codec::WriteNumber;

use crate::load;

/// The key of the number of the last write. Tasks' keys are not empty.
pub(super) const LAST_WRITE: &[u8] = b"";
/// How many bytes of writes are in memory, and in a log: a reader reads so many when it opens the database.
const WRITE_BUFFER_BYTES: usize = 4 << 20;
/// How many of its note files RocksDB keeps.
const NOTES_KEPT: usize = 2;

/// The options of a store, for its writer and its readers.
pub(super) fn store_options(args: &KvArgs) -> Result<Options, rocksdb::Error> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(args.cache_mib as usize * 1024 * 1024)?);
    blocks.set_bloom_filter(10.0, false);
    let mut options = load::options(&blocks);
    options.set_write_buffer_size(WRITE_BUFFER_BYTES);
    options.set_keep_log_file_num(NOTES_KEPT);
    // A reader holds each table open, since the writer may remove it.
    options.set_max_open_files(-1);
    Ok(options)
}

/// The number of the last write in the database.
pub(super) fn last_write(db: &DB) -> Result<WriteNumber, rocksdb::Error> {
    let number = db.get_pinned(LAST_WRITE)?;
    let number = number.and_then(|number| number[..].try_into().ok());
    Ok(WriteNumber(number.map_or(0, u64::from_be_bytes)))
}

pub(super) fn failed(why: &rocksdb::Error) -> ServiceError {
    ServiceError::new(format!("RocksDB: {why}"))
}

pub(super) fn is_ahead(seen: WriteNumber, last: WriteNumber, path: &Path) -> ServiceError {
    ServiceError::new(format!(
        "no write has the number {seen} here: the last one in the store at {} is {last}; take the number \
         from a write to this store",
        path.display()
    ))
}
