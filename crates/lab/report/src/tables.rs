//! The tables of a report's page: verdicts, searches, comparisons, and all numbers.

use std::fmt::Display;
use std::iter;

use sluice_outcome::study::{
    Cause, Comparison, Counts, Estimate, Expectation, GaugeDescriptor, Gauges, Measure, Metric, Panel, Part,
    Point, Search, Series, StudyOutcome, Times, Unit, Verdict,
};

use super::html::{Html, tag};
use super::show;

/// The paper's statements and our results.
pub(crate) fn verdicts(html: &mut Html, study: &StudyOutcome) {
    let headings = ["What is stated", "Paper, or ours", "Here (95 %)", "Verdict", "Why"];
    table(html, "verdicts", &headings, &study.expectations, |html, row: &Expectation| {
        cell(html, headings[0], |html| {
            html.text(&row.claim);
            html.verbatim(" ");
            html.leaf("small", place(study, row));
        });
        cell(html, headings[1], |html| stated(html, row));
        cell(html, headings[2], |html| measured(html, row.measured.as_ref(), row.unit));
        cell(html, headings[3], |html| badge(html, row.verdict, row.verdict));
        cell(html, headings[4], |html| {
            html.text(&row.why);
            if let Some(cause) = &row.cause {
                because(html, cause);
            }
        });
    });
}

/// The stated number, with a mark if no paper has it.
fn stated(html: &mut Html, row: &Expectation) {
    html.leaf(tag("span").with("class", "n"), show::stated(row));
    if row.ours {
        html.verbatim(" ");
        html.leaf("small", "ours");
    }
}

/// The place in the paper, and, if there are several panels, the one that it is about.
fn place(study: &StudyOutcome, row: &Expectation) -> String {
    let panel = study.panels.iter().find(|panel| row.panel.as_ref() == Some(&panel.id));
    match panel.filter(|_| study.panels.len() > 1) {
        Some(panel) => format!("{} · {}", row.place, panel.title),
        None => row.place.clone(),
    }
}

/// A verdict as a word with a sign, so that it is readable without colour.
pub(crate) fn badge(html: &mut Html, verdict: Verdict, says: impl Display) {
    let (class, sign) = sign(verdict);
    signed(html, class, sign, says);
}

/// The CSS class and the sign of a verdict.
const fn sign(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Agrees => ("good", "✓ "),
        Verdict::AgreesInShape => ("fair", "≈ "),
        Verdict::Differs => ("bad", "≠ "),
        Verdict::Undecided => ("noisy", "± "),
        Verdict::SetUpNotKnown | Verdict::NotMeasured => ("open", "? "),
    }
}

fn signed(html: &mut Html, class: &str, sign: &str, says: impl Display) {
    html.element(tag("span").with("class", format_args!("badge {class}")), |html| {
        html.leaf(tag("span").with("aria-hidden", "true"), sign);
        html.text(says);
    });
}

/// The highest rates within a limit.
pub(crate) fn searches(html: &mut Html, study: &StudyOutcome) {
    let headings = ["Policy", "Limit", "Highest rate", "Load", "Workload", "Note"];
    table(html, "plain", &headings, &study.searches, |html, row: &Search| {
        let panel = study.panels.iter().find(|panel| panel.id == row.panel);
        let limit = show::quantity(row.limit, row.metric.unit());
        let limit = format!("{} ≤ {limit}", of_class(row.class.as_deref(), &show::metric(row.metric)));
        cell(html, headings[0], |html| html.leaf("b", &row.policy));
        cell(html, headings[1], |html| html.text(limit));
        cell(html, headings[2], |html| measured(html, row.rate_per_s.as_ref(), Unit::PerS));
        cell(html, headings[3], |html| {
            if let Some((panel, rate)) = panel.zip(row.rate_per_s) {
                html.text(show::quantity(rate.value / panel.capacity_per_s, Unit::Share));
            }
        });
        cell(html, headings[4], |html| html.text(workload(panel, &row.panel, study.panels.len())));
        cell(html, headings[5], |html| html.text(&row.note));
    });
}

/// What distinguishes a panel from the others of its study: its title, or, if it is alone, its workload.
fn workload<'p>(panel: Option<&'p Panel>, id: &'p str, panels: usize) -> &'p str {
    panel.map_or(id, |panel| if panels == 1 { &panel.workload } else { &panel.title })
}

/// Comparisons on the same tasks.
pub(crate) fn comparisons(html: &mut Html, study: &StudyOutcome) {
    let bound: Vec<&Comparison> = study.comparisons.iter().filter(|row| row.allowed.is_some()).collect();
    if !bound.is_empty() {
        let count = |verdict| bound.iter().filter(|row| row.verdict == Some(verdict)).count();
        let (agree, undecided) = (count(Verdict::Agrees), count(Verdict::Undecided));
        let open = if undecided > 0 { format!(" {undecided} are undecided.") } else { String::new() };
        html.leaf("p", format_args!("{agree} of {} pairs that have to agree do.{open}", bound.len()));
    }
    let headings = ["A", "B", "What", "At", "A’s (95 %)", "B’s (95 %)", "B − A (95 %)", "Verdict"];
    table(html, "plain", &headings, &study.comparisons, |html, row: &Comparison| {
        let unit = row.metric.map_or(Unit::PerS, Metric::unit);
        let what = row.metric.map_or_else(|| "throughput".to_owned(), show::metric);
        cell(html, headings[0], |html| html.leaf("b", &row.a));
        cell(html, headings[1], |html| html.leaf("b", &row.b));
        cell(html, headings[2], |html| html.text(of_class(row.class.as_deref(), &what)));
        cell(html, headings[3], |html| html.text(show::rate(row.offered_per_s).replace(' ', "\u{a0}")));
        cell(html, headings[4], |html| measured(html, Some(&row.of_a), unit));
        cell(html, headings[5], |html| measured(html, Some(&row.of_b), unit));
        cell(html, headings[6], |html| {
            measured(html, Some(&row.difference), unit);
            if row.of_a.value > 0.0 {
                let share = show::quantity(row.difference.value / row.of_a.value, Unit::Share);
                html.verbatim(" ");
                html.leaf("small", format_args!("· {share} of A’s"));
            }
        });
        cell(html, headings[7], |html| {
            let (class, sign) = match (row.verdict, row.real) {
                (Some(verdict), _) => sign(verdict),
                (None, true) => ("open", "≠ "),
                (None, false) => ("open", "≈ "),
            };
            signed(html, class, sign, show::comparison(row));
            if let Some(allowed) = row.allowed {
                html.leaf("small", format_args!(" {} allowed", show::quantity(allowed, Unit::Share)));
            }
            if let Some(cause) = &row.cause {
                because(html, cause);
            }
        });
    });
}

/// Every number of a panel, folded by series.
pub(crate) fn numbers(html: &mut Html, panel: &Panel) {
    for series in &panel.series {
        html.element("details", |html| {
            html.element("summary", |html| {
                html.leaf("b", &series.label);
                let (points, title) = (series.points.len(), &panel.title);
                html.text(format_args!(" · {title} · {points} point{}", if points == 1 { "" } else { "s" }));
            });
            for measure in Measure::ALL {
                html.element(tag("div").with("class", "wide"), |html| times(html, series, measure));
            }
            html.element(tag("div").with("class", "wide"), |html| in_time(html, panel, series));
            html.element(tag("div").with("class", "wide"), |html| behind(html, series));
        });
        html.line();
    }
}

fn times(html: &mut Html, series: &Series, measure: Measure) {
    let headings = ["offered", "load", "throughput", "tasks", "mean", "median", "p90", "p95", "p99", "p99.9"];
    numeric_table(html, show::measure(measure), &headings, |html| {
        for point in &series.points {
            times_row(html, point, "all", &point.overall, measure);
            let classes = if point.classes.len() > 1 { &point.classes[..] } else { &[] };
            for class in classes {
                times_row(html, point, &class.name, &class.times, measure);
            }
        }
    });
}

fn times_row(html: &mut Html, point: &Point, class: &str, times: &Times, measure: Measure) {
    html.element("tr", |html| {
        html.leaf(tag("th").with("scope", "row"), show::rate(point.offered_per_s));
        html.leaf("td", show::quantity(point.load, Unit::Share));
        html.element("td", |html| {
            measured(html, Some(&point.throughput_per_s), Unit::PerS);
            if !point.sustained.holds {
                html.leaf("i", " not sustained");
            }
        });
        html.leaf("td", class);
        for part in Part::ALL {
            html.element("td", |html| measured(html, Some(&times.spread(measure).get(part)), measure.unit()));
        }
    });
}

/// Each class's answers in time, if anybody asked for them.
fn in_time(html: &mut Html, panel: &Panel, series: &Series) {
    let is_known = |point: &Point| point.classes.iter().any(|class| class.goodput_per_s.is_some());
    if !series.points.iter().any(is_known) {
        return;
    }
    numeric_table(html, "answers in time, a second", &["offered", "tasks", "within", "in time"], |html| {
        for point in &series.points {
            for class in &point.classes {
                let of = panel.classes.iter().find(|of| of.name == class.name);
                let within = of.and_then(|of| of.within_ns).map(|ns| show::quantity(ns as f64, Unit::Ns));
                html.element("tr", |html| {
                    html.leaf(tag("th").with("scope", "row"), show::rate(point.offered_per_s));
                    html.leaf("td", &class.name);
                    html.leaf("td", within.unwrap_or_default());
                    html.element("td", |html| measured(html, class.goodput_per_s.as_ref(), Unit::PerS));
                });
            }
        }
    });
}

fn behind(html: &mut Html, series: &Series) {
    // Gauges that only racks or only fabrics have get no column in the other.
    let is_known =
        |gauge: &&GaugeDescriptor| series.points.iter().any(|point| (gauge.get)(&point.gauges).is_some());
    let known = || Gauges::ALL.iter().filter(is_known);
    let gauges = || known().filter_map(|gauge| gauge.heading.map(|heading| (heading, gauge)));
    let counts = || Counts::ALL.iter().filter_map(|count| count.heading.map(|heading| (heading, count)));
    let headings = gauges().map(|(heading, _)| heading).chain(counts().map(|(heading, _)| heading));
    let headings: Vec<_> = iter::once("offered").chain(headings).chain(["backlog", "intervals"]).collect();
    numeric_table(html, "behind the times", &headings, |html| {
        for point in &series.points {
            html.element("tr", |html| {
                html.leaf(tag("th").with("scope", "row"), show::rate(point.offered_per_s));
                for (_, gauge) in gauges() {
                    let value = (gauge.get)(&point.gauges);
                    let shown =
                        value.map_or_else(|| "–".to_owned(), |value| show::quantity(value, gauge.unit));
                    html.leaf("td", shown);
                }
                for (_, count) in counts() {
                    html.leaf("td", show::whole((count.get)(&point.counts)));
                }
                html.leaf("td", backlog(point));
                html.leaf("td", if point.caveat.is_empty() { "sound" } else { point.caveat.as_str() });
            });
        }
    });
}

fn backlog(point: &Point) -> &str {
    match (point.sustained.holds, point.sustained.why.as_str()) {
        (true, "") => "bounded",
        (false, "") => "grows",
        (_, why) => why,
    }
}

/// A table whose rows become cards on a narrow screen. Its ARIA roles are set, since that layout removes
/// the implied ones.
fn table<T>(
    html: &mut Html,
    class: &str,
    headings: &[&'static str],
    rows: &[T],
    row: impl Fn(&mut Html, &T),
) {
    let table = tag("table").with("class", format_args!("cards {class}")).with("role", "table");
    html.element(table, |html| {
        html.element(tag("thead").with("role", "rowgroup"), |html| {
            html.element(tag("tr").with("role", "row"), |html| {
                for heading in headings {
                    html.leaf(tag("th").with("role", "columnheader").with("scope", "col"), heading);
                }
            });
        });
        html.element(tag("tbody").with("role", "rowgroup"), |html| {
            for of in rows {
                html.element(tag("tr").with("role", "row"), |html| row(html, of));
                html.line();
            }
        });
    });
}

/// A cell that carries its heading, for the layout as cards.
fn cell(html: &mut Html, heading: &'static str, inside: impl FnOnce(&mut Html)) {
    html.element(tag("td").with("role", "cell").with("data-of", heading), |html| {
        html.element("div", inside);
    });
}

pub(crate) fn numeric_table(html: &mut Html, caption: &str, headings: &[&str], rows: impl FnOnce(&mut Html)) {
    html.element(tag("table").with("class", "numbers"), |html| {
        html.leaf("caption", caption);
        html.element("thead", |html| {
            html.element("tr", |html| {
                for heading in headings {
                    html.leaf(tag("th").with("scope", "col"), heading);
                }
            });
        });
        html.element("tbody", rows);
    });
}

/// A value, followed by its interval in small print.
fn measured(html: &mut Html, of: Option<&Estimate>, unit: Unit) {
    let Some(of) = of else {
        html.text("–");
        return;
    };
    html.leaf(tag("span").with("class", "n"), show::quantity(of.value, unit));
    if let Some(interval) = show::interval(of, unit) {
        html.verbatim(" ");
        html.leaf("small", interval);
    }
}

fn because(html: &mut Html, cause: &Cause) {
    html.element(tag("div").with("class", "cause"), |html| {
        html.leaf("b", "Cause: ");
        html.text(&cause.says);
        html.leaf("pre", &cause.command);
        html.leaf("small", &cause.shows);
    });
}

fn of_class(class: Option<&str>, what: &str) -> String {
    class.map_or_else(|| what.to_owned(), |class| format!("{class}: {what}"))
}
