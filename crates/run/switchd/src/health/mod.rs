//! How this process finds itself: whether its wall clock was set, and whether its state can still be
//! stored. A controller's status tells it.

mod clock;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::statvfs;
use sluice_rpc::v1;

use crate::state::StateFolder;
use clock::{ClockReading, ClockWatch};

/// The shortest time between two test files in a state folder.
const TRY_EVERY: Duration = Duration::from_secs(2);

/// Watches this process.
#[derive(Debug, Default)]
pub(crate) struct ProcessWatch {
    clock: Mutex<ClockWatch>,
    /// The last answer about the folder, and when it was found.
    folder: Mutex<Option<(Instant, v1::FolderState)>>,
}

impl ProcessWatch {
    /// Reads the clocks. A step is noticed by the first look after it, so whoever is called often looks.
    pub(crate) fn look(&self) {
        if let Some(now) = ClockReading::now() {
            locked(&self.clock).look(now);
        }
    }

    /// How the process finds itself; `process` says what runs in it.
    pub(crate) fn health(&self, process: &str, state: Option<&StateFolder>) -> v1::ProcessHealth {
        self.look();
        v1::ProcessHealth {
            process: process.to_owned(),
            clock_step: locked(&self.clock).step(),
            folder: state.map(|state| self.folder(state)),
        }
    }

    fn folder(&self, state: &StateFolder) -> v1::FolderState {
        let mut last = locked(&self.folder);
        match &*last {
            Some((at, found)) if at.elapsed() < TRY_EVERY => found.clone(),
            _ => {
                let found = tried(state);
                *last = Some((Instant::now(), found.clone()));
                found
            }
        }
    }
}

/// Writes a test file into the folder.
fn tried(state: &StateFolder) -> v1::FolderState {
    let why_not = state.try_write().err();
    let free = statvfs(state.path()).ok().and_then(|disk| disk.f_bavail.checked_mul(disk.f_frsize));
    v1::FolderState {
        path: state.path().display().to_string(),
        fault: why_not.as_ref().map_or(v1::FolderFault::Unspecified, fault).into(),
        why_not: why_not.map(|why| why.to_string()).unwrap_or_default(),
        free_bytes: free,
    }
}

fn fault(why: &io::Error) -> v1::FolderFault {
    match why.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            v1::FolderFault::Full
        }
        io::ErrorKind::ReadOnlyFilesystem => v1::FolderFault::ReadOnly,
        _ => v1::FolderFault::Other,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_gone_is_told_and_one_that_can_be_written_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::open(folder.path().join("state")).unwrap();
        let health = ProcessWatch::default().health("switch", Some(&state));
        let found = health.folder.unwrap();
        assert_eq!((found.why_not.as_str(), found.fault()), ("", v1::FolderFault::Unspecified));
        let left: Vec<_> = std::fs::read_dir(state.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "only the lock: {left:?}");
        std::fs::remove_dir_all(state.path()).unwrap();
        let found = ProcessWatch::default().health("switch", Some(&state)).folder.unwrap();
        assert_eq!(found.fault(), v1::FolderFault::Other);
        assert!(found.why_not.contains("No such file"), "{found:?}");
    }

    #[test]
    fn a_process_without_a_folder_says_nothing_of_one() {
        let health = ProcessWatch::default().health("controller", None);
        assert_eq!((health.process.as_str(), health.folder, health.clock_step), ("controller", None, None));
    }
}
