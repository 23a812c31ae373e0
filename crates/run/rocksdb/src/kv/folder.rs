//! The folder of a key-value store: whose it is, and whether its files are still the same.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::RocksError;
use crate::load::LABEL;

/// What the label of a store says.
const KIND: &str = "a key-value store";

/// What a folder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderState {
    Empty,
    Store,
}

/// Makes the folder a store's if it is empty or missing.
///
/// The label is there before the database, so that a writer that dies in between leaves a store.
pub(super) fn prepare(path: &Path) -> Result<(), RocksError> {
    let unusable = |source| RocksError::StoreFolder { path: path.to_owned(), source };
    if look(path)? == FolderState::Empty {
        fs::create_dir_all(path).map_err(unusable)?;
        fs::write(path.join(LABEL), format!("{KIND}\n")).map_err(unusable)?;
    }
    // RocksDB would take a folder without this file for an empty one, and remove the data.
    let lacks_current = !path.join("CURRENT").exists();
    let has_data = lacks_current && names(path).map_err(unusable)?.iter().any(|name| is_data(name));
    if has_data { Err(RocksError::Damaged { path: path.to_owned() }) } else { Ok(()) }
}

/// What the folder holds; an error if it is not for a store.
pub(super) fn look(path: &Path) -> Result<FolderState, RocksError> {
    match fs::read_to_string(path.join(LABEL)) {
        Ok(holds) if holds.trim_end() == KIND => Ok(FolderState::Store),
        // A writer writes it at this moment, or died there.
        Ok(holds) if holds.is_empty() => Ok(FolderState::Empty),
        Ok(holds) => {
            let holds = holds.trim_end().to_owned();
            Err(RocksError::OtherData { path: path.to_owned(), holds, asked: KIND.to_owned() })
        }
        Err(why) if why.kind() == ErrorKind::NotFound => match names(path) {
            Ok(names) if names.is_empty() => Ok(FolderState::Empty),
            Ok(_) => Err(RocksError::NotOurs { path: path.to_owned() }),
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(FolderState::Empty),
            Err(source) => Err(RocksError::StoreFolder { path: path.to_owned(), source }),
        },
        Err(source) => Err(RocksError::StoreFolder { path: path.to_owned(), source }),
    }
}

/// Tells one life of a folder's database from another: the file that RocksDB writes once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatabaseIdentity {
    inode: u64,
    written: (i64, i64),
}

impl DatabaseIdentity {
    /// The identity of the database in this folder.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path.join("IDENTITY"))?;
        Ok(Self { inode: file.ino(), written: (file.mtime(), file.mtime_nsec()) })
    }
}

/// The files of a database at one moment. While they stay the same, its writer has only written at the end of
/// its newest log: it flushed nothing, compacted nothing, and was not started again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FilesNow {
    identity: DatabaseIdentity,
    names: Vec<String>,
    /// The length of the list of tables: each flush and each compaction lengthens it.
    manifest_bytes: u64,
}

impl FilesNow {
    /// The files in this folder.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let identity = DatabaseIdentity::of(path)?;
        let mut names = names(path)?;
        names.retain(|name| is_data(name) || is_manifest(name));
        names.sort_unstable();
        // A list that is removed at this moment has a successor, whose name differs.
        let bytes = |name: &String| fs::metadata(path.join(name)).as_ref().map_or(0, Metadata::len);
        let manifest_bytes = names.iter().filter(|name| is_manifest(name)).map(bytes).sum();
        Ok(Self { identity, names, manifest_bytes })
    }

    /// Whether the folder's database is still the one with these files, however they have changed.
    pub(super) fn are_of_database_in(&self, path: &Path) -> bool {
        DatabaseIdentity::of(path).is_ok_and(|now| now == self.identity)
    }
}

/// Whether this is the name of a file with rows: a table, or a log of writes.
fn is_data(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("sst" | "log"))
}

fn is_manifest(name: &str) -> bool {
    name.starts_with("MANIFEST-")
}

fn names(path: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    fs::read_dir(path)?.map(name).collect()
}
