//! A descriptor knows the bytes that it was made of, and no others of another length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_wire::{check_large, large_descriptor};

fuzz_target!(|bytes: &[u8]| {
    let descriptor = large_descriptor(bytes);
    assert!(check_large(descriptor, bytes));
    if let Some((claimed, rest)) = bytes.split_first_chunk() {
        assert!(!check_large(descriptor, rest));
        assert_eq!(check_large(*claimed, rest), *claimed == large_descriptor(rest));
    }
});
