//! A key-value store behind Sluice, on RocksDB: one [`KvWriter`], and any number of [`KvReader`]s on the same
//! machine.
//!
//! Keys are RocksDB's keys as they are. The empty key, which no task can name, has the number of the last
//! write. What is left out: no copy on another machine, no transactions of several tasks.

mod database;
mod folder;
mod reader;
mod writer;

pub use reader::KvReader;
pub use writer::KvWriter;

use std::fmt;

use rocksdb::{DB, ReadOptions};
use sluice_net::service::{Service, ServiceError, Task};
use sluice_services::kv::codec::{
    KeyPageWriter, KvGet, KvScan, WriteNumber, add_value, decode_kv_del, decode_kv_get, decode_kv_scan,
    decode_kv_set, encode_kv_set_reply,
};
use sluice_services::kv::{KV_DEL, KV_GET, KV_SCAN, KV_SET, KvArgs, KvRole};
use sluice_wire::TaskType;

use crate::RocksError;
use database::{failed, is_ahead};

/// The service: the writer of a store, or a reader.
pub enum Kv {
    Writer(KvWriter),
    Reader(KvReader),
}

impl Kv {
    /// Opens the store for this role.
    ///
    /// # Errors
    /// As [`KvWriter::open`] and [`KvReader::open`].
    pub fn open(args: &KvArgs, role: KvRole) -> Result<Self, RocksError> {
        Ok(match role {
            KvRole::Writer => Self::Writer(KvWriter::open(args)?),
            KvRole::Reader => Self::Reader(KvReader::open(args)?),
        })
    }

    const fn role(&self) -> KvRole {
        match self {
            Self::Writer(_) => KvRole::Writer,
            Self::Reader(_) => KvRole::Reader,
        }
    }

    /// The database in a state that has the write `seen`.
    fn read(&mut self, seen: WriteNumber) -> Result<&DB, ServiceError> {
        match self {
            Self::Reader(reader) => reader.read(seen).map(|(db, _)| db),
            Self::Writer(writer) => {
                let (db, last) = writer.read()?;
                if last < seen { Err(is_ahead(seen, last, db.path())) } else { Ok(db) }
            }
        }
    }

    fn writer(&mut self, task_type: TaskType) -> Result<&mut KvWriter, ServiceError> {
        match self {
            Self::Writer(writer) => Ok(writer),
            Self::Reader(_) => Err(not_served(task_type, KvRole::Reader)),
        }
    }
}

impl fmt::Debug for Kv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kv({})", self.role())
    }
}

impl Service for Kv {
    fn types(&self) -> Vec<TaskType> {
        self.role().types().to_vec()
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        match task.task_type {
            KV_GET => {
                let request = decode_kv_get(task.bytes)?;
                get(self.read(request.seen)?, request, reply, task.reply_max)
            }
            KV_SCAN => {
                let request = decode_kv_scan(task.bytes)?;
                scan(self.read(request.seen)?, request, reply, task.reply_max)
            }
            KV_SET => {
                let set = decode_kv_set(task.bytes)?;
                encode_kv_set_reply(self.writer(KV_SET)?.set(set)?, reply);
                Ok(())
            }
            KV_DEL => {
                let keys = decode_kv_del(task.bytes)?;
                self.writer(KV_DEL)?.delete(keys)?.encode(reply);
                Ok(())
            }
            other => Err(not_served(other, self.role())),
        }
    }
}

fn get(db: &DB, request: KvGet<'_>, reply: &mut Vec<u8>, reply_max: usize) -> Result<(), ServiceError> {
    for key in request.keys {
        let value = db.get_pinned(key).map_err(|why| failed(&why))?;
        add_value(value.as_deref(), reply, reply_max)?;
    }
    Ok(())
}

fn scan(db: &DB, request: KvScan<'_>, reply: &mut Vec<u8>, reply_max: usize) -> Result<(), ServiceError> {
    let mut page = KeyPageWriter::new(request.most, reply, reply_max);
    let mut rows = db.raw_iterator_opt(ReadOptions::default());
    rows.seek(request.after);
    // Without a key to begin behind, this is the key of the last write's number.
    if rows.key() == Some(request.after) {
        rows.next();
    }
    while let Some(key) = rows.key() {
        if !page.add(key) {
            break;
        }
        rows.next();
    }
    rows.status().map_err(|why| failed(&why))
}

fn not_served(task_type: TaskType, role: KvRole) -> ServiceError {
    ServiceError::new(format!("a {role} of a key-value store serves no tasks of type {task_type}"))
}
