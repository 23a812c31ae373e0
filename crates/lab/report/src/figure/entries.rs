//! Entries of a legend in columns: each has a swatch and a name, which may need several lines.

use super::sheet::{Anchor, LINE_HEIGHT, Sheet, wrapped};
use super::typeface::Typeface;

/// The width of a swatch, and of the space behind it and between columns, in sizes of the text.
pub(super) const SWATCH: f64 = 2.8;
pub(super) const SPACE: f64 = 0.5;
const BETWEEN: f64 = 1.4;

/// The entries, laid out in columns of one width.
pub(super) struct LegendEntries<T> {
    /// What each stands for, and its name in lines.
    entries: Vec<(T, Vec<String>)>,
    columns: usize,
    column: f64,
    size: f64,
}

impl<T> LegendEntries<T> {
    /// The entries with these names, for a figure of this width.
    pub(super) fn of(
        named: impl Iterator<Item = (T, String)>,
        typeface: &Typeface,
        size: f64,
        width: f64,
    ) -> Self {
        let entries: Vec<_> =
            named.map(|(of, name)| (of, name_lines(&name, typeface, size, width))).collect();
        let lines = entries.iter().flat_map(|(_, lines)| lines);
        let widest = lines.map(|line| typeface.width(line, size)).fold(0.0, f64::max);
        let column = (SWATCH + SPACE + BETWEEN) * size + widest;
        let columns = (((width + BETWEEN * size) / column) as usize).clamp(1, entries.len().max(1));
        Self { entries, columns, column, size }
    }

    pub(super) fn height(&self) -> f64 {
        let lines: usize = self.entries.chunks(self.columns).map(lines_of).sum();
        lines as f64 * LINE_HEIGHT * self.size
    }

    /// Draws all entries below `top`; `swatch` is told where the middle of its left end is.
    pub(super) fn draw(
        &self,
        sheet: &mut Sheet,
        left: f64,
        top: f64,
        swatch: impl Fn(&mut Sheet, &T, f64, f64),
    ) {
        let line = LINE_HEIGHT * self.size;
        let mut y = top;
        for row in self.entries.chunks(self.columns) {
            for (column, (of, lines)) in row.iter().enumerate() {
                let x = left + column as f64 * self.column;
                swatch(sheet, of, x, y + line / 2.0);
                write_lines(sheet, lines, x, y, self.size);
            }
            y += lines_of(row) as f64 * line;
        }
    }
}

/// A name in as many lines as it needs behind a swatch.
pub(super) fn name_lines(name: &str, typeface: &Typeface, size: f64, width: f64) -> Vec<String> {
    wrapped(name, typeface, size, width - (SWATCH + SPACE) * size)
}

/// Writes the lines of a name behind the swatch at `x`.
pub(super) fn write_lines(sheet: &mut Sheet, lines: &[String], x: f64, top: f64, size: f64) {
    for (place, line) in lines.iter().enumerate() {
        let at = (x + (SWATCH + SPACE) * size, top + (place as f64 * LINE_HEIGHT + 1.0) * size);
        sheet.write(line.clone(), at, size, Anchor::Start);
    }
}

/// How many lines the entries of a row need.
fn lines_of<T>(row: &[(T, Vec<String>)]) -> usize {
    row.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0)
}
