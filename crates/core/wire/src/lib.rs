//! The packets on the wire.
//!
//! [`Packet`] can hold legal packets only. [`View`] reads them from bytes and refuses everything else with
//! a reason; [`encode`] writes them. [`roce`] is the same for `RoCEv2`, which carries the payloads of
//! waiting tasks. [`tables`] is what a controller writes into a switch, [`sizes`] how large the switch's
//! tables have to be, and [`tallies`] what agents tell the controller. Packets need no allocation, the
//! crate has no I/O, and no input makes it panic.
//!
//! The layout of the bytes stands in `docs/manual/wire.md`, and in `docs/manual/rdma.md` for RDMA.
//!
//! ```
//! use sluice_wire::{Packet, Probe, WorkerId, encode, parse};
//!
//! let probe = Packet::Probe(Probe { worker: WorkerId(7), ..Probe::default() });
//! let mut bytes = [0; 128];
//! let length = encode(&probe, &[], &mut bytes)?;
//! assert_eq!(parse(&bytes[..length])?, (probe, &[][..]));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod encode;
mod error;
mod ids;
mod large;
mod layout;
mod packet;
pub mod pcap;
pub mod registrations;
pub mod roce;
pub mod serving;
pub mod sizes;
mod submit;
pub mod tables;
pub mod tallies;
mod view;

pub use encode::{encode, encoded_len};
pub use error::{EncodeError, ParseError, RoceError};
pub use ids::*;
pub use large::{
    SLOT_HEAD_BYTES, TASK_BYTES_MAX, check_large, descriptor_len, large_descriptor, read_slot, slot_head,
};
pub use layout::{
    HEADER_BYTES, INLINE_BYTES, Kind, MAX_PAYLOAD_BYTES, VERSION, first_bytes_max, payload_bytes_max,
    trailer_bytes,
};
pub use packet::*;
pub use submit::{JOB_TASKS_MAX, Payload, Submit, TaskJob};
pub use view::{View, parse};
