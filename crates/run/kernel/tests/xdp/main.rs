//! The XDP program in the kernel's test run, compared with the model; the headers below UDP are checked
//! too.
//!
//! Needs root, clang-14 and libbpf's headers; without root these tests print so and do nothing.

mod clocks;
mod crowd;
mod frames;
mod links;
#[path = "../object/mod.rs"]
mod object;
mod plane;
mod vectors;
mod writes;
