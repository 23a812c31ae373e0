//! The XDP program, through the kernel's test run: held to the model, and to what the headers below UDP
//! should be.
//!
//! It takes root, clang-14 and libbpf's headers; without root these tests say so and do nothing.

mod clocks;
mod crowd;
mod frames;
mod links;
#[path = "../object/mod.rs"]
mod object;
mod plane;
mod vectors;
mod writes;
