//! Words for numbers, and the library's version.

use std::ffi::{CStr, c_char, c_int};

use crate::types::SLUICE_ABI;

/// The words of a sluice_status, in the order of its numbers.
const STATUSES: [&CStr; 14] = [
    c"ok",
    c"null",
    c"no-handle",
    c"other-abi",
    c"bad-option",
    c"bad-argument",
    c"too-long",
    c"busy",
    c"closed",
    c"forked",
    c"unreachable",
    c"turned-away",
    c"system",
    c"internal",
];

/// The words of a sluice_why, in the order of its numbers; all languages have the same.
const WHYS: [&CStr; 17] = [
    c"none",
    c"queue-full",
    c"no-room",
    c"no-workers",
    c"stale-tokens",
    c"unserved",
    c"no-slice",
    c"busy",
    c"never-sent",
    c"late",
    c"long-budget",
    c"too-long",
    c"unknown-label",
    c"no-class",
    c"deadline",
    c"reply-gone",
    c"too-old",
];

/// The library's version, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn sluice_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no zero"),
        };
    VERSION.as_ptr()
}

/// The SLUICE_ABI of the header that belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_abi() -> u32 {
    SLUICE_ABI
}

/// A status as a word, such as "busy"; "?" if there is no such status.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_status_text(status: c_int) -> *const c_char {
    word(&STATUSES, status)
}

/// A sluice_why as a word, such as "queue-full"; "?" if there is no such one.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_why_text(why: c_int) -> *const c_char {
    word(&WHYS, why)
}

fn word(words: &[&'static CStr], number: c_int) -> *const c_char {
    let word = usize::try_from(number).ok().and_then(|number| words.get(number));
    word.copied().unwrap_or(c"?").as_ptr()
}
