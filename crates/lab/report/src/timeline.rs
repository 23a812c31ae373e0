//! Depths over time: the actions of the agent and the slice step in one run, with each decision marked.
//!
//! Four strips below each other: the workers' depths (the mean, and the range from smallest to largest),
//! the number of workers in each slice, and the p99 slowdown and response of the tasks that ended. Marks
//! are on the first strip: up for one token more, down for one less, a ring for overload, a square for a
//! worker that changed its slice. Their titles give the numbers.

use std::fmt::Write;

use sluice_outcome::study::{Panel, SliceDepths};

use super::depths::{self, DepthStrip, DepthsShown};
use super::html::{Html, tag};
use super::show;

pub(super) const WIDTH: f64 = 720.0;
pub(super) const LEFT: f64 = 46.0;
pub(super) const RIGHT: f64 = 712.0;
pub(super) const STRIP: f64 = 92.0;
pub(super) const GAP: f64 = 26.0;
pub(super) const TOP: f64 = 16.0;
/// How many pictures one panel gets; further ones would show the same.
const PICTURES_MAX: usize = 12;
/// Times of a picture at least this long, in ns, are labelled in seconds.
const SECONDS_FROM_NS: f64 = 2e9;

/// The pictures of a panel's series; none if depths were fixed.
pub(crate) fn timelines(html: &mut Html, panel: &Panel) {
    let adaptive: Vec<_> = depths::adaptive(panel).collect();
    if adaptive.is_empty() {
        return;
    }
    html.leaf("h3", "Depths over time, first replication");
    let mut named =
        adaptive.iter().map(|(series, _)| &series.slice_names[..]).filter(|names| !names.is_empty());
    let names = named.next().unwrap_or_default();
    // Further slices share the second one's colour.
    let is_one_each = names.len() <= 2 && named.all(|other| other == names);
    legend(html, if is_one_each { names } else { &[] });
    for (series, point) in adaptive.iter().rev().take(PICTURES_MAX).rev() {
        let rate = show::rate(point.offered_per_s);
        figure(html, &format!("{} at {rate}", series.label), &point.depths);
    }
}

/// One picture with its caption.
pub(super) fn figure(html: &mut Html, caption: &str, intervals: &[SliceDepths]) {
    html.element("figure", |html| {
        let shown = DepthsShown::of(intervals);
        let cut_off = shown.cut_off().map_or_else(String::new, |part| format!(" ({part})"));
        html.leaf("figcaption", format_args!("{caption}{cut_off}: {}", depths::totals(shown.depths)));
        Timeline { shown }.draw(html);
    });
}

/// The legend of colours and marks.
pub(super) fn legend(html: &mut Html, slices: &[String]) {
    html.element(tag("p").with("class", "made"), |html| {
        for (slice, name) in slices.iter().take(2).enumerate() {
            let swatch =
                tag("svg").with("class", "swatch").with("viewBox", "0 0 24 10").with("aria-hidden", "true");
            html.element(swatch, |html| {
                let class = if slice == 0 { "c0" } else { "c1" };
                html.element(tag("g").with("class", class), |html| {
                    html.lone(tag("path").with("class", "line").with("d", "M0 5H24"));
                });
            });
            html.text(format_args!(" slice {name} · "));
        }
        html.text("▲ one token more · ▼ one less · ○ overloaded · ■ a worker moved between slices");
    });
}

/// The strips of a picture, and where they stand.
struct Timeline<'d> {
    shown: DepthsShown<'d>,
}

/// A strip and its upper edge.
struct Strip {
    top: f64,
    of: DepthStrip,
}

impl Strip {
    fn y(&self, value: f64) -> f64 {
        self.top + STRIP * (1.0 - (value / self.of.most).min(1.0))
    }
}

impl Timeline<'_> {
    fn draw(&self, html: &mut Html) {
        let top = |place: usize| TOP + place as f64 * (STRIP + GAP);
        let strips = self.shown.strips().into_iter().enumerate();
        let strips: Vec<_> = strips.map(|(place, of)| Strip { top: top(place), of }).collect();
        let height = top(strips.len()) - GAP + 18.0;
        let svg =
            tag("svg").with("class", "chart times").with("viewBox", format_args!("0 0 {WIDTH} {height}"));
        let name = depths::said(self.shown.depths);
        html.element(svg.with("role", "img").with("aria-label", name), |html| {
            for strip in &strips {
                frame(html, strip.top, strip.of.title, strip.of.most);
                for slice in &self.shown.slices {
                    self.curve(html, strip, *slice);
                }
            }
            self.marks(html, &strips[0]);
            times(html, self.shown.ends_ns, height);
        });
        html.line();
    }

    fn x(&self, at_ns: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * at_ns as f64 / self.shown.ends_ns
    }

    fn curve(&self, html: &mut Html, strip: &Strip, slice: u32) {
        let mut line = String::new();
        for depths in self.shown.of_slice(slice) {
            let (x, y) = (self.x(depths.at_ns), strip.y((strip.of.of)(depths)));
            // Writing to a string cannot fail.
            let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { "M" } else { "L" });
        }
        let colour = if slice == 0 { "c0" } else { "c1" };
        html.element(tag("g").with("class", colour), |html| {
            if strip.of.is_of_depths {
                self.span(html, strip, slice);
            }
            html.lone(tag("path").with("class", "line").with("d", line));
        });
    }

    /// The range from the smallest to the largest depth.
    fn span(&self, html: &mut Html, strip: &Strip, slice: u32) {
        for depths in self.shown.of_slice(slice).filter(|depths| depths.depth_min < depths.depth_max) {
            let (low, high) = (strip.y(depths.depth_min.into()), strip.y(depths.depth_max.into()));
            let path = format!("M{:.1} {low:.1}V{high:.1}", self.x(depths.at_ns));
            html.lone(tag("path").with("class", "bar faint").with("d", path));
        }
    }

    fn marks(&self, html: &mut Html, strip: &Strip) {
        let mut moved = 0;
        for depths in self.shown.depths {
            let (x, y) = (self.x(depths.at_ns), strip.y(depths.depth_mean));
            let mut mark = |count: u32, path: String, class: &'static str, says: &str| {
                if count > 0 {
                    html.element(tag("path").with("class", class).with("d", path), |html| {
                        html.leaf(
                            "title",
                            format_args!("{count} {says} at {:.0} ms", depths.at_ns as f64 / 1e6),
                        );
                    });
                }
            };
            let colour = if depths.slice == 0 { "mark c0" } else { "mark c1" };
            let ring = format!("M{:.1} {:.1}a3 3 0 1 0 6 0a3 3 0 1 0-6 0Z", x - 3.0, y);
            mark(
                depths.overloaded,
                ring,
                if depths.slice == 0 { "hollow c0" } else { "hollow c1" },
                "overloaded",
            );
            mark(depths.deeper, format!("M{x:.1} {:.1}l4 7h-8Z", y - 11.0), colour, "one token more");
            mark(depths.shallower, format!("M{x:.1} {:.1}l4-7h-8Z", y + 11.0), colour, "one token less");
            if depths.moves > moved {
                let square = format!("M{:.1} {:.1}h7v7h-7Z", x - 3.5, strip.top + 2.0);
                mark(depths.moves - moved, square, "mark c3", "workers moved between slices");
                moved = depths.moves;
            }
        }
    }
}

/// The time axis below a picture.
pub(super) fn times(html: &mut Html, ends_ns: f64, height: f64) {
    for part in 0..=4 {
        let at_ns = ends_ns * f64::from(part) / 4.0;
        let text =
            tag("text").with("x", LEFT + (RIGHT - LEFT) * f64::from(part) / 4.0).with("y", height - 3.0);
        let anchor = if part == 4 { "end" } else { "middle" };
        let text = text.with("text-anchor", anchor);
        if ends_ns < SECONDS_FROM_NS {
            html.leaf(text, format_args!("{:.0} ms", at_ns / 1e6));
        } else {
            html.leaf(text, format_args!("{:.1} s", at_ns / 1e9));
        }
    }
}

/// A strip's frame, title and largest value.
pub(super) fn frame(html: &mut Html, top: f64, title: &str, most: f64) {
    let bottom = top + STRIP;
    html.lone(tag("path").with("class", "grid").with("d", format_args!("M{LEFT} {top}H{RIGHT}")));
    html.lone(tag("path").with("class", "edge").with("d", format_args!("M{LEFT} {top}V{bottom}H{RIGHT}")));
    html.leaf(tag("text").with("x", LEFT).with("y", top - 4.0), title);
    let number = |y: f64| tag("text").with("x", LEFT - 5.0).with("y", y + 3.0).with("text-anchor", "end");
    html.leaf(number(top), format_args!("{most:.0}"));
    html.leaf(number(bottom), "0");
}
