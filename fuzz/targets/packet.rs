//! Whatever bytes come: no panic, and a packet that is taken has exactly these bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_wire::{encode, encoded_len, parse};

fuzz_target!(|bytes: &[u8]| {
    if let Ok((packet, body)) = parse(bytes) {
        let mut again = vec![0; encoded_len(&packet)];
        assert_eq!(encode(&packet, body, &mut again), Ok(bytes.len()));
        assert_eq!(again, bytes);
    }
});
