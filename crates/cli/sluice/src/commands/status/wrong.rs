//! What is wrong with a rack, as text: a paragraph for each finding, or a part of a line.

use sluice_support::findings::{FindingSeverity, RackFinding};

/// What is said of a rack in order.
const NOTHING_WRONG: &str = "nothing wrong found";

/// All findings under a heading.
pub(super) fn text(found: &[RackFinding]) -> String {
    if found.is_empty() {
        return format!("{NOTHING_WRONG}\n");
    }
    let told = found.iter().map(|finding| {
        let RackFinding { kind, severity, what, why, next, .. } = finding;
        format!("{}: {what} ({})\n- why: {why}\n- do: {next}\n", severity.word(), kind.code())
    });
    format!("what is wrong:\n{}", told.collect::<String>())
}

/// The part of a line: what is wrong, and how many warnings there are beside it.
pub(super) fn line(found: &[RackFinding]) -> String {
    let told = found.iter().map(|finding| match finding.severity {
        FindingSeverity::Wrong => format!("; WRONG: {}", finding.what),
        FindingSeverity::Warning => format!("; warning: {}", finding.what),
    });
    if found.is_empty() { format!("; {NOTHING_WRONG}") } else { told.collect() }
}
