//! A text that says which faults to inject is refused, or holds shares between 0 and 1.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_netem::Rates;

fuzz_target!(|text: &str| {
    if let Ok(rates) = text.parse::<Rates>() {
        assert!([rates.loss, rates.dup, rates.reorder].iter().all(|share| (0.0..=1.0).contains(share)));
    }
});
