//! Depths over time: the actions of the agent and the slice step in one run, with each decision marked.
//!
//! Four strips below each other: the workers' depths (the mean, and the range from smallest to largest),
//! the number of workers in each slice, and the p99 slowdown and response of the tasks that ended. Marks
//! are on the first strip: up for one token more, down for one less, a ring for overload, a square for a
//! worker that changed its slice. Their titles give the numbers.

use std::fmt::Write;

use sluice_outcome::study::{Panel, SliceDepths};

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
/// How many intervals a picture shows.
const INTERVALS_MAX: usize = 400;

/// The pictures of a panel's series; none if depths were fixed.
pub(crate) fn timelines(html: &mut Html, panel: &Panel) {
    let points =
        panel.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
    let adaptive: Vec<_> = points.filter(|(_, point)| point.depths.len() > 1).collect();
    if adaptive.is_empty() {
        return;
    }
    html.leaf("h3", "Depths over time, first replication");
    for (series, point) in adaptive.iter().rev().take(PICTURES_MAX).rev() {
        let rate = show::rate(point.offered_per_s);
        figure(html, &format!("{} at {rate}", series.label), &point.depths);
    }
}

/// One picture with its caption.
pub(super) fn figure(html: &mut Html, caption: &str, depths: &[SliceDepths]) {
    html.element("figure", |html| {
        html.leaf("figcaption", format_args!("{caption}: {}", totals(depths)));
        let slices = 1 + depths.iter().map(|depths| depths.slice).max().unwrap_or(0) as usize;
        Timeline::new(&depths[..depths.len().min(INTERVALS_MAX * slices)]).draw(html);
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

/// A summary of all decisions.
fn totals(depths: &[SliceDepths]) -> String {
    let sum = |of: fn(&SliceDepths) -> u32| depths.iter().map(of).sum::<u32>();
    let moves = depths.iter().map(|depths| depths.moves).max().unwrap_or(0);
    format!(
        "{} judgements deeper, {} shallower, {} overloaded; {moves} moves between slices",
        sum(|d| d.deeper),
        sum(|d| d.shallower),
        sum(|d| d.overloaded)
    )
}

struct Timeline<'d> {
    depths: &'d [SliceDepths],
    slices: u32,
    ends_ns: f64,
}

/// One of the strips below each other.
struct Strip {
    top: f64,
    title: &'static str,
    most: f64,
    of: fn(&SliceDepths) -> f64,
}

impl Strip {
    fn y(&self, value: f64) -> f64 {
        self.top + STRIP * (1.0 - (value / self.most).min(1.0))
    }
}

impl<'d> Timeline<'d> {
    fn new(depths: &'d [SliceDepths]) -> Self {
        let slices = 1 + depths.iter().map(|depths| depths.slice).max().unwrap_or(0);
        let ends_ns = depths.iter().map(|depths| depths.at_ns).max().unwrap_or(1) as f64;
        Self { depths, slices, ends_ns }
    }

    fn draw(&self, html: &mut Html) {
        let most = |of: fn(&SliceDepths) -> f64| self.depths.iter().map(of).fold(1.0, f64::max);
        let slowdown: fn(&SliceDepths) -> f64 = |depths| depths.slowdown_p99;
        let workers: fn(&SliceDepths) -> f64 = |depths| depths.workers.into();
        let response: fn(&SliceDepths) -> f64 = |depths| depths.response_p99_ns / 1e3;
        let top = |place: f64| TOP + place * (STRIP + GAP);
        let strips = [
            Strip {
                top: top(0.0),
                title: "depth",
                most: most(|d| d.depth_max.into()) + 1.0,
                of: |d| d.depth_mean,
            },
            Strip { top: top(1.0), title: "workers", most: most(workers) + 1.0, of: workers },
            Strip {
                top: top(2.0),
                title: "p99 slowdown (up to 40)",
                most: most(slowdown).min(40.0),
                of: slowdown,
            },
            Strip { top: top(3.0), title: "p99 response, µs", most: most(response), of: response },
        ];
        // Older studies and live ones have no responses.
        let strips = &strips[..if most(response) > 1.0 { strips.len() } else { strips.len() - 1 }];
        let height = top(strips.len() as f64) - GAP + 18.0;
        let svg =
            tag("svg").with("class", "chart times").with("viewBox", format_args!("0 0 {WIDTH} {height}"));
        let name =
            format!("depth, workers, p99 slowdown and p99 response over time. {}", totals(self.depths));
        html.element(svg.with("role", "img").with("aria-label", name), |html| {
            for strip in strips {
                frame(html, strip.top, strip.title, strip.most);
                for slice in 0..self.slices {
                    self.curve(html, strip, slice);
                }
            }
            self.marks(html, &strips[0]);
            times(html, self.ends_ns, height);
        });
        html.line();
    }

    fn x(&self, at_ns: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * at_ns as f64 / self.ends_ns
    }

    fn of(&self, slice: u32) -> impl Iterator<Item = &SliceDepths> {
        self.depths.iter().filter(move |depths| depths.slice == slice)
    }

    fn curve(&self, html: &mut Html, strip: &Strip, slice: u32) {
        let mut line = String::new();
        for depths in self.of(slice) {
            let (x, y) = (self.x(depths.at_ns), strip.y((strip.of)(depths)));
            // Writing to a string cannot fail.
            let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { "M" } else { "L" });
        }
        let colour = if slice == 0 { "c0" } else { "c1" };
        html.element(tag("g").with("class", colour), |html| {
            if strip.title == "depth" {
                self.span(html, strip, slice);
            }
            html.lone(tag("path").with("class", "line").with("d", line));
        });
    }

    /// The range from the smallest to the largest depth.
    fn span(&self, html: &mut Html, strip: &Strip, slice: u32) {
        for depths in self.of(slice).filter(|depths| depths.depth_min < depths.depth_max) {
            let (low, high) = (strip.y(depths.depth_min.into()), strip.y(depths.depth_max.into()));
            let path = format!("M{:.1} {low:.1}V{high:.1}", self.x(depths.at_ns));
            html.lone(tag("path").with("class", "bar faint").with("d", path));
        }
    }

    fn marks(&self, html: &mut Html, strip: &Strip) {
        let mut moved = 0;
        for depths in self.depths {
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
