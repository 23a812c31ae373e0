//! Two results beside each other. Of two studies: their panels in the same pictures, and a table of
//! what differs, point by point; panels, policies and rates that only one of them has are shown too. Of two
//! loads: their tasks and times, type by type.

use serde_json::Value;
use sluice_outcome::study::{Estimate, Metric, Panel, Point, Series, StudyOutcome, Unit};

use super::html::{Html, tag};
use super::panel::Pictures;
use super::series_style::SeriesStyles;
use super::{panel, show};

/// A piece of a page about two studies, each with the name that it has there.
pub fn beside(one: (&str, &StudyOutcome), other: (&str, &StudyOutcome)) -> String {
    let merged = merged(one, other);
    let looks = SeriesStyles::of(&merged.panels);
    let mut html = Html::new();
    settings(&mut html, [one, other]);
    for (number, of) in merged.panels.iter().enumerate() {
        panel::panel(&mut html, &Pictures { panel: of, looks: &looks, slo_ns: None }, number);
        differences(&mut html, &of.id, one, other);
    }
    html.into_string()
}

/// A piece of a page about two loads, each the JSON of a `result.json` with the name that it has there.
pub fn beside_loads(one: (&str, &Value), other: (&str, &Value)) -> String {
    let mut html = Html::new();
    let both = [one, other];
    let columns = ["", one.0, other.0];
    table(&mut html, "Settings", &columns, |html| {
        for key in ["name", "policy", "workers", "offered_per_s", "length_s", "dilation", "seed", "passed"] {
            let cells = both.map(|(_, result)| plain(&result[key]));
            pair(html, key, &columns, &cells);
        }
    });
    for name in types_of_both(both) {
        let found = both.map(|(_, result)| kind(result, &name));
        table(&mut html, &format!("Tasks of type {name}"), &columns, |html| {
            for key in ["sent", "replied", "failed", "refused", "unknown", "lost"] {
                pair(
                    html,
                    key,
                    &columns,
                    &found.map(|kind| kind.map_or_else(nothing, |kind| plain(&kind["tasks"][key]))),
                );
            }
            for (key, word) in [
                ("latency_ns", "latency"),
                ("slowdown", "slowdown"),
                ("switch_wait_ns", "wait in the switch"),
            ] {
                for part in ["p50", "p99", "p999"] {
                    let unit = if key == "slowdown" { Unit::Ratio } else { Unit::Ns };
                    let value = |kind: Option<&Value>| kind.and_then(|kind| kind[key][part].as_f64());
                    let told =
                        found.map(|kind| value(kind).map_or_else(nothing, |of| show::quantity(of, unit)));
                    pair(html, &format!("{word}, {part}"), &columns, &told);
                }
            }
        });
    }
    html.into_string()
}

fn types_of_both(both: [(&str, &Value); 2]) -> Vec<String> {
    let all = both.into_iter().flat_map(|(_, result)| result["types"].as_array().into_iter().flatten());
    let mut names: Vec<String> = Vec::new();
    for name in all.filter_map(|kind| kind["name"].as_str()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn kind<'r>(result: &'r Value, name: &str) -> Option<&'r Value> {
    result["types"].as_array()?.iter().find(|kind| kind["name"] == name)
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => nothing(),
        Value::String(text) => text.clone(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        other => other.to_string(),
    }
}

fn pair(html: &mut Html, name: &str, columns: &[&str; 3], values: &[String; 2]) {
    row(html, |html| {
        html.leaf(tag("th").with("scope", "row").with("role", "rowheader"), name);
        cell(html, columns[1], &values[0]);
        cell(html, columns[2], &values[1]);
    });
}

/// The settings in which two studies may differ.
fn settings(html: &mut Html, both: [(&str, &StudyOutcome); 2]) {
    type Setting = fn(&StudyOutcome) -> String;
    let rows: [(&str, Setting); 8] = [
        ("study", |study| format!("{}: {}", study.name, study.title)),
        ("complete", |study| if study.complete { "yes" } else { "no" }.to_owned()),
        ("testbed", |study| study.settings.testbed.clone()),
        ("workers", |study| study.settings.workers.to_string()),
        ("seed", |study| study.settings.seed.to_string()),
        ("replications", |study| study.settings.replications.to_string()),
        ("tasks each", |study| show::tasks(&study.settings).unwrap_or_else(|| "all of a time".to_owned())),
        ("version", |study| format!("{}, commit {}", study.sluice, study.commit)),
    ];
    table(html, "Settings", &["setting", both[0].0, both[1].0], |html| {
        for (name, of) in rows {
            let [one, other] = both.map(|(_, study)| of(study));
            row(html, |html| {
                html.leaf(tag("th").with("scope", "row").with("role", "rowheader"), name);
                cell(html, both[0].0, &one);
                cell(html, both[1].0, &if one == other { format!("{other} (the same)") } else { other });
            });
        }
    });
}

/// One study with the panels of both.
fn merged(one: (&str, &StudyOutcome), other: (&str, &StudyOutcome)) -> StudyOutcome {
    let mut panels: Vec<Panel> = Vec::new();
    for (name, study) in [one, other] {
        for panel in &study.panels {
            let series = panel.series.iter().map(|series| named(series, name));
            match panels.iter_mut().find(|known| known.id == panel.id) {
                Some(known) => known.series.extend(series),
                // The papers' numbers name series as one study calls them.
                None => panels.push(Panel { series: series.collect(), paper: Vec::new(), ..panel.clone() }),
            }
        }
    }
    StudyOutcome { panels, ..one.1.clone() }
}

fn named(series: &Series, study: &str) -> Series {
    Series { label: format!("{} ({study})", series.label), ..series.clone() }
}

/// The p99 latencies of a panel's points, study against study.
fn differences(html: &mut Html, panel: &str, one: (&str, &StudyOutcome), other: (&str, &StudyOutcome)) {
    let points = [one.1, other.1].map(|study| points(study, panel));
    let mut keys: Vec<(&str, f64)> =
        points.iter().flatten().map(|(series, point)| (series.label.as_str(), point.offered_per_s)).collect();
    keys.sort_by(|one, other| one.0.cmp(other.0).then(one.1.total_cmp(&other.1)));
    keys.dedup();
    let columns = ["policy", "offered", one.0, other.0, "ratio", "intervals"];
    table(html, "p99 latency, point by point", &columns, |html| {
        for (label, rate) in keys {
            let find = |points: &[(&Series, &Point)]| {
                let is_it = |(series, point): &&(&Series, &Point)| {
                    series.label == label && point.offered_per_s.total_cmp(&rate).is_eq()
                };
                points.iter().find(is_it).map(|(_, point)| point.overall.get(Metric::P99))
            };
            let [here, there] = [find(&points[0]), find(&points[1])];
            row(html, |html| {
                html.leaf(tag("th").with("scope", "row").with("role", "rowheader"), label);
                cell(html, columns[1], &show::rate(rate));
                cell(html, columns[2], &told(here));
                cell(html, columns[3], &told(there));
                let both = here.zip(there);
                let ratio = both.filter(|(here, _)| here.value > 0.0);
                let ratio = ratio.map(|(here, there)| format!("{:.3}", there.value / here.value));
                cell(html, columns[4], &ratio.unwrap_or_else(nothing));
                cell(
                    html,
                    columns[5],
                    &both.map_or_else(nothing, |(here, there)| overlap(&here, &there).to_owned()),
                );
            });
        }
    });
}

fn points<'s>(study: &'s StudyOutcome, panel: &str) -> Vec<(&'s Series, &'s Point)> {
    let panels = study.panels.iter().filter(|of| of.id == panel);
    let series = panels.flat_map(|panel| &panel.series);
    series.flat_map(|series| series.points.iter().map(move |point| (series, point))).collect()
}

fn nothing() -> String {
    super::table::NOTHING.to_owned()
}

fn told(of: Option<Estimate>) -> String {
    of.map_or_else(nothing, |of| show::estimate(&of, Metric::P99.unit()))
}

/// Whether two intervals have a value in common. One without an end above has all above it.
fn overlap(one: &Estimate, other: &Estimate) -> &'static str {
    if !one.has_interval() || !other.has_interval() {
        return "not known";
    }
    let high = |of: &Estimate| if of.open_above { f64::INFINITY } else { of.high };
    if one.low <= high(other) && other.low <= high(one) { "overlap" } else { "apart" }
}

/// A table whose rows are cards on a narrow screen, which would take its roles away.
fn table(html: &mut Html, caption: &str, columns: &[&str], rows: impl FnOnce(&mut Html)) {
    html.element(tag("table").with("class", "cards").with("role", "table"), |html| {
        html.leaf("caption", caption);
        html.element(tag("thead").with("role", "rowgroup"), |html| {
            row(html, |html| {
                for column in columns {
                    html.leaf(tag("th").with("scope", "col").with("role", "columnheader"), column);
                }
            });
        });
        html.element(tag("tbody").with("role", "rowgroup"), rows);
    });
    html.line();
}

fn row(html: &mut Html, cells: impl FnOnce(&mut Html)) {
    html.element(tag("tr").with("role", "row"), cells);
}

fn cell(html: &mut Html, of: &str, text: &str) {
    html.leaf(tag("td").with("role", "cell").with("data-of", of), text);
}

#[cfg(test)]
mod tests {
    use sluice_outcome::study::Method;

    use super::*;

    #[test]
    fn intervals_overlap_if_they_have_a_value_in_common() {
        let between =
            |low, high| Estimate::between(f64::midpoint(low, high), low, high, Method::Replications);
        assert_eq!(overlap(&between(1.0, 2.0), &between(2.0, 3.0)), "overlap");
        assert_eq!(overlap(&between(1.0, 2.0), &between(2.5, 3.0)), "apart");
        let open = Estimate { open_above: true, ..between(1.0, 1.5) };
        assert_eq!(overlap(&open, &between(2.5, 3.0)), "overlap");
        assert_eq!(overlap(&Estimate::exact(1.0), &between(1.0, 2.0)), "not known");
    }
}
