//! A fabric in virtual time, packet by packet: the network that HF²T's flowlets cross (HF²T §3, §5).
//!
//! A [`Topology`] says which hosts, switches and links there are, [`FabricSettings`] how they behave, and a
//! [`Fabric`] runs flows over them. Hosts send at the rate of DCQCN; switches choose among paths, mark,
//! pause and resume. Frames, links, switches, hosts and rates have a file each. The engine of
//! `sluice-events` keeps the frames on links.
//!
//! Left out: a switch has no processing time, cables lose no frames, hosts have one link each, and there is
//! one class of data and one of answers.
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
mod frame_tracker;
mod gaps;
mod hosts;
mod idle;
mod ids;
mod ready_flows;
mod settings;
mod sizes;
mod slowdown;
mod switches;
mod topology;
mod traffic;
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
pub use settings::{AckSettings, Ecn, FabricSettings, Pfc, Recovery, Retransmission};
pub use sizes::FlowSizes;
pub use slowdown::FlowSlowdowns;
pub use topology::{FabricEnd, FabricLink, LinkSpeed, Topology};
pub use traffic::{FlowArrivals, Traffic};
pub use window::WindowSettings;
pub use wires::PortCounts;
