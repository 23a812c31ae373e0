//! The page of a load: whether the run holds, what became of its tasks, how long they took, and how it went
//! over time. One file that loads nothing else.

use std::fmt::Write;

use sluice_outcome::run::{Bin, RunResult};

use super::decided::whole;
use super::html::{Html, tag};
use super::run;
use super::table::{Table, digits};
use super::tables::numeric_table;
use super::timeline::{self, GAP, LEFT, RIGHT, STRIP, TOP, WIDTH};

/// How many columns a picture has at most; more are nearer to each other than a screen shows.
const COLUMNS_MAX: usize = 700;

/// The page.
pub fn run_page(result: &RunResult) -> String {
    whole(
        &result.title(),
        |html| heading(html, result),
        |html| {
            section(html, "Whether it holds", |html| gates(html, result));
            section(html, "What became of the tasks", |html| {
                table(html, "Tasks by outcome, and replies a second", &run::outcomes(result));
                said(html, &run::reasons_text(result));
                table(html, "How long they took", &run::times(result));
                if !result.stages.is_empty() {
                    table(html, "Stage by stage, by when tasks were due", &run::stages(result));
                }
            });
            section(html, "Over time", |html| {
                figure(html, result);
                if !result.events.is_empty() {
                    table(html, "Faults", &run::events(result));
                }
            });
        },
    )
}

fn heading(html: &mut Html, result: &RunResult) {
    html.leaf("h1", result.title());
    let settings = run::heading_text(result);
    let mut lines = settings.lines();
    html.leaf(tag("p").with("class", "made"), lines.next().unwrap_or_default());
    lines.for_each(|line| html.leaf(tag("p").with("class", "notice"), line));
    let (version, at) = (result.sluice, &result.started_utc);
    html.leaf(tag("p").with("class", "made"), format_args!("sluice {version}, begun {at}"));
    if result.aborted {
        let why = result.abort_reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        html.leaf(tag("p").with("class", "notice"), format_args!("Stopped early{why}"));
    }
}

fn section(html: &mut Html, title: &str, inside: impl FnOnce(&mut Html)) {
    html.element("section", |html| {
        html.leaf("h2", title);
        inside(html);
    });
    html.line();
}

fn gates(html: &mut Html, result: &RunResult) {
    html.element("ul", |html| {
        for gate in &result.gates {
            let (class, word) =
                if gate.passed { ("badge good", "✓ holds") } else { ("badge bad", "✗ missed") };
            html.element("li", |html| {
                html.leaf(tag("span").with("class", class), word);
                html.text(format_args!(" {}", gate.says));
            });
        }
    });
}

fn said(html: &mut Html, text: &str) {
    text.lines().for_each(|line| html.leaf("p", line));
}

fn table(html: &mut Html, caption: &str, of: &Table) {
    let Some((headings, rows)) = of.rows().split_first() else { return };
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    html.element(tag("div").with("class", "wide"), |html| {
        numeric_table(html, caption, &headings, |html| {
            for row in rows {
                html.element("tr", |html| {
                    for cell in row {
                        html.leaf(tag("td").with("class", "n"), cell.trim());
                    }
                });
            }
        });
    });
}

/// A strip of the picture: a title, and lines of one number a column, each with its colour and its class.
struct RunStrip {
    title: String,
    lines: Vec<(&'static str, &'static str, Vec<f64>)>,
}

fn figure(html: &mut Html, result: &RunResult) {
    let ends_s = result.warm_up_s + result.length_s;
    let shown = (ends_s / result.timeline_bin_s).ceil() as usize;
    let bins = &result.timeline[..shown.min(result.timeline.len())];
    if bins.is_empty() {
        html.leaf("p", "No task was due.");
        return;
    }
    let columns = Columns::of(bins, result.timeline_bin_s);
    let strips = columns.strips();
    let height = TOP + strips.len() as f64 * (STRIP + GAP) - GAP + 18.0;
    let x = |at_s: f64| LEFT + (RIGHT - LEFT) * (at_s / ends_s).clamp(0.0, 1.0);
    html.element("figure", |html| {
        let caption = "Tasks due and answered a second, and the slowest answer; shaded is the warm-up, \
                       dashed where a stage begins or a fault comes";
        html.leaf("figcaption", caption);
        let svg =
            tag("svg").with("class", "chart times").with("viewBox", format_args!("0 0 {WIDTH} {height}"));
        html.element(svg.with("role", "img").with("aria-label", in_words(result)), |html| {
            for (place, strip) in strips.iter().enumerate() {
                let top = TOP + place as f64 * (STRIP + GAP);
                marks(html, result, top, &x);
                draw(html, strip, top, |place| x(columns.middle_s(place)));
            }
            timeline::times(html, ends_s * 1e9, height);
        });
    });
}

/// The bins of a run side by side, several in one column if they are many: a page stays small, however long
/// the run was.
struct Columns<'b> {
    bins: Vec<&'b [Bin]>,
    /// How long a bin is, and how many are in a column that is whole.
    bin_s: f64,
    each: usize,
}

impl<'b> Columns<'b> {
    fn of(bins: &'b [Bin], bin_s: f64) -> Self {
        let each = bins.len().div_ceil(COLUMNS_MAX).max(1);
        Self { bins: bins.chunks(each).collect(), bin_s, each }
    }

    /// The middle of a column, from the start of the load.
    fn middle_s(&self, place: usize) -> f64 {
        ((place * self.each) as f64 + self.bins[place].len() as f64 / 2.0) * self.bin_s
    }

    fn per_s(&self, of: fn(&Bin) -> u64) -> Vec<f64> {
        let per_s =
            |bins: &&[Bin]| bins.iter().map(of).sum::<u64>() as f64 / (bins.len() as f64 * self.bin_s);
        self.bins.iter().map(per_s).collect()
    }

    fn strips(&self) -> Vec<RunStrip> {
        let all = || self.bins.iter().copied().flatten();
        let slowest = all().map(|bin| bin.slowest_ns).max().unwrap_or(0);
        let (unit, ns) = match slowest {
            0..10_000_000 => ("µs", 1e3),
            10_000_000..10_000_000_000 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        let slowest = |bins: &&[Bin]| bins.iter().map(|bin| bin.slowest_ns).max().unwrap_or(0) as f64 / ns;
        let times = self.bins.iter().map(slowest).collect();
        let (due, replied) = (self.per_s(|bin| bin.due), self.per_s(|bin| bin.replied));
        let mut strips = vec![
            RunStrip {
                title: "tasks a second: due (dotted), answered".to_owned(),
                lines: vec![("c0", "paper", due), ("c1", "line", replied)],
            },
            RunStrip { title: format!("slowest answer, {unit}"), lines: vec![("c1", "line", times)] },
        ];
        if all().any(|bin| bin.refused > 0) {
            let lines = vec![("c2", "line", self.per_s(|bin| bin.refused))];
            strips.push(RunStrip { title: "refused a second".to_owned(), lines });
        }
        strips
    }
}

fn draw(html: &mut Html, strip: &RunStrip, top: f64, x: impl Fn(usize) -> f64) {
    let most = strip.lines.iter().flat_map(|(.., values)| values).copied().fold(1.0, f64::max);
    timeline::frame(html, top, &strip.title, most);
    for (colour, class, values) in &strip.lines {
        let mut line = String::new();
        for (place, value) in values.iter().enumerate() {
            let y = top + STRIP * (1.0 - value / most);
            // Writing to a string cannot fail.
            let _ = write!(line, "{}{:.1} {y:.1}", if line.is_empty() { "M" } else { "L" }, x(place));
        }
        html.element(tag("g").with("class", colour), |html| {
            html.lone(tag("path").with("class", class).with("d", line));
        });
    }
}

/// The warm-up, and where stages begin and faults come.
fn marks(html: &mut Html, result: &RunResult, top: f64, x: &impl Fn(f64) -> f64) {
    let (until, bottom) = (x(result.warm_up_s), top + STRIP);
    let path = format!("M{LEFT} {top}H{until:.1}V{bottom}H{LEFT}z");
    html.lone(tag("path").with("class", "silence").with("d", path));
    let stages = result.stages.iter().map(|stage| (stage.from_s, "a stage begins".to_owned()));
    let faults = result.events.iter().map(|event| (event.at_s, event.what.clone()));
    for (at_s, says) in stages.chain(faults) {
        let path = format!("M{:.1} {top}V{bottom}", x(at_s));
        html.element(tag("path").with("class", "capacity").with("d", path), |html| {
            html.leaf("title", format_args!("{says} at {at_s:.2} s"));
        });
    }
}

/// The picture for readers who cannot see it.
fn in_words(result: &RunResult) -> String {
    let (length, answered) = (digits(result.length_s), digits(result.replied_per_s));
    format!("Over time: {answered} answers a second on average in {length} measured seconds.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_days_has_as_many_columns_as_a_picture_shows_and_keeps_its_slowest_answer() {
        let mut bins = vec![Bin { due: 10, replied: 8, slowest_ns: 5, ..Bin::default() }; 1_000_001];
        bins[777_777].slowest_ns = 1_000;
        let columns = Columns::of(&bins, 0.1);
        let strips = columns.strips();
        assert_eq!(strips.len(), 2, "nothing was refused");
        let [due, replied] = [0, 1].map(|line| &strips[0].lines[line].2);
        assert!(due.len() <= COLUMNS_MAX && due.iter().all(|per_s| (per_s - 100.0).abs() < 1e-6));
        assert!(replied.iter().all(|per_s| (per_s - 80.0).abs() < 1e-6), "also in the last, which is short");
        let slowest = &strips[1].lines[0].2;
        assert!(slowest.iter().any(|us| (us - 1.0).abs() < 1e-9), "{slowest:?}");
        assert!(columns.middle_s(0) > 0.0 && columns.middle_s(due.len() - 1) < 100_000.1);
    }
}
