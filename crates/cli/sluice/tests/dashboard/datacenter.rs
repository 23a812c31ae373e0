//! Racks below live spines on the page: the table of all, and one of them below it, by keyboard and as a
//! screen reader hears it.

use std::fs;
use std::process::Stdio;

use super::common::terminate;
use super::{Browser, Running, WIDTHS, command};
use sluice_ports::free_address;

/// Two spines, with a rack below each.
const PLAN: &str = r#"
name = "datacenter"
policy = "dc-horus"
out = "out"
[racks]
count = 2
spines = 2
[[slice]]
name = "hold"
types = ["hold"]
[[worker]]
name = "w"
count = 2
slice = "hold"
service = "hold"
[load]
rate = 100
mix = "hold=1"
length = "600s"
deadline = "20s"
behind_max = "60s"
"#;

#[test]
fn racks_below_spines_stand_in_one_table_and_each_is_one_key_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut browser) = Browser::start(folder.path()) else {
        eprintln!("skipped: chromium is not installed here");
        return;
    };
    fs::write(folder.path().join("plan.toml"), PLAN).expect("written");
    let at = free_address().to_string();
    let up = command(folder.path(), &["up", "plan.toml", "--dashboard", &at, "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut up = Running(up.expect("it starts"));
    while std::net::TcpStream::connect(&at).is_err() {
        assert!(up.runs(), "it ended");
        std::thread::yield_now();
    }
    browser.set_size(1_400, 1_000);
    browser.open(&format!("http://{at}/"));
    let rows = "[...document.querySelectorAll('#overview tbody tr')]";
    let all_up = format!("{rows}.length === 4 && {rows}.every((row) => row.cells[2].textContent === 'up')");
    browser.wait_for(&all_up);
    browser.wait_for(&format!("{rows}.filter((row) => row.cells[1].textContent === 'spine').length === 2"));
    browser.wait_for("document.querySelectorAll('#load svg.chart').length > 0");
    browser.wait_for("document.querySelectorAll('.charts figure svg.chart').length >= 4");
    browser.fits("datacenter", &WIDTHS);
    browser.speaks_of(&[
        ("region", "All racks"),
        ("table", "Racks and spines"),
        ("rowheader", "spine 1"),
        ("link", "spine 2"),
        ("columnheader", "differ from peers"),
        ("table", "Leaves: the racks below"),
        ("region", "Load"),
        ("table", "Load: the last second"),
        ("image", "balance"),
    ]);
    // Several spines have one map, which is not changed here; a rack below them is.
    assert_eq!(
        browser.value("document.querySelectorAll('section[id^=rack-]:not([hidden]) button').length"),
        0
    );
    let names = browser.value(&format!("{rows}.map((row) => row.cells[0].textContent)"));
    let mut rack = names.as_array().into_iter().flatten().filter_map(|name| name.as_str());
    let rack = rack.rfind(|name| !name.starts_with("spine")).expect("a rack").to_owned();
    browser.tab_to(&rack);
    browser.press("Enter");
    browser.wait_for(&format!(
        "document.activeElement.tagName === 'H2' && document.activeElement.textContent === '{rack}'"
    ));
    let link = format!("{rows}.find((row) => row.cells[0].textContent === '{rack}').querySelector('a')");
    browser.wait_for(&format!("{link}.getAttribute('aria-current') === 'true'"));
    let moves = "section[id^=rack-]:not([hidden]) [aria-label^='Move worker']";
    browser.wait_for(&format!("document.querySelectorAll(\"{moves}\").length === 1"));
    browser.fits("datacenter-rack", &WIDTHS);
    browser.speaks_of(&[("heading", &rack), ("table", "Workers"), ("button", "Move worker")]);
    // What was chosen stays chosen when the page is loaded again.
    browser.call("Page.reload", &serde_json::json!({}));
    browser.wait_for(&format!("{rows}.length === 4 && {link}.getAttribute('aria-current') === 'true'"));
    fills_a_wall(&mut browser, &rack);
    // A load that is asked to end early says so with its exit code.
    terminate(&up.0);
    up.0.wait().expect("it ends");
}

/// A wall has room for three of the four beside each other.
fn fills_a_wall(browser: &mut Browser, rack: &str) {
    browser.set_size(3_840, 2_160);
    let beside = "[...document.querySelectorAll('section[id^=rack-]:not([hidden])')]";
    browser.wait_for(&format!("{beside}.length === 3"));
    let tops = format!("new Set({beside}.map((rack) => rack.getBoundingClientRect().top)).size");
    browser.wait_for(&format!("{beside}.every((rack) => rack.querySelectorAll('svg.chart').length === 4)"));
    assert_eq!(browser.value(&tops), 1, "they do not stand beside each other");
    browser.fits("datacenter-wall", &[(3_840, 2_160)]);
    browser.speaks_of(&[("heading", rack), ("heading", "spine 2")]);
    browser.set_size(1_400, 1_000);
    browser.wait_for(&format!("{beside}.length === 1"));
}
