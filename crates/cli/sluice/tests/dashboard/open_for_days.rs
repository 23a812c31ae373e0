//! A page that stays open: on a phone with long names, in another time zone, behind other tabs, and for so
//! long that what it forgets to free would show.

use serde_json::json;

use super::{Browser, Shown, WIDTHS, start_worker};

const MADE: &str = "document.getElementById('made').textContent";
/// How many nodes the document holds: elements, texts and comments.
const SHOWN: &str = "(() => { const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL); \
                     let count = 1; while (walker.nextNode()) { count += 1; } return count; })()";
/// A tenth of one drawing. A page that forgets to free keeps some of each of eight.
const FORGOTTEN_MAX: u64 = 70;

#[test]
fn a_page_that_stays_open_fits_tells_its_clock_and_keeps_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut shown) = Shown::start(folder.path()) else { return };
    let long = format!("{}/{}", "w".repeat(31), "0".repeat(31));
    shown.workers.push(start_worker(folder.path(), &long, &shown.addresses.1));
    let browser = &mut shown.browser;
    browser.wait_for(&format!("document.querySelector('[aria-label=\"Move worker {long}\"]')"));
    browser.fits("long", &WIDTHS);
    for (zone, says) in [("Asia/Kolkata", " UTC+5:30, once a second."), ("UTC", " UTC, once a second.")] {
        browser.call("Emulation.setTimezoneOverride", &json!({ "timezoneId": zone }));
        browser.wait_for(&format!("{MADE}.includes('{says}')"));
    }
    browser.wait_for("document.querySelectorAll('figure svg.chart').length === 4");
    browser.call("Performance.enable", &json!({}));
    let before = kept(browser);
    for _ in 0..8 {
        asked_again(browser);
    }
    let after = kept(browser);
    assert!(after.0 <= before.0 + FORGOTTEN_MAX, "nodes in no document: {before:?}, then {after:?}");
    assert_eq!(after.1, before.1, "listeners");
    // As if the browser let it ask no more while nobody sees it.
    browser.value("for (let timer = 0; timer < 10000; timer += 1) { clearInterval(timer); }");
    browser.value("new Promise((over) => setTimeout(over, 1500))");
    let old = browser.value(MADE);
    browser.value("document.dispatchEvent(new Event('visibilitychange'))");
    browser.wait_for(&format!("{MADE} !== {old}"));
}

/// Waits until the page has asked once more.
fn asked_again(browser: &mut Browser) {
    let before = browser.value(MADE);
    browser.wait_for(&format!("{MADE} !== {before}"));
}

/// How many nodes the page keeps that are in no document, and how many listeners. What a page shows may
/// grow: charts of more seconds have more marks. The least of three readings: a page that draws anew between
/// the collection and the count keeps its last drawing for that moment.
fn kept(browser: &mut Browser) -> (u64, u64) {
    let reading = |_| {
        asked_again(browser);
        browser.call("HeapProfiler.collectGarbage", &json!({}));
        let all = browser.call("Performance.getMetrics", &json!({}));
        let all = all["metrics"].as_array().expect("metrics");
        let of = |name: &str| {
            let found = all.iter().find(|one| one["name"] == name).and_then(|one| one["value"].as_f64());
            found.unwrap_or_else(|| panic!("no {name}")) as u64
        };
        let shown = browser.value(SHOWN).as_u64().expect("a count");
        (of("Nodes").saturating_sub(shown), of("JSEventListeners"))
    };
    (0..3).map(reading).min().expect("three readings")
}
