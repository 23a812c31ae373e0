//! RocksDB behind Sluice: GET of k keys, SCAN of n keys.
//!
//! The data is made up, the same on every machine ([`codec::value`]), and only read: every worker of a machine
//! opens the same files. [`load::ensure`] makes them at the first start.

pub mod codec;
pub mod load;
mod pace;
mod warm;

use std::path::{Path, PathBuf};

use rocksdb::{BlockBasedOptions, Cache, DB, ReadOptions};
use sluice_net::service::{Service, ServiceError, Task};
use sluice_wire::TaskType;

use crate::AppError;
use crate::progress::Progress;
use codec::{Digest, GetReplyWriter, SCAN_HEAD_BYTES, ScanReply};
use load::Data;
use pace::Pace;

/// The type number of a GET.
pub const GET: TaskType = TaskType(1);
/// The type number of a SCAN.
pub const SCAN: TaskType = TaskType(2);

/// Where the data is, and how much of it.
#[derive(Clone, Debug, clap::Args)]
pub struct RocksArgs {
    /// Folder of the RocksDB database; loaded at the first start.
    #[arg(long, value_name = "FOLDER", default_value = DB_DEFAULT)]
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

impl RocksArgs {
    /// Makes sure that the data is there, as `up` does before it starts many workers.
    pub fn ensure(&self, progress: &mut dyn Progress) -> Result<(), AppError> {
        load::ensure(&self.db, self.data(), progress)
    }

    const fn data(&self) -> Data {
        Data { keys: self.keys, item_bytes: self.item_bytes }
    }
}

/// The RocksDB service.
#[derive(Debug)]
pub struct Rocks {
    db: DB,
    gets: Pace,
    scans: Pace,
}

impl Rocks {
    /// Opens the database, loading it first if it is not there, and reads as much of it as its cache holds.
    pub fn open(args: &RocksArgs, progress: &mut dyn Progress) -> Result<Self, AppError> {
        args.ensure(progress)?;
        let cache_bytes = args.cache_mib as usize * 1024 * 1024;
        let db = open_warm(&args.db, cache_bytes)
            .map_err(|source| AppError::Database { path: args.db.clone(), source })?;
        Ok(Self { db, gets: Pace::default(), scans: Pace::default() })
    }

    fn get(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let keys = codec::decode_get(task.bytes)?;
        let mut writer = GetReplyWriter::new(reply, task.packet_max);
        let mut walk = self.gets.begin(task, keys.len() as u32);
        for key in keys {
            let value = self.db.get_pinned(key).map_err(|error| failed(&error))?;
            writer.add(value.as_deref());
            walk.step();
        }
        walk.end();
        writer.finish();
        Ok(())
    }

    fn scan(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let scan = codec::decode_scan(task.bytes)?;
        let mut answer = ScanReply::default();
        reply.resize(SCAN_HEAD_BYTES, 0);
        let mut has_room = scan.sends_rows;
        let mut digest = Digest::default();
        let mut walk = self.scans.begin(task, scan.rows);
        let mut rows = self.db.raw_iterator_opt(ReadOptions::default());
        rows.seek(scan.start);
        while answer.rows < scan.rows {
            let Some((key, value)) = rows.item() else { break };
            digest.add(key);
            digest.add(value);
            has_room = has_room && codec::add_row(key, value, reply, task.reply_max);
            answer.rows += 1;
            answer.bytes += (key.len() + value.len()) as u64;
            rows.next();
            walk.step();
        }
        walk.end();
        rows.status().map_err(|error| failed(&error))?;
        answer.digest = digest.value();
        answer.encode(reply);
        Ok(())
    }
}

impl Service for Rocks {
    fn types(&self) -> Vec<TaskType> {
        vec![GET, SCAN]
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        match task.task_type {
            GET => self.get(task, reply),
            SCAN => self.scan(task, reply),
            other => Err(ServiceError::new(format!("RocksDB serves types {GET} and {SCAN}, not {other}"))),
        }
    }
}

fn open_warm(path: &Path, cache_bytes: usize) -> Result<DB, rocksdb::Error> {
    let cache = Cache::new_lru_cache(cache_bytes)?;
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&cache);
    let db = DB::open_for_read_only(&load::options(&blocks), path, false)?;
    warm::warm(&db, &cache, cache_bytes)?;
    Ok(db)
}

fn failed(error: &rocksdb::Error) -> ServiceError {
    ServiceError::new(format!("RocksDB: {error}"))
}
