//! A figure's legend: an entry for each series, and one for each place that numbers are stated in.

use super::entries::{LegendEntries, SWATCH, name_lines, write_lines};
use super::layout::FigureLayout;
use super::sheet::{Ink, LINE_HEIGHT, Outline, Pen, Sheet};
use super::symbols::{self, LINE, MARK};
use crate::chart::{Curve, PaperMarks, Style};

/// The series' entries in columns, and below them a line or more for each place.
pub(super) struct Legend<'l> {
    series: LegendEntries<&'l Curve>,
    stated: Vec<(&'l PaperMarks, Vec<String>)>,
    size: f64,
}

impl<'l> Legend<'l> {
    /// The legend for a figure of this width.
    pub(super) fn of(layout: &'l FigureLayout<'l>, size: f64, width: f64) -> Self {
        let typeface = layout.page.typeface;
        let curves = layout.chart.curves.iter().filter(|curve| !curve.dots.is_empty());
        let named = curves.map(|curve| (curve, curve.label.clone()));
        let series = LegendEntries::of(named, typeface, size, width);
        let mut stated: Vec<(&PaperMarks, Vec<String>)> = Vec::new();
        for paper in &layout.chart.paper {
            if !stated.iter().any(|(known, _)| known.place == paper.place) {
                stated.push((paper, name_lines(&paper.place, typeface, size, width)));
            }
        }
        Self { series, stated, size }
    }

    /// The height of all entries.
    pub(super) fn height(&self) -> f64 {
        let stated: usize = self.stated.iter().map(|(_, lines)| lines.len()).sum();
        self.series.height() + stated as f64 * LINE_HEIGHT * self.size
    }

    /// Draws all entries below `top`.
    pub(super) fn draw(&self, sheet: &mut Sheet, left: f64, top: f64) {
        self.series.draw(sheet, left, top, |sheet, curve, x, y| self.swatch(sheet, curve, x, y));
        let line = LINE_HEIGHT * self.size;
        let mut y = top + self.series.height();
        for (_, lines) in &self.stated {
            symbols::rays(
                sheet,
                left + SWATCH * self.size / 2.0,
                y + line / 2.0,
                0.36 * self.size,
                Ink::Black,
            );
            write_lines(sheet, lines, left, y, self.size);
            y += lines.len() as f64 * line;
        }
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
}
