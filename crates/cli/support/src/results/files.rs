//! A result's files: `result.json`, `report.html` (a page), `result.csv` (a row per type), `timeline.csv` (a
//! row per bin), `stages.csv` (a row per stage, if the load has stages), an `.hgrm` file per type and time
//! for HDR histogram plotters, and `depths.html` if depths were found at run time.

use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

use hdrhistogram::Histogram;
use sluice_experiment::files as shared;
use sluice_outcome::run::RunResult;
use sluice_report::{decided, run, run_page};

use crate::fail::{Failure, Outcome};
use crate::file_name::file_name;
use crate::load::{SLOWDOWN_SCALE, Tally};

const JSON: &str = "result.json";
const CSV: &str = "result.csv";
const TIMELINE: &str = "timeline.csv";
const PAGE: &str = "report.html";
const STAGES: &str = "stages.csv";
const DEPTHS: &str = "depths.html";
/// The suffixes of a type's `.hgrm` files.
const HGRMS: [&str; 5] = ["latency-us", "scheduling-delay-us", "service-us", "slowdown", "slowdown-server"];
/// Steps per halving of the distance to 100 %, as other writers of the format use.
const TICKS_PER_HALF: u32 = 5;

/// Writes all files into `folder`, which is created if necessary: either all of them, or, if there is no
/// room, none.
pub fn write(folder: &Path, result: &RunResult, tally: &Tally) -> Outcome<()> {
    make(folder)?;
    let mut files = vec![
        (JSON.to_owned(), run::json(result) + "\n"),
        (CSV.to_owned(), run::types_csv(result)),
        (TIMELINE.to_owned(), run::timeline_csv(result)),
        (PAGE.to_owned(), run_page(result)),
    ];
    if !result.stages.is_empty() {
        files.push((STAGES.to_owned(), run::stages_csv(result)));
    }
    if !result.depths.is_empty() {
        let page = decided(&result.title(), &result.slices, &result.depths, &result.decisions);
        files.push((DEPTHS.to_owned(), page));
    }
    for kind in &tally.kinds {
        let times = &kind.times;
        let all = [
            (&times.latency, 1e3),
            (&times.scheduling_delay, 1e3),
            (&times.service, 1e3),
            (&times.slowdown, SLOWDOWN_SCALE),
            (&times.slowdown_server, SLOWDOWN_SCALE),
        ];
        for (what, (histogram, unit)) in HGRMS.into_iter().zip(all) {
            if !histogram.is_empty() {
                files.push((format!("{}-{what}.hgrm", file_name(&kind.name)), hgrm(histogram, unit)));
            }
        }
    }
    Ok(shared::save_all(folder, &files)?)
}

/// Removes the files of an earlier run from this folder, which could be taken for this one's.
pub fn clear(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_hgrm = HGRMS.iter().any(|what| name.ends_with(&format!("-{what}.hgrm")));
        if is_hgrm || [JSON, CSV, TIMELINE, STAGES, PAGE, DEPTHS].contains(&name.as_str()) {
            // A file that cannot be removed is overwritten.
            fs::remove_file(entry.path()).ok();
        }
    }
}

/// Creates a folder for results.
pub fn make(folder: &Path) -> Outcome<()> {
    Ok(shared::make(folder)?)
}

/// Writes a file into an existing folder in one step: a concurrent reader sees the old contents or the new
/// ones, and if there is no room the old file stays.
pub fn save(folder: &Path, name: &str, contents: &(impl AsRef<[u8]> + ?Sized)) -> Outcome<()> {
    Ok(shared::save(folder, name, contents)?)
}

/// Why a file could not be written, and what helps.
pub fn unwritten(path: &Path, why: &io::Error) -> Failure {
    shared::unwritten(path, why).into()
}

/// The percentile distribution in the text format of `HdrHistogram`.
fn hgrm(histogram: &Histogram<u64>, unit: f64) -> String {
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let mut seen = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF) {
        seen += step.count_since_last_iteration();
        let (value, share) = (step.value_iterated_to() as f64 / unit, step.quantile_iterated_to());
        let _ = if share < 1.0 {
            writeln!(text, "{value:12.3} {share:.12} {seen:10} {:14.2}", 1.0 / (1.0 - share))
        } else {
            writeln!(text, "{value:12.3} {share:.12} {seen:10}")
        };
    }
    let _ = writeln!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]",
        histogram.mean() / unit,
        histogram.stdev() / unit,
        histogram.max() as f64 / unit,
        histogram.len()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hgrm_rises_to_its_largest_value_and_counts_all() {
        let mut histogram = Histogram::new_with_max(1_000_000, 3).expect("3 digits are legal");
        (1..=1_000u64).for_each(|us| histogram.saturating_record(us * 1_000));
        let text = hgrm(&histogram, 1e3);
        let values: Vec<f64> = text
            .lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        assert!(values.is_sorted());
        assert!((values.last().copied().unwrap_or(0.0) - 1_000.0).abs() < 1.0);
        assert!(text.contains("Total count    =         1000]"));
    }
}
