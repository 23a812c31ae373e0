//! The table printer: columns have the necessary width, numbers are aligned to the right.

use std::fmt::{self, Write};

/// The text of an empty cell.
pub const NOTHING: &str = "–";

/// A table of text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new<S: Into<String>>(headings: impl IntoIterator<Item = S>) -> Self {
        Self { rows: vec![headings.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// All rows; the first one has the headings.
    pub(super) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Fits the table into `width` columns of a terminal: as long as it is wider, the next column in
    /// `gives_way` is left out. Also returns the names of these columns.
    pub fn fitting<'n>(mut self, width: usize, gives_way: &[(usize, &'n str)]) -> (Self, Vec<&'n str>) {
        let mut gone: Vec<(usize, &str)> = Vec::new();
        for &(column, name) in gives_way {
            if self.width() <= width {
                break;
            }
            let place = column - gone.iter().filter(|(earlier, _)| *earlier < column).count();
            for row in &mut self.rows {
                row.remove(place);
            }
            gone.push((column, name));
        }
        (self, gone.into_iter().map(|(_, name)| name).collect())
    }

    /// The table in GitHub's Markdown, with columns of numbers to the right.
    pub fn markdown(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let numeric: Vec<bool> = (0..columns).map(|column| self.is_numeric(column)).collect();
        let mut out = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for column in 0..columns {
                let cell = row.get(column).map_or_else(String::new, |cell| escaped(cell.trim()));
                // Writing to a string cannot fail.
                let _ = write!(out, "| {cell} ");
            }
            out.push_str("|\n");
            if number == 0 {
                for is in &numeric {
                    out.push_str(if *is { "|---:" } else { "|---" });
                }
                out.push_str("|\n");
            }
        }
        out
    }

    fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column| {
            let cells = self.rows.iter().filter_map(move |row| row.get(column));
            cells.map(|cell: &String| cell.chars().count()).max().unwrap_or(0)
        };
        (0..columns).map(width).collect()
    }

    /// Whether all cells of a column except its heading are numbers, with or without a unit.
    fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().skip(1).filter_map(|row| row.get(column)).peekable();
        let is_number = |cell: &String| {
            cell == NOTHING || cell.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+')
        };
        cells.peek().is_some() && cells.all(is_number)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let numeric: Vec<bool> = (0..widths.len()).map(|column| self.is_numeric(column)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                let gap = if column == 0 { "" } else { "  " };
                // Writing to a string cannot fail.
                let _ = if numeric[column] {
                    write!(line, "{gap}{cell:>width$}")
                } else {
                    write!(line, "{gap}{cell:<width$}")
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Text as Markdown that shows it as it is, in one line.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&' | '$' | '@') {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

/// A time in a suitable unit, with about three digits.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} us", digits(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", digits(ns / 1e6)),
        ns => format!("{} s", digits(ns / 1e9)),
    }
}

/// A number with about three digits.
pub fn digits(number: f64) -> String {
    let text = match number.abs() {
        size if size < 10.0 => format!("{number:.2}"),
        size if size < 100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    };
    if text == "-0.00" { "0.00".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(["type", "p99"]);
        table.row(["get", "1.25 ms"]);
        table.row(["scan", "12.5 ms"]);
        assert_eq!(table.to_string(), "type      p99\nget   1.25 ms\nscan  12.5 ms\n");
    }

    #[test]
    fn a_table_that_is_too_wide_leaves_out_what_gives_way_first() {
        let mut table = Table::new(["a", "bb", "ccc"]);
        table.row(["1", "22", "333"]);
        let order = [(2, "the last"), (0, "the first")];
        for (width, shown, gone) in [
            (10, "a  bb  ccc\n1  22  333\n", vec![]),
            (9, "a  bb\n1  22\n", vec!["the last"]),
            (4, "bb\n22\n", vec!["the last", "the first"]),
        ] {
            let (fitting, left_out) = table.clone().fitting(width, &order);
            assert_eq!((fitting.to_string().as_str(), left_out), (shown, gone), "{width} columns");
        }
    }

    #[test]
    fn a_table_in_markdown_keeps_its_cells_whatever_they_hold() {
        let mut table = Table::new(["type", "p99"]);
        table.row(["a|b*_`<c>", "1.25 ms"]);
        table.row(["two\nlines", NOTHING]);
        table.row(["short"]);
        let rows = "| a\\|b\\*\\_\\`\\<c\\> | 1.25 ms |\n| two lines | – |\n| short |  |\n";
        assert_eq!(table.markdown(), format!("| type | p99 |\n|---|---:|\n{rows}"));
    }

    #[test]
    fn a_time_is_shown_in_the_unit_that_suits_it() {
        let shown: Vec<String> = [7.0, 1_500.0, 12_345_678.0, 2e9].map(time).to_vec();
        assert_eq!(shown, ["7 ns", "1.50 us", "12.3 ms", "2.00 s"]);
        assert_eq!([-0.001, -0.011, -12.34].map(digits), ["0.00", "-0.01", "-12.3"]);
    }
}
