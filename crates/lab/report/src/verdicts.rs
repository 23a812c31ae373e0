//! All statements of several studies in one table: the paper's statement, our result, and the cause of a
//! difference.

use std::fmt::Write;

use sluice_outcome::study::{Expectation, StudyOutcome, Verdict};

use super::show;
use crate::table::Table;

/// The table, followed by the number of statements with each verdict.
pub fn verdicts<'s>(studies: impl IntoIterator<Item = &'s StudyOutcome>) -> String {
    let mut table = Table::new(["plan", "statement", "paper, or ours", "here", "verdict", "cause"]);
    let mut counts = [0; Verdict::ALL.len()];
    for study in studies {
        for row in &study.expectations {
            counts[row.verdict as usize] += 1;
            table.row([
                study.name.clone(),
                row.id.clone(),
                format!("{}{}", show::stated(row), if row.ours { " (ours)" } else { "" }),
                here(row),
                row.verdict.to_string(),
                cause(row),
            ]);
        }
    }
    let counts = Verdict::ALL.iter().zip(counts).filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(verdict, count)| format!("{count} {verdict}")).collect();
    let mut out = table.to_string();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n{}", counts.join(", "));
    out.push_str("a cause is shown by: sluice reproduce PLAN --cause CAUSE\n");
    super::text::plain(&out)
}

/// Our number, or how many pairs are in the paper's order.
fn here(row: &Expectation) -> String {
    match &row.measured {
        Some(measured) => show::estimate(measured, row.unit),
        None => row.why.split([';', ',']).next().unwrap_or_default().to_owned(),
    }
}

/// The cause's name, as an argument of `--cause`.
fn cause(row: &Expectation) -> String {
    let name = row.cause.as_ref().and_then(|cause| cause.command.rsplit("--cause ").next());
    match (name, row.verdict) {
        (Some(name), _) => name.to_owned(),
        (None, Verdict::Agrees | Verdict::Undecided) => "-".to_owned(),
        (None, Verdict::SetUpNotKnown) => "the set-up is not known".to_owned(),
        (None, _) => "none shown".to_owned(),
    }
}
