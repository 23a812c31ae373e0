//! Flows that hosts send over a fabric, in place of tasks for workers (HF²T §5.1).
//!
//! A flow's class is the part of the table into which its size falls.

use std::path::Path;

use sluice_fabric::FlowSizes;

use super::error::WorkloadError;
use super::text::unknown;
use crate::files;

/// The prefix of a table's name.
const FLOWS: &str = "flows:";
const NAMES: [&str; 3] = ["web-search", "hadoop", "storage"];

/// Flows, with the distribution of their sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Flows {
    name: String,
    sizes: FlowSizes,
}

impl Flows {
    /// Reads `flows:web-search`, `flows:hadoop`, `flows:storage`, or `flows:FILE`. The file has a size in
    /// bytes and a percentage on each line, and is searched in `folder`. `None` if the text has another
    /// prefix.
    pub(super) fn named(text: &str, folder: &Path) -> Option<Result<Self, WorkloadError>> {
        let name = text.strip_prefix(FLOWS)?;
        let sizes = published(name).map_or_else(|| read(text, name, folder), Ok);
        Some(sizes.map(|sizes| Self { name: name.to_owned(), sizes }))
    }

    /// The distribution of sizes.
    pub const fn sizes(&self) -> &FlowSizes {
        &self.sizes
    }

    /// The text that it was read from.
    pub(super) fn text(&self) -> String {
        format!("{FLOWS}{}", self.name)
    }
}

/// The sizes of published flows; an error is one line with the known names.
pub fn published_sizes(name: &str) -> Result<FlowSizes, String> {
    published(name).ok_or_else(|| unknown("flows", name, NAMES))
}

fn published(name: &str) -> Option<FlowSizes> {
    match name {
        "web-search" => Some(FlowSizes::web_search()),
        "hadoop" => Some(FlowSizes::hadoop()),
        "storage" => Some(FlowSizes::storage()),
        _ => None,
    }
}

fn read(text: &str, file: &str, folder: &Path) -> Result<FlowSizes, WorkloadError> {
    let wrong = |why| WorkloadError::Workload { text: text.to_owned(), why };
    let path = folder.join(file);
    if !path.exists() && !file.contains(['/', '.']) {
        return Err(wrong(format!("{}, or a file of sizes and percentages", unknown("flows", file, NAMES))));
    }
    let content = files::read(&path).map_err(|source| WorkloadError::File { path: path.clone(), source })?;
    FlowSizes::parse(&content).map_err(|why| wrong(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::Workload;

    #[test]
    fn published_flows_have_a_class_for_each_part_and_fill_links_as_their_average_says() {
        let workload = Workload::parse("flows:web-search").expect("it is known");
        assert_eq!(workload.to_string(), "flows:web-search");
        assert_eq!((workload.classes.len(), workload.classes[0].name.as_str()), (11, "10k"));
        let mean_ns = 1_711_250.0 * 0.08;
        assert!((workload.mean_service_ns() / mean_ns - 1.0).abs() < 1e-3);
    }

    #[test]
    fn unknown_flows_and_tables_that_do_not_rise_to_100_are_refused_in_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("mine.txt"), "0 0\n100 60\n").expect("it can be written");
        for (text, says) in [
            ("flows:hadop", "did you mean `hadoop`?"),
            ("flows:mine.txt", "the percentage rises to 60, and not to 100"),
            ("flows:no.txt", "no.txt"),
        ] {
            let error = Workload::parse_in(text, folder.path()).expect_err(text).to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }
}
