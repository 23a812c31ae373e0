//! The manual's page shows the table of all events as the code has it.

use std::collections::BTreeSet;

use sluice_log::LogEvent;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/manual/logs.md");
/// What the table begins after.
const BEGIN: &str = "<!-- Written by a test: BLESS=1 cargo test -p sluice-log writes all below anew. -->\n";

fn table() -> String {
    let row = |event: &LogEvent| {
        let level = event.level().as_str().to_lowercase();
        format!("| `{}` | {level} | {} | {} |\n", event.name(), event.limit().shown(), event.help())
    };
    let head = "\n| event | level | lines at most | tells |\n|---|---|---|---|\n";
    head.to_owned() + &LogEvent::ALL.iter().map(row).collect::<String>()
}

/// `BLESS=1 cargo test -p sluice-log` writes the table anew.
#[test]
fn the_page_shows_all_events() {
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (text, _) = page.split_once(BEGIN).expect("the marker before the table");
    let now = [text, BEGIN, &table()].concat();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PAGE, now).expect("the page is ours");
    } else {
        assert!(page == now, "the table has changed: BLESS=1 writes it anew");
    }
}

#[test]
fn names_are_different_words_with_hyphens_and_help_is_a_sentence() {
    let names: BTreeSet<&str> = LogEvent::ALL.iter().map(|event| event.name()).collect();
    assert_eq!(names.len(), LogEvent::ALL.len());
    for event in LogEvent::ALL {
        let is_word = |c: u8| c == b'-' || c.is_ascii_lowercase() || c.is_ascii_digit();
        assert!(event.name().bytes().all(is_word), "{}", event.name());
        assert!(event.help().ends_with('.') && !event.help().contains(['\n', '|']), "{}", event.name());
    }
}
