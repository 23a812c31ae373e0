//! A figure of numbers over two settings: a table whose cells are shaded in grey.

use sluice_outcome::study::{HeatMap, StudyOutcome};

use super::error::FigureError;
use super::layout::{FigurePage, RIM, WIDE_FROM, unused};
use super::sheet::{Anchor, Ink, LINE_HEIGHT, Outline, Pen, Sheet, wrapped};
use super::size::FigureSize;
use crate::heat::{LEVEL_MAX, strengths};
use crate::show::{self, DisplayScale};

/// The brightness of the darkest cell; black text is easy to read on it.
const DARKEST: f64 = 160.0;
/// The least space on both sides of a number together, and a cell's height beside its lines of text, in
/// sizes of the text.
const BESIDE: f64 = 0.8;
const AROUND: f64 = 0.9;

/// The maps of a study with the names by which their figures are asked for. Where two would have one name,
/// the second has a number behind it.
pub(super) fn named(study: &StudyOutcome) -> Vec<(String, &HeatMap)> {
    let mut all: Vec<(String, &HeatMap)> = Vec::new();
    for map in &study.heats {
        let name = format!("heat-{}", map.id.split_whitespace().collect::<Vec<_>>().join("-"));
        all.push((unused(&name, |name| all.iter().any(|(known, _)| known == name)), map));
    }
    all
}

/// The map in words.
pub(super) fn said(map: &HeatMap) -> String {
    let numbers = || map.numbers().map(|(_, _, number)| number.value);
    let (least, most) = (numbers().fold(f64::MAX, f64::min), numbers().fold(f64::MIN, f64::max));
    let [least, most] = [least, most].map(|value| show::quantity(value, map.unit));
    let (across, down) = (&map.across.name, &map.down.name);
    format!("{} over {across} and {down}, from {least} to {most}; the darker, the larger", map.title)
}

/// The map on a sheet of this size. `intervals` says how the intervals were found, if there are any.
pub(super) fn drawn(
    map: &HeatMap,
    page: &FigurePage<'_>,
    intervals: Option<&str>,
    size: FigureSize,
) -> Result<Sheet, FigureError> {
    let layout = HeatLayout::of(map, page, intervals, size.width);
    let width = HeatTable::least_width(map, page);
    if size.width < width {
        let high = HeatLayout::of(map, page, intervals, width).height;
        return Err(page.no_room(width, high.max(size.height.unwrap_or(0.0))));
    }
    let height = size.height.unwrap_or(layout.height);
    if height < layout.height {
        return Err(page.no_room(size.width, layout.height));
    }
    let HeatLayout { table, text, small, caption, notes, has_intervals, above, below, .. } = layout;
    let mut sheet = Sheet::new(size.width, height);
    FigurePage::write_caption(&mut sheet, caption, text);
    let rows = map.cells.len().max(1) as f64;
    let drawing = HeatDrawing { table, text, small, top: above, row: (height - above - below) / rows };
    drawing.heads(&mut sheet);
    drawing.cells(&mut sheet, has_intervals);
    FigurePage::write_notes(&mut sheet, notes, small);
    Ok(sheet)
}

/// What a figure of some width has, and the height that it needs.
struct HeatLayout<'m> {
    table: HeatTable<'m>,
    text: f64,
    small: f64,
    caption: Vec<String>,
    notes: Vec<String>,
    has_intervals: bool,
    /// The heights above and below the cells.
    above: f64,
    below: f64,
    /// The least height.
    height: f64,
}

impl<'m> HeatLayout<'m> {
    fn of(map: &'m HeatMap, page: &FigurePage<'_>, intervals: Option<&str>, width: f64) -> Self {
        let (text, small) = FigurePage::text_sizes(width);
        let table = HeatTable::of(map, page, width, text);
        let has_intervals = intervals.is_some() && table.widest_interval(page, small) <= table.column;
        let inside = width - 2.0 * RIM;
        let note = intervals.map_or_else(String::new, |how| {
            if has_intervals {
                format!("Small: 95 % intervals{how}.")
            } else {
                format!("95 % intervals{how} are in the study’s table.")
            }
        });
        let notes = FigurePage { notes: vec![note], ..*page }.note_lines(small, inside);
        let caption = wrapped(&table.caption(), page.typeface, text, inside);
        let second = if has_intervals { LINE_HEIGHT * small } else { 0.0 };
        let rows = map.cells.len().max(1) as f64 * ((1.0 + AROUND) * text + second);
        // Above the cells: the caption, and the name and the values of the columns.
        let above = RIM + (caption.len() as f64 + 2.0) * LINE_HEIGHT * text + 0.3 * text;
        let below = 0.4 * text + notes.len() as f64 * LINE_HEIGHT * small + RIM;
        let height = above + rows + below;
        Self { table, text, small, caption, notes, has_intervals, above, below, height }
    }
}

/// The widths of a map's table, and its numbers' scale.
struct HeatTable<'m> {
    map: &'m HeatMap,
    shown: DisplayScale,
    /// Where the cells begin.
    left: f64,
    column: f64,
    /// The least width of a column that its numbers fit.
    least_column: f64,
}

impl<'m> HeatTable<'m> {
    fn of(map: &'m HeatMap, page: &FigurePage<'_>, width: f64, text: f64) -> Self {
        let values = map.numbers().map(|(_, _, number)| number.value.abs());
        let least = values.filter(|value| *value > 0.0).reduce(f64::min);
        let shown = DisplayScale::suiting(least.unwrap_or(1.0), map.unit);
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts.map(|says| page.typeface.width(&says, text)).fold(0.0, f64::max)
        };
        let rows = &mut map.down.values.iter().map(|value| show::whole(*value));
        let left = RIM + widest(&mut rows.chain([map.down.name.clone()])) + 0.6 * text;
        let columns = map.across.values.iter().map(|value| show::whole(*value));
        let numbers = map.numbers().map(|(_, _, number)| shown.number(number.value));
        let least_column = widest(&mut columns.chain(numbers)) + BESIDE * text;
        let column = (width - RIM - left) / map.across.values.len().max(1) as f64;
        Self { map, shown, left, column, least_column }
    }

    /// The least width of a figure whose columns its numbers fit; a wide figure has larger text.
    fn least_width(map: &HeatMap, page: &FigurePage<'_>) -> f64 {
        let with = |text: f64| {
            let table = HeatTable::of(map, page, 0.0, text);
            let columns = map.across.values.len() as f64 * table.least_column;
            table.left + columns.max(page.typeface.width(&map.across.name, text)) + RIM
        };
        let (narrow, wide) = (FigurePage::text_sizes(0.0).0, FigurePage::text_sizes(WIDE_FROM).0);
        // What the message says is rounded up, by up to a hundredth of an inch.
        if with(narrow) + 1.0 < WIDE_FROM { with(narrow) } else { with(wide).max(WIDE_FROM) }
    }

    /// What the map shows, and the unit of all its numbers.
    fn caption(&self) -> String {
        self.shown.named(&self.map.title)
    }

    fn widest_interval(&self, page: &FigurePage<'_>, size: f64) -> f64 {
        let intervals = self.map.numbers().filter_map(|(_, _, number)| show::interval_in(number, self.shown));
        let widths = intervals.map(|says| page.typeface.width(&says, size));
        widths.fold(0.0, f64::max) + BESIDE * size
    }
}

struct HeatDrawing<'m> {
    table: HeatTable<'m>,
    text: f64,
    small: f64,
    top: f64,
    /// A row's height.
    row: f64,
}

impl HeatDrawing<'_> {
    /// The names and the values of both settings.
    fn heads(&self, sheet: &mut Sheet) {
        let HeatTable { map, left, column, .. } = self.table;
        let values = self.top - 0.5 * self.text;
        let right = left + column * map.across.values.len() as f64;
        let names = values - LINE_HEIGHT * self.text;
        let middle = f64::midpoint(left, right);
        sheet.write(map.across.name.clone(), (middle, names), self.text, Anchor::Middle);
        let end = left - 0.6 * self.text;
        sheet.write(map.down.name.clone(), (end, values), self.text, Anchor::End);
        for (place, value) in map.across.values.iter().enumerate() {
            let x = left + (place as f64 + 0.5) * column;
            sheet.write(show::whole(*value), (x, values), self.text, Anchor::Middle);
        }
        for (place, value) in map.down.values.iter().enumerate() {
            let y = self.top + (place as f64 + 0.5) * self.row + 0.35 * self.text;
            sheet.write(show::whole(*value), (end, y), self.text, Anchor::End);
        }
    }

    fn cells(&self, sheet: &mut Sheet, has_intervals: bool) {
        let HeatTable { map, shown, left, column, .. } = self.table;
        let strength = strengths(map);
        for (down, row) in map.cells.iter().enumerate() {
            let top = self.top + down as f64 * self.row;
            for (across, number) in row.iter().enumerate() {
                let from = left + across as f64 * column;
                let part = f64::from(strength(number.value)) / LEVEL_MAX;
                let grey = Ink::Grey((255.0 - part * (255.0 - DARKEST)).round() as u8);
                let outline = Outline::rectangle(from, top, from + column, top + self.row);
                sheet.fill(outline, grey, Some(Pen::whole(Ink::Soft, 0.4)));
                let interval = show::interval_in(number, shown).filter(|_| has_intervals);
                let (x, middle) = (from + column / 2.0, top + self.row / 2.0);
                let raised = if interval.is_some() { LINE_HEIGHT * self.small / 2.0 } else { 0.0 };
                let y = middle + 0.35 * self.text - raised;
                sheet.write(shown.number(number.value), (x, y), self.text, Anchor::Middle);
                if let Some(interval) = interval {
                    let y = y + 0.1 * self.text + LINE_HEIGHT * self.small;
                    sheet.write(interval, (x, y), self.small, Anchor::Middle);
                }
            }
        }
    }
}
