//! The manual's page shows the table of all metrics as the code has it.

use sluice_metrics::MetricFamily;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/manual/metrics.md");
/// The alerts and the board.
const PROMETHEUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/manual/prometheus");
/// What the table begins after.
const BEGIN: &str =
    "<!-- Written by a test: BLESS=1 cargo test -p sluice-metrics writes all below anew. -->\n";

fn tables() -> String {
    let parts = ["process", "switch", "leaf", "controller", "slice", "worker", "server", "client", "gateway"];
    let tables = parts.map(|part| {
        let prefix = format!("sluice_{part}_");
        let rows =
            MetricFamily::ALL.iter().copied().filter(|metric| metric.name().starts_with(&prefix)).map(row);
        let head = "| metric | kind | labels | tells |\n|---|---|---|---|\n";
        format!("\n### `{prefix}`\n\n{head}{}", rows.collect::<String>())
    });
    let tables = tables.concat();
    let rows = tables.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, MetricFamily::ALL.len(), "a part has no table");
    tables
}

fn row(metric: MetricFamily) -> String {
    let labels: Vec<String> = metric.labels().iter().map(|label| format!("`{label}`")).collect();
    let (name, kind, help) = (metric.name(), metric.kind().name(), metric.help());
    format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(", "))
}

/// `BLESS=1 cargo test -p sluice-metrics` writes the tables anew.
#[test]
fn the_page_shows_all_metrics() {
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (text, _) = page.split_once(BEGIN).expect("the marker before the tables");
    let now = [text, BEGIN, &tables()].concat();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PAGE, now).expect("the page is ours");
    } else {
        assert!(page == now, "the tables have changed: BLESS=1 writes them anew");
    }
}

/// The metrics in a text about them, without what histograms add.
fn named_in(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    let names = words.filter(|word| word.starts_with("sluice_"));
    names.map(without_what_histograms_add).collect()
}

fn without_what_histograms_add(name: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

#[test]
fn alerts_and_board_know_no_other_metrics() {
    let known: Vec<String> = MetricFamily::ALL.iter().map(|metric| metric.name()).collect();
    for file in ["rules.yml", "board.json"] {
        let text = std::fs::read_to_string(format!("{PROMETHEUS}/{file}")).expect("it is there");
        let named = named_in(&text);
        assert!(named.len() > 10, "{file}");
        let other: Vec<_> = named.iter().filter(|name| !known.iter().any(|known| known == *name)).collect();
        assert!(other.is_empty(), "{file}: {other:?}");
    }
}

#[test]
fn names_are_as_prometheus_asks() {
    let mut names: Vec<String> = MetricFamily::ALL.iter().map(|metric| metric.name()).collect();
    for (metric, name) in MetricFamily::ALL.iter().zip(&names) {
        assert!(name.starts_with("sluice_") && name.bytes().all(|c| c == b'_' || c.is_ascii_lowercase()));
        let words: Vec<&str> = name.split('_').collect();
        let is_total = words.last() == Some(&"total");
        assert_eq!(is_total, metric.kind().name() == "counter", "{name}");
        let is_spans = metric.kind().name() == "histogram";
        assert!(!is_spans || words.last() == Some(&"seconds"), "{name}");
        for reserved in ["count", "sum", "bucket", "info", "milliseconds", "ns", "us", "ms", "created"] {
            assert!(!words.contains(&reserved), "{name}: {reserved}");
        }
        for label in metric.labels() {
            assert!(label.bytes().all(|c| c.is_ascii_lowercase()) && !["le", "process"].contains(label));
            assert!(!words.contains(label) || *label == "slice", "{name} says {label} already");
        }
        assert!(metric.help().ends_with('.') && !metric.help().contains(['\\', '\n', '|']), "{name}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), MetricFamily::ALL.len());
}
