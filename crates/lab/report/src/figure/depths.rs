//! A figure of depths over time in one run: strips below each other with a line for each slice, and the
//! agent's decisions as marks on the first.

use sluice_outcome::study::{Panel, SliceDepths, Unit};

use super::entries::{LegendEntries, SWATCH};
use super::error::FigureError;
use super::layout::{FigurePage, RIM, unused};
use super::sheet::{Anchor, Ink, LINE_HEIGHT, Outline, Pen, Sheet, wrapped};
use super::size::FigureSize;
use super::symbols::LINE;
use crate::chart::{Axis, Steps, label};
use crate::depths::{DepthStrip, DepthsShown, adaptive, totals};
use crate::series_style::SeriesStyle;
use crate::show::{self, DisplayScale};

/// Widths of lines, in points: of ranges, of the frame, of the grid.
const RANGE: f64 = 0.3;
const EDGE: f64 = 0.6;
const GRID: f64 = 0.4;
/// About the radius of a mark.
const MARK: f64 = 1.4;
/// The height of a strip as a share of the figure's width, if no height is given, and its least height and
/// that of its title, in sizes of the text.
const HIGH: f64 = 0.2;
const LEAST_HEIGHT: f64 = 3.0;
const TITLE: f64 = 1.6;

/// A run whose depths were not fixed.
pub(super) struct DepthsRun<'s> {
    /// The name by which its figure is asked for, without its panel.
    pub(super) name: String,
    pub(super) panel: &'s Panel,
    pub(super) label: &'s str,
    /// What stands for the label in the picture.
    pub(super) text: String,
    pub(super) shown: DepthsShown<'s>,
    /// The types of each slice; empty if the study does not name them.
    slice_names: &'s [String],
    offered_per_s: f64,
}

impl<'s> DepthsRun<'s> {
    /// All such runs of a panel. Where two would have one name, the second has a number behind it.
    pub(super) fn all(panel: &'s Panel) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for (series, point) in adaptive(panel) {
            let parts = series.label.split(|letter: char| !letter.is_ascii_alphanumeric());
            let label = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
            let name = format!("depths-{label}-{:.0}", point.offered_per_s);
            let name = unused(&name, |name| runs.iter().any(|run| run.name == name));
            let (label, shown) = (&series.label, DepthsShown::of(&point.depths));
            let (text, slice_names) = (label.clone(), &series.slice_names[..]);
            let offered_per_s = point.offered_per_s;
            runs.push(Self { name, panel, label, text, shown, slice_names, offered_per_s });
        }
        runs
    }

    /// Such as `slice get`; the number where the study has no name.
    fn slice_name(&self, slice: u32) -> String {
        match self.slice_names.get(slice as usize) {
            Some(name) => format!("slice {name}"),
            None => format!("slice {slice}"),
        }
    }

    fn caption(&self) -> String {
        format!("{} at {}: {}", self.text, show::rate(self.offered_per_s), totals(self.shown.depths))
    }
}

/// What stands below the strips.
pub(super) fn notes(shown: &DepthsShown<'_>) -> Vec<String> {
    let any = |of: fn(&SliceDepths) -> bool| shown.depths.iter().any(of);
    let says = [
        (any(|of| of.depth_min < of.depth_max), "Bars: from the smallest depth to the largest."),
        (any(|of| of.deeper > 0), "Triangle up: workers that got one token more."),
        (any(|of| of.shallower > 0), "Triangle down: workers that got one less."),
        (any(|of| of.overloaded > 0), "Circle: overloaded workers."),
        (any(|of| of.moves > 0), "Square: workers that changed their slice."),
    ];
    let said = says.into_iter().filter(|(is_there, _)| *is_there).map(|(_, says)| says.to_owned());
    let part = shown.cut_off().map_or_else(String::new, |part| format!(", {part}"));
    said.chain([format!("First replication{part}.")]).collect()
}

/// A run on a sheet of this size.
pub(super) fn drawn(
    run: &DepthsRun<'_>,
    page: &FigurePage<'_>,
    size: FigureSize,
) -> Result<Sheet, FigureError> {
    let (text, small) = FigurePage::text_sizes(size.width);
    let inside = size.width - 2.0 * RIM;
    let shown = &run.shown;
    let strips = shown.strips();
    let caption = wrapped(&run.caption(), page.typeface, text, inside);
    let notes = page.note_lines(small, inside);
    let legend = slice_entries(run, page, text, inside);
    // Above the strips: the caption and the legend; below: the axis' numbers, its name and the notes.
    let above = RIM + caption.len() as f64 * LINE_HEIGHT * text + legend.height();
    let below = 2.9 * text + notes.len() as f64 * LINE_HEIGHT * small + RIM;
    let count = strips.len() as f64;
    let least = above + count * (TITLE + LEAST_HEIGHT) * text + below;
    if size.height.is_some_and(|height| height < least) {
        return Err(page.no_room(size.width, least));
    }
    let usual = above + count * (TITLE * text + (HIGH * size.width).max(LEAST_HEIGHT * text)) + below;
    let height = size.height.unwrap_or(usual);
    let mut sheet = Sheet::new(size.width, height);
    FigurePage::write_caption(&mut sheet, caption, text);
    let ticks = strips.iter().flat_map(|strip| axis(strip, 1.0, 0.0).ticks(1.0, 3));
    let widest = ticks.map(|tick| page.typeface.width(&label(tick.value), text)).fold(0.0, f64::max);
    let (left, right) = (RIM + widest + 0.6 * text, size.width - RIM - 1.2 * text);
    let time = Axis::new(Steps::Linear, 0.0, shown.ends_ns, left, right);
    let high = (height - above - below) / count;
    let drawing = DepthsDrawing { shown, time, left, right, text };
    legend.draw(&mut sheet, RIM, above - legend.height(), |sheet, slice, x, y| {
        sheet.stroke(Outline::line([(x, y), (x + SWATCH * text, y)]), pen(*slice));
    });
    for (place, strip) in strips.iter().enumerate() {
        let top = above + place as f64 * high;
        drawing.strip(&mut sheet, strip, top + TITLE * text, top + high);
    }
    drawing.times(&mut sheet, height - below);
    FigurePage::write_notes(&mut sheet, notes, small);
    Ok(sheet)
}

/// A strip's vertical axis.
fn axis(strip: &DepthStrip, bottom: f64, top: f64) -> Axis {
    Axis::new(Steps::Linear, 0.0, strip.most, bottom, top)
}

/// An entry for each slice, if there are several.
fn slice_entries(run: &DepthsRun<'_>, page: &FigurePage<'_>, text: f64, width: f64) -> LegendEntries<u32> {
    let slices = if run.shown.slices.len() > 1 { &run.shown.slices[..] } else { &[] };
    let named = slices.iter().map(|slice| (*slice, run.slice_name(*slice)));
    LegendEntries::of(named, page.typeface, text, width)
}

struct DepthsDrawing<'d> {
    shown: &'d DepthsShown<'d>,
    time: Axis,
    left: f64,
    right: f64,
    text: f64,
}

impl DepthsDrawing<'_> {
    fn strip(&self, sheet: &mut Sheet, strip: &DepthStrip, top: f64, bottom: f64) {
        let y = axis(strip, bottom, top);
        let ticks = y.ticks(1.0, 3);
        let mut grid = Outline::default();
        for tick in &ticks {
            grid.add_line([(self.left, tick.px), (self.right, tick.px)]);
        }
        sheet.stroke(grid, Pen::whole(Ink::Grid, GRID));
        let edges = Outline::line([(self.left, top), (self.left, bottom), (self.right, bottom)]);
        sheet.stroke(edges, Pen::whole(Ink::Black, EDGE));
        for tick in ticks {
            let place = (self.left - 0.4 * self.text, tick.px + 0.35 * self.text);
            sheet.write(label(tick.value), place, self.text, Anchor::End);
        }
        sheet.write(strip.title.to_owned(), (self.left, top - 0.4 * self.text), self.text, Anchor::Start);
        if strip.is_of_depths {
            self.shown.slices.iter().for_each(|slice| self.ranges(sheet, &y, *slice));
        }
        for slice in &self.shown.slices {
            let place =
                |of: &SliceDepths| (self.time.px(of.at_ns as f64), y.px((strip.of)(of).min(strip.most)));
            sheet.stroke(Outline::line(self.shown.of_slice(*slice).map(place)), pen(*slice));
        }
        if strip.is_of_depths {
            self.marks(sheet, &y, top);
        }
    }

    /// The ranges from the smallest to the largest depth.
    fn ranges(&self, sheet: &mut Sheet, y: &Axis, slice: u32) {
        let mut bars = Outline::default();
        for of in self.shown.of_slice(slice).filter(|of| of.depth_min < of.depth_max) {
            let x = self.time.px(of.at_ns as f64);
            bars.add_line([(x, y.px(of.depth_min.into())), (x, y.px(of.depth_max.into()))]);
        }
        sheet.stroke(bars, Pen::whole(Ink::of(SeriesStyle::apart(slice as usize)), RANGE));
    }

    /// The decisions.
    fn marks(&self, sheet: &mut Sheet, y: &Axis, top: f64) {
        let mut moved = 0;
        for of in self.shown.depths {
            let (x, at) = (self.time.px(of.at_ns as f64), y.px(of.depth_mean));
            let ink = Ink::of(SeriesStyle::apart(of.slice as usize));
            let triangle = |tip: f64, away: f64| {
                Outline::corners([(x, tip), (x + MARK, tip + away), (x - MARK, tip + away)])
            };
            if of.overloaded > 0 {
                sheet.stroke(Outline::circle(x, at, MARK), Pen::whole(ink, 0.5));
            }
            if of.deeper > 0 {
                sheet.fill(triangle(at - 3.2 * MARK, 1.8 * MARK), ink, None);
            }
            if of.shallower > 0 {
                sheet.fill(triangle(at + 3.2 * MARK, -1.8 * MARK), ink, None);
            }
            if of.moves > moved {
                let square = Outline::rectangle(x - MARK, top, x + MARK, top + 2.0 * MARK);
                sheet.fill(square, Ink::Black, None);
                moved = of.moves;
            }
        }
    }

    /// The axis of time below all strips.
    fn times(&self, sheet: &mut Sheet, bottom: f64) {
        let scale = DisplayScale::suiting(self.shown.ends_ns, Unit::Ns);
        let most = ((self.right - self.left) / (5.0 * self.text)).clamp(2.0, 8.0) as usize;
        for tick in self.time.ticks(scale.one, most) {
            sheet.write(label(tick.value), (tick.px, bottom + 1.2 * self.text), self.text, Anchor::Middle);
        }
        let place = (f64::midpoint(self.left, self.right), bottom + 2.5 * self.text);
        sheet.write(scale.named("time"), place, self.text, Anchor::Middle);
    }
}

/// What the line of a slice is drawn with.
fn pen(slice: u32) -> Pen {
    let look = SeriesStyle::apart(slice as usize);
    Pen { ink: Ink::of(look), width: LINE, dashes: look.dashes() }
}
