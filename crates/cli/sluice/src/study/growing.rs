//! The files of a study that is under way: written from time to time, so that `sluice dashboard --study` and
//! the report's page show what is known so far. The run's end writes them anew.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sluice_outcome::study::StudyOutcome;
use sluice_support::results::studies;

/// The shortest time between two writes.
const WRITE_EVERY: Duration = Duration::from_secs(3);
/// A write may take this part of the time at most: a large study is written less often.
const SHARE: u32 = 50;

/// When the files are written again.
pub(super) struct GrowingFiles {
    folder: PathBuf,
    next: Instant,
}

impl GrowingFiles {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), next: Instant::now() + WRITE_EVERY }
    }

    /// Writes what is known, if it is time.
    pub(super) fn write_at_times(&mut self, outcome: impl FnOnce() -> StudyOutcome) {
        let began = Instant::now();
        if began < self.next {
            return;
        }
        // A failure shows at the end, when the same files are written for good.
        studies::write(&self.folder, &outcome()).ok();
        self.next = Instant::now() + WRITE_EVERY.max(began.elapsed() * SHARE);
    }
}
