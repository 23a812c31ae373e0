//! Where each policy stands: one line for each on several workloads, as a page in Markdown.

use std::fmt::{self, Write as _};

use sluice_outcome::study::{Panel, Point, Search, Series, StudyOutcome, Unit};

use super::show;
use super::table::NOTHING;

/// What stands for the tail of a load that was not kept up.
const BEYOND: &str = "not kept up";
/// What the columns are, in lines of at most 100 characters.
const LEGEND: &str = "\
A p99 is that of the latency, with its 95 % interval; *or more* means that the interval has no upper
end. *Not kept up* means that more tasks came than were answered. Passes through the switch and
packets are for each task, at a load of 50 %. *Stages* are those of a switch that the policy's
program takes; a policy without a program has none. Policies that refuse tasks on purpose, those of
one server, of several racks and of the fabric are not here.";
/// How far the rates of a plan, in round numbers, may be from a load.
const NEAR: f64 = 0.005;
/// The loads whose tails are shown.
const LOADS: [f64; 3] = [0.5, 0.8, 0.9];

/// The page. `stages` says how many of a switch's stages a policy's program takes, if it is one.
///
/// The study has a search for the highest rate within a limit for each policy on each workload.
pub fn standings(study: &StudyOutcome, stages: impl Fn(&str) -> Option<u32>) -> String {
    let mut page = String::new();
    let settings = &study.settings;
    add(&mut page, format_args!("# {}\n\n", study.title));
    add(&mut page, format_args!("```sh\n{}\n```\n\n", study.commands.first().map_or("", String::as_str)));
    let tasks = show::whole(settings.tasks_most * u64::from(settings.replications));
    add(
        &mut page,
        format_args!(
            "{} workers of the testbed `{}`; {tasks} tasks a point; seed {}; Sluice {} at {}.\n\n",
            settings.workers, settings.testbed, settings.seed, study.sluice, study.commit
        ),
    );
    add(&mut page, format_args!("{LEGEND}\n\n"));
    overview(&mut page, study, &stages);
    study.panels.iter().for_each(|panel| workload(&mut page, study, panel, &stages));
    page
}

/// The highest loads of all policies, the best policy first.
fn overview(page: &mut String, study: &StudyOutcome, stages: &impl Fn(&str) -> Option<u32>) {
    let Some(limit) = study.searches.first() else { return };
    let (metric, limit) = (show::metric(limit.metric), limit.limit);
    add(page, format_args!("## The highest load, in %, at which the {metric} is below {limit}\n\n"));
    let titles = study.panels.iter().map(|panel| panel.id.clone());
    let headings: Vec<String> = ["policy".to_owned()].into_iter().chain(titles).collect();
    heading(page, &headings.iter().map(String::as_str).chain(["stages"]).collect::<Vec<_>>());
    let mut rows: Vec<(&Series, Vec<Option<f64>>)> = first_series(study)
        .map(|series| (series, study.panels.iter().map(|panel| highest(study, panel, series)).collect()))
        .collect();
    let sum = |loads: &[Option<f64>]| loads.iter().flatten().sum::<f64>();
    rows.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)));
    for (series, loads) in rows {
        let percent = |load: f64| format!("{:.1}", load * 100.0);
        let loads = loads.into_iter().map(|load| load.map_or_else(|| NOTHING.to_owned(), percent));
        let taken = stages(&series.policy).map_or_else(|| NOTHING.to_owned(), |taken| taken.to_string());
        row(page, [code(&series.label)].into_iter().chain(loads).chain([taken]));
    }
}

fn first_series(study: &StudyOutcome) -> impl Iterator<Item = &Series> {
    study.panels.first().into_iter().flat_map(|panel| &panel.series)
}

/// One workload's numbers, the policy with the highest load first.
fn workload(page: &mut String, study: &StudyOutcome, panel: &Panel, stages: &impl Fn(&str) -> Option<u32>) {
    add(page, format_args!("\n## {}: {}\n\n`{}`\n\n", panel.id, panel.title, panel.workload));
    heading(
        page,
        &["policy", "p99 at 50 %", "at 80 %", "at 90 %", "highest load", "passes a task", "packets a task"],
    );
    let mut rows: Vec<(&Series, Option<f64>)> =
        panel.series.iter().map(|series| (series, highest(study, panel, series))).collect();
    rows.sort_by(|a, b| b.1.unwrap_or(0.0).total_cmp(&a.1.unwrap_or(0.0)));
    for (series, highest) in rows {
        let tails = LOADS.map(|load| at(series, load).map_or_else(|| BEYOND.to_owned(), tail));
        let highest = highest.map_or_else(|| NOTHING.to_owned(), show::share);
        let half = at(series, LOADS[0]);
        let passes = half.filter(|_| stages(&series.policy).is_some()).and_then(passes_per_task);
        let packets = half.and_then(|point| point.gauges.packets_per_task);
        let costs = [passes, packets].map(|cost| cost.map_or_else(|| NOTHING.to_owned(), ratio));
        row(page, [code(&series.label)].into_iter().chain(tails).chain([highest]).chain(costs));
    }
}

/// The point at this load. A search for the highest load leaves more points than the table shows.
fn at(series: &Series, load: f64) -> Option<&Point> {
    let off = |point: &Point| (point.load - load).abs();
    let nearest = series.points.iter().min_by(|a, b| off(a).total_cmp(&off(b)));
    nearest.filter(|point| off(point) < NEAR)
}

/// A point's p99 with its interval; a load that was not kept up has none.
fn tail(point: &Point) -> String {
    if !point.sustained.holds {
        return BEYOND.to_owned();
    }
    show::estimate(&point.overall.latency_ns.p99, Unit::Ns)
}

/// Passes through the switch for each answered task.
fn passes_per_task(point: &Point) -> Option<f64> {
    let counts = &point.counts;
    (counts.passes > 0 && counts.replied > 0).then(|| counts.passes as f64 / counts.replied as f64)
}

/// The highest load within the limit that the study searched for.
fn highest(study: &StudyOutcome, panel: &Panel, series: &Series) -> Option<f64> {
    let is_of = |search: &&Search| search.panel == panel.id && search.policy == series.label;
    let found = study.searches.iter().find(is_of)?.rate_per_s?;
    Some(found.value / panel.capacity_per_s)
}

fn ratio(value: f64) -> String {
    show::quantity(value, Unit::Ratio)
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn heading(page: &mut String, names: &[&str]) {
    row(page, names.iter().map(|name| (*name).to_owned()));
    // The first column has words, the others numbers.
    let rules = (0..names.len()).map(|column| if column == 0 { "---" } else { "---:" });
    add(page, format_args!("|{}|\n", rules.collect::<Vec<_>>().join("|")));
}

fn row(page: &mut String, cells: impl IntoIterator<Item = String>) {
    // A bar ends a cell, also in code.
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect();
    add(page, format_args!("| {} |\n", cells.join(" | ")));
}

fn add(page: &mut String, text: fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a string takes all");
}
