//! A study's page under the dashboard's policy, which allows no style attributes: heat maps have colours.

#[allow(dead_code, reason = "a part of the studies is shown here")]
#[path = "../report/fixture.rs"]
mod fixture;

use std::fs;
use std::process::Stdio;

use super::{Browser, Running, command, text};

#[test]
fn the_cells_of_a_heat_map_have_their_colours() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut browser) = Browser::start(folder.path()) else {
        eprintln!("skipped: chromium is not installed here");
        return;
    };
    let study = serde_json::to_string(&fixture::one_class()).expect("JSON");
    fs::write(folder.path().join("study.json"), study).expect("written");
    let args = ["dashboard", "--study", ".", "--listen", "127.0.0.1:0", "--json", "--quiet"];
    let mut child = command(folder.path(), &args).stdout(Stdio::piped()).spawn().expect("it starts");
    let said = serde_json::from_str(&super::first_line(&mut child)).expect("JSON");
    let _dashboard = Running(child);
    browser.set_size(1_400, 1_000);
    browser.open(text(&said, "dashboard"));
    browser.wait_for("document.querySelectorAll('.heat td').length === 6");
    browser.keep_picture("heat");
    let colours = browser.value(
        "new Set([...document.querySelectorAll('.heat td')]\
         .map((cell) => getComputedStyle(cell).backgroundColor)).size",
    );
    assert!(colours.as_u64().is_some_and(|colours| colours >= 5), "{colours} colours for 6 numbers");
    assert_eq!(browser.value("document.querySelectorAll('[style]').length"), 0);
}
