//! What a gateway reads of strangers: RESP's commands however they are cut, patterns, and replies of a store.
#![no_main]

extern crate self as sluice_net;
extern crate self as sluice_services;

use libfuzzer_sys::fuzz_target;

// The files themselves: the crate would bring RPC and TLS into an instrumented build.
#[allow(dead_code, reason = "only the messages are needed")]
#[path = "../../crates/run/services/src/kv/codec.rs"]
pub mod codec;
#[allow(dead_code, reason = "only the matcher is called")]
#[path = "../../crates/run/gateway/src/resp/glob.rs"]
mod glob;
#[allow(dead_code, reason = "only the reader is called")]
#[path = "../../crates/run/gateway/src/resp/reader.rs"]
mod reader;
#[allow(dead_code, reason = "only the errors are needed")]
#[path = "../../crates/run/net/src/service.rs"]
pub mod service;
#[allow(dead_code, unused_imports, reason = "only the readers are called")]
#[path = "../../crates/run/gateway/src/resp/kv.rs"]
mod tasks;

/// The store's service.
pub mod kv {
    use sluice_wire::TaskType;

    pub use crate::codec;

    /// Stands for the service's own.
    pub const KV_TYPES: [(&str, TaskType); 4] = [
        ("kv-get", TaskType(20)),
        ("kv-scan", TaskType(21)),
        ("kv-set", TaskType(22)),
        ("kv-del", TaskType(23)),
    ];
}

use reader::{ARGS_MAX, COMMAND_BYTES_MAX, FrameError, RespReader};

/// The commands in these bytes, which come in pieces of so many, and the error behind them.
fn commands(bytes: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, Option<FrameError>) {
    let (mut reader, mut found) = (RespReader::new(), Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        let room = reader.room();
        room[..piece.len()].copy_from_slice(piece);
        reader.filled(piece.len());
        loop {
            match reader.read() {
                Ok(false) => break,
                Err(why) => return (found, Some(why)),
                Ok(true) => {
                    let args = reader.args();
                    assert!((1..=ARGS_MAX).contains(&args.len()));
                    let words: Vec<Vec<u8>> = args.from(0).map(<[u8]>::to_vec).collect();
                    assert!(words.iter().map(Vec::len).sum::<usize>() <= COMMAND_BYTES_MAX);
                    found.push(words);
                    reader.consume();
                }
            }
        }
    }
    (found, None)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    assert_eq!(commands(bytes, usize::from(*piece)), commands(bytes, 4_096));
    let (pattern, key) = bytes.split_at(bytes.len() / 2);
    glob::matches(pattern, key);
    tasks::scanned(bytes).ok();
    let mut rest = bytes;
    while tasks::value(&mut rest).is_ok() {}
});
