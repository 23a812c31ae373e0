//! The switch's epoch, which counts its lives across restarts, and the controller that it obeys.
//!
//! An [`Epoch`] names one life of the switch's registers. Two lives must never share an epoch, or a packet
//! of the old life would be accepted in the new one. So each start takes max(last + 1, Unix seconds) and
//! syncs it to disk before the first packet is accepted. The seconds help when the folder was lost or
//! restored from an old copy.
//!
//! A [`Term`] names the controller that last took the switch over. It is stored before that controller is
//! granted the switch, so a restart of the switch cannot bring a superseded controller back.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sluice_wire::{Epoch, Term};

use crate::SwitchdError;

const LOCK_FILE: &str = "lock";
const EPOCH_FILE: &str = "epoch";
const TERM_FILE: &str = "term";
const TEST_FILE: &str = "test";
/// What the test file holds: as much as an epoch may take.
const TEST_BYTES: &[u8] = b"4294967295\n";

/// A switch's state folder. As long as this value lives, no second switch can open the folder.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    /// The locked file. The kernel releases the lock when the process ends in any way.
    _lock: File,
}

impl StateFolder {
    /// Locks the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`SwitchdError::StateFolder`] if it cannot be created or written, [`SwitchdError::StateFolderTaken`]
    /// if another switch holds it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SwitchdError> {
        let path = path.into();
        fs::create_dir_all(&path).map_err(|why| unusable(&path, "make it", why))?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK_FILE));
        let lock = lock.map_err(|why| unusable(&path, "write to it", why))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(SwitchdError::StateFolderTaken { path }),
            Err(TryLockError::Error(why)) => Err(unusable(&path, "lock it", why)),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a small file and removes it again, to find out before the next claim whether one could be
    /// stored. It does not wait for the disk.
    pub(crate) fn try_write(&self) -> io::Result<()> {
        let file = self.path.join(TEST_FILE);
        let written = File::create(&file).and_then(|mut made| made.write_all(TEST_BYTES));
        // A file that could be made but not filled must not stay.
        let removed = if file.exists() { fs::remove_file(&file) } else { Ok(()) };
        written.and(removed)
    }

    /// The epoch of a new life, larger than any that this folder has returned; synced to disk before it is
    /// returned.
    ///
    /// # Errors
    /// [`SwitchdError::StateFolder`] if the last epoch cannot be read or the new one cannot be stored.
    pub fn next_epoch(&mut self) -> Result<Epoch, SwitchdError> {
        self.next_epoch_at(SystemTime::now())
    }

    fn next_epoch_at(&mut self, now: SystemTime) -> Result<Epoch, SwitchdError> {
        let after_last = match self.last(EPOCH_FILE)? {
            Some(last) => {
                let exhausted =
                    || self.unusable("count on", io::Error::other("the last epoch is the last of all"));
                last.checked_add(1).ok_or_else(exhausted)?
            }
            None => 1,
        };
        // A clock before 1970 or after 2106 is ignored.
        let seconds =
            now.duration_since(UNIX_EPOCH).map_or(0, |since| u32::try_from(since.as_secs()).unwrap_or(0));
        let epoch = Epoch(after_last.max(seconds));
        self.keep(EPOCH_FILE, epoch.0).map_err(|why| self.unusable("keep the epoch in it", why))?;
        Ok(epoch)
    }

    /// The controller that last took the switch over; 0 before the first.
    ///
    /// # Errors
    /// [`SwitchdError::StateFolder`] if it cannot be read.
    pub fn term(&self) -> Result<Term, SwitchdError> {
        Ok(Term(self.last(TERM_FILE)?.unwrap_or(0)))
    }

    /// Stores a term, unless a later one is stored already: claims that arrive close together may be stored
    /// in any order. Synced to disk on return.
    ///
    /// # Errors
    /// [`SwitchdError::StateFolder`] if it cannot be read or written.
    pub fn keep_term(&self, term: Term) -> Result<(), SwitchdError> {
        if term <= self.term()? {
            return Ok(());
        }
        self.keep(TERM_FILE, term.0).map_err(|why| self.unusable("keep the controller's term in it", why))
    }

    fn last(&self, file: &'static str) -> Result<Option<u32>, SwitchdError> {
        match fs::read_to_string(self.path.join(file)) {
            Ok(text) => {
                let none = |_| io::Error::other(format!("`{file}` holds no number"));
                text.trim().parse().map(Some).map_err(|why| self.unusable("read what it keeps", none(why)))
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(self.unusable("read what it keeps", why)),
        }
    }

    fn keep(&self, file: &str, number: u32) -> io::Result<()> {
        let new = self.path.join(format!("{file}.new"));
        let mut written = File::create(&new)?;
        writeln!(written, "{number}")?;
        written.sync_all()?;
        fs::rename(&new, self.path.join(file))?;
        File::open(&self.path)?.sync_all()
    }

    fn unusable(&self, doing: &'static str, why: io::Error) -> SwitchdError {
        unusable(&self.path, doing, why)
    }
}

fn unusable(path: &Path, doing: &'static str, why: io::Error) -> SwitchdError {
    SwitchdError::StateFolder { path: path.to_path_buf(), doing, why }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder can be made")
    }

    #[test]
    fn the_first_epoch_is_the_time_in_seconds() {
        let dir = folder();
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        assert_eq!(StateFolder::open(dir.path()).unwrap().next_epoch_at(now).unwrap(), Epoch(1_000));
    }

    #[test]
    fn two_starts_within_a_second_differ() {
        let dir = folder();
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        StateFolder::open(dir.path()).unwrap().next_epoch_at(now).unwrap();
        assert_eq!(StateFolder::open(dir.path()).unwrap().next_epoch_at(now).unwrap(), Epoch(1_001));
    }

    #[test]
    fn a_clock_that_went_back_does_not_bring_an_epoch_back() {
        let dir = folder();
        let mut state = StateFolder::open(dir.path()).unwrap();
        state.next_epoch_at(UNIX_EPOCH + Duration::from_secs(1_000)).unwrap();
        assert_eq!(state.next_epoch_at(UNIX_EPOCH).unwrap(), Epoch(1_001));
    }

    #[test]
    fn a_second_switch_cannot_have_the_folder() {
        let dir = folder();
        let _held = StateFolder::open(dir.path()).unwrap();
        assert!(matches!(StateFolder::open(dir.path()), Err(SwitchdError::StateFolderTaken { .. })));
    }

    #[test]
    fn a_term_only_grows_and_outlives_the_switch() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFolder::open(dir.path()).unwrap();
        assert_eq!(state.term().unwrap(), Term(0));
        for (kept, term) in [(2, 2), (1, 2), (3, 3)] {
            state.keep_term(Term(kept)).unwrap();
            assert_eq!(state.term().unwrap(), Term(term));
        }
        drop(state);
        assert_eq!(StateFolder::open(dir.path()).unwrap().term().unwrap(), Term(3));
    }

    #[test]
    fn an_epoch_file_without_a_number_is_an_error_not_a_fresh_start() {
        let dir = folder();
        fs::write(dir.path().join(EPOCH_FILE), "soon\n").unwrap();
        let error = StateFolder::open(dir.path()).unwrap().next_epoch().unwrap_err().to_string();
        assert!(error.contains("holds no number"), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named_with_the_reason() {
        let dir = folder();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = StateFolder::open(file.join("state")).unwrap_err().to_string();
        assert!(error.contains("file/state") && error.contains("--state"), "{error}");
    }
}
