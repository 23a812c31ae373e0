//! The XDP program on real links: veth pairs between namespaces that the test made, and a BPF file system
//! that disappears with them.
//!
//! Needs root and a build with the program inside; otherwise these tests print so and do nothing.

mod ends;
#[path = "../object/mod.rs"]
mod object;
mod refused;
mod rig;
mod runs;
