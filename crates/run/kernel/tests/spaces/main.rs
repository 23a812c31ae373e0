//! Network namespaces of a rack: who reaches whom and how, and what is left of them. They take root; without
//! it these tests say so and do nothing.

mod faults;
mod gone;
mod hop;
#[path = "../object/mod.rs"]
mod object;
mod reach;

use sluice_kernel::spaces::RackSpaces;

/// The spaces of so many hosts; `None` for who may not make any.
fn rack(hosts: usize) -> Option<RackSpaces> {
    if !object::is_root() {
        eprintln!("skipped: network namespaces take root");
        return None;
    }
    Some(RackSpaces::new(hosts).expect("root may make them"))
}
