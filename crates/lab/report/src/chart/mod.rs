//! One picture: curves over the offered rate, each with its 95 % band, and the paper's numbers beside them.
//!
//! Colours and text sizes come from the page's style sheet, so one picture serves light and dark mode,
//! phone and print.

mod axis;
mod bars;
mod marks;
mod running;

use std::fmt::Write;

use sluice_outcome::study::{Estimate, Unit};

use super::html::{Html, tag};
use super::series_style::SeriesStyle;
use super::show::{self, DisplayScale};
use axis::Axis;

use axis::Steps;
pub(crate) use marks::{Px, Swatch, swatch};
pub use running::{RunningChart, RunningLine};

/// A picture.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The label of the vertical axis.
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) curves: Vec<Curve>,
    /// The paper's numbers, or our own for comparison.
    pub(crate) paper: Vec<PaperMarks>,
    /// The rate at which all workers would be busy all the time.
    pub(crate) capacity_per_s: f64,
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
    /// Tasks offered per second.
    pub(crate) rate_per_s: f64,
    pub(crate) of: Estimate,
    /// Whether the load is sustainable.
    pub(crate) holds: bool,
}

/// Stated numbers in a picture.
#[derive(Clone, Debug)]
pub(crate) struct PaperMarks {
    /// The name and the source of the numbers.
    pub(crate) label: String,
    /// The look of the corresponding series.
    pub(crate) look: SeriesStyle,
    /// Rates and values.
    pub(crate) dots: Vec<(f64, f64)>,
}

/// A linear axis ends at this many times the smallest value, so that one collapsed policy does not flatten
/// the others.
const LINEAR_TIMES_MAX: f64 = 8.0;

/// A picture while it is being drawn.
struct Drawing<'c> {
    chart: &'c Chart,
    frame: Frame,
    x: Axis,
    y: Axis,
    shown: DisplayScale,
}

/// The picture's size and the edges of its inner part.
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    mark: f64,
}

impl Chart {
    /// The caption: what the picture shows, and the unit.
    pub(crate) fn caption(&self) -> String {
        match self.shown().name {
            "" => self.title.clone(),
            name => format!("{}, {name}", self.title),
        }
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
        } else if matches!(self.unit, Unit::Ns | Unit::Ratio) {
            for (class, steps) in [("log", Steps::Logarithmic), ("linear", Steps::Linear)] {
                html.element(tag("div").with("class", class), |html| self.draw_curves(html, steps));
            }
        } else {
            self.draw_curves(html, Steps::Linear);
        }
    }

    fn draw_curves(&self, html: &mut Html, steps: Steps) {
        let (frame, shown) = (self.size.frame(), self.shown());
        let (x, y) = self.axes(&frame, steps);
        let drawing = Drawing { chart: self, frame, x, y, shown };
        let size = format!("0 0 {} {}", Px(drawing.frame.width), Px(drawing.frame.height));
        let svg = tag("svg").with("class", self.size.class()).with("viewBox", size).with("role", "img");
        let scale = if steps == Steps::Linear { "linear" } else { "logarithmic" };
        let name = format!("{} over offered rate, {scale} axis. {}", self.caption(), self.in_words());
        html.element(svg.with("aria-label", name), |html| drawing.all(html));
        html.line();
    }

    fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.curves.iter().flat_map(|curve| &curve.dots)
    }

    fn shown(&self) -> DisplayScale {
        let least = self.dots().map(|dot| dot.of.value).filter(|value| *value > 0.0).reduce(f64::min);
        DisplayScale::suiting(least.unwrap_or(1.0), self.unit)
    }

    fn axes(&self, frame: &Frame, steps: Steps) -> (Axis, Axis) {
        let papers = || self.paper.iter().flat_map(|paper| &paper.dots);
        let rates = self.dots().map(|dot| dot.rate_per_s).chain(papers().map(|(rate, _)| *rate));
        let (first, last) = extent(rates).unwrap_or((0.0, 1.0));
        let room = if last > first { 0.04 * (last - first) } else { 0.2 * last };
        let x = Axis::new(Steps::Linear, (first - room).max(0.0), last + room, frame.left, frame.right);

        let kept = self
            .dots()
            .filter(|dot| dot.holds)
            .flat_map(|dot| [dot.of.value, if dot.of.open_above { dot.of.value } else { dot.of.high }]);
        let values = kept.chain(papers().map(|(_, value)| *value)).filter(|value| *value > 0.0);
        let any = || extent(self.dots().map(|dot| dot.of.value).filter(|value| *value > 0.0));
        let (least, most) = extent(values).or_else(any).unwrap_or((1.0, 1.0));
        let lost = self.dots().any(|dot| !dot.holds);
        let (low, high) = match (steps, self.unit) {
            (Steps::Logarithmic, _) => (least / 1.2, most * if lost { 2.0 } else { 1.3 }),
            (Steps::Linear, Unit::Ns | Unit::Ratio) => (0.0, 1.06 * most.min(LINEAR_TIMES_MAX * least)),
            (Steps::Linear, _) => (0.0, 1.06 * most),
        };
        (x, Axis::new(steps, low, high, frame.bottom, frame.top))
    }

    /// A description for readers who cannot see the picture.
    fn in_words(&self) -> String {
        let curves = self.curves.iter().filter_map(|curve| {
            let (first, last) = (curve.dots.first()?, curve.dots.iter().rfind(|dot| dot.holds));
            let at = |dot: &Dot| {
                format!("{} at {}", show::quantity(dot.of.value, self.unit), show::rate(dot.rate_per_s))
            };
            Some(match last {
                None => format!("{}: sustains none of its loads.", curve.label),
                Some(last) if last.rate_per_s > first.rate_per_s => {
                    format!("{}: from {} to {}, the highest sustained.", curve.label, at(first), at(last))
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

    const fn frame(self) -> Frame {
        match self {
            Self::Main => Frame {
                width: 480.0,
                height: 330.0,
                left: 54.0,
                right: 470.0,
                top: 34.0,
                bottom: 288.0,
                mark: 3.6,
            },
            Self::Small => Frame {
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
        let Frame { left, right, top, bottom, .. } = self.frame;
        let (width, height) = (Px(right - left), Px(bottom - top));
        // A nested SVG clips what leaves the frame.
        let inner =
            tag("svg").with("x", Px(left)).with("y", Px(top)).with("width", width).with("height", height);
        let view = format!("{} {} {width} {height}", Px(left), Px(top));
        html.element(inner.with("viewBox", view), |html| {
            self.chart.curves.iter().for_each(|curve| self.band(html, curve));
            self.chart.curves.iter().for_each(|curve| self.line(html, curve));
            self.chart.paper.iter().for_each(|paper| self.paper_line(html, paper));
        });
        self.chart.curves.iter().for_each(|curve| self.marks(html, curve));
        let mut taken = Vec::new();
        self.chart.paper.iter().for_each(|paper| self.paper_marks(html, paper, &mut taken));
    }

    fn grid(&self, html: &mut Html) {
        let Frame { left, right, top, bottom, width, height, .. } = self.frame;
        let rates = DisplayScale::suiting(self.chart.capacity_per_s, Unit::PerS);
        let y_ticks = self.y.ticks(self.shown.one, 7);
        let x_ticks = self.x.ticks(rates.one, 5);
        let mut lines = String::new();
        for tick in &y_ticks {
            // Writing to a string cannot fail.
            let _ = write!(lines, "M{} {}H{}", Px(left), Px(tick.px), Px(right));
        }
        for tick in &x_ticks {
            let _ = write!(lines, "M{} {}V{}", Px(tick.px), Px(top), Px(bottom));
        }
        html.lone(tag("path").with("class", "grid").with("d", lines));
        let edges = format!("M{} {}V{}H{}", Px(left), Px(top), Px(bottom), Px(right));
        html.lone(tag("path").with("class", "edge").with("d", edges));
        for tick in y_ticks {
            text(html, "end", left - 5.0, tick.px + 3.5, label(tick.value));
        }
        for tick in x_ticks {
            text(html, "middle", tick.px, bottom + 14.0, label(tick.value));
        }
        let middle = f64::midpoint(left, right);
        text(html, "middle", middle, height - 6.0, format_args!("offered rate, {}", rates.name));
        if self.chart.size == Size::Main {
            text(html, "start", 2.0, 11.0, self.chart.caption());
            text(html, "end", width - 2.0, 11.0, "load, %");
            self.loads(html);
        }
    }

    /// The second horizontal axis: the load in per cent of the capacity.
    fn loads(&self, html: &mut Html) {
        let Frame { top, bottom, .. } = self.frame;
        for tick in self.x.ticks(self.chart.capacity_per_s / 100.0, 6) {
            html.lone(
                tag("path").with("class", "edge").with("d", format_args!("M{} {}v-4", Px(tick.px), Px(top))),
            );
            text(html, "middle", tick.px, top - 7.0, label(tick.value));
            if (tick.value - 100.0).abs() < 1e-6 {
                let line = format!("M{} {}V{}", Px(tick.px), Px(top), Px(bottom));
                html.lone(tag("path").with("class", "capacity").with("d", line));
            }
        }
    }

    fn place(&self, dot: &Dot) -> (f64, f64) {
        (self.x.px(dot.rate_per_s), self.y.px(dot.of.value))
    }

    fn band(&self, html: &mut Html, curve: &Curve) {
        if curve.style == Style::Marks || curve.dots.len() < 2 {
            return;
        }
        let at = |dot: &Dot, y| format!("{} {}", Px(self.x.px(dot.rate_per_s)), Px(y));
        let upper = curve.dots.iter().map(|dot| at(dot, self.top_of(dot)));
        let lower = curve.dots.iter().rev().map(|dot| at(dot, self.bottom_of(dot)));
        let outline: Vec<String> = upper.chain(lower).collect();
        let class = format!("band {}", curve.look.class());
        html.lone(tag("path").with("class", class).with("d", format_args!("M{}z", outline.join("L"))));
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
                if last_kept != Some(pair[0].rate_per_s) {
                    let _ = write!(kept, "M{} {}", Px(x), Px(y));
                }
                let _ = write!(kept, "L{} {}", Px(next_x), Px(next_y));
                last_kept = Some(pair[1].rate_per_s);
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
            if !above && dot.of.has_interval() && (curve.style == Style::Marks || curve.dots.len() == 1) {
                let bar = tag("path").with("class", format_args!("bar {colour}"));
                html.lone(bar.with("d", self.bar(x, dot)));
            }
            let outline = if above {
                let top = self.frame.top;
                format!("M{} {}l4 6h-8zm0 6v6", Px(x), Px(top + 2.0))
            } else {
                marks::outline(curve.look.marker, x, y, self.frame.mark)
            };
            let hollow = if dot.holds { "" } else { " hollow" };
            let mark = tag("path").with("class", format_args!("mark{hollow} {colour}")).with("d", outline);
            html.element(mark, |html| {
                if self.chart.size == Size::Main {
                    html.leaf("title", self.in_words(curve, dot));
                }
            });
        }
    }

    fn in_words(&self, curve: &Curve, dot: &Dot) -> String {
        let load = show::quantity(dot.rate_per_s / self.chart.capacity_per_s, Unit::Share);
        let value = show::estimate(&dot.of, self.chart.unit);
        let lost = if dot.holds { "" } else { ", not sustained" };
        format!("{} at {} ({load}): {value}{lost}", curve.label, show::rate(dot.rate_per_s))
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
            html.lone(tag("path").with("class", "halo").with("d", &rays));
            let mark = tag("path").with("class", format_args!("rays {}", paper.look.class())).with("d", rays);
            html.element(mark, |html| {
                let value = show::quantity(*value, self.chart.unit);
                html.leaf("title", format_args!("{}: {value} at {}", paper.label, show::rate(*rate)));
            });
        }
    }
}

fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |extent, value| {
        Some(extent.map_or((value, value), |(low, high): (f64, f64)| (low.min(value), high.max(value))))
    })
}

fn text(html: &mut Html, anchor: &str, x: f64, y: f64, text: impl std::fmt::Display) {
    html.leaf(tag("text").with("text-anchor", anchor).with("x", Px(x)).with("y", Px(y)), text);
}

/// A tick's value without superfluous digits.
fn label(value: f64) -> String {
    if libm::fabs(value - libm::round(value)) < 1e-9 {
        return show::whole(libm::round(value) as u64);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use sluice_outcome::study::Method;

    use super::*;

    #[test]
    fn an_interval_that_reaches_below_the_picture_ends_with_it() {
        let dot = Dot {
            rate_per_s: 1.0,
            of: Estimate::between(10.0, 0.01, 12.0, Method::Replications),
            holds: true,
        };
        let curve =
            Curve { label: "a".to_owned(), look: SeriesStyle::NEUTRAL, style: Style::Marks, dots: vec![dot] };
        let chart = Chart {
            title: "pauses".to_owned(),
            unit: Unit::Ratio,
            curves: vec![curve],
            paper: Vec::new(),
            capacity_per_s: 1.0,
            size: Size::Small,
        };
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
}
