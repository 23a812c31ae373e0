//! Horus: idle workers first, and when there are none the shorter of two random queues (Horus §3.3, A.6).
//!
//! What schedules has *nodes* below it, in *pools*: here, at a leaf, nodes are workers and pools are
//! slices. It knows nodes that are idle by a list (module `idle`), and of all others how much is before
//! them by loads that they told and drifts, what was sent to them since (module `loads`). A task goes round
//! in the switch only where the two nodes that it looked at may have changed places since their loads were
//! told.
//!
//! Left out: spines (which send tasks to racks), tasks of several packets (A.4; here a task is one SUBMIT).

mod idle;
mod leaf;
mod loads;
mod reading;
mod settings;

pub use leaf::Horus;
pub(crate) use reading::Reading as Settings;
