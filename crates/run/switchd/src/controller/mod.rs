//! The controller as a server: `sluice_control`'s state machine between hosts, operators and a switch.
//!
//! By default it runs inside the switch's process ([`SwitchLink::Here`]). It can also run in a process of
//! its own, beside a switch that serves its tables with [`serve_tables`](crate::rpc::serve_tables). In both
//! cases a single thread runs the state machine, and no task passes through it. A controller above several
//! spines ([`start_above`]) has one such thread for each spine, all in one process.

mod builds;
mod handle;
mod history;
mod keeper;
mod lead;
mod leaf;
mod link;
mod lost_hosts;
mod memory;
mod metrics;
mod note_counts;
mod note_events;
mod pod_registry;
mod runner;
mod service;
mod standing;
mod start;
mod status;

pub use leaf::{Leaf, LeafOptions};
pub use link::SwitchLink;
pub use start::{ControllerOptions, start_above, start_controller};
