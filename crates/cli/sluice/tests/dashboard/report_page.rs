//! The page of `sluice report` in a browser: series hidden and shown, zoom, the line of an SLO, what is left
//! of it without JavaScript, and its first printed page.

use std::path::Path;

use serde_json::{Value, json};

use super::{Browser, WIDTHS, sluice, stderr};

const SWEEP: [&str; 11] = [
    "sweep",
    "rain:1",
    "central",
    "--load",
    "0.3,0.6,0.8",
    "--tasks",
    "2k",
    "--replications",
    "2",
    "--quiet",
    "--out",
];
/// How many lines of the second series can be seen.
const SEEN: &str = "[...document.querySelectorAll('.panel .s1 .line')]\
                    .filter((line) => line.getClientRects().length > 0).length";
/// The numbers of the main pictures' axes, and what else is written in them.
const NUMBERS: &str = "[...document.querySelectorAll('.lead > figure .log svg text')]\
                       .filter((text) => getComputedStyle(text).display !== 'none')\
                       .map((text) => text.textContent).join(' ')";

#[test]
fn a_report_can_be_used_with_keyboard_and_mouse_and_is_whole_without_javascript() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let Some(mut browser) = Browser::start(at) else {
        eprintln!("skipped: chromium is not installed here");
        return;
    };
    let url = reported(at);
    browser.set_size(1_400, 1_000);
    browser.open(&url);
    browser.wait_for("document.querySelectorAll('.legend button').length === 4");
    assert!(browser.value(NUMBERS).as_str().expect("a text").contains("SLO 100 µs"));
    hides_and_shows(&mut browser);
    zooms_with_keys(&mut browser);
    zooms_with_the_mouse(&mut browser);
    browser.fits("report", &WIDTHS);
    browser.speaks_of(&[("button", "rain:1"), ("button", "Zoom in"), ("image", "p99 latency")]);
    first_printed_page_is_full(&mut browser, at);

    browser.call("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    browser.open(&url);
    browser.wait_for("document.querySelector('.legend') !== null && document.readyState === 'complete'");
    assert_eq!(browser.value("document.querySelectorAll('button').length"), 0);
    assert!(browser.value(SEEN).as_u64() > Some(0));
    browser.set_size(1_400, 1_000);
    browser.keep_picture("report-without-javascript");
}

/// Makes the page of two studies.
fn reported(folder: &Path) -> String {
    for (seed, out) in [("1", "one"), ("2", "two")] {
        let output = sluice(folder, &[&SWEEP[..], &[out, "--seed", seed]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let args = ["report", "one/study.json", "two/study.json", "--slo", "100us", "--out", "both"];
    let output = sluice(folder, &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    format!("file://{}", folder.join("both/report.html").display())
}

fn hides_and_shows(browser: &mut Browser) {
    let before = browser.value(SEEN);
    browser.tab_to("central");
    browser.press("Enter");
    assert_ne!(browser.value(SEEN), before, "one panel's series is hidden");
    assert_eq!(browser.value("document.activeElement.getAttribute('aria-pressed')"), "false");
    browser.keep_picture("report-hidden");
    browser.press("Enter");
    assert_eq!(browser.value(SEEN), before);
}

fn zooms_with_keys(browser: &mut Browser) {
    let whole = browser.value(NUMBERS);
    browser.tab_to("Zoom in");
    browser.press("Enter");
    let zoomed = browser.value(NUMBERS);
    assert_ne!(zoomed, whole, "the axes have other numbers");
    browser.keep_picture("report-zoomed");
    browser.press("ArrowDown");
    assert_ne!(browser.value(NUMBERS), zoomed, "it moved");
    browser.tab_to("Whole picture");
    browser.press("Enter");
    assert_eq!(browser.value(NUMBERS), whole);
}

fn zooms_with_the_mouse(browser: &mut Browser) {
    let whole = browser.value(NUMBERS);
    let place = browser.value(
        "(() => { const svg = document.querySelector('.log svg[data-x]'); svg.scrollIntoView(); \
         const box = svg.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })()",
    );
    let at = |index: usize| place[index].as_f64().expect("a number");
    let mut mouse = |kind: &str, across: f64, down: f64| {
        let (x, y) = (at(0) + across * at(2), at(1) + down * at(3));
        let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
        browser.call("Input.dispatchMouseEvent", &event);
    };
    mouse("mousePressed", 0.3, 0.3);
    mouse("mouseMoved", 0.5, 0.6);
    mouse("mouseReleased", 0.5, 0.6);
    browser.wait_for("document.querySelector('.log svg.zoomed')");
    assert_ne!(browser.value(NUMBERS), whole);
    assert_eq!(browser.value("document.querySelectorAll('.dragged').length"), 0);
    browser.keep_picture("report-dragged");
    browser.value("document.querySelectorAll('.zoom button')[2].click()");
    assert_eq!(browser.value(NUMBERS), whole);
}

/// The title alone on the first page would be a waste of it: the first picture stands there too.
fn first_printed_page_is_full(browser: &mut Browser, folder: &Path) {
    let page = json!({ "paperWidth": 8.27, "paperHeight": 11.69, "pageRanges": "1" });
    let printed = browser.call("Page.printToPDF", &page);
    let Value::String(data) = &printed["data"] else { panic!("{printed}") };
    let bytes = browser.value(&format!("atob('{data}').length"));
    assert!(bytes.as_u64() > Some(10_000), "{bytes} bytes: the picture is not there");
    let text = std::process::Command::new("sh")
        .args(["-c", "command -v pdftotext >/dev/null || exit 0; base64 -d | pdftotext - -"])
        .current_dir(folder)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let mut text = text.expect("a shell");
    let mut to = text.stdin.take().expect("a pipe");
    // Without pdftotext nobody reads it.
    let _ = std::io::Write::write_all(&mut to, data.as_bytes());
    drop(to);
    let said = text.wait_with_output().expect("it ends").stdout;
    let said = String::from_utf8_lossy(&said);
    assert!(said.is_empty() || said.contains("offered rate"), "{said}");
}
