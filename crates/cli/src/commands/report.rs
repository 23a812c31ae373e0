//! `sluice report`: the page and the tables of a study that was run before.

use std::path::Path;

use crate::args::Report;
use crate::fail::Outcome;
use crate::print;
use crate::report;
use crate::view;

/// Writes page and CSV anew, with `--out` the JSON beside them, and prints the summary.
pub(crate) fn run(args: &Report) -> Outcome<()> {
    let study = report::read(&args.study)?;
    match &args.out {
        Some(folder) => report::write(folder, &study)?,
        None => report::show_again(args.study.parent().unwrap_or(Path::new("")), &study)?,
    }
    print::text(report::summary(&study, view::columns()))?;
    Ok(())
}
