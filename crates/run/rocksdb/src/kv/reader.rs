//! A reader of a key-value store: a RocksDB secondary instance, which reads the files of the writer beside
//! it.
//!
//! A secondary catches up by reading the new end of the writer's log. Where the writer has flushed,
//! compacted, or was started again meanwhile, RocksDB's secondaries may keep old rows in memory above newer
//! ones in tables, or miss a log that is gone. So a reader catches up only while the files stay the same
//! ([`FilesNow`]), and opens the database anew otherwise; and what it read counts only if no file came or
//! went meanwhile. Then the state has every write that was acknowledged before, so nothing waits for a write.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rocksdb::{DB, Options};
use sluice_log::{LogEvent, tell};
use sluice_net::service::ServiceError;
use sluice_services::kv::KvArgs;
use sluice_services::kv::codec::WriteNumber;

use super::database::{is_ahead, last_write, store_options};
use super::folder::{FilesNow, FolderState, look};
use crate::RocksError;

/// How old the state of a read may be that asks for no certain write.
const FRESH_FOR: Duration = Duration::from_millis(10);
/// How often the files may change under one read.
const TRIES: u32 = 50;
/// How long a reader waits for the writer that creates the store.
const STORE_PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A worker that reads what the writer of the same machine wrote.
pub struct KvReader {
    path: PathBuf,
    options: Options,
    view: Option<View>,
    /// Whether it was told that the store cannot be read.
    told: bool,
}

/// A state of the store.
struct View {
    db: DB,
    files: FilesNow,
    last: WriteNumber,
    at: Instant,
    /// Whether the database was opened for this state, and not brought forward to it.
    is_new: bool,
}

impl KvReader {
    /// Opens the store; waits a while for the writer that creates it.
    ///
    /// # Errors
    /// If there is no store, or the folder is none for a store.
    pub fn open(args: &KvArgs) -> Result<Self, RocksError> {
        let database = |source| RocksError::Database { path: args.db.clone(), source };
        wait_for_store(&args.db)?;
        let mut options = store_options(args).map_err(database)?;
        // RocksDB starts the others whenever a secondary catches up, which costs more than all the rest.
        options.set_max_file_opening_threads(1);
        let mut reader = Self { path: args.db.clone(), options, view: None, told: false };
        reader.refresh(WriteNumber::ANY).map_err(RocksError::Unreadable)?;
        Ok(reader)
    }

    /// The database in a state that has the write `seen`, and its last write.
    pub(super) fn read(&mut self, seen: WriteNumber) -> Result<(&DB, WriteNumber), ServiceError> {
        // Another store counts its writes from 1 again, so numbers do not tell it from the one that was read.
        let will_do = |view: &View| {
            view.last >= seen && view.at.elapsed() < FRESH_FOR && view.files.are_of_database_in(&self.path)
        };
        if !self.view.as_ref().is_some_and(will_do) {
            self.refresh(seen)?;
        }
        let view = self.view.as_ref().ok_or_else(|| changes_too_fast(&self.path))?;
        Ok((&view.db, view.last))
    }

    fn refresh(&mut self, seen: WriteNumber) -> Result<(), ServiceError> {
        for _ in 0..TRIES {
            let view = self.next_view();
            self.tell_once(view.as_ref().err());
            match view? {
                Some(view) if view.last < seen && view.is_new => {
                    return Err(is_ahead(seen, view.last, &self.path));
                }
                // Opened anew before the write is called missing.
                Some(view) if view.last < seen => drop(view),
                Some(view) => {
                    self.view = Some(view);
                    return Ok(());
                }
                None => {}
            }
        }
        Err(changes_too_fast(&self.path))
    }

    /// Tells why the store cannot be read, once until it can be.
    fn tell_once(&mut self, why: Option<&ServiceError>) {
        if let Some(why) = why
            && !self.told
        {
            tell(LogEvent::Failed, why);
        }
        self.told = why.is_some();
    }

    /// The store as it is now; `None` if its files changed while they were read.
    fn next_view(&mut self) -> Result<Option<View>, ServiceError> {
        let gone = |why| ServiceError::new(format!("the store at {} is gone: {why}", self.path.display()));
        let at = Instant::now();
        // Taken first: of a store that is gone no state is kept, however young it is.
        let current = self.view.take();
        let files = FilesNow::of(&self.path).map_err(gone)?;
        let current = current.filter(|view| view.files == files);
        let is_new = current.is_none();
        let read = match current {
            Some(view) => view.db.try_catch_up_with_primary().map(|()| view.db),
            None => self.open_anew()?,
        };
        let read = read.and_then(|db| last_write(&db).map(|last| (db, last)));
        if FilesNow::of(&self.path).map_err(gone)? != files {
            return Ok(None);
        }
        match read {
            Ok((db, last)) => Ok(Some(View { db, files, last, at, is_new })),
            Err(_) if !is_new => Ok(None),
            Err(why) => {
                let path = self.path.display();
                Err(ServiceError::new(format!("the store at {path} cannot be read: {why}")))
            }
        }
    }

    /// Opens the database. A secondary wants a folder of its own for RocksDB's notes, of which it makes none.
    fn open_anew(&self) -> Result<Result<DB, rocksdb::Error>, ServiceError> {
        let notes = tempfile::tempdir().map_err(|why| {
            ServiceError::new(format!("no folder for RocksDB's notes can be made (TMPDIR): {why}"))
        })?;
        Ok(DB::open_as_secondary(&self.options, &self.path, &notes.path().to_owned()))
    }
}

/// Waits until a writer has created the store.
fn wait_for_store(path: &Path) -> Result<(), RocksError> {
    let (start, mut told) = (Instant::now(), false);
    while look(path)? == FolderState::Empty || !path.join("CURRENT").exists() || FilesNow::of(path).is_err() {
        if start.elapsed() > STORE_PATIENCE {
            return Err(RocksError::NoStore { path: path.to_owned() });
        }
        if !told {
            tell(LogEvent::Said, format_args!("there is no store at {} yet; waiting", path.display()));
            told = true;
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn changes_too_fast(path: &Path) -> ServiceError {
    ServiceError::new(format!(
        "the files of the store at {} changed at each of {TRIES} tries to read them: try again",
        path.display()
    ))
}
