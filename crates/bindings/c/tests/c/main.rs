//! `libsluice` as C and C++ see it: the conformance cases, the examples, the header, the manual's page, wrong
//! input, a rack of another version, and what may happen to a client's process.

#[path = "../common/mod.rs"]
mod common;

mod conformance;
mod examples;
mod header;
mod manual;
mod misuse;
mod process;
mod versions;
