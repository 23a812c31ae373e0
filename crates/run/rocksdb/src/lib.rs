//! RocksDB behind Sluice: GET of k keys, SCAN of n keys, and their measured durations ([`measure`]); and a
//! store that can be written ([`kv`]).
//!
//! The data of GETs and SCANs is synthetic, the same on every machine ([`codec::value`]), and read-only: all
//! workers of a machine open the same files. [`load::ensure`] creates them at the first start.
//!
//! No other part of Sluice links librocksdb: `sluice` starts the program `sluice-rocksdb` if it needs a
//! database.
#![forbid(unsafe_code)]

mod error;
pub mod kv;
pub mod load;
pub mod measure;
mod pace;
mod points;
pub mod progress;
mod warm;

pub use error::RocksError;

use std::path::Path;
use std::sync::Arc;

use rocksdb::{BlockBasedOptions, Cache, DB, ReadOptions};
use sluice_net::service::{Service, ServiceError, Task};
use sluice_services::rocks::codec::{self, Digest, GetReplyWriter, SCAN_HEAD_BYTES, ScanReply};
use sluice_services::rocks::{GET, RocksArgs, SCAN};
use sluice_wire::TaskType;

use pace::Pace;
use progress::Progress;

/// The RocksDB service. Clones share the database.
#[derive(Clone, Debug)]
pub struct Rocks {
    db: Arc<DB>,
    gets: Pace,
    scans: Pace,
    /// Where the batch work continues: behind this row.
    read_to: Vec<u8>,
}

/// How many rows one piece of batch work reads.
const BATCH_ROWS: usize = 1_000;

impl Rocks {
    /// Opens the database, and loads it first if it does not exist. Then reads as much of it as its cache
    /// holds.
    pub fn open(args: &RocksArgs, progress: &mut dyn Progress) -> Result<Self, RocksError> {
        load::ensure(args, progress)?;
        let cache_bytes = args.cache_mib as usize * 1024 * 1024;
        let db = open_warm(&args.db, cache_bytes)
            .map_err(|source| RocksError::Database { path: args.db.clone(), source })?;
        Ok(Self { db: Arc::new(db), gets: Pace::default(), scans: Pace::default(), read_to: Vec::new() })
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

    /// Reads all rows in order, again and again, as an analytic query would: a thousand rows a piece.
    fn batch(&mut self, pause: &dyn Fn()) -> bool {
        let mut rows = self.db.raw_iterator_opt(ReadOptions::default());
        rows.seek(&self.read_to);
        let mut digest = Digest::default();
        for _ in 0..BATCH_ROWS {
            let Some((_, value)) = rows.item() else { break };
            digest.add(value);
            rows.next();
            pause();
        }
        std::hint::black_box(digest.value());
        // After the last row, continues at the first.
        self.read_to = rows.key().unwrap_or_default().to_vec();
        rows.status().is_ok()
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
