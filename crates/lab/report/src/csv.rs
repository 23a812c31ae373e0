//! A study as CSV: a row for each point, class and metric, in the order of the study; or a row for each
//! point, with a column for each number.

use std::fmt::{Display, Write};

use sluice_outcome::study::{
    Comparison, Counts, Estimate, Expectation, Gauges, HeatMap, Measure, Method, Part, Point, Series, Source,
    StudyOutcome, Times,
};

const HEADINGS: &str = "study,panel,workload,policy,series,slices,source,dilation,seed,offered_per_s,load,\
                        sustained,class,metric,value,low,high,method\n";

/// The class in rows about all tasks.
const ALL: &str = "all";

/// The whole file.
pub fn csv(study: &StudyOutcome) -> String {
    let mut out = String::from(HEADINGS);
    study.heats.iter().for_each(|map| heat(&mut out, study, map));
    for panel in &study.panels {
        for series in &panel.series {
            for point in &series.points {
                let rows = Rows { head: head(study, &panel.id, &panel.workload, series, point) };
                rows.point(&mut out, point);
            }
        }
    }
    study.expectations.iter().for_each(|row| statement(&mut out, study, row));
    study.comparisons.iter().for_each(|row| pair(&mut out, study, row));
    out
}

/// A row for each point, as pandas and gnuplot read it: each number has a column, and an estimate two more,
/// for the ends of its interval. Numbers of a class have its name before theirs. What was not measured, or
/// has no upper end, is empty.
pub fn points_csv(studies: &[StudyOutcome]) -> String {
    let points = || {
        let panels = studies.iter().flat_map(|study| study.panels.iter().map(move |panel| (study, panel)));
        let series = panels.flat_map(|(study, panel)| panel.series.iter().map(move |of| (study, panel, of)));
        series.flat_map(|(study, panel, of)| of.points.iter().map(move |point| (study, panel, of, point)))
    };
    let mut classes: Vec<&str> = Vec::new();
    for class in points().flat_map(|(.., point)| &point.classes) {
        if !classes.contains(&class.name.as_str()) {
            classes.push(&class.name);
        }
    }
    let mut out = point_headings(&classes);
    for (study, panel, series, point) in points() {
        let mut cells = vec![head(study, &panel.id, &panel.workload, series, point)];
        estimate_cells(&mut cells, Some(&point.throughput_per_s));
        time_cells(&mut cells, Some(&point.overall));
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        cells.extend(Gauges::ALL.iter().map(|gauge| number((gauge.get)(&point.gauges))));
        cells.extend(Counts::ALL.iter().map(|count| (count.get)(&point.counts).to_string()));
        for name in &classes {
            let class = point.classes.iter().find(|class| class.name == *name);
            cells.push(class.map_or_else(String::new, |class| class.tasks.to_string()));
            estimate_cells(&mut cells, class.and_then(|class| class.goodput_per_s.as_ref()));
            time_cells(&mut cells, class.map(|class| &class.times));
        }
        out += &cells.join(",");
        out.push('\n');
    }
    out
}

fn point_headings(classes: &[&str]) -> String {
    let before = HEADINGS.split(",class,").next().unwrap_or_default();
    let with_ends = |name: &str| ["", "_low", "_high"].map(|end| format!("{name}{end}"));
    let times = || {
        let parts = |measure: Measure| Part::ALL.map(|part| format!("{}_{}", measure.name(), part.name()));
        Measure::ALL.into_iter().flat_map(parts).flat_map(|name| with_ends(&name))
    };
    let mut all = vec![before.to_owned()];
    all.extend(with_ends("throughput_per_s"));
    all.extend(times());
    all.extend(Gauges::ALL.iter().map(|gauge| gauge.name.to_owned()));
    all.extend(Counts::ALL.iter().map(|count| count.name.to_owned()));
    for class in classes {
        let own = std::iter::once("tasks".to_owned()).chain(with_ends("goodput_per_s")).chain(times());
        all.extend(own.map(|name| field(format!("{class}.{name}"))));
    }
    all.join(",") + "\n"
}

fn time_cells(cells: &mut Vec<String>, times: Option<&Times>) {
    for measure in Measure::ALL {
        for part in Part::ALL {
            estimate_cells(cells, times.map(|times| times.spread(measure).get(part)).as_ref());
        }
    }
}

fn estimate_cells(cells: &mut Vec<String>, of: Option<&Estimate>) {
    let ends = of.map(|of| [of.value.to_string(), of.low.to_string(), upper(of)]);
    cells.extend(ends.unwrap_or_default());
}

/// The upper end of an interval; empty if the data give none.
fn upper(of: &Estimate) -> String {
    if of.open_above { String::new() } else { of.high.to_string() }
}

/// A statement with its verdict; its id is in the class column.
fn statement(out: &mut String, study: &StudyOutcome, row: &Expectation) {
    let head =
        CsvLocation { panel: row.panel.as_deref().unwrap_or_default(), ..CsvLocation::default() }.head(study);
    let metric = format!("statement_{}", row.verdict.name());
    Rows { head }.row(out, &row.id, &metric, row.measured.as_ref());
}

/// The difference of a pair that must agree, with its verdict: the first one is in the policy column, the
/// second in the series column.
fn pair(out: &mut String, study: &StudyOutcome, row: &Comparison) {
    let Some(verdict) = row.verdict else { return };
    let offered_per_s = Some(row.offered_per_s);
    let head = CsvLocation { panel: &row.panel, policy: &row.a, series: &row.b, offered_per_s }.head(study);
    let of = row.metric.map_or_else(
        || "throughput_per_s".to_owned(),
        |metric| format!("{}_{}", metric.measure.name(), metric.part.name()),
    );
    let metric = format!("{of}_difference_{}", verdict.name());
    Rows { head }.row(out, row.class.as_deref().unwrap_or(ALL), &metric, Some(&row.difference));
}

/// The place of a number that belongs to no point.
#[derive(Clone, Copy, Debug, Default)]
struct CsvLocation<'p> {
    panel: &'p str,
    policy: &'p str,
    series: &'p str,
    offered_per_s: Option<f64>,
}

impl CsvLocation<'_> {
    fn head(&self, study: &StudyOutcome) -> String {
        let nothing = String::new;
        let of = [field(&study.name), field(self.panel), nothing(), field(self.policy), field(self.series)];
        let offered = self.offered_per_s.map_or_else(nothing, |rate| rate.to_string());
        let run = [nothing(), nothing(), nothing(), study.settings.seed.to_string()];
        [&of[..], &run[..], &[offered, nothing(), nothing()]].concat().join(",")
    }
}

/// A heat map's numbers; the settings are in the class column.
fn heat(out: &mut String, study: &StudyOutcome, map: &HeatMap) {
    let rows = Rows { head: CsvLocation { panel: &map.id, ..CsvLocation::default() }.head(study) };
    for (across, down, number) in map.numbers() {
        let class = format!("{}={across} {}={down}", map.across.name, map.down.name);
        rows.row(out, &class, "mean", Some(number));
    }
}

/// The columns with which all rows of a point begin.
struct Rows {
    head: String,
}

impl Rows {
    fn point(&self, out: &mut String, point: &Point) {
        self.row(out, ALL, "throughput_per_s", Some(&point.throughput_per_s));
        self.times(out, ALL, &point.overall);
        for class in &point.classes {
            self.times(out, &class.name, &class.times);
        }
        for gauge in Gauges::ALL {
            if let Some(value) = (gauge.get)(&point.gauges) {
                self.row(out, ALL, gauge.name, Some(&Estimate::exact(value)));
            }
        }
        for count in Counts::ALL {
            self.row(out, ALL, count.name, Some(&Estimate::exact((count.get)(&point.counts) as f64)));
        }
        for class in &point.classes {
            self.row(out, &class.name, "tasks", Some(&Estimate::exact(class.tasks as f64)));
            if let Some(goodput) = &class.goodput_per_s {
                self.row(out, &class.name, "goodput_per_s", Some(goodput));
            }
        }
    }

    fn times(&self, out: &mut String, class: &str, times: &Times) {
        for measure in Measure::ALL {
            for part in Part::ALL {
                let name = format!("{}_{}", measure.name(), part.name());
                self.row(out, class, &name, Some(&times.spread(measure).get(part)));
            }
        }
    }

    fn row(&self, out: &mut String, class: &str, metric: &str, of: Option<&Estimate>) {
        let (head, class) = (&self.head, field(class));
        // Writing to a string cannot fail.
        let _ = match of {
            Some(of @ Estimate { value, low, method, .. }) => {
                let (high, method) = (upper(of), method_name(*method));
                writeln!(out, "{head},{class},{metric},{value},{low},{high},{method}")
            }
            None => writeln!(out, "{head},{class},{metric},,,,"),
        };
    }
}

fn head(study: &StudyOutcome, panel: &str, workload: &str, series: &Series, point: &Point) -> String {
    let source = match series.source {
        Source::Simulator => "simulator",
        Source::Live => "live",
    };
    [
        field(&study.name),
        field(panel),
        field(workload),
        field(&series.policy),
        field(&series.label),
        field(series.slices.as_deref().unwrap_or_default()),
        source.to_owned(),
        study.settings.dilation.unwrap_or(1).to_string(),
        study.settings.seed.to_string(),
        point.offered_per_s.to_string(),
        point.load.to_string(),
        point.sustained.holds.to_string(),
    ]
    .join(",")
}

/// A field as RFC 4180 requires: in quotes if necessary.
pub(crate) fn field(text: impl Display) -> String {
    let text = text.to_string();
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

const fn method_name(method: Method) -> &'static str {
    match method {
        Method::Replications => "replications",
        Method::Paired => "paired",
        Method::Batches => "batches",
        Method::OrderStatistics => "order_statistics",
        Method::Bracket => "bracket",
        Method::None => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_quoted_only_if_it_must_be() {
        assert_eq!(field("rain:2"), "rain:2");
        assert_eq!(field("racksched:2,tracked"), "\"racksched:2,tracked\"");
        assert_eq!(field("a \"b\"\nc"), "\"a \"\"b\"\"\nc\"");
    }
}
