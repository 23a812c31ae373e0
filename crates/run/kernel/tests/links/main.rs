//! The XDP program on real links: veth pairs between namespaces of the test's own, and a BPF file system that
//! goes with it.
//!
//! They take root, and a build with the program inside; without, these tests say so and do nothing.

mod ends;
#[path = "../object/mod.rs"]
mod object;
mod refused;
mod rig;
mod runs;
