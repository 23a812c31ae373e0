//! A result's files: `result.json`, `result.csv` (a row per type), `timeline.csv` (a row per bin), and an
//! `.hgrm` per type and time, as HDR histogram plotters read them; `depths.html` where depths were found at
//! run time.

use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

use hdrhistogram::Histogram;
use sluice_outcome::run::RunResult;
use sluice_report::{decided, run};
use sluice_system::{Attempt, advice};

use crate::fail::{Failure, Outcome};
use crate::load::{SLOWDOWN_SCALE, Tally};

/// Steps per halving of the distance to 100 %, as the format's other writers use.
const TICKS_PER_HALF: u32 = 5;

/// Writes everything into `folder`, which is made if need be.
pub fn write(folder: &Path, result: &RunResult, tally: &Tally) -> Outcome<()> {
    make(folder)?;
    save(folder, "result.json", &(run::json(result) + "\n"))?;
    save(folder, "result.csv", &run::types_csv(result))?;
    save(folder, "timeline.csv", &run::timeline_csv(result))?;
    if !result.depths.is_empty() {
        save(
            folder,
            "depths.html",
            &decided(&result.title(), &result.slices, &result.depths, &result.decisions),
        )?;
    }
    for kind in &tally.kinds {
        let times = &kind.times;
        for (what, histogram, unit) in [
            ("latency-us", &times.latency, 1e3),
            ("scheduling-delay-us", &times.scheduling_delay, 1e3),
            ("service-us", &times.service, 1e3),
            ("slowdown", &times.slowdown, SLOWDOWN_SCALE),
            ("slowdown-server", &times.slowdown_server, SLOWDOWN_SCALE),
        ] {
            save(folder, &format!("{}-{what}.hgrm", kind.name), &hgrm(histogram, unit))?;
        }
    }
    Ok(())
}

/// Makes a folder for results.
pub fn make(folder: &Path) -> Outcome<()> {
    fs::create_dir_all(folder).map_err(|why| {
        let (folder, helps) = (folder.display(), advice(Attempt::Write, &why));
        Failure::bad_input(format!("results folder {folder} (`out`) cannot be made: {why}; {helps}"))
    })
}

/// Writes a file into a folder that is there.
pub fn save(folder: &Path, name: &str, text: &str) -> Outcome<()> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|why| unwritten(&path, &why))
}

/// The same, at once: whoever reads the file meanwhile finds all of the old text or all of the new.
pub fn replace(folder: &Path, name: &str, text: &str) -> Outcome<()> {
    let (half, path) = (format!("{name}.half"), folder.join(name));
    save(folder, &half, text)?;
    fs::rename(folder.join(half), &path).map_err(|why| unwritten(&path, &why))
}

/// Why a file is not there, and what helps.
pub fn unwritten(path: &Path, why: &io::Error) -> Failure {
    let (path, helps) = (path.display(), advice(Attempt::Write, why));
    Failure::broken(format!("{path} cannot be written: {why}; {helps}"))
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
