//! Horus: idle workers first, and when there are none the shorter of two random queues (Horus §3.3, A.6).
//!
//! What schedules has *nodes* below it, in *pools*: at a leaf nodes are workers, at a spine they are leaves;
//! pools are slices. It knows nodes that are idle by a list (module `idle`), and of all others how much is
//! before them by loads that they told and drifts, what was sent to them since (module `loads`). A task goes
//! round in the switch only where the two nodes that it looked at may have changed places since their loads
//! were told.
//!
//! Left out: tasks of several packets (A.4; here a task is one SUBMIT). What their table is for, tries of a
//! task have, if that is asked for (module `affinity`).

mod affinity;
mod average;
mod error;
mod idle;
mod leaf;
mod loads;
mod racks;
mod reading;
mod settings;
mod spine;
mod updates;
mod uplink;

pub use average::{Average, RackSize};
pub use error::HorusError;
pub use leaf::Horus;
pub(crate) use reading::Reading as Settings;
pub use reading::{FabricReading, IdleRack, LoadsTold, PolicyParts};
pub use spine::Spine;
pub use updates::{IDLE_SELECTED, SpineLink};
pub(crate) use uplink::{RackStand, SpineView, TellsOf, Uplink, UplinkStages, submitted};
