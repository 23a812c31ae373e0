//! A text that says which faults to inject is refused, or holds shares between 0 and 1.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The files themselves: the crate would bring RPC and TLS into an instrumented build.
#[allow(dead_code, reason = "only the parser is called")]
#[path = "../../crates/run/net/src/faults.rs"]
mod faults;

fuzz_target!(|text: &str| {
    if let Ok(rates) = text.parse::<faults::Rates>() {
        assert!([rates.loss, rates.dup, rates.reorder].iter().all(|share| (0.0..=1.0).contains(share)));
    }
});
