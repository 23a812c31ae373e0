//! A study's files: written, read, and written again from its JSON.

use std::path::Path;

use sluice_outcome::study::StudyOutcome;
use sluice_report as report;
use sluice_system::text;

use super::files;
use crate::fail::{Failure, Outcome};

const JSON: &str = "study.json";
const CSV: &str = "study.csv";
const PAGE: &str = "report.html";

/// Writes `study.json`, `study.csv` and `report.html` into `folder`, which is created if necessary.
pub fn write(folder: &Path, study: &StudyOutcome) -> Outcome<()> {
    files::make(folder)?;
    files::save(folder, JSON, &(report::json(study) + "\n"))?;
    show_again(folder, study)
}

/// Writes the files that follow from the JSON.
pub fn show_again(folder: &Path, study: &StudyOutcome) -> Outcome<()> {
    files::make(folder)?;
    files::save(folder, CSV, &report::csv(study))?;
    files::save(folder, PAGE, &report::page(study))
}

/// Reads a study's JSON.
pub fn read(path: &Path) -> Outcome<StudyOutcome> {
    let shown = path.display();
    let text = text::read(path).map_err(|why| {
        Failure::bad_input(format!("{shown} cannot be read as the study.json of a run: {why}"))
    })?;
    serde_json::from_str(&text).map_err(|why| {
        let place = format!("{shown}:{}:{}", why.line(), why.column());
        Failure::bad_input(format!("{place}: not a study's JSON: {why}; name the study.json of a run"))
    })
}
