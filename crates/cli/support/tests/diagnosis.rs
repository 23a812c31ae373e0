//! The manual's page shows all findings as the code has them, and the alerts have the same bounds.

use std::time::Duration;

use sluice_support::findings::{FindingKind, bounds};
use sluice_support::plan::Plan;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/manual/diagnosis.md");
const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/manual/prometheus/rules.yml");
/// What the table begins after.
const BEGIN: &str =
    "<!-- Written by a test: BLESS=1 cargo test -p sluice-support --test diagnosis writes it anew. -->\n";

fn table() -> String {
    let row = |kind: &FindingKind| {
        format!("| `{}` | {} | {} | {} |\n", kind.code(), kind.severity().word(), kind.when(), kind.next())
    };
    let rows: String = FindingKind::ALL.iter().map(row).collect();
    format!("\n| code | | found when | what to do |\n|---|---|---|---|\n{rows}")
}

/// `BLESS=1 cargo test -p sluice-support --test diagnosis` writes the table anew.
#[test]
fn the_page_shows_all_findings() {
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (text, _) = page.split_once(BEGIN).expect("the marker before the table");
    let now = [text, BEGIN, &table()].concat();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PAGE, now).expect("the page is ours");
    } else {
        assert!(page == now, "the table has changed: BLESS=1 writes it anew");
    }
}

/// The text of an alert.
fn alert<'a>(rules: &'a str, name: &str) -> &'a str {
    let (_, rest) = rules.split_once(&format!("- alert: {name}\n")).unwrap_or_else(|| panic!("no {name}"));
    rest.split("- alert:").next().expect("there is a first part")
}

#[test]
fn alerts_have_the_same_bounds() {
    let rules = std::fs::read_to_string(RULES).expect("the rules");
    let s = |span: Duration| match span.as_secs() {
        secs if secs % 60 == 0 => format!("{}m", secs / 60),
        secs => format!("{secs}s"),
    };
    for (name, parts) in [
        ("SluiceSwitchLost", vec![format!("for: {}", s(bounds::SWITCH_LOST))]),
        ("SluiceSliceClosed", vec![format!("for: {}", s(bounds::SLICE_CLOSED))]),
        ("SluiceHostsDied", vec![format!("[{}]", s(bounds::LATELY))]),
        (
            "SluiceQueueLong",
            vec![format!("> {}", bounds::QUEUE_LONG), format!("for: {}", s(bounds::COUNTED))],
        ),
        ("SluiceTasksRejected", vec![format!("> {}", bounds::TASKS_REFUSED)]),
        ("SluiceSwitchBehind", vec![format!("[{}]", s(bounds::COUNTED)), "> 0".to_owned()]),
        ("SluiceRoundsFull", vec![format!("> {}", bounds::TASKS_REFUSED)]),
        ("SluiceTokensLost", vec![format!("> {}", bounds::TOKENS_LOST)]),
        (
            "SluiceCallsRefused",
            vec![format!("[{}]", s(bounds::CALLS_COUNTED)), format!("> {}", bounds::CALLS_REFUSED)],
        ),
    ] {
        for part in parts {
            assert!(alert(&rules, name).contains(&part), "{name} has no `{part}`");
        }
    }
}

/// Why a plan with this key, in a section such as `[switch]`, is not read.
fn refusal(section: &str, key: &str) -> String {
    Plan::from_text("here", &format!("{section}\n{key} = 1\n"))
        .err()
        .map_or(String::new(), |why| why.to_string())
}

#[test]
fn keys_that_findings_name_are_keys_of_plans() {
    let mut named = 0;
    for kind in FindingKind::ALL {
        let parts: Vec<&str> = kind.next().split("` in [").collect();
        for pair in parts.windows(2) {
            let key = pair[0].rsplit('`').next().expect("a first part");
            let ends = if pair[1].starts_with('[') { "]]" } else { "]" };
            let (section, _) = pair[1].split_once(ends).expect("a section ends");
            let why = refusal(&format!("[{section}{ends}"), key);
            assert!(!why.contains("unknown key"), "{}: {why}", kind.code());
            named += 1;
        }
    }
    assert!(named > 0, "no finding names a key");
    assert!(refusal("[switch]", "payload_bytes").contains("unknown key"), "an unknown key is told as one");
}
