//! Network namespaces of a rack: which hosts reach each other and how, and what remains of them. Needs
//! root; without root these tests print so and do nothing.

mod faults;
mod gone;
mod hop;
mod next_hop;
#[path = "../object/mod.rs"]
mod object;
mod reach;

use sluice_kernel::spaces::RackSpaces;

/// The namespaces of `hosts` hosts; `None` if the user may not create any.
fn rack(hosts: usize) -> Option<RackSpaces> {
    if !object::is_root() {
        eprintln!("skipped: network namespaces take root");
        return None;
    }
    Some(RackSpaces::new(hosts).expect("root may make them"))
}
