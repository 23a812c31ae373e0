//! The golden table of instruction counts: the allowed cost of each layer is its count when the table was
//! last written.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::callgrind::Counted;
use crate::error::BenchError;
use crate::report::{Bound, Report};
use crate::repository::root;

/// The allowed increase over the golden count: another libc or processor copies bytes differently.
const TOLERANCE: f64 = 0.05;
/// An increase of this many instructions is always allowed, even if it exceeds the tolerance.
const TOLERANCE_INSTRUCTIONS: f64 = 3.0;

/// The allowed cost of a pair of passes with ranks, with four classes, and with a target, relative to a plain
/// pair. In instructions, so that a busy machine gives the same result.
const PAIRS: [(&str, [&str; 2], [&str; 2], f64); 4] = [
    (
        "ranked ÷ plain, token first",
        ["ranks TOKEN parks", "ranks SUBMIT matches"],
        ["program TOKEN parks", "program SUBMIT matches"],
        1.1,
    ),
    (
        "four classes ÷ plain, task first",
        ["classes SUBMIT parks", "classes TOKEN matches"],
        ["program SUBMIT parks", "program TOKEN matches"],
        1.3,
    ),
    (
        "target ÷ plain, token first",
        ["target TOKEN parks", "target SUBMIT matches"],
        ["program TOKEN parks", "program SUBMIT matches"],
        1.1,
    ),
    (
        "target ÷ plain, task first",
        ["target SUBMIT parks", "target TOKEN matches"],
        ["program SUBMIT parks", "program TOKEN matches"],
        1.1,
    ),
];

/// The case of Draconis without policies; the names of the policies' cases begin with it.
const WAITING: &str = "waiting draconis";

/// What an end's metrics cost for a task, beside what the end does for the task without sockets.
const METERED: [(&str, &str); 2] = [
    ("metrics of a worker", "worker DISPATCH to REPLY and TOKEN"),
    ("metrics of a client", "client SUBMIT to outcome"),
];
/// The largest share, if each batch has one task. Beside the system calls of the task's packets it is a
/// fiftieth.
const METERED_MAX: f64 = 0.4;

/// What tracing costs the switch for a task that waits, and the largest cost as a multiple of that without.
const TRACED: [(&str, f64); 2] =
    [("driver 8 B task first, one in 1000 traced", 1.2), ("driver 8 B task first, each traced", 1.3)];
const UNTRACED: &str = "driver 8 B task first";

/// Instructions per operation, by case.
pub(crate) type Golden = BTreeMap<String, f64>;

/// Reads the checked-in table.
pub(crate) fn read() -> Result<Golden, BenchError> {
    let file = file();
    let text = fs::read_to_string(&file).map_err(|why| BenchError::file(&file, why))?;
    serde_json::from_str(&text).map_err(BenchError::Golden)
}

/// Writes these counts as the new table.
pub(crate) fn write(counted: &[Counted]) -> Result<(), BenchError> {
    let table: Golden =
        counted.iter().map(|one| (one.case.name.to_owned(), one.instructions.round())).collect();
    let text = serde_json::to_string_pretty(&table).map_err(BenchError::Golden)?;
    let file = file();
    fs::write(&file, text + "\n").map_err(|why| BenchError::file(&file, why))
}

/// Reports each count with its golden count as the bound. A case without one counts as a missed bound:
/// bless it.
pub(crate) fn compare(golden: &Golden, counted: &[Counted], report: &mut Report) {
    for one in counted {
        let what = format!("{}, per {}", one.case.name, one.case.per);
        let most = golden.get(one.case.name).map_or(0.0, |golden| bound(*golden));
        report.add(&what, one.instructions, "instr", Bound::AtMost(most));
    }
    let count = |name: &str| counted.iter().find(|one| one.case.name == name).map(|one| one.instructions);
    for (name, dear, plain, most) in PAIRS {
        let [dear, plain] = [dear, plain].map(|pair| pair.into_iter().map(count).sum::<Option<f64>>());
        if let (Some(dear), Some(plain)) = (dear, plain) {
            report.add(&format!("instructions of a pair, {name}"), dear / plain, "×", Bound::AtMost(most));
        }
    }
    if let Some(plain) = count(WAITING) {
        for one in counted {
            if let Some(policy) = one.case.name.strip_prefix(WAITING).filter(|policy| !policy.is_empty()) {
                let what = format!("  instructions of a task, draconis{policy} ÷ draconis");
                report.add(&what, one.instructions / plain, "×", Bound::None);
            }
        }
    }
    for (metrics, end) in METERED {
        if let (Some(metered), Some(alone)) = (count(metrics), count(end)) {
            let what = format!("  instructions of the {metrics} ÷ {end}");
            report.add(&what, metered / alone, "×", Bound::AtMost(METERED_MAX));
        }
    }
    for (case, most) in TRACED {
        if let (Some(traced), Some(alone)) = (count(case), count(UNTRACED)) {
            report.add(&format!("  instructions, {case} ÷ none"), traced / alone, "×", Bound::AtMost(most));
        }
    }
    for (order, passes) in [
        ("token first", ["program TOKEN parks", "program SUBMIT matches"]),
        ("task first", ["program SUBMIT parks", "program TOKEN matches"]),
    ] {
        let below = ["wire parse TOKEN", "wire parse SUBMIT", "wire encode DISPATCH", passes[0], passes[1]];
        let below: Option<f64> = below.into_iter().map(count).sum();
        let whole = count(&format!("driver 8 B {order}"));
        if let (Some(whole), Some(below)) = (whole, below) {
            let what = format!("  the driver's own share, 8 B {order}, per task");
            report.add(&what, whole - below, "instr", Bound::None);
        }
    }
}

fn bound(golden: f64) -> f64 {
    (golden + (golden * TOLERANCE).max(TOLERANCE_INSTRUCTIONS)).round()
}

fn file() -> PathBuf {
    root().join("crates/check/bench/instructions.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;

    #[test]
    fn a_twentieth_more_is_allowed_and_three_instructions_in_any_case() {
        assert!((bound(1_000.0) - 1_050.0).abs() < f64::EPSILON);
        assert!((bound(20.0) - 23.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_golden_table_has_every_case_and_no_other() {
        let golden = read().expect("it is checked in");
        let cases = cases::ALL.iter().map(|case| case.name.to_owned());
        assert_eq!(golden.keys().cloned().collect::<Vec<_>>(), {
            let mut names: Vec<String> = cases.collect();
            names.sort();
            names
        });
    }

    #[test]
    fn a_pair_that_is_too_dear_beside_a_plain_one_is_missed() {
        let golden = cases::ALL.iter().map(|case| (case.name.to_owned(), 1_000.0)).collect();
        let missed = |dear: f64| {
            let instructions = |name: &str| match name.split(' ').next() {
                Some("ranks") => dear,
                Some("metrics") => 10.0,
                _ => 100.0,
            };
            let counted = |case: &'static _| {
                let case: &cases::Case = case;
                Counted { case, instructions: instructions(case.name) }
            };
            let mut report = Report::default();
            compare(&golden, &cases::ALL.iter().map(counted).collect::<Vec<_>>(), &mut report);
            report.missed()
        };
        assert_eq!([109.0, 111.0].map(missed), [0, 1]);
    }

    #[test]
    fn a_count_above_its_bound_or_without_one_is_missed() {
        let counted: Vec<Counted> =
            cases::ALL[..2].iter().map(|case| Counted { case, instructions: 106.0 }).collect();
        let mut report = Report::default();
        compare(&Golden::from([(cases::ALL[0].name.to_owned(), 100.0)]), &counted, &mut report);
        assert_eq!(report.missed(), 2);
        let mut report = Report::default();
        compare(
            &counted.iter().map(|one| (one.case.name.to_owned(), 105.0)).collect(),
            &counted,
            &mut report,
        );
        assert_eq!(report.missed(), 0);
    }
}
