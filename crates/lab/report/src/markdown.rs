//! A study in GitHub's Markdown: its settings, and the tables that the terminal shows, whole.

use std::fmt::Write;

use sluice_outcome::study::{Panel, StudyOutcome};

use super::show;
use super::table::{NOTHING, Table, escaped};
use super::text;

/// The whole study.
pub fn markdown(study: &StudyOutcome) -> String {
    let mut out = format!("# {}: {}\n", escaped(&study.name), escaped(&study.title));
    let mut said = String::new();
    text::heading(&mut said, study);
    // The first line is the title.
    paragraphs(&mut out, said.lines().skip(1));
    for map in &study.heats {
        let title = format!("{}, by {} and {}", map.title, map.down.name, map.across.name);
        section(&mut out, &title, &text::heat(map));
    }
    study.panels.iter().for_each(|of| panel(&mut out, of));
    if !study.expectations.is_empty() {
        section(&mut out, "Beside the paper", &expectations(study));
    }
    for (title, table) in [("Searches", text::searches(study)), ("Pairs", text::comparisons(study))] {
        if let Some(table) = table {
            section(&mut out, title, &table);
        }
    }
    if !study.complete {
        paragraphs(&mut out, ["Stopped early: points are missing."].into_iter());
    }
    out
}

/// A heading with a table.
pub(super) fn section(out: &mut String, title: &str, table: &Table) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\n## {}\n\n{}", escaped(title), table.markdown());
}

/// Lines of text, each a paragraph.
pub(super) fn paragraphs<'l>(out: &mut String, lines: impl Iterator<Item = &'l str>) {
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let _ = write!(out, "\n{}\n", escaped(line.trim()));
    }
}

fn panel(out: &mut String, panel: &Panel) {
    section(out, &format!("{} ({})", panel.title, panel.workload), &text::points(panel));
    let mut said = String::new();
    text::caveats(&mut said, panel);
    paragraphs(out, said.lines());
}

fn expectations(study: &StudyOutcome) -> Table {
    let mut table = Table::new(["statement", "stated", "here", "verdict", "why"]);
    for row in &study.expectations {
        let here = row.measured.map(|measured| show::estimate(&measured, row.unit));
        table.row([
            row.claim.clone(),
            show::stated(row),
            here.unwrap_or_else(|| NOTHING.to_owned()),
            row.verdict.to_string(),
            row.why.clone(),
        ]);
    }
    table
}
