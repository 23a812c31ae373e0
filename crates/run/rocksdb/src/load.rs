//! Creates the database at the first start.
//!
//! Workers of one machine share one database. The worker that holds the lock file checks whether the
//! database exists, and loads it if not. Loading fills a folder with another name and renames it at the
//! end, so a loader that dies leaves nothing that looks like a database.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use rocksdb::{BlockBasedOptions, DB, DBCompressionType, IngestExternalFileOptions, Options, SstFileWriter};

use sluice_services::rocks::RocksArgs;
use sluice_services::rocks::codec::{key, value};

use crate::RocksError;
use crate::progress::{Progress, Step};

/// Makes sure that the database which `args` name exists; loads it if not.
///
/// Only loading needs write permission. See [`RocksError`] for the errors.
pub fn ensure(args: &RocksArgs, progress: &mut dyn Progress) -> Result<(), RocksError> {
    let (path, data) = (&args.db, Data { keys: args.keys, item_bytes: args.item_bytes });
    data.check()?;
    if is_ready(path, data)? {
        return Ok(());
    }
    let _lock = lock(path, progress)?;
    if is_ready(path, data)? {
        return Ok(());
    }
    load(path, data, progress)
}

/// The size of a database's data.
#[derive(Clone, Copy, Debug)]
struct Data {
    keys: u64,
    item_bytes: u32,
}

impl Data {
    /// The smallest and largest value of `keys`.
    const KEYS: (u64, u64) = (1, 1_000_000_000);
    /// The smallest and largest value of `item_bytes`.
    const ITEM_BYTES: (u64, u64) = (1, 1 << 20);

    fn check(self) -> Result<(), RocksError> {
        in_bounds("--keys", self.keys, Self::KEYS)?;
        in_bounds("--item-bytes", self.item_bytes.into(), Self::ITEM_BYTES)
    }

    fn describe(self) -> String {
        format!("{} keys of {} bytes", self.keys, self.item_bytes)
    }
}

/// The database's options, the same for reading and writing.
pub(super) fn options(blocks: &BlockBasedOptions) -> Options {
    let mut options = Options::default();
    options.set_block_based_table_factory(blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_log_level(rocksdb::LogLevel::Fatal);
    options
}

/// A file that states which data the database holds; written before the folder gets its final name.
pub(super) const LABEL: &str = "SLUICE";
/// How many keys one file of the database holds.
const KEYS_PER_FILE: u64 = 250_000;
/// How many keys are written between two progress reports.
const KEYS_PER_STEP: u64 = 10_000;

fn is_ready(path: &Path, data: Data) -> Result<bool, RocksError> {
    let asked = data.describe();
    match fs::read_to_string(path.join(LABEL)) {
        Ok(holds) if holds.trim_end() == asked => Ok(true),
        Ok(holds) => {
            Err(RocksError::OtherData { path: path.to_owned(), holds: holds.trim_end().to_owned(), asked })
        }
        Err(_) if path.exists() && !is_empty_folder(path) => {
            Err(RocksError::NotOurs { path: path.to_owned() })
        }
        Err(_) => Ok(false),
    }
}

fn is_empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Locks the database. Dropping the file releases the lock, and so does the process's death.
fn lock(path: &Path, progress: &mut dyn Progress) -> Result<File, RocksError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(not_writable(parent))?;
    }
    let name = beside(path, "lock");
    let file =
        File::options().create(true).truncate(false).write(true).open(&name).map_err(not_writable(&name))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.step(Step::Waiting);
            file.lock().map_err(not_writable(&name))?;
        }
        Err(TryLockError::Error(source)) => return Err(not_writable(&name)(source)),
    }
    Ok(file)
}

fn load(path: &Path, data: Data, progress: &mut dyn Progress) -> Result<(), RocksError> {
    let loading = beside(path, "loading");
    if loading.exists() {
        fs::remove_dir_all(&loading).map_err(not_writable(&loading))?;
    }
    progress.step(Step::Loaded { done: 0, total: data.keys });
    fs::create_dir(&loading).map_err(not_writable(&loading))?;
    fill(&loading, data, progress)
        .map_err(|source| RocksError::Database { path: path.to_owned(), source })?;
    fs::write(loading.join(LABEL), format!("{}\n", data.describe())).map_err(not_writable(&loading))?;
    fs::rename(&loading, path).map_err(not_writable(path))?;
    progress.step(Step::Loaded { done: data.keys, total: data.keys });
    Ok(())
}

/// Writes the sorted files itself and lets the database adopt them, which saves sorting.
fn fill(folder: &Path, data: Data, progress: &mut dyn Progress) -> Result<(), rocksdb::Error> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_bloom_filter(10.0, false);
    let mut options = options(&blocks);
    options.create_if_missing(true);
    let db = DB::open(&options, folder)?;
    let mut take_over = IngestExternalFileOptions::default();
    take_over.set_move_files(true);
    for first in (0..data.keys).step_by(KEYS_PER_FILE as usize) {
        let name = folder.join(format!("load-{first}.sst"));
        let mut file = SstFileWriter::create(&options);
        file.open(&name)?;
        for number in first..data.keys.min(first + KEYS_PER_FILE) {
            file.put(key(number), value(number, data.item_bytes as usize))?;
            if number > 0 && number % KEYS_PER_STEP == 0 {
                progress.step(Step::Loaded { done: number, total: data.keys });
            }
        }
        file.finish()?;
        db.ingest_external_file_opts(&take_over, vec![name])?;
    }
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

fn not_writable(path: &Path) -> impl Fn(io::Error) -> RocksError {
    move |source| RocksError::NotWritable { path: path.to_owned(), source }
}

fn in_bounds(what: &'static str, value: u64, (least, most): (u64, u64)) -> Result<(), RocksError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(RocksError::OutOfRange { what, value, least, most })
}
