//! A world in virtual time: an engine that knows the next event, and addressed places between which packets
//! go.
//!
//! The world does not know what its nodes are. A node (a switch, a group of workers) has an [`Address`],
//! receives the packets for its places, and sends packets to other addresses through [`World::send`].
//! [`Links`] says which link a packet takes, and so when and whether it arrives. Nodes also set timers and
//! clocks and schedule events. The code that made the nodes takes each event from [`World::next`] and
//! passes it to its node. The engine's parts, the links and [`dice`] have a file each.
#![forbid(unsafe_code)]

mod address;
pub use sluice_dice as dice;
mod engine;
mod event_queue;
mod group;
mod heads;
mod injector;
mod lane;
mod lanes;
mod mail;
mod network;
mod pool;
mod timers;
mod world;

pub use address::Address;
pub use engine::{ClockId, EventEngine, EventTurn, LaneId, WorldEvent};
pub use injector::{Copies, FaultInjector, Transit};
pub use lanes::SpanLanes;
pub use mail::{Mail, PacketId};
pub use network::{LinkQueue, Links, OneWay, Port};
pub use pool::{Id, Reused};
pub use timers::TimerId;
pub use world::World;
