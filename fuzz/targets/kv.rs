//! The messages of the key-value service: no panic on any request or reply, and what was read is within its
//! bounds and is written as the same bytes again.
#![no_main]

extern crate self as sluice_net;

use libfuzzer_sys::fuzz_target;

// The files themselves: the crates would bring RPC and TLS into an instrumented build.
#[allow(dead_code, reason = "only the messages are needed")]
#[path = "../../crates/run/services/src/kv/codec.rs"]
mod codec;
#[allow(dead_code, reason = "only the errors are needed")]
#[path = "../../crates/run/net/src/service.rs"]
pub mod service;

use codec::{
    KV_KEY_BYTES_MAX, KV_VALUE_BYTES_MAX, KeyPageWriter, add_value, decode_kv_del, decode_kv_del_reply,
    decode_kv_get, decode_kv_get_reply, decode_kv_scan, decode_kv_scan_reply, decode_kv_set,
    decode_kv_set_reply, encode_kv_del, encode_kv_get, encode_kv_set_reply,
};

fuzz_target!(|bytes: &[u8]| {
    requests(bytes);
    replies(bytes);
});

fn requests(bytes: &[u8]) {
    let mut again = Vec::new();
    if let Ok(get) = decode_kv_get(bytes) {
        assert!(get.keys.clone().all(|key| (1..=KV_KEY_BYTES_MAX).contains(&key.len())));
        encode_kv_get(get.seen, get.keys, &mut again).expect("it was read");
        assert_eq!(again, bytes);
    }
    again.clear();
    if let Ok(keys) = decode_kv_del(bytes) {
        encode_kv_del(keys, &mut again).expect("it was read");
        assert_eq!(again, bytes);
    }
    again.clear();
    if let Ok(scan) = decode_kv_scan(bytes) {
        scan.encode(&mut again).expect("it was read");
        assert_eq!(again, bytes);
    }
    again.clear();
    if let Ok(set) = decode_kv_set(bytes) {
        assert!(set.value.len() <= KV_VALUE_BYTES_MAX);
        set.encode(&mut again).expect("it was read");
        assert_eq!(again, bytes);
    }
}

fn replies(bytes: &[u8]) {
    let mut again = Vec::new();
    for keys in 1..4 {
        again.clear();
        if let Some(values) = decode_kv_get_reply(bytes, keys) {
            for value in values {
                add_value(value, &mut again, bytes.len()).expect("it had room");
            }
            assert_eq!(again, bytes);
        }
    }
    if let Some(mut page) = decode_kv_scan_reply(bytes) {
        let mut writer = KeyPageWriter::new(u32::MAX, &mut again, bytes.len());
        assert!(page.keys.all(|key| writer.add(key)));
        assert_eq!(again[1..], bytes[1..]);
    }
    again.clear();
    if let Some(number) = decode_kv_set_reply(bytes) {
        encode_kv_set_reply(number, &mut again);
        assert_eq!(again, bytes);
    }
    again.clear();
    if let Some(deleted) = decode_kv_del_reply(bytes) {
        deleted.encode(&mut again);
        assert_eq!(again, bytes);
    }
}
