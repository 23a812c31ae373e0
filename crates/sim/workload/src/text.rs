//! Reads numbers, values and names of workloads. Spans are exact: decimal digits to whole nanoseconds.

pub(crate) use sluice_units::{micros, share, show_micros, show_span, span, unknown};

/// Reads a finite number that is not negative.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let number = sluice_units::number(text).ok().filter(|number| *number >= 0.0);
    number.ok_or_else(|| format!("`{text}` is not a finite number from 0 on"))
}

/// One value of a comma-separated line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'l> {
    pub(super) text: &'l str,
    /// The cell's first column, in characters from 1.
    pub(super) column: usize,
}

/// Splits a comma-separated line into values, without the blanks around them.
pub(super) fn cells(line: &str) -> Vec<Cell<'_>> {
    let mut column = 1;
    let cells = line.split(',').map(|cell| {
        let blanks = cell.chars().take_while(|c| c.is_whitespace()).count();
        let here = Cell { text: cell.trim(), column: column + blanks };
        column += cell.chars().count() + 1;
        here
    });
    cells.collect()
}

/// Checks that a class's name has no character with a meaning in files or in the short form of a workload.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(legal) {
        return Ok(());
    }
    Err(format!("`{name}` is not a name of 1 to {NAME_CHARS_MAX} letters, digits, `_`, `-` or `.`"))
}

const NAME_CHARS_MAX: usize = 64;

/// The line and the column, both from 1, of the byte at offset `at`.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Checks that shares add up to 1, within rounding errors.
pub(super) fn add_up(shares: impl Iterator<Item = f64>, of_what: &str) -> Result<(), String> {
    sluice_units::add_up(shares).map_err(|sum| format!("the {of_what} add up to {sum}, not 1: correct them"))
}
