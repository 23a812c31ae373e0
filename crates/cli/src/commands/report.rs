//! `sluice report`: the page and the tables of a study that was run before.

use std::path::Path;

use crate::args::Report;
use crate::fail::Outcome;
use crate::print;
use crate::results::studies;
use crate::view;
use sluice_report as report;

/// Writes page and CSV anew, with `--out` the JSON beside them, and prints the summary.
pub(crate) fn run(args: &Report) -> Outcome<()> {
    let study = studies::read(&args.study)?;
    match &args.out {
        Some(folder) => studies::write(folder, &study)?,
        None => studies::show_again(args.study.parent().unwrap_or(Path::new("")), &study)?,
    }
    print::text(report::summary(&study, view::columns()))?;
    Ok(())
}
