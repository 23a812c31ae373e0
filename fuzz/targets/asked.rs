//! Whatever is asked of the simulator (policy, workload, testbed): it is read, or refused with one line that
//! is fit to be shown.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sluice_sim::policy::Policy;
use sluice_testbed::Testbed;
use sluice_workload::Workload;

fuzz_target!(|text: &str| {
    match Policy::parse(text) {
        Ok(policy) => assert_eq!(Policy::parse(&policy.to_string()).ok(), Some(policy)),
        Err(why) => fit_to_be_shown(&why.to_string()),
    }
    // Files are no part of this: those that a workload names are looked for where there are none.
    if !text.contains('/')
        && let Err(why) = Workload::parse_in(text, Path::new("nowhere"))
    {
        fit_to_be_shown(&why.to_string());
    }
    if let Err(why) = Testbed::parse(text) {
        fit_to_be_shown(&why.to_string());
    }
});

/// It is one line, and commands no terminal.
fn fit_to_be_shown(why: &str) {
    assert!(!why.is_empty() && !why.contains(char::is_control), "{why:?}");
}
