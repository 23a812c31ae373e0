//! The conformance cases of `../cases` in C and C++, each also with the address and undefined-behaviour
//! sanitizers.

use std::sync::{Mutex, PoisonError};

use super::common::{Installed, SANITIZERS, here, ran, sluice};

/// One after the other: cases have deadlines, and four racks at once are more than two cores serve in time.
static ONE: Mutex<()> = Mutex::new(());

fn hold(language: &str, flags: &[&str]) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(installed) = Installed::of(language) else { return };
    let build = |name: &str| {
        let how = if flags.is_empty() { "" } else { "-sanitized" };
        let source = format!("cases/{name}.{language}");
        installed.build(&source, &format!("{name}-{language}{how}"), flags)
    };
    let (service, runner) = (build("service"), build("cases"));
    let cases = std::env::var_os("SLUICE_CASES").map_or_else(|| here().join("../cases"), Into::into);
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = installed.command(&runner);
    let output = ran(run.arg(sluice()).arg(cases).arg(service).current_dir(folder.path()));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.ends_with(" cases hold\n") && !said.starts_with("0 "), "{said}");
}

#[test]
fn the_cases_hold_in_c() {
    hold("c", &[]);
}

#[test]
fn the_cases_hold_in_c_with_sanitizers() {
    hold("c", &SANITIZERS);
}

#[test]
fn the_cases_hold_in_cxx() {
    hold("cpp", &[]);
}

#[test]
fn the_cases_hold_in_cxx_with_sanitizers() {
    hold("cpp", &SANITIZERS);
}
