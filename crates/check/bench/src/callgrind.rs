//! Counts instructions: each case runs in a process of its own under callgrind.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cases::{self, Case};
use crate::error::BenchError;
use crate::print;
use crate::scale;

/// The result of one case.
pub(crate) struct Counted {
    pub(crate) case: &'static Case,
    /// Instructions per operation.
    pub(crate) instructions: f64,
}

/// Counts every case. Callgrind's files stay in `folder`, for `callgrind_annotate`.
pub(crate) fn count_all(folder: &Path) -> Result<Vec<Counted>, BenchError> {
    let folder = folder.join("callgrind");
    fs::create_dir_all(&folder).map_err(|why| BenchError::file(&folder, why))?;
    print::aside(format_args!("bench: instructions, {} cases", cases::ALL.len()));
    cases::ALL.iter().map(|case| count(case, &folder)).collect()
}

fn count(case: &'static Case, folder: &Path) -> Result<Counted, BenchError> {
    let file = folder.join(format!("{}.out", case.name.replace(' ', "-")));
    let this = env::current_exe().map_err(|why| BenchError::program("bench", &why))?;
    let ended = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", &format!("--toggle-collect=*{}*", scale::NAME)])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(this)
        .args(["count", case.name])
        .stdin(Stdio::null())
        .output()
        .map_err(|why| BenchError::program("valgrind", &why))?;
    if !ended.status.success() {
        return Err(BenchError::program("valgrind", &String::from_utf8_lossy(&ended.stderr)));
    }
    let text = fs::read_to_string(&file).map_err(|why| BenchError::file(&file, why))?;
    let total = total(&text).ok_or_else(|| BenchError::output("callgrind", &"no totals"))?;
    Ok(Counted { case, instructions: total as f64 / f64::from(case.operations) })
}

/// The total of the run in callgrind's file.
fn total(text: &str) -> Option<u64> {
    let words = text.lines().find_map(|line| line.strip_prefix("totals: "))?;
    words.trim().parse().ok().filter(|total| *total > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_callgrinds_file() {
        assert_eq!(total("version: 1\nsummary: 3\n\ntotals: 1200\n"), Some(1_200));
        assert_eq!(total("totals: 0\n"), None);
        assert_eq!(total("fn=main\n"), None);
    }
}
