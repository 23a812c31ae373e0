//! A study's files, for commands: written, read, and written again from its JSON.

use std::path::{Path, PathBuf};

use sluice_experiment::files;
use sluice_outcome::study::StudyOutcome;

use crate::fail::Outcome;

/// Writes `study.json`, `study.csv`, `points.csv` and `report.html` into `folder`, which is created if
/// necessary.
pub fn write(folder: &Path, study: &StudyOutcome) -> Outcome<()> {
    Ok(files::write(folder, study)?)
}

/// Writes the files that follow from the JSON of one or more studies, with a line at a latency that must be
/// kept.
pub fn show_again(folder: &Path, studies: &[StudyOutcome], slo_ns: Option<f64>) -> Outcome<()> {
    Ok(files::show_again(folder, studies, slo_ns)?)
}

/// A study's file: of a folder the one that it has.
pub fn file_of(given: &Path) -> PathBuf {
    if given.is_dir() { given.join(files::JSON) } else { given.to_owned() }
}

/// Reads a study's JSON.
pub fn read(path: &Path) -> Outcome<StudyOutcome> {
    Ok(files::read(path)?)
}
