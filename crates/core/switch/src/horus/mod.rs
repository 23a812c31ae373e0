//! Horus: a task goes to an idle node, and if there is none to the shorter of two random queues (Horus
//! §3.3, A.6).
//!
//! A Horus switch has *nodes* below it, in *pools*. At a leaf the nodes are workers, at a spine they are
//! leaves; pools are slices. The switch keeps a list of the idle nodes (module `idle`). Of all nodes it
//! knows the queue: the load that the node told last, and the drift, what was sent to it since (module
//! `loads`). A task recirculates only if the order of the two nodes that it looked at may have changed
//! since their loads were told.
//!
//! Left out: tasks of several packets (A.4), because here a task is one SUBMIT. The paper's table for such
//! packets serves the tries of a task here, as an option (module `affinity`).

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
