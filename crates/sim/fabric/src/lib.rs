//! A fabric in virtual time, packet by packet: what HF²T's flowlets cross (HF²T §3, §5).
//!
//! A [`Topology`] says which hosts, switches and links there are, [`FabricSettings`] how they behave, and a
//! [`Fabric`] runs flows over them: hosts send at the rate that DCQCN leaves them, switches choose among
//! paths, mark, pause and resume. A file each: what a frame is and how it waits, links, switches, hosts,
//! rates. All that is on a link is kept by the engine of `sluice-events`.
//!
//! What is left out: a switch takes no time of its own, cables lose nothing, hosts have one link each, one
//! class of data and one of answers.
#![forbid(unsafe_code)]

mod balance;
mod buffer;
mod conga;
mod connections;
mod dcqcn;
mod error;
mod fabric;
mod flow;
mod flowlets;
mod frame;
mod gaps;
mod hosts;
mod idle;
mod ids;
mod repeats;
mod settings;
mod sizes;
mod slowdown;
mod switches;
mod topology;
mod traffic;
mod turns;
mod window;
mod wires;
mod wiring;

pub use balance::{Drill, LetFlow, PathBalancer, Scope};
pub use conga::Conga;
pub use connections::Connections;
pub use dcqcn::DcqcnSettings;
pub use error::FabricError;
pub use fabric::{Fabric, FabricCounts, FabricStep};
pub use flow::{FinishedFlow, FlowSpec};
pub use flowlets::FlowletCounts;
pub use frame::{FrameSizes, Parcel};
pub use gaps::Gaps;
pub use hosts::HostCounts;
pub use idle::Idle;
pub use ids::{FlowKey, HostId, PortId, SwitchId};
pub use settings::{Answers, Ecn, FabricSettings, Pfc, Recovery, Repeat};
pub use sizes::FlowSizes;
pub use slowdown::FlowSlowdowns;
pub use topology::{FabricEnd, FabricLink, LinkSpeed, Topology};
pub use traffic::{FlowArrivals, Traffic};
pub use window::WindowSettings;
pub use wires::PortCounts;
