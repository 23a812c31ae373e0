//! Lines over the last minutes of something that runs: a figure with caption and legend, drawn anew while
//! the numbers come in. Where nothing was heard, a line has a gap and the picture a shade.

use std::fmt::Write;

use sluice_outcome::study::Unit;

use super::axis::{Axis, Steps, Tick};
use super::marks::{Px, Swatch, swatch};
use super::text;
use crate::html::{Html, tag};
use crate::series_style::SeriesStyle;
use crate::show::{self, DisplayScale};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 412.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 164.0;
/// From this length on, the axis of time is in minutes.
const MINUTES_FROM_S: f64 = 120.0;

/// A picture of the last minutes.
#[derive(Clone, Debug)]
pub struct RunningChart<'a> {
    /// What is shown, such as `tasks a second`.
    pub title: &'a str,
    pub unit: Unit,
    /// How far back the picture goes.
    pub span_s: f64,
    /// One line for each name, in an order that stays.
    pub lines: Vec<RunningLine<'a>>,
    /// When nothing was heard: from and to, in seconds before now.
    pub silences_s: Vec<(f64, f64)>,
}

/// A line of a [`RunningChart`].
#[derive(Clone, Debug)]
pub struct RunningLine<'a> {
    pub name: &'a str,
    /// Seconds before now, falling, and the value then if there was one.
    pub values: Vec<(f64, Option<f64>)>,
}

impl RunningChart<'_> {
    /// The figure as a piece of HTML.
    pub fn figure(&self) -> String {
        let mut html = Html::new();
        let shown = self.shown();
        html.element("figure", |html| {
            let caption = match shown.name {
                "" => self.title.to_owned(),
                name if self.title.contains(name) => self.title.to_owned(),
                name => format!("{}, {name}", self.title),
            };
            html.leaf("figcaption", &caption);
            let size = format!("0 0 {WIDTH} {HEIGHT}");
            let svg = tag("svg").with("class", "chart running").with("viewBox", size).with("role", "img");
            let name = format!("{caption}. {}", self.in_words());
            html.element(svg.with("aria-label", name), |html| self.draw(html, shown));
            self.legend(html);
        });
        html.line();
        html.into_string()
    }

    fn shown(&self) -> DisplayScale {
        let most = self.numbers().map(f64::abs).fold(0.0, f64::max);
        DisplayScale::suiting(most, self.unit)
    }

    fn numbers(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().flat_map(|line| &line.values).filter_map(|(_, value)| *value)
    }

    fn draw(&self, html: &mut Html, shown: DisplayScale) {
        let (least, most) = self
            .numbers()
            .fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
        // An empty picture, and one whose values are all zero, has a scale too.
        let most = if most <= 0.0 && least >= 0.0 { shown.one } else { most };
        let room = 0.06 * (most - least);
        let y =
            Axis::new(Steps::Linear, if least < 0.0 { least - room } else { 0.0 }, most + room, BOTTOM, TOP);
        let x = Axis::new(Steps::Linear, -self.span_s, 0.0, LEFT, RIGHT);
        for (from, to) in &self.silences_s {
            let (from, to) = (x.px(-from).max(LEFT), x.px(-to).min(RIGHT));
            let path = format!("M{} {}H{}V{}H{}z", Px(from), Px(TOP), Px(to), Px(BOTTOM), Px(from));
            html.lone(tag("path").with("class", "silence").with("d", path));
        }
        grid(html, &y.ticks(shown.one, 5), y.px(0.0));
        times(html, self.span_s, &x);
        for (place, line) in self.lines.iter().enumerate() {
            let look = SeriesStyle::numbered(place);
            let path = look.dashed(tag("path").with("class", format_args!("line {}", look.class())));
            html.lone(path.with("d", outline(line, &x, &y)));
        }
    }

    /// A description for readers who cannot see the picture: the last values.
    fn in_words(&self) -> String {
        let last = |line: &RunningLine<'_>| {
            let value = line.values.last().and_then(|(_, value)| *value);
            let told = value.map_or_else(|| "not known now".to_owned(), |value| self.in_unit(value));
            format!("{}: {told}.", line.name)
        };
        self.lines.iter().map(last).collect::<Vec<_>>().join(" ")
    }

    fn in_unit(&self, value: f64) -> String {
        let sign = if value < 0.0 { "−" } else { "" };
        match self.unit {
            Unit::Count => format!("{sign}{:.0}", value.abs()),
            unit => format!("{sign}{}", show::quantity(value.abs(), unit)),
        }
    }

    fn legend(&self, html: &mut Html) {
        html.element(tag("ul").with("class", "legend").with("aria-hidden", "true"), |html| {
            for (place, line) in self.lines.iter().enumerate() {
                html.element("li", |html| {
                    swatch(html, Swatch::LineOnly, SeriesStyle::numbered(place));
                    html.element("span", |html| {
                        html.leaf("b", line.name);
                        html.verbatim(" ");
                        let last = line.values.last().and_then(|(_, value)| *value);
                        html.leaf("small", last.map_or_else(|| "–".to_owned(), |value| self.in_unit(value)));
                    });
                });
            }
        });
    }
}

/// The path through a line's values, with a gap where one is missing.
fn outline(line: &RunningLine<'_>, x: &Axis, y: &Axis) -> String {
    let (mut path, mut is_drawn) = (String::new(), false);
    for (ago_s, value) in &line.values {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ =
                write!(path, "{}{} {}", if is_drawn { "L" } else { "M" }, Px(x.px(-ago_s)), Px(y.px(*value)));
        }
        is_drawn = value.is_some();
    }
    path
}

fn grid(html: &mut Html, ticks: &[Tick], zero_px: f64) {
    let mut lines = String::new();
    for tick in ticks {
        // Writing to a string cannot fail.
        let _ = write!(lines, "M{} {}H{}", Px(LEFT), Px(tick.px), Px(RIGHT));
        text(html, "end", LEFT - 5.0, tick.px + 3.5, number(tick.value));
    }
    html.lone(tag("path").with("class", "grid").with("d", lines));
    let edges =
        format!("M{} {}V{}M{} {}H{}", Px(LEFT), Px(TOP), Px(BOTTOM), Px(LEFT), Px(zero_px), Px(RIGHT));
    html.lone(tag("path").with("class", "edge").with("d", edges));
}

fn times(html: &mut Html, span_s: f64, x: &Axis) {
    let (one, name) = if span_s >= MINUTES_FROM_S { (60.0, "min") } else { (1.0, "s") };
    for tick in x.ticks(one, 6) {
        let is_now = tick.value > -1e-9;
        let label = if is_now { "now".to_owned() } else { format!("{} {name}", number(tick.value)) };
        let anchor = if is_now { "end" } else { "middle" };
        // A label at the left edge would stick out.
        if tick.px > LEFT + 12.0 {
            text(html, anchor, tick.px, BOTTOM + 15.0, label);
        }
    }
}

/// A tick's value without superfluous digits, with a true minus sign.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.').replace('-', "−");
    if text == "−0" { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: Vec<(f64, Option<f64>)>) -> RunningChart<'static> {
        let lines = vec![RunningLine { name: "get", values }];
        RunningChart { title: "balance", unit: Unit::Count, span_s: 600.0, lines, silences_s: Vec::new() }
    }

    #[test]
    fn a_line_has_a_gap_where_nothing_was_heard() {
        let figure = chart(vec![(4.0, Some(1.0)), (3.0, Some(2.0)), (2.0, None), (1.0, Some(-3.0))]).figure();
        let line = figure.split("class=\"line c0\" d=\"").nth(1).and_then(|rest| rest.split('"').next());
        let line = line.expect("a line");
        assert_eq!((line.matches('M').count(), line.matches('L').count()), (2, 1), "{line}");
        assert!(figure.contains("aria-label=\"balance. get: −3.\""), "{figure}");
    }

    #[test]
    fn a_picture_without_values_says_so_and_has_a_scale() {
        for values in [vec![], vec![(1.0, None)], vec![(1.0, Some(0.0))]] {
            let figure = chart(values).figure();
            assert!(!figure.contains("NaN") && !figure.contains("inf"), "{figure}");
        }
        assert!(chart(vec![(1.0, None)]).figure().contains("get: not known now."));
    }

    #[test]
    fn a_name_stays_text() {
        let lines = vec![RunningLine { name: "<script>", values: Vec::new() }];
        let figure = RunningChart { lines, ..chart(Vec::new()) }.figure();
        assert!(figure.contains("&lt;script&gt;") && !figure.contains("<script"), "{figure}");
    }
}
