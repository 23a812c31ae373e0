//! The writer of a key-value store: sets and deletes, one RocksDB batch each, and reads.
//!
//! Each batch also stores the write's number below [`LAST_WRITE`], so that whoever sees a number sees its
//! write. RocksDB writes its log before a write is answered: a killed writer loses nothing that it
//! acknowledged. Only with `sync` does this hold for a power cut, too.
//!
//! After a failed write RocksDB refuses all others until the database is opened anew; the next task does so.

use std::collections::HashSet;
use std::path::PathBuf;

use rocksdb::{DB, Options, WriteBatch, WriteOptions};
use sluice_log::{LogEvent, tell};
use sluice_net::service::ServiceError;
use sluice_services::kv::KvArgs;
use sluice_services::kv::codec::{KvDeleted, KvKeys, KvSet, WriteNumber};

use super::database::{LAST_WRITE, failed, last_write, store_options};
use super::folder::{DatabaseIdentity, prepare};
use crate::RocksError;

/// The one worker that writes a store.
pub struct KvWriter {
    path: PathBuf,
    options: Options,
    how: WriteOptions,
    identity: DatabaseIdentity,
    /// `None` after a failed write.
    db: Option<DB>,
    last: WriteNumber,
}

impl KvWriter {
    /// Opens the store, and creates it if the folder is empty or missing.
    ///
    /// # Errors
    /// If the store has a writer already, or the folder is none for a store.
    pub fn open(args: &KvArgs) -> Result<Self, RocksError> {
        Self::open_with(args, store_options(args).map_err(|source| database(args, source))?)
    }

    fn open_with(args: &KvArgs, mut options: Options) -> Result<Self, RocksError> {
        prepare(&args.db)?;
        options.create_if_missing(true);
        let db = DB::open(&options, &args.db).map_err(|source| cannot_open(args, source))?;
        let last = last_write(&db).map_err(|source| database(args, source))?;
        let identity = DatabaseIdentity::of(&args.db);
        let identity =
            identity.map_err(|source| RocksError::StoreFolder { path: args.db.clone(), source })?;
        let mut how = WriteOptions::default();
        how.set_sync(args.sync);
        // From now on a missing database is one that was removed.
        options.create_if_missing(false);
        Ok(Self { path: args.db.clone(), options, how, identity, db: Some(db), last })
    }

    /// The database, and the last write in it.
    pub(super) fn read(&mut self) -> Result<(&DB, WriteNumber), ServiceError> {
        self.opened()?;
        self.db.as_ref().map(|db| (db, self.last)).ok_or_else(|| self.is_gone())
    }

    /// Stores a value.
    pub(super) fn set(&mut self, set: KvSet<'_>) -> Result<WriteNumber, ServiceError> {
        self.write(|batch| batch.put(set.key, set.value))
    }

    /// Removes the keys that are there. Writes nothing if none is.
    pub(super) fn delete(&mut self, keys: KvKeys<'_>) -> Result<KvDeleted, ServiceError> {
        let (db, last) = self.read()?;
        let mut found = HashSet::new();
        for key in keys {
            if db.get_pinned(key).map_err(|why| failed(&why))?.is_some() {
                found.insert(key);
            }
        }
        if found.is_empty() {
            return Ok(KvDeleted { number: last, found: 0 });
        }
        let number = self.write(|batch| found.iter().for_each(|key| batch.delete(key)))?;
        Ok(KvDeleted { number, found: found.len() as u32 })
    }

    fn write(&mut self, fill: impl FnOnce(&mut WriteBatch)) -> Result<WriteNumber, ServiceError> {
        self.opened()?;
        let number = WriteNumber(self.last.0 + 1);
        let mut batch = WriteBatch::default();
        fill(&mut batch);
        batch.put(LAST_WRITE, number.0.to_be_bytes());
        let written = self.db.as_ref().map(|db| db.write_opt(batch, &self.how));
        match written {
            Some(Ok(())) => {
                self.last = number;
                Ok(number)
            }
            Some(Err(why)) => Err(self.close_after(&why)),
            None => Err(self.is_gone()),
        }
    }

    /// Opens the database anew after a failed write.
    fn opened(&mut self) -> Result<(), ServiceError> {
        // Files that were removed can be read and written here, and by nobody else.
        if DatabaseIdentity::of(&self.path).ok() != Some(self.identity) {
            return Err(self.is_gone());
        }
        if self.db.is_some() {
            return Ok(());
        }
        let path = self.path.display();
        let shut = |why| ServiceError::new(format!("the store at {path} cannot be opened again: {why}"));
        let db = DB::open(&self.options, &self.path).map_err(shut)?;
        self.last = last_write(&db).map_err(shut)?;
        self.db = Some(db);
        tell(LogEvent::Said, format_args!("the store at {path} can be written again"));
        Ok(())
    }

    fn close_after(&mut self, why: &rocksdb::Error) -> ServiceError {
        self.db = None;
        let path = self.path.display();
        tell(LogEvent::Failed, format_args!("the store at {path} cannot be written: {why}"));
        ServiceError::new(format!(
            "the store at {path} cannot be written: {why}; whether it has this write is not known: read it, \
             or write it again"
        ))
    }

    fn is_gone(&self) -> ServiceError {
        ServiceError::new(format!(
            "the store at {} was removed or replaced while its writer had it open: start the writer again",
            self.path.display()
        ))
    }
}

fn database(args: &KvArgs, source: rocksdb::Error) -> RocksError {
    RocksError::Database { path: args.db.clone(), source }
}

/// RocksDB tells a locked database from others only in its text.
fn cannot_open(args: &KvArgs, source: rocksdb::Error) -> RocksError {
    let text = source.to_string();
    let is_locked = text.contains("Resource temporarily unavailable") || text.contains("No locks available");
    if is_locked && text.contains("/LOCK") {
        return RocksError::SecondWriter { path: args.db.clone() };
    }
    database(args, source)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often the log was forced to the disk.
    fn syncs(sync: bool) -> u64 {
        let folder = tempfile::tempdir().expect("a folder");
        let args = KvArgs { db: folder.path().join("db"), sync, ..KvArgs::default() };
        let mut options = store_options(&args).expect("they are legal");
        options.enable_statistics();
        let mut writer = KvWriter::open_with(&args, options.clone()).expect("it opens");
        for _ in 0..7 {
            writer.set(KvSet { key: b"key", value: b"value" }).expect("it is written");
        }
        let counted = options.get_statistics().expect("they are on");
        let line =
            counted.lines().find(|line| line.starts_with("rocksdb.wal.synced ")).expect("it is counted");
        line.rsplit(' ').next().expect("a number").parse().expect("a number")
    }

    #[test]
    fn each_write_is_forced_to_the_disk_if_that_is_asked_for_and_none_otherwise() {
        assert_eq!((syncs(true), syncs(false)), (7, 0));
    }
}
