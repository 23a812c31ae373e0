//! Sluice for C and C++: a client, and services, behind functions that any language can call.
//!
//! `include/sluice.h` is made from this crate by `tests/header.rs`: the comments here are the manual there.
//! Handles are values that `table` looks up, so a freed or invented one is an error and never undefined
//! behaviour. Each function catches panics and leaves one line for `sluice_last_error` (`fault`).
#![deny(unsafe_code)]

#[allow(unsafe_code, clippy::missing_safety_doc, reason = "the header's first lines say it for all of C")]
mod client;
mod fault;
#[allow(unsafe_code, clippy::missing_safety_doc, reason = "the header's first lines say it for all of C")]
mod labels;
#[allow(unsafe_code, clippy::missing_safety_doc, reason = "the header's first lines say it for all of C")]
mod options;
#[allow(unsafe_code, clippy::missing_safety_doc, reason = "the header's first lines say it for all of C")]
mod outcome;
#[allow(unsafe_code, clippy::missing_safety_doc, reason = "the header's first lines say it for all of C")]
mod pointers;
#[allow(unsafe_code, reason = "system calls")]
mod process;
#[allow(unsafe_code, clippy::missing_safety_doc, reason = "the header's first lines say it for all of C")]
mod queue;
#[allow(unsafe_code, clippy::missing_safety_doc, reason = "the header's first lines say it for all of C")]
mod service;
mod table;
#[allow(unsafe_code, clippy::missing_safety_doc, reason = "the header's first lines say it for all of C")]
mod text;
mod types;
#[allow(unsafe_code, clippy::missing_safety_doc, reason = "the header's first lines say it for all of C")]
mod worker;

pub use client::*;
pub use fault::*;
pub use labels::*;
pub use options::*;
pub use outcome::*;
pub use queue::*;
pub use service::*;
pub use text::*;
pub use types::*;
pub use worker::*;
