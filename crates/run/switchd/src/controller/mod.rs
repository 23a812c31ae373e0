//! The controller as a server: `sluice_control`'s state machine between hosts, people and a switch.
//!
//! It runs inside the switch's process by default ([`SwitchLink::Here`]), or in its own, beside a switch
//! whose tables are served by [`serve_tables`](crate::rpc::serve_tables). Either way one thread does it all,
//! and none of it stands on the path of a task. Above several spines ([`start_above`]) there is one such
//! thread for each of them in one process.

mod handle;
mod leaf;
mod link;
mod pod_registry;
mod runner;
mod service;
mod start;

pub use leaf::{Leaf, LeafOptions};
pub use link::SwitchLink;
pub use start::{ControllerOptions, start_above, start_controller};
