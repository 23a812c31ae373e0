//! Whatever is asked of the simulator (policy, workload, testbed): it is read, or refused with one line.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sluice_sim::policy::Policy;
use sluice_sim::testbed::Testbed;
use sluice_sim::workload::Workload;

fuzz_target!(|text: &str| {
    match Policy::parse(text) {
        Ok(policy) => assert_eq!(Policy::parse(&policy.to_string()).ok(), Some(policy)),
        Err(why) => assert!(is_one_line(&why.to_string())),
    }
    // Files are no part of this: those that a workload names are looked for where there are none.
    if !text.contains('/')
        && let Err(why) = Workload::parse_in(text, Path::new("nowhere"))
    {
        assert!(!why.to_string().is_empty());
    }
    if let Err(why) = Testbed::parse(text) {
        assert!(!why.to_string().is_empty());
    }
});

fn is_one_line(text: &str) -> bool {
    !text.is_empty() && !text.trim_end().contains('\n')
}
