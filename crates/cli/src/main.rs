//! The `sluice` command.
#![forbid(unsafe_code)]

mod fail;

fn main() {}
