//! A figure of a single rate: a bar for each series, with its name, its number and the interval at its end.

use super::error::FigureError;
use super::layout::{FigureLayout, FigurePage, RIM};
use super::sheet::{Anchor, Ink, LINE_HEIGHT, Outline, Pen, Sheet, SheetText, wrapped};
use super::size::FigureSize;
use super::symbols;
use crate::chart::{BarRow, Dot, places};

/// A row's height with one line of text, and that of its bar, in sizes of the text.
const ROW: f64 = 2.6;
const BAR: f64 = 0.9;
/// The least space between a name and a number in one line, in sizes of the text.
const BETWEEN: f64 = 1.0;
/// How far the line of a limit reaches beyond a bar, in points.
const OVER: f64 = 1.5;

/// The bars on a sheet of this size.
pub(super) fn drawn(
    layout: &FigureLayout<'_>,
    rate_per_s: f64,
    size: FigureSize,
) -> Result<Sheet, FigureError> {
    let (text, small) = FigurePage::text_sizes(size.width);
    let inside = size.width - 2.0 * RIM;
    let caption = wrapped(&layout.chart.bars_caption(rate_per_s), layout.page.typeface, text, inside);
    let notes = footnotes(layout, rate_per_s, small, inside);
    let rows = layout.chart.rows(rate_per_s);
    let most = layout.chart.longest(&rows);
    let bars = FigureBars { layout, text, width: inside, most };
    let rows: Vec<FigureRow<'_>> = rows.into_iter().map(|row| bars.laid_out(row)).collect();
    let above = RIM + caption.len() as f64 * LINE_HEIGHT * text;
    let below = notes.len() as f64 * LINE_HEIGHT * small + RIM;
    let least = above + rows.iter().map(|row| bars.height(row)).sum::<f64>() + below;
    if size.height.is_some_and(|height| height < least) {
        return Err(layout.page.no_room(size.width, least));
    }
    let mut sheet = Sheet::new(size.width, size.height.unwrap_or(least));
    FigurePage::write_caption(&mut sheet, caption, text);
    FigurePage::write_notes(&mut sheet, notes, small);
    let mut top = above;
    for row in &rows {
        bars.row(&mut sheet, row, top);
        top += bars.height(row);
    }
    Ok(sheet)
}

/// The notes, and the places of the numbers that are stated at the rate.
fn footnotes(layout: &FigureLayout<'_>, rate_per_s: f64, size: f64, width: f64) -> Vec<String> {
    let here = layout.chart.paper.iter().filter(|paper| paper.at(rate_per_s).next().is_some());
    let mut notes = layout.page.note_lines(size, width);
    for place in places(here) {
        notes.extend(wrapped(&format!("Rays: {place}"), layout.page.typeface, size, width));
    }
    notes
}

/// A row, and its lines of text.
struct FigureRow<'r> {
    of: BarRow<'r>,
    lines: Vec<Vec<(Anchor, String)>>,
}

struct FigureBars<'r> {
    layout: &'r FigureLayout<'r>,
    text: f64,
    width: f64,
    most: f64,
}

impl<'r> FigureBars<'r> {
    fn x(&self, value: f64) -> f64 {
        RIM + self.width * (value / self.most).clamp(0.0, 1.0)
    }

    /// A row with its name and its number in one line if both fit, else below each other.
    fn laid_out(&self, of: BarRow<'r>) -> FigureRow<'r> {
        let (label, says) = (of.label().to_owned(), of.says(self.layout.chart.unit));
        let typeface = self.layout.page.typeface;
        let together = typeface.width(&label, self.text) + typeface.width(&says, self.text);
        let lines = if together + BETWEEN * self.text <= self.width {
            vec![vec![(Anchor::Start, label), (Anchor::End, says)]]
        } else {
            let lines = |text: &str, anchor| {
                let lines = wrapped(text, typeface, self.text, self.width).into_iter();
                lines.map(move |line| vec![(anchor, line)]).collect::<Vec<_>>()
            };
            [lines(&label, Anchor::Start), lines(&says, Anchor::End)].concat()
        };
        FigureRow { of, lines }
    }

    /// The height of a row's text before its last line.
    fn before_last_line(&self, row: &FigureRow<'_>) -> f64 {
        (row.lines.len() as f64 - 1.0) * LINE_HEIGHT * self.text
    }

    fn height(&self, row: &FigureRow<'_>) -> f64 {
        ROW * self.text + self.before_last_line(row)
    }

    fn row(&self, sheet: &mut Sheet, row: &FigureRow<'_>, top: f64) {
        let right = RIM + self.width;
        for (place, line) in row.lines.iter().enumerate() {
            let y = top + (1.2 + place as f64 * LINE_HEIGHT) * self.text;
            for (anchor, text) in line {
                let x = if *anchor == Anchor::End { right } else { RIM };
                let (text, size, ink) = (text.clone(), self.text, Ink::Black);
                sheet.text(SheetText { text, x, y, size, anchor: *anchor, ink });
            }
        }
        let from = top + self.before_last_line(row) + 1.5 * self.text;
        let to = from + BAR * self.text;
        let middle = f64::midpoint(from, to);
        if let Some(dot) = row.of.dot() {
            let outline = Outline::rectangle(RIM, from, self.x(dot.of.value), to);
            let ink = Ink::of(row.of.look());
            sheet.fill(outline, if dot.holds { ink } else { Ink::White }, Some(Pen::whole(ink, 0.5)));
            self.whisker(sheet, dot, middle);
        }
        if let Some(slo) = self.layout.chart.slo {
            let x = self.x(slo);
            let pen = Pen { ink: Ink::Black, width: 0.6, dashes: vec![2.0, 1.0] };
            sheet.stroke(Outline::line([(x, from - OVER), (x, to + OVER)]), pen);
        }
        for value in row.of.stated() {
            symbols::rays(sheet, self.x(*value), middle, 0.5 * self.text, Ink::Black);
        }
    }

    /// The interval of a load that is kept up; without a cap at an end that is open.
    fn whisker(&self, sheet: &mut Sheet, dot: &Dot, middle: f64) {
        if !dot.has_bar() {
            return;
        }
        let low = self.x(dot.of.low);
        let high = if dot.of.open_above { RIM + self.width } else { self.x(dot.of.high) };
        let mut whisker = Outline::line([(low, middle), (high, middle)]);
        let ends = if dot.of.open_above { &[low][..] } else { &[low, high] };
        for x in ends {
            whisker.add_line([(*x, middle - 1.8), (*x, middle + 1.8)]);
        }
        sheet.stroke(whisker.clone(), Pen::whole(Ink::White, 1.6));
        sheet.stroke(whisker, Pen::whole(Ink::Black, 0.6));
    }
}
