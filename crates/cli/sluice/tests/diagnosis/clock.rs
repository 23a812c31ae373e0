//! A wall clock that is set under a running switch. No test may set the machine's: libfaketime stands between
//! the switch and that clock, and shows it another one when its file says so.

use std::path::PathBuf;

use crate::common::command;
use crate::rig::{PLAN, Rack};

#[test]
fn a_wall_clock_that_is_set_is_told_with_its_direction() {
    let Some(library) = library() else {
        eprintln!("skipped: this takes Debian's libfaketime");
        return;
    };
    let rack = Rack::of(PLAN.split("[[worker]]").next().expect("the slice"));
    let file = rack.folder().join("clock");
    // Renamed into its place: the switch reads it all the time.
    let set = |offset: &str| {
        let new = file.with_extension("new");
        std::fs::write(&new, offset).expect("written");
        std::fs::rename(&new, &file).expect("renamed");
    };
    set("+0");
    let any = "127.0.0.1:0";
    let mut switch =
        command(rack.folder(), &["switch", "rack.toml", "--json", "--control", any, "--listen", any]);
    switch.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &file);
    switch.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let (_switch, _) = Rack::started(switch);
    rack.is_in_order();
    set("+3600s");
    let told = rack.finds("clock-set");
    assert_eq!(told["severity"], "warning", "{told}");
    assert!(told["what"].as_str().is_some_and(|what| what.contains(" was set forward by 3600 s")), "{told}");
    set("+0");
    let back =
        |status: &serde_json::Value| status["findings"].to_string().contains(" was set back by 3600 s");
    rack.until("set back", back);
}

/// Where Debian puts it.
fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
    folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists())
}
