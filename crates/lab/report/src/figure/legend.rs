//! A figure's legend: an entry for each series, and one for each place that numbers are stated in.

use super::layout::FigureLayout;
use super::sheet::{Anchor, Ink, LINE_HEIGHT, Outline, Pen, Sheet, SheetText, wrapped};
use super::symbols::{self, LINE, MARK};
use crate::chart::{Curve, PaperMarks, Style};

/// The width of an entry's line, and of the space behind it and between columns, in sizes of the text.
pub(super) const SWATCH: f64 = 2.8;
pub(super) const SPACE: f64 = 0.5;
pub(super) const BETWEEN: f64 = 1.4;

/// The entries, laid out in columns.
pub(super) struct Legend<'l> {
    /// The series' labels, each in lines.
    series: Vec<(&'l Curve, Vec<String>)>,
    stated: Vec<(&'l PaperMarks, Vec<String>)>,
    columns: usize,
    column: f64,
    size: f64,
}

impl<'l> Legend<'l> {
    /// The legend for a figure of this width.
    pub(super) fn of(layout: &'l FigureLayout<'l>, size: f64, width: f64) -> Self {
        let typeface = layout.page.typeface;
        let before = (SWATCH + SPACE) * size;
        let lines = |label: &str| wrapped(label, typeface, size, width - before);
        let curves = layout.chart.curves.iter().filter(|curve| !curve.dots.is_empty());
        let series: Vec<_> = curves.map(|curve| (curve, lines(&curve.label))).collect();
        let texts = series.iter().flat_map(|(_, lines)| lines);
        let widest = texts.map(|line| typeface.width(line, size)).fold(0.0, f64::max);
        let column = before + widest + BETWEEN * size;
        let columns = (((width + BETWEEN * size) / column) as usize).clamp(1, series.len().max(1));
        let mut stated: Vec<(&PaperMarks, Vec<String>)> = Vec::new();
        for paper in &layout.chart.paper {
            if !stated.iter().any(|(known, _)| known.place == paper.place) {
                stated.push((paper, lines(&paper.place)));
            }
        }
        Self { series, stated, columns, column, size }
    }

    /// The height of all entries.
    pub(super) fn height(&self) -> f64 {
        let rows: usize = self.rows().map(lines_of).sum();
        let stated: usize = self.stated.iter().map(|(_, lines)| lines.len()).sum();
        (rows + stated) as f64 * LINE_HEIGHT * self.size
    }

    /// Draws all entries below `top`.
    pub(super) fn draw(&self, sheet: &mut Sheet, left: f64, top: f64) {
        let line = LINE_HEIGHT * self.size;
        let mut y = top;
        for row in self.rows() {
            for (column, (curve, lines)) in row.iter().enumerate() {
                let x = left + column as f64 * self.column;
                self.swatch(sheet, curve, x, y + line / 2.0);
                self.lines(sheet, lines, x, y);
            }
            y += lines_of(row) as f64 * line;
        }
        for (_, lines) in &self.stated {
            symbols::rays(
                sheet,
                left + SWATCH * self.size / 2.0,
                y + line / 2.0,
                0.36 * self.size,
                Ink::Black,
            );
            self.lines(sheet, lines, left, y);
            y += lines.len() as f64 * line;
        }
    }

    fn rows(&self) -> impl Iterator<Item = &[(&'l Curve, Vec<String>)]> {
        self.series.chunks(self.columns)
    }

    fn swatch(&self, sheet: &mut Sheet, curve: &Curve, x: f64, y: f64) {
        let ink = Ink::of(curve.look);
        if curve.style != Style::Marks {
            let pen = Pen { ink, width: LINE, dashes: curve.look.dashes() };
            sheet.stroke(Outline::line([(x, y), (x + SWATCH * self.size, y)]), pen);
        }
        if curve.style != Style::LineOnly {
            let middle = x + SWATCH * self.size / 2.0;
            symbols::mark(sheet, curve.look, (middle, y), MARK, true);
        }
    }

    fn lines(&self, sheet: &mut Sheet, lines: &[String], x: f64, top: f64) {
        for (place, line) in lines.iter().enumerate() {
            sheet.text(SheetText {
                text: line.clone(),
                x: x + (SWATCH + SPACE) * self.size,
                y: top + (place as f64 * LINE_HEIGHT + 1.0) * self.size,
                size: self.size,
                anchor: Anchor::Start,
                ink: Ink::Black,
            });
        }
    }
}

/// How many lines the entries of a row need.
fn lines_of(row: &[(&Curve, Vec<String>)]) -> usize {
    row.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0)
}
