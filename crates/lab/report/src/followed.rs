//! The page of a plan that was followed live: the depths of each run, or the simulator's band with the live
//! runs in it.

use std::fmt::Write;

use sluice_outcome::study::{SliceDepths, Verdict};

use super::decided::whole;
use super::html::{Html, tag};
use super::tables::badge;
use super::timeline::{self, GAP, LEFT, RIGHT, STRIP, TOP, WIDTH};

/// The heading of the column with the number of live runs whose depths lie inside.
const DEPTHS: &str = "depths inside";
/// The space above a strip for its title.
const ABOVE: f64 = TOP + 8.0;

/// A part of the page.
pub enum Section<'d> {
    /// One case under one policy, run by run.
    Runs {
        title: String,
        /// The pictures: a caption and depths over time each.
        pictures: Vec<(String, &'d [SliceDepths])>,
    },
    /// One case with slow workers, policy by policy.
    Beside {
        title: String,
        /// The policies, in the plan's order.
        policies: Vec<LiveAndSimulated<'d>>,
    },
}

/// A policy's live runs and the simulator's.
pub struct LiveAndSimulated<'d> {
    pub policy: &'d str,
    /// How many live runs' depths lie inside the band, of how many.
    pub inside: (usize, usize),
    /// Simulated runs.
    pub seeds: usize,
    /// The windows before, during and after the slow time.
    pub windows: Vec<Compared>,
    /// The length of a strip's entry, in ns.
    pub interval_ns: u64,
    /// The start and end of the slow time, in ns.
    pub slow_ns: (u64, u64),
    pub strips: [Strip; 2],
}

/// A mean p99 before, during or after the slow time, as text.
pub struct Compared {
    pub name: &'static str,
    pub simulated: String,
    /// The range of 95 % of the simulated runs.
    pub band: String,
    pub live: String,
    /// The difference between live and simulated mean.
    pub off: String,
    /// Whether the live and the simulated number agree.
    pub verdict: Verdict,
}

/// A number over time, with an entry for each interval.
pub struct Strip {
    pub title: &'static str,
    /// The band's lower end.
    pub least: Vec<f64>,
    pub most: Vec<f64>,
    /// Each live run.
    pub live: Vec<Vec<f64>>,
}

/// The page.
pub fn followed(title: &str, sections: Vec<Section<'_>>) -> String {
    let is_beside = sections.iter().any(|section| matches!(section, Section::Beside { .. }));
    let header = |html: &mut Html| {
        html.leaf("h1", title);
        if is_beside { legend(html) } else { timeline::legend(html, &[]) }
    };
    whole(title, header, |html| {
        for section in sections {
            html.element("section", |html| match section {
                Section::Runs { title, pictures } => {
                    html.leaf("h2", title);
                    for (caption, depths) in pictures {
                        timeline::figure(html, &caption, depths);
                    }
                }
                Section::Beside { title, policies } => {
                    html.leaf("h2", title);
                    table(html, &policies);
                    for one in &policies {
                        figure(html, one);
                    }
                }
            });
        }
    })
}

/// What colours mean.
fn legend(html: &mut Html) {
    let swatch = |html: &mut Html, colour: &'static str, class: &'static str, path: &'static str| {
        let swatch =
            tag("svg").with("class", "swatch").with("viewBox", "0 0 24 10").with("aria-hidden", "true");
        html.element(swatch, |html| {
            html.element(tag("g").with("class", colour), |html| {
                html.lone(tag("path").with("class", class).with("d", path));
            });
        });
    };
    html.element(tag("p").with("class", "made"), |html| {
        swatch(html, "c0", "band", "M0 1H24V9H0Z");
        html.text(" simulated: 95 % of the runs lie inside in every interval · ");
        swatch(html, "c1", "line", "M0 5H24");
        html.text(" a live run · ");
        swatch(html, "c7", "band", "M0 1H24V9H0Z");
        html.text(" some workers are slow. p99 response: waits in switch and worker and the service, of the tasks that ended in an interval of 10 ms.");
    });
}

/// The table of all policies' means.
fn table(html: &mut Html, policies: &[LiveAndSimulated<'_>]) {
    let Some(first) = policies.first() else { return };
    // Not as a heading, since capitals would turn µs into MS.
    html.leaf(
        "p",
        "p99 response in µs, the mean of the intervals; small: where 95 % of the simulated runs lie.",
    );
    html.element(tag("table").with("class", "cards"), |html| {
        html.element("thead", |html| {
            html.element("tr", |html| {
                let windows = first.windows.iter().map(|window| window.name);
                for head in ["policy"].into_iter().chain(windows).chain([DEPTHS]) {
                    html.leaf(tag("th").with("scope", "col"), head);
                }
            });
        });
        html.element("tbody", |html| policies.iter().for_each(|one| row(html, one)));
    });
    html.leaf("h3", "Aggregate time");
}

fn row(html: &mut Html, one: &LiveAndSimulated<'_>) {
    html.element("tr", |html| {
        html.leaf(tag("td").with("data-of", "policy"), one.policy);
        for window in &one.windows {
            let Compared { name, simulated, band, live, off, verdict } = window;
            html.element(tag("td").with("data-of", *name), |html| {
                html.element("div", |html| {
                    html.element("div", |html| {
                        html.text(format_args!("simulated {simulated} "));
                        html.leaf("small", band);
                    });
                    html.element("div", |html| {
                        html.text(format_args!("live {live} "));
                        badge(html, *verdict, format_args!("{off}: {verdict}"));
                    });
                });
            });
        }
        html.leaf(tag("td").with("data-of", DEPTHS), format_args!("{} of {}", one.inside.0, one.inside.1));
    });
}

fn figure(html: &mut Html, one: &LiveAndSimulated<'_>) {
    let (inside, runs) = one.inside;
    let caption = format!(
        "{}: the depths of {inside} of {runs} live runs lie inside the band of {} simulated ones",
        one.policy, one.seeds
    );
    let ends_ns = (one.strips[0].least.len() as u64 * one.interval_ns).max(1) as f64;
    let height = ABOVE + one.strips.len() as f64 * (STRIP + GAP) - GAP + 18.0;
    html.element("figure", |html| {
        html.leaf("figcaption", &caption);
        let svg =
            tag("svg").with("class", "chart times").with("viewBox", format_args!("0 0 {WIDTH} {height}"));
        let name = format!("p99 response and depth over time. {caption}");
        html.element(svg.with("role", "img").with("aria-label", name), |html| {
            for (place, strip) in one.strips.iter().enumerate() {
                let top = ABOVE + place as f64 * (STRIP + GAP);
                Picture { one, strip, top, ends_ns }.draw(html);
            }
            timeline::times(html, ends_ns, height);
        });
    });
}

/// One strip of a picture.
struct Picture<'d> {
    one: &'d LiveAndSimulated<'d>,
    strip: &'d Strip,
    top: f64,
    ends_ns: f64,
}

impl Picture<'_> {
    fn draw(&self, html: &mut Html) {
        let Strip { title, least, most, live } = self.strip;
        let highest = live.iter().flatten().chain(most).copied().fold(1.0, f64::max);
        // Some space above the highest value shows that nothing is higher.
        let scale = (highest * 1.08).ceil().max(highest.floor() + 1.0);
        self.slow(html);
        timeline::frame(html, self.top, title, scale);
        let band: Vec<(usize, f64)> = most.iter().copied().enumerate().collect();
        let back = least.iter().copied().enumerate().rev();
        let outline = self.path(band.into_iter().chain(back), scale) + "Z";
        html.element(tag("g").with("class", "c0"), |html| {
            html.lone(tag("path").with("class", "band").with("d", &outline));
            // If all runs are equal, the band has no area, so its outline is drawn too.
            html.lone(tag("path").with("class", "line faint").with("d", outline));
        });
        html.element(tag("g").with("class", "c1"), |html| {
            for run in live {
                let path = self.path(run.iter().copied().enumerate(), scale);
                html.lone(
                    tag("path")
                        .with("class", if live.len() > 1 { "line faint" } else { "line" })
                        .with("d", path),
                );
            }
        });
    }

    /// Marks the time in which workers are slow.
    fn slow(&self, html: &mut Html) {
        let (from, to) = (self.x(self.one.slow_ns.0 as f64), self.x(self.one.slow_ns.1 as f64));
        let bottom = self.top + STRIP;
        html.element(tag("g").with("class", "c7"), |html| {
            let path = format!("M{from:.1} {}H{to:.1}V{bottom}H{from:.1}Z", self.top);
            html.lone(tag("path").with("class", "band").with("d", path));
        });
    }

    /// A line through values at the ends of intervals.
    fn path(&self, values: impl Iterator<Item = (usize, f64)>, scale: f64) -> String {
        let mut line = String::new();
        for (interval, value) in values {
            let x = self.x((interval as u64 + 1) as f64 * self.one.interval_ns as f64);
            let y = self.top + STRIP * (1.0 - (value / scale).min(1.0));
            // Writing to a string cannot fail.
            let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { "M" } else { "L" });
        }
        line
    }

    fn x(&self, at_ns: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (at_ns / self.ends_ns).min(1.0)
    }
}
