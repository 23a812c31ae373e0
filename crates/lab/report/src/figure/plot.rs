//! A figure of curves over the offered rate. Intervals are bars at their points, not bands: a band would hide
//! the knees of curves behind it, and is lost in grey.

use sluice_outcome::study::Unit;

use super::error::FigureError;
use super::layout::{FigureLayout, FigurePage, RIM};
use super::legend::Legend;
use super::sheet::{Anchor, Ink, LINE_HEIGHT, Outline, Pen, Sheet, wrapped};
use super::size::FigureSize;
use super::symbols::{LINE, MARK, mark, rays, shape};
use crate::chart::{Axis, ChartFrame, Curve, Dot, PaperMarks, Style, label};
use crate::series_style::SeriesStyle;
use crate::show::{self, DisplayScale};

/// Widths of lines, in points: of curves that cannot be kept up, of bars, of the frame, of the grid.
const FAINT: f64 = 0.45;
const BAR: f64 = 0.6;
const EDGE: f64 = 0.6;
const GRID: f64 = 0.4;
/// Half of a bar's cap.
const CAP: f64 = 1.5;
/// How far from each other the bars of a few curves stand at one load. Those of many stand closer: a bar
/// never leaves its marker.
const APART: f64 = 1.2;
/// The height of the curves as a share of their width, if no height is given.
const HIGH: f64 = 0.58;
/// The least height for curves, in sizes of the text.
const LEAST_HEIGHT: f64 = 8.0;

/// The curves on a sheet of this size.
pub(super) fn drawn(layout: &FigureLayout<'_>, size: FigureSize) -> Result<Sheet, FigureError> {
    let (text, small) = FigurePage::text_sizes(size.width);
    let inside = size.width - 2.0 * RIM;
    let legend = Legend::of(layout, text, inside);
    let lines = |says: &str| wrapped(says, layout.page.typeface, text, inside);
    let (caption, name) = (lines(&layout.chart.caption()), lines(&layout.chart.across.title()));
    let notes = layout.page.note_lines(small, inside);
    // Above the curves: the legend and the caption; below: the axis' numbers, its name and the notes.
    let above = RIM + legend.height() + (0.7 + caption.len() as f64 * LINE_HEIGHT) * text;
    let below =
        (1.6 + name.len() as f64 * LINE_HEIGHT) * text + notes.len() as f64 * LINE_HEIGHT * small + RIM;
    let high = match size.height {
        Some(height) if height - above - below < LEAST_HEIGHT * text => {
            return Err(layout.page.no_room(size.width, above + below + LEAST_HEIGHT * text));
        }
        Some(height) => height - above - below,
        None => (HIGH * size.width).max(LEAST_HEIGHT * text),
    };
    let height = above + high + below;
    let mut frame = ChartFrame {
        width: size.width,
        height,
        left: RIM,
        right: size.width - RIM - 1.2 * text,
        top: above,
        bottom: above + high,
        mark: MARK,
    };
    let shown = layout.chart.shown();
    let (_, y) = layout.chart.axes(&frame, layout.steps);
    let numbers = y.ticks(shown.one, 7).into_iter().map(|tick| label(tick.value));
    let widest = numbers.map(|number| layout.page.typeface.width(&number, text)).fold(0.0, f64::max);
    frame.left += widest + 0.6 * text;
    let (x, y) = layout.chart.axes(&frame, layout.steps);
    let mut sheet = Sheet::new(size.width, height);
    legend.draw(&mut sheet, RIM, RIM);
    let plot = Plot { layout, frame, x, y, shown, text, caption, name };
    plot.draw(&mut sheet);
    FigurePage::write_notes(&mut sheet, notes, small);
    Ok(sheet)
}

struct Plot<'p> {
    layout: &'p FigureLayout<'p>,
    frame: ChartFrame,
    x: Axis,
    y: Axis,
    shown: DisplayScale,
    text: f64,
    /// What the picture shows, and the name of the horizontal axis, in lines.
    caption: Vec<String>,
    name: Vec<String>,
}

impl Plot<'_> {
    fn draw(&self, sheet: &mut Sheet) {
        self.axes(sheet);
        self.slo(sheet);
        let chart = self.layout.chart;
        chart.curves.iter().for_each(|curve| self.line(sheet, curve));
        let barred = chart.curves.iter().filter(|curve| curve.dots.iter().any(Dot::has_bar));
        let (marked, unmarked): (Vec<&Curve>, Vec<&Curve>) =
            barred.partition(|curve| curve.style != Style::LineOnly);
        for curve in unmarked {
            self.bars(sheet, curve, 0.0);
        }
        for (place, curve) in marked.iter().enumerate() {
            self.bars(sheet, curve, aside(place, marked.len()));
        }
        chart.curves.iter().for_each(|curve| self.marks(sheet, curve));
        chart.paper.iter().for_each(|paper| self.stated(sheet, paper));
    }

    fn axes(&self, sheet: &mut Sheet) {
        let ChartFrame { left, right, top, bottom, .. } = self.frame;
        let most = ((right - left) / (5.0 * self.text)).clamp(2.0, 8.0) as usize;
        let (x_ticks, y_ticks) =
            (self.layout.chart.across.ticks(&self.x, most), self.y.ticks(self.shown.one, 7));
        let mut grid = Outline::default();
        for tick in &y_ticks {
            grid.add_line([(left, tick.px), (right, tick.px)]);
        }
        for (px, _) in &x_ticks {
            grid.add_line([(*px, top), (*px, bottom)]);
        }
        sheet.stroke(grid, Pen::whole(Ink::Grid, GRID));
        let capacity = self.layout.chart.across.capacity_per_s().map(|rate| self.x.px(rate));
        if let Some(x) = capacity.filter(|x| (left..=right).contains(x)) {
            let pen = Pen { ink: Ink::Soft, width: GRID, dashes: vec![1.0, 1.5] };
            sheet.stroke(Outline::line([(x, top), (x, bottom)]), pen);
        }
        let edges = Outline::line([(left, top), (left, bottom), (right, bottom)]);
        sheet.stroke(edges, Pen::whole(Ink::Black, EDGE));
        for tick in y_ticks {
            self.write(
                sheet,
                label(tick.value),
                left - 0.4 * self.text,
                tick.px + 0.35 * self.text,
                Anchor::End,
            );
        }
        for (px, says) in x_ticks {
            self.write_inside(sheet, says, px, bottom + 1.2 * self.text);
        }
        for (place, line) in self.name.iter().enumerate() {
            let y = bottom + (2.5 + place as f64 * LINE_HEIGHT) * self.text;
            self.write_inside(sheet, line.clone(), f64::midpoint(left, right), y);
        }
        for (place, line) in self.caption.iter().rev().enumerate() {
            let y = top - (0.6 + place as f64 * LINE_HEIGHT) * self.text;
            self.write(sheet, line.clone(), RIM, y, Anchor::Start);
        }
    }

    /// Writes a text around a place, but not beyond the right end of the sheet.
    fn write_inside(&self, sheet: &mut Sheet, text: String, x: f64, y: f64) {
        let half = self.layout.page.typeface.width(&text, self.text) / 2.0;
        let middle = x.min(self.frame.width - RIM - half);
        self.write(sheet, text, middle, y, Anchor::Middle);
    }

    fn write(&self, sheet: &mut Sheet, text: String, x: f64, y: f64, anchor: Anchor) {
        sheet.write(text, (x, y), self.text, anchor);
    }

    /// The latency that must be kept.
    fn slo(&self, sheet: &mut Sheet) {
        let Some(slo) = self.layout.chart.slo else { return };
        let ChartFrame { left, right, .. } = self.frame;
        let y = self.y.px(slo);
        let pen = Pen { ink: Ink::Black, width: BAR, dashes: vec![4.0, 2.0] };
        sheet.stroke(Outline::line([(left, y), (right, y)]), pen);
        let says = format!("SLO {}", show::quantity(slo, Unit::Ns));
        let width = self.layout.page.typeface.width(&says, self.text);
        let (x, baseline) = self.free_place(width, y);
        self.write(sheet, says, x, baseline, Anchor::Start);
    }

    /// Where a text of this width stands on or below a level line so that no curve goes through it; at the
    /// left end if there is no such place.
    fn free_place(&self, width: f64, line: f64) -> (f64, f64) {
        let ChartFrame { left, right, bottom, .. } = self.frame;
        let (near, step) = (0.35 * self.text, 0.5 * self.text);
        let rows = [line - near, line + 1.2 * self.text].into_iter().filter(|baseline| *baseline < bottom);
        let first = left + 0.4 * self.text;
        let count = ((right - width - first) / step).max(0.0) as usize;
        let places =
            rows.flat_map(|baseline| (0..=count).map(move |at| (first + at as f64 * step, baseline)));
        let is_free = |(x, baseline): &(f64, f64)| {
            let (from, to) = ((x - near, baseline - self.text), (x + width + near, baseline + near));
            let chart = self.layout.chart;
            let stated = chart.paper.iter().flat_map(|paper| &paper.dots);
            let is_near = |(rate, value): &(f64, f64)| {
                let (x, y, r) = (self.x.px(*rate), self.y.px(*value), 2.0 * self.frame.mark);
                x + r >= from.0 && x - r <= to.0 && y + r >= from.1 && y - r <= to.1
            };
            !chart.curves.iter().any(|curve| self.passes(curve, from, to)) && !stated.into_iter().any(is_near)
        };
        places.into_iter().find(is_free).unwrap_or((first, line - near))
    }

    /// Whether a curve passes through the rectangle between two corners, or one of its points or intervals
    /// lies there.
    fn passes(&self, curve: &Curve, from: (f64, f64), to: (f64, f64)) -> bool {
        let is_inside = |dot: &Dot| {
            let ((x, y), r) = (self.place(dot), self.frame.mark);
            let ends = [dot.of.low, dot.of.high].map(|end| self.y.px(end));
            let (top, bottom) = (ends[1].min(y - r), ends[0].max(y + r));
            x + r >= from.0 && x - r <= to.0 && top <= to.1 && bottom >= from.1
        };
        let crosses = |pair: &[Dot]| {
            let [a, b] = [&pair[0], &pair[1]].map(|dot| self.place(dot));
            let (begins, ends) = (a.0.max(from.0), b.0.min(to.0));
            let at = |x: f64| a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0).max(f64::MIN_POSITIVE);
            let (one, other) = (at(begins), at(ends));
            begins <= ends && one.min(other) <= to.1 && one.max(other) >= from.1
        };
        let has_line = curve.style != Style::Marks;
        curve.dots.iter().any(is_inside) || has_line && curve.dots.windows(2).any(crosses)
    }

    fn place(&self, dot: &Dot) -> (f64, f64) {
        (self.x.px(dot.across), self.y.px(dot.of.value))
    }

    /// A curve's line; thin after the last load that is kept up.
    fn line(&self, sheet: &mut Sheet, curve: &Curve) {
        if curve.style == Style::Marks {
            return;
        }
        let [mut kept, mut lost] = [const { Vec::new() }; 2];
        for pair in curve.dots.windows(2) {
            let part = self.clipped(self.place(&pair[0]), self.place(&pair[1]));
            let lines = if pair[0].holds && pair[1].holds { &mut kept } else { &mut lost };
            lines.extend(part);
        }
        for (parts, width) in [(lost, FAINT), (kept, LINE)] {
            let pen = Pen { ink: Ink::of(curve.look), width, dashes: curve.look.dashes() };
            sheet.stroke(joined(&parts), pen);
        }
    }

    /// The part of a line that lies within the frame, so that no file has lines outside its picture.
    fn clipped(&self, from: (f64, f64), to: (f64, f64)) -> Option<[(f64, f64); 2]> {
        let ChartFrame { left, right, top, bottom, .. } = self.frame;
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (mut enters, mut leaves) = (0.0, 1.0);
        let sides = [(-dx, from.0 - left), (dx, right - from.0), (-dy, from.1 - top), (dy, bottom - from.1)];
        for (step, room) in sides {
            if step == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if step < 0.0 {
                enters = f64::max(enters, room / step);
            } else {
                leaves = f64::min(leaves, room / step);
            }
        }
        let at = |share: f64| (from.0 + share * dx, from.1 + share * dy);
        (enters < leaves).then(|| [at(enters), at(leaves)])
    }

    /// The intervals of the points whose load is kept up, this far right of their points.
    fn bars(&self, sheet: &mut Sheet, curve: &Curve, aside: f64) {
        let ChartFrame { top, bottom, .. } = self.frame;
        let mut outline = Outline::default();
        for dot in curve.dots.iter().filter(|dot| dot.has_bar()) {
            let (x, y) = self.place(dot);
            let x = x + aside;
            let low = self.y.px(dot.of.low).min(bottom);
            let high = if dot.of.open_above { top } else { self.y.px(dot.of.high).max(top) };
            if y < top || y > bottom || low - high < 0.3 {
                continue;
            }
            outline.add_line([(x, low), (x, high)]);
            // An end within the picture has a cap, and one beyond it an arrowhead.
            let is_open = dot.of.open_above || high <= top;
            for (end, back) in
                [(low, if low < bottom { 0.0 } else { -CAP }), (high, if is_open { CAP } else { 0.0 })]
            {
                outline.add_line([(x - CAP, end + back), (x, end), (x + CAP, end + back)]);
            }
        }
        sheet.stroke(outline, Pen::whole(Ink::of(curve.look), BAR));
    }

    /// The points. An arrow stands for a run of points that lie outside the picture: above it, or, as zero
    /// on a logarithmic axis, below it.
    fn marks(&self, sheet: &mut Sheet, curve: &Curve) {
        let ChartFrame { top, bottom, mark: r, .. } = self.frame;
        let mut before = None;
        for dot in &curve.dots {
            let (x, y) = self.place(dot);
            let edge = match y {
                _ if self.y.ends_below(dot.of.value) => Some((top, 1.0)),
                y if y > bottom + 0.1 => Some((bottom, -1.0)),
                _ => None,
            };
            match edge {
                Some((y, down)) if edge != before => {
                    let tip = y + 0.6 * down;
                    let head = [(x - 1.8, tip + 2.4 * down), (x, tip), (x + 1.8, tip + 2.4 * down)];
                    let mut arrow = Outline::line(head);
                    arrow.add_line([(x, tip), (x, tip + 5.9 * down)]);
                    sheet.stroke(arrow, Pen::whole(Ink::of(curve.look), LINE));
                }
                None if curve.style != Style::LineOnly => mark(sheet, curve.look, (x, y), r, dot.holds),
                _ => {}
            }
            before = edge;
        }
    }

    /// Stated numbers: rays within the outline of their series' marker.
    fn stated(&self, sheet: &mut Sheet, paper: &PaperMarks) {
        let ink = Ink::of(paper.look);
        for (rate, value) in paper.dots.iter().filter(|(_, value)| !self.y.ends_below(*value)) {
            let (x, y) = (self.x.px(*rate), self.y.px(*value));
            rays(sheet, x, y, 1.45 * self.frame.mark, ink);
            if paper.look != SeriesStyle::NEUTRAL {
                sheet.stroke(shape(paper.look, (x, y), 1.9 * self.frame.mark), Pen::whole(ink, 0.5));
            }
        }
    }
}

/// How far right of its points a curve's bars stand, so that those of other curves can be told from them.
fn aside(place: usize, curves: usize) -> f64 {
    let between = (curves - 1) as f64;
    let step = APART.min(2.0 * MARK / between.max(1.0));
    (place as f64 - between / 2.0) * step
}

/// Parts of a curve as one outline, so that dashes go on over its points.
fn joined(parts: &[[(f64, f64); 2]]) -> Outline {
    let mut outline = Outline::default();
    let mut last = None;
    for [from, to] in parts {
        if last == Some(*from) {
            outline.continue_to(*to);
        } else {
            outline.add_line([*from, *to]);
        }
        last = Some(*to);
    }
    outline
}
