//! The C functions, as a test in Rust calls them.

use std::ffi::{CStr, CString};
use std::ptr::null_mut;
use std::thread;
use std::time::Duration;

use sluice::*;

/// What went wrong last in this thread.
pub(crate) fn last() -> String {
    // SAFETY: it is never NULL.
    unsafe { CStr::from_ptr(sluice_last_error()) }.to_string_lossy().into_owned()
}

pub(crate) fn options(all: &[(&str, &str)]) -> SluiceOptions {
    let mut options = SluiceOptions::default();
    // SAFETY: the arguments are sound.
    assert_eq!(unsafe { sluice_options_new_of(SLUICE_ABI, &raw mut options) }, SluiceStatus::Ok);
    for (key, value) in all {
        assert_eq!(set(options, key, value), SluiceStatus::Ok, "{}", last());
    }
    options
}

pub(crate) fn set(options: SluiceOptions, key: &str, value: &str) -> SluiceStatus {
    let (key, value) = (CString::new(key).expect("text"), CString::new(value).expect("text"));
    // SAFETY: the arguments are sound.
    unsafe { sluice_options_set(options, key.as_ptr(), value.as_ptr()) }
}

/// A client of this controller.
pub(crate) fn connected(controller: &str) -> SluiceClient {
    let mut client = SluiceClient::default();
    let options = options(&[("controller", controller), ("patience", "60s")]);
    // SAFETY: the arguments are sound.
    let status = unsafe { sluice_client_connect(options, &raw mut client) };
    assert_eq!(status, SluiceStatus::Ok, "{}", last());
    client
}

pub(crate) fn submit(client: SluiceClient, spec: &SluiceSpec, bytes: &[u8]) -> (SluiceStatus, SluiceOutcome) {
    // SAFETY: all zeros are an outcome.
    let mut outcome: SluiceOutcome = unsafe { std::mem::zeroed() };
    let (from, length) = (bytes.as_ptr().cast(), bytes.len());
    // SAFETY: the arguments are sound.
    let status = unsafe { sluice_submit(client, spec, from, length, null_mut(), 0, &raw mut outcome) };
    (status, outcome)
}

/// Waits until a worker answers tasks of a type, if only that it does not understand them. Without one, a
/// task is refused soon, whatever its deadline is.
pub(crate) fn wait_for_a_worker(controller: &str, of: u16) {
    let client = connected(controller);
    let spec = SluiceSpec { r#type: of, deadline_ns: 60_000_000_000, ..SluiceSpec::default() };
    let answers = |_| {
        let (status, mut outcome) = submit(client, &spec, b"");
        assert_eq!(status, SluiceStatus::Ok, "{}", last());
        let answers = [SluiceKind::Reply as u32, SluiceKind::Failed as u32].contains(&outcome.kind);
        // SAFETY: the library gave it.
        unsafe { sluice_outcome_free(&raw mut outcome) };
        if !answers {
            thread::sleep(Duration::from_millis(5));
        }
        answers
    };
    assert!((0..30_000).any(answers), "no worker serves type {of}");
    sluice_client_free(client);
}

/// The bytes of an outcome.
pub(crate) fn bytes_of(outcome: &SluiceOutcome) -> &[u8] {
    // SAFETY: the library gave them, and the outcome was not given back.
    unsafe { std::slice::from_raw_parts(outcome.bytes, outcome.length) }
}
