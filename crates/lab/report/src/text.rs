//! A study for the terminal: settings, points, and verdicts.

use std::fmt::Write;

use sluice_outcome::study::{
    Cause, Comparison, Expectation, HeatMap, Measure, Metric, Panel, Part, Point, Search, StudyOutcome, Unit,
};

use super::pass_costs::{self, PassCosts};
use super::show;
use crate::table::{NOTHING, Table};

/// How many points' warnings about intervals are printed.
const CAVEATS_MAX: usize = 5;

/// The summary printed at the end of a run.
///
/// On a terminal with `columns` columns, tables leave out the least important columns, and say so.
pub fn summary(study: &StudyOutcome, columns: Option<usize>) -> String {
    let mut out = String::new();
    heading(&mut out, study);
    for map in &study.heats {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n{}, by {} and {}\n{}", map.title, map.down.name, map.across.name, heat(map));
    }
    for panel in &study.panels {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n{} [{}]\n", panel.title, panel.workload);
        let limits = panel.classes.iter().filter_map(|class| {
            Some(format!("{} within {}", class.name, show::quantity(class.within_ns? as f64, Unit::Ns)))
        });
        let limits: Vec<String> = limits.collect();
        if !limits.is_empty() {
            let _ = writeln!(out, "answers in time: {}", limits.join(", "));
        }
        all_points(&mut out, panel, columns);
        caveats(&mut out, panel);
        price_and_gain(&mut out, panel, columns);
    }
    expectations(&mut out, study);
    for table in [searches(study), comparisons(study)].into_iter().flatten() {
        let _ = write!(out, "\n{table}");
    }
    for row in study.comparisons.iter().filter(|row| row.cause.is_some()) {
        let _ = writeln!(out, "\n{} and {} at {}", row.a, row.b, show::rate(row.offered_per_s));
        because(&mut out, row.cause.as_ref());
    }
    if !study.complete {
        let goes_on =
            if study.settings.dilation.is_none() { "; the same command goes on from here" } else { "" };
        let _ = writeln!(out, "\nSTOPPED EARLY: points are missing{goes_on}");
    }
    plain(&out)
}

/// Replaces characters that not every terminal can show.
pub(super) fn plain(text: &str) -> String {
    text.replace('µ', "u").replace('−', "-").replace('–', "..")
}

pub(super) fn heading(out: &mut String, study: &StudyOutcome) {
    let of = &study.settings;
    let tasks = show::tasks(of).unwrap_or_else(|| "all".to_owned());
    let _ = writeln!(
        out,
        "{}: {}\ntestbed {}, {} workers; {} x {} tasks a point, warm-up: {}; seed {}; commit {}",
        study.name,
        study.title,
        of.testbed,
        of.workers,
        of.replications,
        tasks,
        of.warm_up,
        of.seed,
        study.commit
    );
    if let Some(factor) = of.dilation.filter(|factor| *factor > 1) {
        let _ = writeln!(
            out,
            "DILATED: the live rack ran {factor} times slower than the one that is stood for; the times here are that one's"
        );
    }
}

/// Warnings about points' intervals: those of the first points, and the number of further ones.
pub(super) fn caveats(out: &mut String, panel: &Panel) {
    let all = panel.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
    let doubtful: Vec<_> = all.filter(|(_, point)| !point.caveat.is_empty()).collect();
    for (series, point) in doubtful.iter().take(CAVEATS_MAX) {
        let _ = writeln!(out, "{} at {}: {}", series.label, show::rate(point.offered_per_s), point.caveat);
    }
    if doubtful.len() > CAVEATS_MAX {
        let more = doubtful.len() - CAVEATS_MAX;
        let _ = writeln!(
            out,
            "... and {more} more points whose intervals are to be read with care: --json and the page name them"
        );
    }
}

/// Each policy's costs beside its benefits.
fn price_and_gain(out: &mut String, panel: &Panel, columns: Option<usize>) {
    if let Some(prices) = PassCosts::of(panel) {
        let at = show::rate(prices.offered_per_s);
        let _ = writeln!(out, "\nWhat each costs a task at {at}, and the p99 scheduling delay that it buys");
        fitted(out, prices.table(), columns, &pass_costs::GIVES_WAY);
        let _ = writeln!(out, "{}", pass_costs::NANOSECONDS);
    }
}

fn all_points(out: &mut String, panel: &Panel, columns: Option<usize>) {
    let mut gives_way = Vec::from([
        (5, "p95"),
        (11, "the interval of the slowdown"),
        (7, "the interval of p99"),
        (9, "the scheduling delay"),
        (2, "load"),
        (8, "p99.9"),
    ]);
    if panel.classes.len() <= 1 {
        // With one class, the column would say the same in each row.
        gives_way.insert(0, (3, ""));
    }
    fitted(out, points(panel), columns, &gives_way);
}

/// A table, fitted into the terminal's columns.
fn fitted(out: &mut String, table: Table, columns: Option<usize>, gives_way: &[(usize, &str)]) {
    let (table, gone) = table.fitting(columns.unwrap_or(usize::MAX), gives_way);
    let _ = write!(out, "{table}");
    let gone: Vec<&str> = gone.into_iter().filter(|name| !name.is_empty()).collect();
    if !gone.is_empty() {
        let _ = writeln!(
            out,
            "too narrow for {}: a wider terminal, the page and --json show all",
            gone.join(", ")
        );
    }
}

/// The points of a panel; also of each class, if there are several.
pub(super) fn points(panel: &Panel) -> Table {
    let several = panel.classes.len() > 1;
    let has_goodput = has_goodput(panel);
    let goodput = ["in time", "refused"].into_iter().filter(|_| has_goodput);
    let headings = [
        "policy",
        "offered",
        "load",
        "tasks",
        "p50",
        "p95",
        "p99",
        "(95 %)",
        "p99.9",
        "delay p99",
        "slowdown p99",
        "(95 %)",
    ];
    let mut table = Table::new(headings.into_iter().chain(goodput).chain(["kept up"]));
    for series in &panel.series {
        for point in &series.points {
            let classes = panel.classes.iter().filter(|_| several).map(|class| Some(class.name.as_str()));
            for class in std::iter::once(None).chain(classes) {
                if let Some(row) = row(&series.label, point, class, has_goodput) {
                    table.row(row);
                }
            }
        }
    }
    table
}

/// Whether it is said when answers are in time.
fn has_goodput(panel: &Panel) -> bool {
    panel.classes.iter().any(|class| class.within_ns.is_some())
}

/// Answers in time and refusals, a second; the classes of refused tasks are not told apart.
fn goodput(point: &Point, class: Option<&str>) -> [String; 2] {
    let per_s = |of: Option<f64>| of.map_or_else(|| NOTHING.to_owned(), show::rate);
    match class {
        None => [point.gauges.goodput_per_s, point.gauges.refused_per_s].map(per_s),
        Some(name) => {
            let of = point.classes.iter().find(|of| of.name == name).and_then(|of| of.goodput_per_s);
            [of.map(|goodput| goodput.value), None].map(per_s)
        }
    }
}

fn row(label: &str, point: &Point, class: Option<&str>, has_goodput: bool) -> Option<Vec<String>> {
    let times = point.times(class)?;
    let of = |measure, part| times.get(Metric { measure, part });
    let value = |measure: Measure, part| show::quantity(of(measure, part).value, measure.unit());
    let interval =
        |measure: Measure| show::interval(&of(measure, Part::P99), measure.unit()).unwrap_or_default();
    let kept = match (point.sustained.holds, point.sustained.why.as_str()) {
        (true, _) => "yes".to_owned(),
        (false, "") => "NO".to_owned(),
        (false, why) => format!("NO: {why}"),
    };
    let mut cells = vec![
        label.to_owned(),
        show::rate(point.offered_per_s),
        show::quantity(point.load, Unit::Share),
        class.unwrap_or("all").to_owned(),
        value(Measure::LatencyNs, Part::P50),
        value(Measure::LatencyNs, Part::P95),
        value(Measure::LatencyNs, Part::P99),
        interval(Measure::LatencyNs),
        value(Measure::LatencyNs, Part::P999),
        value(Measure::SchedulingDelayNs, Part::P99),
        value(Measure::Slowdown, Part::P99),
        interval(Measure::Slowdown),
    ];
    cells.extend(has_goodput.then(|| goodput(point, class)).into_iter().flatten());
    cells.push(kept);
    Some(cells)
}

pub(super) fn heat(map: &HeatMap) -> Table {
    let headings = map.across.values.iter().map(|value| show::whole(*value));
    let mut table = Table::new(std::iter::once(map.down.name.clone()).chain(headings));
    for (value, row) in map.down.values.iter().zip(&map.cells) {
        let numbers = row.iter().map(|number| show::estimate(number, map.unit));
        table.row(std::iter::once(show::whole(*value)).chain(numbers));
    }
    table
}

/// The statements with their verdicts, as sentences, since no column is wide enough.
fn expectations(out: &mut String, study: &StudyOutcome) {
    if !study.expectations.is_empty() {
        out.push_str("\nBeside the paper\n");
    }
    for row in &study.expectations {
        let Expectation { claim, measured, unit, verdict, why, cause, .. } = row;
        let verdict = verdict.to_string().to_uppercase();
        let whose = if row.ours { "ours" } else { "paper" };
        let here = measured.map(|measured| format!(", here {}", show::estimate(&measured, *unit)));
        let _ = writeln!(out, "{verdict}: {claim}");
        let _ = writeln!(out, "    {whose} {}{}; {why}", show::stated(row), here.unwrap_or_default());
        because(out, cause.as_ref());
    }
}

fn because(out: &mut String, cause: Option<&Cause>) {
    if let Some(Cause { says, command, shows }) = cause {
        let _ = writeln!(out, "    cause: {says}\n      {command}\n      {shows}");
    }
}

pub(super) fn searches(study: &StudyOutcome) -> Option<Table> {
    let mut table = Table::new(["policy", "limit", "highest rate", "note"]);
    for Search { policy, metric, class, limit, rate_per_s, note, .. } in &study.searches {
        let of = class.as_ref().map_or_else(String::new, |class| format!("{class}: "));
        let limit = show::quantity(*limit, metric.unit());
        table.row([
            policy.clone(),
            format!("{of}{} at most {limit}", show::metric(*metric)),
            rate_per_s.map_or_else(|| "none".to_owned(), |rate| show::estimate(&rate, Unit::PerS)),
            note.clone(),
        ]);
    }
    (!study.searches.is_empty()).then_some(table)
}

pub(super) fn comparisons(study: &StudyOutcome) -> Option<Table> {
    let mut table = Table::new(["A", "B", "what", "at", "A's", "B's", "B - A (95 %)", "verdict"]);
    for row in &study.comparisons {
        let Comparison { a, b, metric, class, offered_per_s, of_a, of_b, difference, .. } = row;
        let unit = metric.map_or(Unit::PerS, Metric::unit);
        let of = class.as_ref().map_or_else(String::new, |class| format!("{class}: "));
        let what = metric.map_or_else(|| "throughput".to_owned(), show::metric);
        table.row([
            a.clone(),
            b.clone(),
            format!("{of}{what}"),
            show::rate(*offered_per_s),
            show::quantity(of_a.value, unit),
            show::quantity(of_b.value, unit),
            show::estimate(difference, unit),
            show::comparison(row),
        ]);
    }
    (!study.comparisons.is_empty()).then_some(table)
}
