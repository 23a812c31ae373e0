//! Two studies, held against each other: each point of both by its panel, series and rate.

use sluice_outcome::study::{
    Estimate, Measure, Method, Metric, Panel, Part, Point, Series, Source, StudyOutcome, Unit,
};
use sluice_report::quantity;

use super::held::{HeldResults, NumberPair, SettingOfTwo, compare_setting};

/// The numbers of all tasks' times that are compared. More would only widen all intervals.
const METRICS: [(Measure, Part); 5] = [
    (Measure::LatencyNs, Part::Mean),
    (Measure::LatencyNs, Part::P50),
    (Measure::LatencyNs, Part::P99),
    (Measure::LatencyNs, Part::P999),
    (Measure::Slowdown, Part::P99),
];
/// The same of each class, if there are several.
const METRICS_OF_CLASS: [(Measure, Part); 2] =
    [(Measure::LatencyNs, Part::P50), (Measure::LatencyNs, Part::P99)];
const ALL: &str = "all";

/// A point with its place in the study.
struct PlacedPoint<'s> {
    panel: &'s Panel,
    series: &'s Series,
    point: &'s Point,
}

pub(super) fn diff(a: &StudyOutcome, b: &StudyOutcome) -> HeldResults {
    let points = [a, b].map(points);
    let without = |of: &[PlacedPoint<'_>], other: &[PlacedPoint<'_>]| {
        let lone = of.iter().filter(|one| !other.iter().any(|two| two.is_same(one)));
        lone.map(PlacedPoint::told).collect::<Vec<String>>()
    };
    let only = [without(&points[0], &points[1]), without(&points[1], &points[0])];
    let mut pairs = Vec::new();
    for one in &points[0] {
        if let Some(other) = points[1].iter().find(|other| other.is_same(one)) {
            one.compare(other.point, &mut pairs);
        }
    }
    HeldResults { kind: "study", settings: settings(a, b), only, pairs }
}

fn points(study: &StudyOutcome) -> Vec<PlacedPoint<'_>> {
    let series = study.panels.iter().flat_map(|panel| panel.series.iter().map(move |series| (panel, series)));
    let all = series.flat_map(|(panel, series)| {
        series.points.iter().map(move |point| PlacedPoint { panel, series, point })
    });
    all.collect()
}

impl PlacedPoint<'_> {
    fn is_same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// What tells it from the other points of its study.
    fn key(&self) -> (&str, &str, Source, u64) {
        let Self { panel, series, point } = self;
        (&panel.id, &series.label, series.source, point.offered_per_s.to_bits())
    }

    fn told(&self) -> String {
        let panel = if self.panel.id == "load" { String::new() } else { format!("{}: ", self.panel.id) };
        format!("{panel}{} at {}", self.series.label, quantity(self.point.offered_per_s, Unit::PerS))
    }

    fn compare(&self, other: &Point, pairs: &mut Vec<NumberPair>) {
        let mut push = |class: &str, number: String, unit, a, b| {
            pairs.push(NumberPair { point: self.told(), class: class.to_owned(), number, unit, a, b });
        };
        let (one, both_kept_up) = (self.point, self.point.sustained.holds && other.sustained.holds);
        if one.sustained.holds != other.sustained.holds {
            // The test that decided it has its own margin.
            let kept_up = |of: &Point| {
                let is = f64::from(u8::from(of.sustained.holds));
                Estimate::between(is, is, is, Method::Replications)
            };
            push(ALL, "kept_up".to_owned(), Unit::Count, kept_up(one), kept_up(other));
        }
        let (a, b) = (one.throughput_per_s, other.throughput_per_s);
        push(ALL, "throughput_per_s".to_owned(), Unit::PerS, a, b);
        for class in &one.classes {
            let goodput =
                other.classes.iter().find(|of| of.name == class.name).and_then(|of| of.goodput_per_s);
            if let Some((a, b)) = class.goodput_per_s.zip(goodput) {
                push(&class.name, "goodput_per_s".to_owned(), Unit::PerS, a, b);
            }
        }
        // Times beyond saturation only say how long a run was.
        if !both_kept_up {
            return;
        }
        let several = one.classes.len() > 1;
        let classes = one.classes.iter().filter(|_| several).map(|class| Some(class.name.as_str()));
        for class in std::iter::once(None).chain(classes) {
            let metrics = if class.is_none() { &METRICS[..] } else { &METRICS_OF_CLASS };
            let Some((here, there)) = one.times(class).zip(other.times(class)) else { continue };
            for (measure, part) in metrics {
                let metric = Metric { measure: *measure, part: *part };
                let number = format!("{}_{}", measure.name(), part.name());
                push(class.unwrap_or(ALL), number, measure.unit(), here.get(metric), there.get(metric));
            }
        }
    }
}

fn settings(a: &StudyOutcome, b: &StudyOutcome) -> Vec<SettingOfTwo> {
    type Setting = fn(&StudyOutcome) -> String;
    let workloads: Setting = |study| {
        let all = study.panels.iter().map(|panel| panel.workload.clone());
        all.collect::<Vec<String>>().join(" / ")
    };
    let settings: [(&'static str, Setting); 12] = [
        ("study", |study| study.name.clone()),
        ("workload", workloads),
        ("testbed", |study| study.settings.testbed.clone()),
        ("workers", |study| study.settings.workers.to_string()),
        ("seed", |study| study.settings.seed.to_string()),
        ("replications", |study| study.settings.replications.to_string()),
        ("tasks", |study| study.settings.tasks.to_string()),
        ("warm-up", |study| study.settings.warm_up.clone()),
        ("machine", |study| study.settings.machine.clone().unwrap_or_else(|| "any".to_owned())),
        ("dilation", |study| study.settings.dilation.unwrap_or(1).to_string()),
        ("complete", |study| if study.complete { "yes" } else { "no" }.to_owned()),
        ("version", |study| format!("{} ({})", study.sluice, study.commit)),
    ];
    let mut all = Vec::new();
    for (name, of) in settings {
        compare_setting(&mut all, name, of(a), of(b));
    }
    let has_other_values = a.settings.testbed_toml != b.settings.testbed_toml;
    if has_other_values && a.settings.testbed == b.settings.testbed {
        let (a, b) = (a.settings.testbed.clone(), format!("{} with other values", b.settings.testbed));
        all.push(SettingOfTwo { name: "testbed", a, b });
    }
    all
}
