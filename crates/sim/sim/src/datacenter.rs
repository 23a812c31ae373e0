//! Racks below spines (Horus §3.2): who schedules in them, and their fault runs. Curves of them are
//! [`point`](crate::point)s.

pub use crate::racks::{System, run_faults, run_many_faults};
