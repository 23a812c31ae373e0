//! Two results beside each other for the terminal.

use std::fmt::Write;

use sluice_outcome::study::{Estimate, Unit};
use sluice_report::quantity;
use sluice_report::table::{NOTHING, Table};

use super::held::{DiffVerdict, HeldNumber, NumberPair, ResultDiff};

/// Up to so many numbers are shown without being asked for.
const SHOWN_MAX: usize = 60;
/// How many points are named that only one result has.
const NAMED_MAX: usize = 5;

/// What differs, as text.
pub(super) fn text(found: &ResultDiff, all: bool) -> String {
    let [a, b] = &found.files;
    let mut out = format!("A: {a}\nB: {b}\n");
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", settings(found));
    let lone = one_sided(found);
    if !lone.is_empty() {
        let _ = writeln!(out, "{lone}");
    }
    let all = all || found.numbers.len() <= SHOWN_MAX;
    let is_shown =
        |number: &&HeldNumber| all || matches!(number.verdict, DiffVerdict::Differs | DiffVerdict::NotKnown);
    let rows: Vec<&HeldNumber> = found.numbers.iter().filter(is_shown).collect();
    if !rows.is_empty() {
        let _ = write!(out, "\n{}", table(&rows));
    }
    let left_out = found.numbers.len() - rows.len();
    if left_out > 0 {
        let _ = writeln!(out, "{left_out} numbers that do not differ are left out: --all shows them");
    }
    let _ = writeln!(out, "\n{}", verdict(found));
    out
}

/// The points that only one result has, in one line; empty if there are none.
pub(super) fn one_sided(found: &ResultDiff) -> String {
    let lines = found.of.only.iter().zip(["A", "B"]).filter(|(only, _)| !only.is_empty());
    let told = lines.map(|(only, name)| {
        let more = only.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named: Vec<&str> = only.iter().take(NAMED_MAX).map(String::as_str).collect();
        format!("only in {name}: {}{more}", named.join(", "))
    });
    told.collect::<Vec<String>>().join("; ")
}

fn settings(found: &ResultDiff) -> String {
    if found.of.settings.is_empty() {
        return "of the same settings and version".to_owned();
    }
    let each = found.of.settings.iter().map(|of| format!("{} {} and {}", of.name, of.a, of.b));
    format!("set up differently: {}", each.collect::<Vec<String>>().join("; "))
}

fn table(rows: &[&HeldNumber]) -> Table {
    // A load is one point.
    let has_points = rows.iter().any(|row| !row.pair.point.is_empty());
    let headings = ["tasks", "number", "A", "B", "B - A (95 %)", "verdict"];
    let mut table = Table::new(has_points.then_some("point").into_iter().chain(headings));
    for HeldNumber { pair, difference, verdict } in rows {
        let NumberPair { point, class, number, unit, a, b } = pair;
        let ends = difference.as_ref().map_or_else(String::new, |of| format!(" ({})", ends(of, *unit)));
        let cells = [
            class.clone(),
            number.replace("_ns_", " ").replace("_per_s", "/s").replace('_', " "),
            shown(a.value, *unit),
            shown(b.value, *unit),
            format!("{}{ends}", signed(b.value - a.value, *unit)),
            match verdict {
                DiffVerdict::Same => "the same",
                DiffVerdict::Noise => "noise",
                DiffVerdict::Differs => "DIFFERS",
                DiffVerdict::NotKnown => "not known: no interval",
            }
            .to_owned(),
        ];
        table.row(has_points.then(|| point.clone()).into_iter().chain(cells));
    }
    table
}

fn verdict(found: &ResultDiff) -> String {
    let all = found.numbers.len();
    let [same, noise, unknown] =
        [DiffVerdict::Same, DiffVerdict::Noise, DiffVerdict::NotKnown].map(|verdict| found.count(verdict));
    let unknown = if unknown > 0 { format!(", {unknown} cannot be told") } else { String::new() };
    let differ = found.differing;
    format!(
        "{differ} of {all} numbers differ, {noise} by no more than noise, {same} are the same{unknown}; the \
         intervals hold for all of them together"
    )
}

fn ends(of: &Estimate, unit: Unit) -> String {
    let end = |end: f64| if end.is_finite() { signed(end, unit) } else { NOTHING.to_owned() };
    format!("{} to {}", end(of.low), end(of.high))
}

fn signed(value: f64, unit: Unit) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", shown(value.abs(), unit))
}

fn shown(value: f64, unit: Unit) -> String {
    // As in all our tables.
    quantity(value, unit).replace('µ', "u")
}
