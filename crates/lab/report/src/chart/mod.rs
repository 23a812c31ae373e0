//! One picture: curves over the offered rate, each with its 95 % band, and the paper's numbers beside them.
//!
//! Colours and text sizes come from the page's style sheet, so one picture serves light and dark mode,
//! phone and print.

mod across;
mod axis;
mod bars;
mod marks;
mod running;

use std::fmt::Write;

use sluice_outcome::study::{Estimate, Unit};

use super::html::{Html, Tag, tag};
use super::series_style::SeriesStyle;
use super::show::{self, DisplayScale};
pub(crate) use across::{Across, PERCENTILES};
pub(crate) use axis::{Axis, Steps, label};
pub(crate) use bars::BarRow;
pub(crate) use marks::{Px, Swatch, corners, swatch};
pub use running::{RunningChart, RunningLine};

/// A picture.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The name by which a figure of it is asked for, unique in its panel.
    pub(crate) name: String,
    /// The label of the vertical axis.
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) curves: Vec<Curve>,
    /// The paper's numbers, or our own for comparison.
    pub(crate) paper: Vec<PaperMarks>,
    /// A latency that must be kept, drawn as a line.
    pub(crate) slo: Option<f64>,
    /// What the horizontal axis is.
    pub(crate) across: Across,
    /// The picture's size on the page.
    pub(crate) size: Size,
}

/// How large a picture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// A picture as wide as the page, with a second axis and a text for each point.
    Main,
    /// A small picture, one of several side by side.
    Small,
}

/// A series in a picture.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) label: String,
    /// The curve's colour, dash and marker.
    pub(crate) look: SeriesStyle,
    /// The way in which the curve is drawn.
    pub(crate) style: Style,
    /// The points, by rising rate.
    pub(crate) dots: Vec<Dot>,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A line with a band and markers.
    Line,
    /// A line with a band: a prediction beside measurements.
    LineOnly,
    /// Markers with intervals: measurements beside a prediction.
    Marks,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dot {
    /// The place on the horizontal axis, such as tasks offered per second.
    pub(crate) across: f64,
    pub(crate) of: Estimate,
    /// Whether the load is sustainable.
    pub(crate) holds: bool,
}

impl Dot {
    /// Whether its interval means something: where a backlog grows, it says only how long the run was.
    pub(crate) fn has_bar(&self) -> bool {
        self.holds && self.of.has_interval()
    }
}

/// Stated numbers in a picture.
#[derive(Clone, Debug)]
pub(crate) struct PaperMarks {
    /// The name and the source of the numbers.
    pub(crate) label: String,
    /// Where they are stated.
    pub(crate) place: String,
    /// The place of the corresponding series among the curves.
    pub(crate) series: Option<usize>,
    /// Its look.
    pub(crate) look: SeriesStyle,
    /// Rates and values.
    pub(crate) dots: Vec<(f64, f64)>,
}

/// A linear axis ends at this many times the smallest value, or above a limit, so that one collapsed policy
/// does not flatten the others.
const LINEAR_TIMES_MAX: f64 = 8.0;
/// About the width of a letter.
const LETTER: f64 = 6.0;

/// A picture while it is being drawn.
struct Drawing<'c> {
    chart: &'c Chart,
    frame: ChartFrame,
    x: Axis,
    y: Axis,
    shown: DisplayScale,
}

/// The picture's size and the edges of its inner part.
pub(crate) struct ChartFrame {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// About the radius of a marker.
    pub(crate) mark: f64,
}

impl Chart {
    /// The caption: what the picture shows, and the unit.
    pub(crate) fn caption(&self) -> String {
        self.shown().named(&self.title)
    }

    /// Where its numbers are stated, each place once.
    pub(crate) fn places(&self) -> Vec<&str> {
        places(&self.paper)
    }

    /// Whether there is a value other than zero to show.
    pub(crate) fn shows_anything(&self) -> bool {
        self.dots().any(|dot| dot.of.value != 0.0)
    }

    /// Draws the picture: as bars if it has a single rate, otherwise as curves. Times and slowdowns are
    /// drawn in both scales, of which the style sheet shows one.
    pub(crate) fn draw(&self, html: &mut Html) {
        if let Some(rate_per_s) = self.one_rate() {
            self.draw_bars(html, rate_per_s);
        } else if self.usual_steps() == Steps::Logarithmic {
            for (class, steps) in [("log", Steps::Logarithmic), ("linear", Steps::Linear)] {
                html.element(tag("div").with("class", class), |html| self.draw_curves(html, steps));
            }
        } else {
            self.draw_curves(html, Steps::Linear);
        }
    }

    /// The axis that suits the numbers: logarithmic for times and slowdowns.
    pub(crate) const fn usual_steps(&self) -> Steps {
        match self.unit {
            Unit::Ns | Unit::Ratio => Steps::Logarithmic,
            Unit::PerS | Unit::Share | Unit::Count => Steps::Linear,
        }
    }

    /// Whether a value lies above the picture, or, as zero on a logarithmic axis, below it.
    pub(crate) fn leaves_it(&self, steps: Steps) -> bool {
        let (_, y) = self.axes(&self.size.frame(), steps);
        let is_outside = |value: f64| y.ends_below(value) || (steps == Steps::Logarithmic && value <= 0.0);
        self.dots().any(|dot| is_outside(dot.of.value))
    }

    /// The picture in words.
    pub(crate) fn said(&self, steps: Steps) -> String {
        if let Some(rate_per_s) = self.one_rate() {
            return format!("{} at {}, as bars. {}", self.caption(), show::rate(rate_per_s), self.in_words());
        }
        let scale = if steps == Steps::Linear { "linear" } else { "logarithmic" };
        format!("{} over {}, {scale} axis. {}", self.caption(), self.across.name(), self.in_words())
    }

    fn draw_curves(&self, html: &mut Html, steps: Steps) {
        let (frame, shown) = (self.size.frame(), self.shown());
        let (x, y) = self.axes(&frame, steps);
        let drawing = Drawing { chart: self, frame, x, y, shown };
        let size = format!("0 0 {} {}", Px(drawing.frame.width), Px(drawing.frame.height));
        let svg = tag("svg").with("class", self.size.class()).with("viewBox", size).with("role", "img");
        let svg = svg.with("aria-label", self.said(steps));
        let svg = match (self.size, self.across) {
            (Size::Main, Across::Rate { capacity_per_s }) => {
                let rates = DisplayScale::suiting(capacity_per_s, Unit::PerS);
                svg.with("data-x", drawing.x.told(rates.one)).with("data-y", drawing.y.told(shown.one))
            }
            _ => svg,
        };
        html.element(svg, |html| drawing.all(html));
        html.line();
    }

    pub(crate) fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.curves.iter().flat_map(|curve| &curve.dots)
    }

    pub(crate) fn shown(&self) -> DisplayScale {
        let least = self.dots().map(|dot| dot.of.value).filter(|value| *value > 0.0).reduce(f64::min);
        DisplayScale::suiting(least.unwrap_or(1.0), self.unit)
    }

    /// The axes that show all rates, and all values that can be kept up.
    pub(crate) fn axes(&self, frame: &ChartFrame, steps: Steps) -> (Axis, Axis) {
        let papers = || self.paper.iter().flat_map(|paper| &paper.dots);
        let rates = self.dots().map(|dot| dot.across).chain(papers().map(|(rate, _)| *rate));
        let (first, last) = extent(rates).unwrap_or((0.0, 1.0));
        let room = if last > first { 0.04 * (last - first) } else { 0.2 * last };
        let x = match self.across {
            Across::Rate { .. } => {
                Axis::new(Steps::Linear, (first - room).max(0.0), last + room, frame.left, frame.right)
            }
            Across::Percentile => {
                Axis::new(Steps::Logarithmic, first / 1.15, last * 1.15, frame.left, frame.right)
            }
        };

        let kept = self
            .dots()
            .filter(|dot| dot.holds)
            .flat_map(|dot| [dot.of.value, if dot.of.open_above { dot.of.value } else { dot.of.high }]);
        let values = kept.chain(papers().map(|(_, value)| *value)).filter(|value| *value > 0.0);
        let any = || extent(self.dots().map(|dot| dot.of.value).filter(|value| *value > 0.0));
        let (least, most) = extent(values).or_else(any).unwrap_or((1.0, 1.0));
        let lost = self.dots().any(|dot| !dot.holds);
        // The limit is shown whatever it is, and does not decide where a linear axis ends below it.
        let slo = self.slo;
        let (low, high) = match (steps, self.unit) {
            (Steps::Logarithmic, _) => {
                let (least, most) = (least.min(slo.unwrap_or(least)), most.max(slo.unwrap_or(most)));
                (least / 1.2, most * if lost { 2.0 } else { 1.3 })
            }
            (Steps::Linear, Unit::Ns | Unit::Ratio) => {
                let end = most.min(LINEAR_TIMES_MAX * least).max(slo.unwrap_or(0.0));
                (0.0, 1.06 * end)
            }
            (Steps::Linear, _) => (0.0, 1.06 * most),
        };
        (x, Axis::new(steps, low, high, frame.bottom, frame.top))
    }

    /// A description for readers who cannot see the picture.
    fn in_words(&self) -> String {
        let curves = self.curves.iter().filter_map(|curve| {
            let (first, last) = (curve.dots.first()?, curve.dots.iter().rfind(|dot| dot.holds));
            let at = |dot: &Dot| {
                format!("{} at {}", show::quantity(dot.of.value, self.unit), self.across.place(dot.across))
            };
            Some(match last {
                None => format!("{}: sustains none of its loads.", curve.label),
                Some(last) if last.across > first.across => {
                    let highest =
                        if self.across == Across::Percentile { "" } else { ", the highest sustained" };
                    format!("{}: from {} to {}{highest}.", curve.label, at(first), at(last))
                }
                Some(last) => format!("{}: {}.", curve.label, at(last)),
            })
        });
        curves.collect::<Vec<_>>().join(" ")
    }
}

impl Size {
    const fn class(self) -> &'static str {
        match self {
            Self::Main => "chart main",
            Self::Small => "chart",
        }
    }

    const fn frame(self) -> ChartFrame {
        match self {
            Self::Main => ChartFrame {
                width: 480.0,
                height: 330.0,
                left: 54.0,
                right: 470.0,
                top: 34.0,
                bottom: 288.0,
                mark: 3.6,
            },
            Self::Small => ChartFrame {
                width: 300.0,
                height: 200.0,
                left: 44.0,
                right: 294.0,
                top: 8.0,
                bottom: 162.0,
                mark: 2.7,
            },
        }
    }
}

impl Drawing<'_> {
    fn all(&self, html: &mut Html) {
        self.grid(html);
        let ChartFrame { left, right, top, bottom, .. } = self.frame;
        let (width, height) = (Px(right - left), Px(bottom - top));
        // A nested SVG clips what leaves the frame.
        let inner =
            tag("svg").with("x", Px(left)).with("y", Px(top)).with("width", width).with("height", height);
        let view = format!("{} {} {width} {height}", Px(left), Px(top));
        html.element(inner.with("viewBox", view), |html| {
            self.limits(html);
            self.each(html, |html, curve| self.band(html, curve));
            self.each(html, |html, curve| {
                self.line(html, curve);
                self.bars(html, curve);
            });
            for paper in &self.chart.paper {
                html.element(group(paper.series), |html| self.paper_line(html, paper));
            }
        });
        self.slo_says(html);
        self.each(html, |html, curve| self.marks(html, curve));
        let mut taken = Vec::new();
        for paper in &self.chart.paper {
            html.element(group(paper.series), |html| self.paper_marks(html, paper, &mut taken));
        }
    }

    /// Draws something of each curve, in a group that a reader may hide.
    fn each(&self, html: &mut Html, draw: impl Fn(&mut Html, &Curve)) {
        for (place, curve) in self.chart.curves.iter().enumerate() {
            html.element(group(Some(place)), |html| draw(html, curve));
        }
    }

    /// The capacity, and the latency that must be kept.
    fn limits(&self, html: &mut Html) {
        let ChartFrame { left, right, top, bottom, .. } = self.frame;
        let capacity = self.chart.across.capacity_per_s().map(|rate| self.x.px(rate));
        if let Some(x) = capacity.filter(|x| self.chart.size == Size::Main && (left..=right).contains(x)) {
            let line = format!("M{} {}V{}", Px(x), Px(top), Px(bottom));
            html.lone(tag("path").with("class", "capacity").with("d", line));
        }
        if let Some(slo) = self.chart.slo {
            let line = format!("M{} {}H{}", Px(left), Px(self.y.px(slo)), Px(right));
            html.lone(tag("path").with("class", "slo").with("d", line));
        }
    }

    fn slo_says(&self, html: &mut Html) {
        if let Some(slo) = self.chart.slo {
            let says = format!("SLO {}", show::quantity(slo, self.chart.unit));
            tick(html, "start", self.frame.left + 4.0, self.y.px(slo) - 3.0, says);
        }
    }

    fn grid(&self, html: &mut Html) {
        let ChartFrame { left, right, top, bottom, width, height, .. } = self.frame;
        let y_ticks = self.y.ticks(self.shown.one, 7);
        let x_ticks = self.chart.across.ticks(&self.x, 5);
        let mut lines = String::new();
        for tick in &y_ticks {
            // Writing to a string cannot fail.
            let _ = write!(lines, "M{} {}H{}", Px(left), Px(tick.px), Px(right));
        }
        for (px, _) in &x_ticks {
            let _ = write!(lines, "M{} {}V{}", Px(*px), Px(top), Px(bottom));
        }
        html.lone(tag("path").with("class", "grid").with("d", lines));
        let edges = format!("M{} {}V{}H{}", Px(left), Px(top), Px(bottom), Px(right));
        html.lone(tag("path").with("class", "edge").with("d", edges));
        for of in y_ticks {
            tick(html, "end", left - 5.0, of.px + 3.5, label(of.value));
        }
        for (px, says) in x_ticks {
            // A name at the right end must not leave the picture.
            let middle = px.min(width - LETTER / 2.0 * says.chars().count() as f64);
            tick(html, "middle", middle, bottom + 14.0, says);
        }
        let middle = f64::midpoint(left, right);
        text(html, "middle", middle, height - 6.0, self.chart.across.title());
        if self.chart.size == Size::Main {
            text(html, "start", 2.0, 11.0, self.chart.caption());
            if let Some(capacity_per_s) = self.chart.across.capacity_per_s() {
                tick(html, "end", width - 2.0, 11.0, "load, %");
                self.loads(html, capacity_per_s);
            }
        }
    }

    /// The second horizontal axis: the load in per cent of the capacity.
    fn loads(&self, html: &mut Html, capacity_per_s: f64) {
        let top = self.frame.top;
        for of in self.x.ticks(capacity_per_s / 100.0, 6) {
            let mark = format!("M{} {}v-4", Px(of.px), Px(top));
            html.lone(tag("path").with("class", "edge tick").with("d", mark));
            tick(html, "middle", of.px, top - 7.0, label(of.value));
        }
    }

    fn place(&self, dot: &Dot) -> (f64, f64) {
        (self.x.px(dot.across), self.y.px(dot.of.value))
    }

    /// The intervals of the loads that are kept up. A band goes no higher than what was seen: one up to the
    /// picture's edge would hide the knees of other curves.
    fn band(&self, html: &mut Html, curve: &Curve) {
        if curve.style == Style::Marks {
            return;
        }
        let at = |dot: &Dot, y| format!("{} {}", Px(self.x.px(dot.across)), Px(y));
        let seen = |dot: &Dot| self.y.px(dot.of.high.max(dot.of.value)).max(self.frame.top);
        for kept in curve.dots.split(|dot| !dot.holds).filter(|kept| kept.len() > 1) {
            let upper = kept.iter().map(|dot| at(dot, seen(dot)));
            let lower = kept.iter().rev().map(|dot| at(dot, self.bottom_of(dot)));
            let outline: Vec<String> = upper.chain(lower).collect();
            let class = format!("band {}", curve.look.class());
            html.lone(tag("path").with("class", class).with("d", format_args!("M{}z", outline.join("L"))));
        }
    }

    /// The upper end of a dot's interval; the picture's edge if it is unbounded.
    fn top_of(&self, dot: &Dot) -> f64 {
        if dot.of.open_above { self.frame.top } else { self.y.px(dot.of.high).max(self.frame.top) }
    }

    /// The lower end of a dot's interval; the picture's edge if it is below the axis.
    fn bottom_of(&self, dot: &Dot) -> f64 {
        self.y.px(dot.of.low).min(self.frame.bottom)
    }

    /// A dot's interval as a bar, with caps at ends that are inside the picture.
    fn bar(&self, x: f64, dot: &Dot) -> String {
        let (low, high) = (self.bottom_of(dot), self.top_of(dot));
        let mut bar = format!("M{} {}V{}", Px(x), Px(low), Px(high));
        for (end, is_shown) in [(low, low < self.frame.bottom), (high, !dot.of.open_above)] {
            if is_shown {
                let _ = write!(bar, "M{} {}h6", Px(x - 3.0), Px(end));
            }
        }
        bar
    }

    /// The line; faint after the last sustainable load.
    fn line(&self, html: &mut Html, curve: &Curve) {
        if curve.style == Style::Marks {
            return;
        }
        let [mut kept, mut lost] = [const { String::new() }; 2];
        let mut last_kept = None;
        for pair in curve.dots.windows(2) {
            let ((x, y), (next_x, next_y)) = (self.place(&pair[0]), self.place(&pair[1]));
            if pair[0].holds && pair[1].holds {
                if last_kept != Some(pair[0].across) {
                    let _ = write!(kept, "M{} {}", Px(x), Px(y));
                }
                let _ = write!(kept, "L{} {}", Px(next_x), Px(next_y));
                last_kept = Some(pair[1].across);
            } else {
                let _ = write!(lost, "M{} {}L{} {}", Px(x), Px(y), Px(next_x), Px(next_y));
            }
        }
        let colour = curve.look.class();
        for (path, class) in [(kept, "line"), (lost, "line faint")] {
            if !path.is_empty() {
                let line = tag("path").with("class", format_args!("{class} {colour}")).with("d", path);
                html.lone(curve.look.dashed(line));
            }
        }
    }

    /// The intervals of markers that have no line or no other point.
    fn bars(&self, html: &mut Html, curve: &Curve) {
        if curve.style != Style::Marks && curve.dots.len() != 1 {
            return;
        }
        for dot in curve.dots.iter().filter(|dot| dot.of.has_interval() && !self.y.ends_below(dot.of.value)) {
            let bar = tag("path").with("class", format_args!("bar {}", curve.look.class()));
            html.lone(bar.with("d", self.bar(self.x.px(dot.across), dot)));
        }
    }

    fn marks(&self, html: &mut Html, curve: &Curve) {
        let colour = curve.look.class();
        let mut left_above = false;
        for dot in &curve.dots {
            let (x, y) = self.place(dot);
            let above = self.y.ends_below(dot.of.value);
            // A single arrow shows where the curve leaves the picture; more would hide those of other
            // curves.
            let repeats = above && left_above;
            left_above = above;
            if repeats || (curve.style == Style::LineOnly && !above) {
                continue;
            }
            let outline = if above {
                let top = self.frame.top;
                format!("M{} {}l4 6h-8zm0 6v6", Px(x), Px(top + 2.0))
            } else {
                marks::outline(curve.look.marker, x, y, self.frame.mark)
            };
            let hollow = if dot.holds { "" } else { " hollow" };
            let mark = tag("path").with("class", format_args!("mark{hollow} {colour}")).with("d", outline);
            let mark = self.zoomable(mark, x, if above { self.frame.top } else { y });
            html.element(mark, |html| {
                if self.chart.size == Size::Main {
                    html.leaf("title", self.in_words(curve, dot));
                }
            });
        }
    }

    /// Tells where a mark is, for pictures that can be zoomed into.
    fn zoomable(&self, mark: Tag, x: f64, y: f64) -> Tag {
        if self.chart.size == Size::Main {
            mark.with("data-at", format_args!("{} {}", Px(x), Px(y)))
        } else {
            mark
        }
    }

    fn in_words(&self, curve: &Curve, dot: &Dot) -> String {
        let load = self.chart.across.capacity_per_s().map_or_else(String::new, |capacity_per_s| {
            format!(" ({})", show::quantity(dot.across / capacity_per_s, Unit::Share))
        });
        let value = show::estimate(&dot.of, self.chart.unit);
        let lost = if dot.holds { "" } else { ", not sustained" };
        format!("{} at {}{load}: {value}{lost}", curve.label, self.chart.across.place(dot.across))
    }

    fn paper_line(&self, html: &mut Html, paper: &PaperMarks) {
        if paper.dots.len() > 1 {
            let points: Vec<String> = paper
                .dots
                .iter()
                .map(|(rate, value)| format!("{} {}", Px(self.x.px(*rate)), Px(self.y.px(*value))))
                .collect();
            let line = tag("path").with("class", format_args!("paper {}", paper.look.class()));
            html.lone(line.with("d", format_args!("M{}", points.join("L"))));
        }
    }

    /// Draws the paper's marks; a mark that would hide another one is shifted.
    fn paper_marks(&self, html: &mut Html, paper: &PaperMarks, taken: &mut Vec<(f64, f64)>) {
        let size = self.frame.mark * 1.7;
        for (rate, value) in paper.dots.iter().filter(|(_, value)| !self.y.ends_below(*value)) {
            let (mut x, y) = (self.x.px(*rate), self.y.px(*value));
            while taken.iter().any(|(other_x, other_y)| (other_x - x).abs().max((other_y - y).abs()) < size) {
                x -= 2.0 * size;
            }
            taken.push((x, y));
            let rays = marks::rays(x, y, size);
            html.lone(self.zoomable(tag("path").with("class", "halo").with("d", &rays), x, y));
            let mark = tag("path").with("class", format_args!("rays {}", paper.look.class())).with("d", rays);
            let mark = self.zoomable(mark, x, y);
            html.element(mark, |html| {
                let value = show::quantity(*value, self.chart.unit);
                html.leaf("title", format_args!("{}: {value} at {}", paper.label, show::rate(*rate)));
            });
        }
    }
}

/// Where numbers are stated, each place once.
pub(crate) fn places<'p>(marks: impl IntoIterator<Item = &'p PaperMarks>) -> Vec<&'p str> {
    let mut places: Vec<&str> = Vec::new();
    for PaperMarks { place, .. } in marks {
        if !places.contains(&place.as_str()) {
            places.push(place);
        }
    }
    places
}

fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |extent, value| {
        Some(extent.map_or((value, value), |(low, high): (f64, f64)| (low.min(value), high.max(value))))
    })
}

/// The group of what belongs to a series, which a reader may hide.
fn group(series: Option<usize>) -> Tag {
    series.map_or_else(|| tag("g"), |place| tag("g").with("class", format_args!("s{place}")))
}

/// A text that is true of the whole picture only, not of a part that is zoomed into.
fn tick(html: &mut Html, anchor: &str, x: f64, y: f64, text: impl std::fmt::Display) {
    let place = tag("text").with("class", "tick").with("text-anchor", anchor);
    html.leaf(place.with("x", Px(x)).with("y", Px(y)), text);
}

fn text(html: &mut Html, anchor: &str, x: f64, y: f64, text: impl std::fmt::Display) {
    html.leaf(tag("text").with("text-anchor", anchor).with("x", Px(x)).with("y", Px(y)), text);
}

#[cfg(test)]
mod tests {
    use sluice_outcome::study::Method;

    use super::*;

    /// A small chart of one series.
    fn chart(unit: Unit, dots: Vec<Dot>) -> Chart {
        let curve = Curve { label: "a".to_owned(), look: SeriesStyle::NEUTRAL, style: Style::Marks, dots };
        Chart {
            name: "pauses".to_owned(),
            title: "pauses".to_owned(),
            unit,
            curves: vec![curve],
            paper: Vec::new(),
            slo: None,
            across: Across::Rate { capacity_per_s: 1.0 },
            size: Size::Small,
        }
    }

    #[test]
    fn an_interval_that_reaches_below_the_picture_ends_with_it() {
        let dot =
            Dot { across: 1.0, of: Estimate::between(10.0, 0.01, 12.0, Method::Replications), holds: true };
        let chart = chart(Unit::Ratio, vec![dot]);
        let (frame, shown) = (chart.size.frame(), chart.shown());
        let (x, y) = chart.axes(&frame, Steps::Logarithmic);
        assert!(y.px(dot.of.low) > frame.bottom, "or there is nothing to cut");
        let drawing = Drawing { chart: &chart, frame, x, y, shown };
        let bottom = drawing.frame.bottom;
        assert!((drawing.bottom_of(&dot) - bottom).abs() < 1e-3);
        let bar = drawing.bar(5.0, &dot);
        assert!(bar.starts_with(&format!("M5 {}V", Px(bottom))), "{bar}");
        assert_eq!(bar.matches("h6").count(), 1, "no cap where it is cut: {bar}");
    }

    #[test]
    fn a_limit_is_in_the_picture_and_hides_no_point_that_is_there_without_it() {
        let dot = |across, value, holds| Dot { across, of: Estimate::exact(value), holds };
        let kept = chart(Unit::Ns, vec![dot(1.0, 10e3, true), dot(2.0, 60e3, true)]);
        let lost = chart(Unit::Ns, vec![dot(1.0, 10e3, false), dot(2.0, 60e3, false)]);
        for (chart, steps) in [&kept, &lost]
            .into_iter()
            .flat_map(|chart| [Steps::Linear, Steps::Logarithmic].map(|steps| (chart, steps)))
        {
            for slo in [1e3, 30e3, 1e6] {
                let chart = Chart { slo: Some(slo), ..chart.clone() };
                let frame = chart.size.frame();
                let (_, y) = chart.axes(&frame, steps);
                for value in [slo, 10e3, 60e3] {
                    let px = y.px(value);
                    assert!((frame.top..=frame.bottom).contains(&px), "{value} with {slo}, {steps:?}: {px}");
                }
            }
        }
    }
}
