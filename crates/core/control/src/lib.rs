//! The controller of a rack as a state machine without I/O: which hosts are registered, which slice each
//! worker serves, how many tasks may wait, and what to do when hosts, switch or controller start, stop and
//! fail (Rain §3.2.3).
//!
//! [`Controller`] takes the time, [`Event`]s and a seed, and returns [`Action`]s and the next deadline. It
//! speaks to the switch only in `sluice_wire::tables`, one answer for each operation, in order. It keeps
//! nothing on disk: registrations are soft state that hosts renew, and a controller that starts reads the
//! rest back from the switch.
//!
//! Servers register here too, with the memory into which the switch writes tasks ahead (Rain §3.2.2).
//!
//! Where racks stand below a spine (Horus §3.2), the spine's controller is the same machine. Its workers
//! are leaves ([`Tier`]), each with a weight, and a leaf speaks to it by a [`LeafLine`]. One process may
//! run it for all spines, and divides racks and clients among them by [`Pods`].
//!
//! A switch obeys one controller, the one that claimed it last; the other controllers notice and stop
//! writing (`turn`). Controllers that wait for the lead are chosen by the switch ([`Arbiter`],
//! [`Contender`]).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod adapt;
mod adapting;
mod change;
mod claim;
mod client;
mod clients;
mod controller;
mod label_names;
mod labels;
mod lead;
mod leaf_line;
mod ledger;
mod message;
mod name;
mod note;
mod plan;
mod pods;
mod readback;
mod reading;
mod recent;
mod registration;
mod rings;
mod server;
mod servers;
mod slice;
mod slices;
mod standby;
mod tier;
mod turn;
mod types;
mod view;
mod worker;
mod workers;

pub use controller::Controller;
pub use label_names::{
    LabelNames, SliceLabels, check_label, check_told_apart, read_labels, read_needs, write_labels,
};
pub use lead::{Arbiter, Contender, HeldLease, LeadAnswer, LeadCall};
pub use leaf_line::{LeafAction, LeafLine, PoolSize};
pub use message::{
    Action, Answer, CallId, ClientGrant, ClientHello, Event, Refusal, Waiting, WorkerGrant, WorkerHello,
};
pub use name::{NAME_BYTES_MAX, NameError, check_name};
pub use note::Note;
pub use plan::{Plan, PlanError, SlicePlan, WORKER_TYPES_MAX};
pub use pods::{PodPlace, PodRoute, Pods};
pub use recent::RecentWork;
pub use rings::{RdmaPlan, RingNeed, RingOffer, RingPlace, ServerGrant, ServerHello};
pub use tier::Tier;
pub use view::{ClassView, ClientView, LinkState, ServerView, SliceView, View, WorkerPhase, WorkerView};
