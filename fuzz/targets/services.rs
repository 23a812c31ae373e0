//! The encodings of the services that come with Sluice: no panic on any request or reply, and what was read
//! is within its bounds.
#![no_main]

extern crate self as sluice_net;

use libfuzzer_sys::fuzz_target;

// The files themselves: the crates would bring RPC and TLS into an instrumented build.
#[allow(dead_code, reason = "only the parsers are called")]
#[path = "../../crates/run/services/src/rocks/codec.rs"]
mod codec;
#[allow(dead_code, reason = "only the errors are needed")]
#[path = "../../crates/run/net/src/service.rs"]
pub mod service;
#[allow(dead_code, reason = "only the parser is called")]
#[path = "../../crates/run/services/src/span.rs"]
mod span;

/// The longest reply that a service may be asked for here.
const REPLY_MAX: usize = 4_096;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(keys) = codec::decode_get(bytes) {
        assert_eq!(keys.map(<[u8]>::len).sum::<usize>(), bytes.len());
    }
    if let Ok(scan) = codec::decode_scan(bytes) {
        assert!(scan.rows <= codec::SCAN_ROWS_MAX);
    }
    if let Some(reply) = codec::decode_get_reply(bytes) {
        let values = reply.values().map(|value| 2 + value.map_or(0, <[u8]>::len));
        assert_eq!(10 + values.sum::<usize>(), bytes.len());
    }
    if let Some(reply) = codec::decode_scan_reply(bytes) {
        let mut again = bytes.to_vec();
        again[..codec::SCAN_HEAD_BYTES].fill(0);
        reply.encode(&mut again);
        assert_eq!(again, bytes);
        assert!(codec::rows_of(bytes).count() <= bytes.len());
    }
    if let Ok(request) = span::decode(bytes, REPLY_MAX) {
        let mut reply = Vec::new();
        request.reply(request.span, &mut reply);
        assert!(request.span <= span::SPAN_MAX && reply.len() <= REPLY_MAX);
    }
});
