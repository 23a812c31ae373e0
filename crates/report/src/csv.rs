//! A study as CSV: a row for each point, class and metric, in the order of the study.

use std::fmt::{Display, Write};

use sluice_outcome::study::{
    Counts, Estimate, Gauges, HeatMap, Measure, Method, Part, Point, Series, Source, StudyOutcome, Times,
};

const HEADINGS: &str = "study,panel,workload,policy,series,slices,source,dilation,seed,offered_per_s,load,\
                        sustained,class,metric,value,low,high,method\n";

/// The class of rows that are of all tasks.
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
    out
}

/// A map's numbers: the settings stand for the class.
fn heat(out: &mut String, study: &StudyOutcome, map: &HeatMap) {
    let nothing = String::new;
    let fields = [field(&study.name), field(&map.id), nothing(), nothing(), nothing(), nothing(), nothing()];
    let offered = [nothing(), study.settings.seed.to_string(), nothing(), nothing(), nothing()];
    let rows = Rows { head: [&fields[..], &offered[..]].concat().join(",") };
    for (across, down, number) in map.numbers() {
        let class = format!("{}={across} {}={down}", map.across.name, map.down.name);
        rows.row(out, &class, "mean", number);
    }
}

/// What all rows of a point begin with.
struct Rows {
    head: String,
}

impl Rows {
    fn point(&self, out: &mut String, point: &Point) {
        self.row(out, ALL, "throughput_per_s", &point.throughput_per_s);
        self.times(out, ALL, &point.overall);
        for class in &point.classes {
            self.times(out, &class.name, &class.times);
        }
        for gauge in Gauges::ALL {
            if let Some(value) = (gauge.get)(&point.gauges) {
                self.row(out, ALL, gauge.name, &Estimate::exact(value));
            }
        }
        for count in Counts::ALL {
            self.row(out, ALL, count.name, &Estimate::exact((count.get)(&point.counts) as f64));
        }
        for class in &point.classes {
            self.row(out, &class.name, "tasks", &Estimate::exact(class.tasks as f64));
        }
    }

    fn times(&self, out: &mut String, class: &str, times: &Times) {
        for measure in Measure::ALL {
            for part in Part::ALL {
                let name = format!("{}_{}", measure.name(), part.name());
                self.row(out, class, &name, &times.spread(measure).get(part));
            }
        }
    }

    fn row(&self, out: &mut String, class: &str, metric: &str, of: &Estimate) {
        let Estimate { value, low, method, .. } = of;
        let (class, method) = (field(class), method_name(*method));
        // Where the data do not bound a number above, there is no upper end.
        let high = if of.open_above { String::new() } else { of.high.to_string() };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{},{class},{metric},{value},{low},{high},{method}", self.head);
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

/// A field as RFC 4180 wants it: in quotes if it has to be.
/// A field, in quotes where it must be.
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
