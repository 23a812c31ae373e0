//! A world in virtual time: an engine that knows what happens next, and addressed places that packets go
//! between.
//!
//! Who lives there is not the world's affair. A node (a switch, a group of workers) has an [`Address`], takes
//! what comes to one of its places, and sends packets to other addresses through [`World::send`]; the
//! [`Links`] says over which link, and so when and whether they arrive. Nodes also set timers and clocks and
//! ask for cues. Whoever puts nodes into a world takes from [`World::next`] what happens, and hands it to the
//! node that is there. A file each: the engine's parts, links, [`dice`].
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
