//! A study's points as a table that pandas and gnuplot read, and its tables in Markdown.

use std::collections::BTreeSet;
use std::fs;

use sluice_outcome::study::StudyOutcome;

use super::common::{command, sluice, stderr, stdout};
use super::fixture;

/// The folder in which the study was reported, with these further arguments.
fn reported(study: &StudyOutcome, args: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("study.json"), serde_json::to_string(study).expect("JSON"))
        .expect("written");
    let output = sluice(folder.path(), &[&["report", "study.json"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    folder
}

/// The fields of lines as RFC 4180 has them.
fn fields(csv: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = csv.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            letter => field.push(letter),
        }
    }
    assert!(row.is_empty() && field.is_empty() && !is_quoted, "the last line ends");
    rows
}

#[test]
fn a_table_of_points_has_a_row_for_each_and_plain_numbers() {
    let mut study = fixture::two_classes();
    let comma = "get, \"the\" first";
    for point in study.panels[0].series.iter_mut().flat_map(|series| &mut series.points) {
        comma.clone_into(&mut point.classes[0].name);
        point.overall.latency_ns.p999.open_above = true;
    }
    let folder = reported(&study, &[]);
    let rows = fields(&fs::read_to_string(folder.path().join("points.csv")).expect("written"));
    let (headings, points) = rows.split_first().expect("headings");
    let count: usize = study.panels[0].series.iter().map(|series| series.points.len()).sum();
    assert_eq!(points.len(), count);
    assert!(points.iter().all(|row| row.len() == headings.len()));
    assert_eq!(headings.iter().collect::<BTreeSet<_>>().len(), headings.len(), "no column stands twice");
    let at =
        |name: &str| headings.iter().position(|heading| heading == name).unwrap_or_else(|| panic!("{name}"));
    for row in points {
        for cell in row[at("offered_per_s")..].iter().filter(|cell| !cell.is_empty()) {
            let is_plain = cell.chars().all(|letter| letter.is_ascii_digit() || ".-".contains(letter));
            assert!(is_plain || cell == "true" || cell == "false", "{cell}");
        }
        assert_eq!(row[at("latency_ns_p999_high")], "", "the data give no upper end");
    }
    let first = &study.panels[0].series[0].points[0];
    assert_eq!(points[0][at("latency_ns_p99")], first.overall.latency_ns.p99.value.to_string());
    let of_class = at(&format!("{comma}.latency_ns_p99"));
    assert_eq!(points[0][of_class], first.classes[0].times.latency_ns.p99.value.to_string());
}

#[test]
fn tables_in_markdown_stay_tables_whatever_stands_in_them() {
    let mut study = fixture::two_classes();
    for series in &mut study.panels[0].series {
        series.label = format!("a|b `{}` <img>\n*@x*", series.label);
    }
    study.title = "# not | a heading".to_owned();
    let folder = reported(&study, &["--export-markdown", "made/here/table.md"]);
    let text = fs::read_to_string(folder.path().join("made/here/table.md")).expect("written");
    assert!(text.starts_with("# ") && !text.contains("<img>"), "{text}");
    let mut columns = 0;
    for line in text.lines() {
        let bars = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
        // Each table begins behind an empty line.
        columns = if line.is_empty() {
            0
        } else if columns == 0 {
            bars
        } else {
            columns
        };
        assert_eq!(bars, columns, "{line}");
    }
    assert!(text.contains("|---|---:|"), "{text}");
    let again = folder.path().join("made/here");
    assert_eq!(fs::read_dir(again).expect("a folder").count(), 1, "nothing else is left");
}

#[test]
fn a_file_for_markdown_that_cannot_be_is_refused_before_anything_runs() {
    let folder = reported(&fixture::one_class(), &[]);
    fs::write(folder.path().join("file"), "").expect("written");
    for (file, says) in [(".", "is a folder: name a file in it"), ("file/x.md", "cannot be made")] {
        let args =
            ["sweep", "--policy", "rain:1", "--load", "0.5", "--tasks", "1000", "--export-markdown", file];
        let output = sluice(folder.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{file}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{file}: {}", stderr(&output));
        assert!(!folder.path().join("out").exists(), "nothing ran");
    }
    let figure = ["report", "study.json", "--figure", "p99", "--export-markdown", "x.md"];
    let output = sluice(folder.path(), &figure);
    assert_eq!(output.status.code(), Some(2), "a figure has no tables: {}", stderr(&output));
}

#[test]
fn markdown_goes_behind_the_rest_of_stdout_whatever_that_is_and_replaces_nothing() {
    let folder = reported(&fixture::one_class(), &[]);
    for name in ["-", "/dev/stdout"] {
        let output = sluice(folder.path(), &["report", "study.json", "--export-markdown", name]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        assert!(stdout(&output).contains("|---"), "{name}: {}", stdout(&output));
    }
    assert!(!folder.path().join("-").exists());
    // Where stdout is a file. As root, a file in place of the device would outlive the test: so it is named
    // by a path in which none can be made.
    let into = fs::File::create(folder.path().join("out.txt")).expect("made");
    let args = ["report", "study.json", "--export-markdown", "/proc/self/fd/1"];
    let status = command(folder.path(), &args).stdout(into).status().expect("it starts");
    assert_eq!(status.code(), Some(0));
    let said = fs::read_to_string(folder.path().join("out.txt")).expect("written");
    assert!(said.contains("|---") && said.starts_with("rain-6b: "), "the tables of before are gone: {said}");
}
