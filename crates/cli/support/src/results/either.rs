//! A result of one of two kinds, a study's or a load's, found in a file or in its folder.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sluice_outcome::study::StudyOutcome;
use sluice_system::text;

use super::studies;
use crate::fail::{Failure, Outcome};

/// A result that was read.
pub enum ResultFile {
    /// The `study.json` of a study.
    Study(Box<StudyOutcome>),
    /// The `result.json` of a load.
    Load(Value),
}

/// A result's file: of a folder the one that it has.
pub fn file_of(given: &Path) -> PathBuf {
    let study = studies::file_of(given);
    if study.exists() || !given.is_dir() { study } else { given.join("result.json") }
}

/// Reads a result of either kind.
pub fn read(path: &Path) -> Outcome<ResultFile> {
    let shown = path.display();
    let text = text::read_json(path)
        .map_err(|why| Failure::bad_input(format!("{shown} cannot be read as a result: {why}")))?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|why| Failure::bad_input(format!("{shown}: not a result's JSON: {why}")))?;
    match value["schema"].as_str() {
        Some("sluice.study.v1") => studies::read(path).map(|study| ResultFile::Study(Box::new(study))),
        Some("sluice.result.v1") => Ok(ResultFile::Load(value)),
        _ => Err(Failure::bad_input(format!(
            "{shown} is neither a study.json nor a result.json: name one of these, or its folder"
        ))),
    }
}

/// Refuses two results of different kinds.
pub fn of_two_kinds(one: &Path, other: &Path) -> Failure {
    let (one, other) = (one.display(), other.display());
    let which = "name two study.json, or two result.json";
    Failure::bad_input(format!("{one} and {other} are of different kinds: {which}"))
}
