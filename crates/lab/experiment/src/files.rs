//! Files of results: a study's, and how any of them is written.

use std::path::Path;
use std::{fs, io};

use sluice_outcome::study::StudyOutcome;
use sluice_report as report;
use sluice_study::StudyError;
use sluice_system::{Attempt, advice, text};

use crate::{StudyResult, bad_input};

/// The file from which all others can be made again.
pub const JSON: &str = "study.json";
const CSV: &str = "study.csv";
const POINTS: &str = "points.csv";
const PAGE: &str = "report.html";

/// Writes `study.json`, `study.csv`, `points.csv` and `report.html` into `folder`, which is created if
/// necessary: all of them, or none, so that old and new results never stand side by side.
pub fn write(folder: &Path, study: &StudyOutcome) -> StudyResult<()> {
    let mut all = vec![(JSON.to_owned(), report::json(study) + "\n")];
    all.extend(from_json(std::slice::from_ref(study), None));
    make(folder)?;
    save_all(folder, &all)
}

/// Writes the files that follow from the JSON of one or more studies, with a line at a latency that must be
/// kept.
pub fn show_again(folder: &Path, studies: &[StudyOutcome], slo_ns: Option<f64>) -> StudyResult<()> {
    make(folder)?;
    save_all(folder, &from_json(studies, slo_ns))
}

/// The files that follow from the JSON.
fn from_json(studies: &[StudyOutcome], slo_ns: Option<f64>) -> [(String, String); 3] {
    [
        (CSV.to_owned(), joined(studies)),
        (POINTS.to_owned(), report::points_csv(studies)),
        (PAGE.to_owned(), report::page_of(studies, slo_ns)),
    ]
}

/// The tables of all studies as one: the headings stand once.
fn joined(studies: &[StudyOutcome]) -> String {
    let rows = |(place, study)| {
        let table = report::csv(study);
        if place == 0 {
            table
        } else {
            table.split_once('\n').map_or_else(String::new, |(_, rows)| rows.to_owned())
        }
    };
    studies.iter().enumerate().map(rows).collect()
}

/// Reads a study's JSON.
pub fn read(path: &Path) -> StudyResult<StudyOutcome> {
    let shown = path.display();
    let text = text::read_json(path)
        .map_err(|why| bad_input(format!("{shown} cannot be read as the study.json of a run: {why}")))?;
    serde_json::from_str(&text).map_err(|why| {
        let place = format!("{shown}:{}:{}", why.line(), why.column());
        bad_input(format!("{place}: not a study's JSON: {why}; name the study.json of a run"))
    })
}

/// Creates a folder for results.
pub fn make(folder: &Path) -> StudyResult<()> {
    fs::create_dir_all(folder).map_err(|why| {
        let (folder, helps) = (folder.display(), advice(Attempt::Write, &why));
        bad_input(format!("results folder {folder} (`out`) cannot be made: {why}; {helps}"))
    })
}

/// Writes a file into an existing folder in one step: a concurrent reader sees the old contents or the new
/// ones, and if there is no room the old file stays.
pub fn save(folder: &Path, name: &str, contents: &(impl AsRef<[u8]> + ?Sized)) -> StudyResult<()> {
    save_all(folder, &[(name.to_owned(), contents)])
}

/// Writes files into an existing folder: all of them, or none.
pub fn save_all(folder: &Path, files: &[(String, impl AsRef<[u8]>)]) -> StudyResult<()> {
    let half = |name: &str| folder.join(format!("{name}.half"));
    let failed = |name: &str, why: io::Error| unwritten(&folder.join(name), &why);
    let write = |(name, contents): &(String, _)| {
        let contents: &[u8] = AsRef::as_ref(contents);
        fs::write(half(name), contents).map_err(|why| failed(name, why))
    };
    let put =
        |(name, _): &(String, _)| fs::rename(half(name), folder.join(name)).map_err(|why| failed(name, why));
    let saved = files.iter().try_for_each(write).and_then(|()| files.iter().try_for_each(put));
    if saved.is_err() {
        // Removes the temporary files that were not renamed.
        for (name, _) in files {
            fs::remove_file(half(name)).ok();
        }
    }
    saved
}

/// Why a file could not be written, and what helps.
pub fn unwritten(path: &Path, why: &io::Error) -> StudyError {
    let (path, helps) = (path.display(), advice(Attempt::Write, why));
    StudyError::Broken(format!("{path} cannot be written: {why}; {helps}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_one_of_several_files_cannot_be_written_none_is_and_old_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let there = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
        save(folder.path(), "a", "old").expect("there is room");
        let files = [("a", "new"), ("no/such/folder", "b")].map(|(name, text)| (name.to_owned(), text));
        let why = save_all(folder.path(), &files).expect_err("there is no such folder").to_string();
        assert!(
            why.contains("no/such/folder cannot be written") && why.contains("make the folder first"),
            "{why}"
        );
        assert_eq!(there("a").as_deref(), Some("old"));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left");
        save_all(folder.path(), &files[..1]).expect("there is room");
        assert_eq!(there("a").as_deref(), Some("new"));
    }
}
