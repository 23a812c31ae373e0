//! What is wrong, on the page: a worker that stands still is told of, and is not any more when it goes on.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Browser, Shown, WIDTHS};

/// The items of the list.
const ITEMS: &str = "[...document.querySelectorAll('#wrong li')]";

#[test]
fn a_worker_that_stands_still_is_told_of_on_the_page_until_it_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut shown) = Shown::start(folder.path()) else { return };
    let browser = &mut shown.browser;
    browser.wait_for("document.querySelector('#wrong .headline').textContent === 'Nothing wrong found.'");
    assert!(has(browser, "status", ""));
    keep_pictures(browser, "well");
    browser.tab_to("Move worker one");
    browser.value("window.before = document.activeElement");
    let worker = Pid::from_child(&shown.workers[1].0);
    kill_process(worker, Signal::STOP).expect("it lives");
    browser.wait_for(&format!("{ITEMS}.some((item) => item.textContent.includes('worker-stopped'))"));
    // Until its row is free the worker is dying, and then it is one that was lost.
    browser.wait_for(&format!("{ITEMS}[0]?.textContent.includes('its lease ended')"));
    browser.wait_for("document.querySelector('#wrong .headline').textContent.startsWith('1 wrong')");
    assert_eq!(browser.value("document.activeElement === window.before"), true, "the focus has moved");
    // Only the headline is spoken, once: the figures of the list change each second.
    assert_eq!(
        browser.value("document.querySelector('#wrong .findings').closest('[aria-live]')"),
        Value::Null
    );
    browser.value(&format!("window.item = {ITEMS}[0]; window.why = window.item.textContent; 0"));
    for (role, name) in [
        ("region", "What is wrong"),
        ("listitem", ""),
        ("StaticText", "wrong"),
        ("StaticText", "worker two"),
        ("StaticText", "Worker two has stopped, or cannot reach the controller."),
    ] {
        assert!(has(browser, role, name), "{role} {name}: {:#?}", browser.spoken());
    }
    let marked =
        browser.value(&format!("[...{ITEMS}[0].querySelectorAll('code')].map((code) => code.textContent)"));
    assert_eq!(marked, serde_json::json!(["sluice status"]));
    assert_eq!(browser.value(&format!("{ITEMS}[0].textContent.includes('`')")), false);
    browser.wait_for(&format!("{ITEMS}[0] === window.item && window.item.textContent !== window.why"));
    keep_pictures(browser, "wrong");
    kill_process(worker, Signal::CONT).expect("it lives");
    browser.wait_for("document.querySelector('#wrong .headline').textContent === 'Nothing wrong found.'");
    assert_eq!(browser.value(&format!("{ITEMS}.length")), 0);
    assert!(!has(browser, "StaticText", "worker two"), "{:#?}", browser.spoken());
}

#[test]
fn a_silent_rack_is_not_one_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut shown) = Shown::start(folder.path()) else { return };
    drop(shown.switch.take());
    let browser = &mut shown.browser;
    browser.wait_for("document.querySelector('#wrong .headline').textContent === 'Not known.'");
    let unheard = browser.value("document.querySelector('#wrong .state').textContent");
    assert!(
        unheard.as_str().is_some_and(|text| text.starts_with("Nothing is heard of rack at ")),
        "{unheard}"
    );
}

/// Whether a screen reader gets this.
fn has(browser: &mut Browser, role: &str, name: &str) -> bool {
    browser.spoken().iter().any(|(is, called)| is == role && (name.is_empty() || called == name))
}

fn keep_pictures(browser: &mut Browser, name: &str) {
    for (width, height) in WIDTHS {
        browser.set_size(width, height);
        let wide = browser.value("document.documentElement.scrollWidth");
        assert!(wide.as_u64().expect("a number") <= u64::from(width), "{wide} at {width}");
        for (is_dark, colours) in [(true, "dark"), (false, "light")] {
            browser.set_dark(is_dark);
            browser.keep_picture(&format!("{name}-{width}-{colours}"));
        }
    }
}
