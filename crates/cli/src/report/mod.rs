//! Reports: a study as a page, as CSV and as text. All of them are made from [`StudyOutcome`] alone, so that what is
//! saved as JSON can be shown again, and simulated and measured studies look alike.

mod chart;
mod csv;
mod decided;
mod followed;
mod heat;
mod html;
mod look;
mod page;
mod panel;
mod show;
mod tables;
mod text;
mod timeline;
mod verdicts;

use std::fs;
use std::path::Path;

use sluice_sim::study::outcome::StudyOutcome;

use crate::fail::{Failure, Outcome};
use crate::results::files;

pub(crate) use decided::decided;
pub(crate) use followed::{Beside, Compared, Section, Strip, followed};
pub(crate) use show::is_open;
pub(crate) use text::summary;
pub(crate) use verdicts::verdicts;

const JSON: &str = "study.json";
const CSV: &str = "study.csv";
const PAGE: &str = "report.html";

/// Writes `study.json`, `study.csv` and `report.html` into `folder`, which is made if need be.
pub(crate) fn write(folder: &Path, study: &StudyOutcome) -> Outcome<()> {
    files::make(folder)?;
    files::save(folder, JSON, &(json(study) + "\n"))?;
    show_again(folder, study)
}

/// Writes what can be made from the JSON.
pub(crate) fn show_again(folder: &Path, study: &StudyOutcome) -> Outcome<()> {
    files::make(folder)?;
    files::save(folder, CSV, &csv::csv(study))?;
    files::save(folder, PAGE, &page::page(study))
}

/// The JSON, one line.
pub(crate) fn json(study: &StudyOutcome) -> String {
    serde_json::to_string(study).expect("every key is a string and every number is finite or null")
}

/// Reads a study's JSON.
pub(crate) fn read(path: &Path) -> Outcome<StudyOutcome> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|why| {
        Failure::bad_input(format!("{shown} cannot be read: {why}; name the study.json of a run"))
    })?;
    serde_json::from_str(&text).map_err(|why| {
        let place = format!("{shown}:{}:{}", why.line(), why.column());
        Failure::bad_input(format!("{place}: not a study's JSON: {why}; name the study.json of a run"))
    })
}
