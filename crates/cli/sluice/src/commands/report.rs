//! `sluice report`: writes the page and the tables of an earlier study again.

use std::path::Path;

use sluice_report as report;
use sluice_support::fail::Outcome;
use sluice_support::print;
use sluice_support::results::studies;
use sluice_support::view;

use crate::args::ReportArgs;

/// Writes the page and the CSV (with `--out` also the JSON), and prints the summary.
pub(crate) fn run(args: &ReportArgs) -> Outcome<()> {
    let study = studies::read(&args.study)?;
    match &args.out {
        Some(folder) => studies::write(folder, &study)?,
        None => studies::show_again(args.study.parent().unwrap_or(Path::new("")), &study)?,
    }
    print::text(report::summary(&study, view::columns()))?;
    Ok(())
}
