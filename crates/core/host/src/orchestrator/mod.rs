//! The orchestration of a server's cores, as RingLeader's NIC and its datapath OS do it (RingLeader §3–§6).
//!
//! [`Nic`] is what the paper puts into hardware. It assigns packets to services by address and keeps them
//! in one FIFO for each service. It serves the FIFOs in the order of a [`Ranking`], skips services without
//! room (first-eligible-out), and chooses a core by [`Balancing`] (JBSRQ). [`CoreScheduler`] is a core's
//! side: a short priority queue and coroutines that yield. [`CoreAllocator`] decides which services run on
//! which cores, from the hints of the NIC's load monitor. The calls between host and NIC are those of the
//! paper's table 1, with their names.
//!
//! All parts do no I/O and allocate only during construction. Left out: transports, the applications that
//! §9 of the paper would place side by side, and several NICs.

mod allocator;
mod balancer;
mod buffer;
mod classifier;
mod core_scheduler;
mod error;
mod ids;
mod levels;
mod monitor;
mod nic;
mod ranking;

pub use allocator::{AllocatorSettings, AssignedService, Assignment, CoreAllocator, CoreUse, HostCall};
pub use balancer::{Balancing, CoreBalancer, Lambda};
pub use core_scheduler::{CoreScheduler, LoadFeedback, RunSlice};
pub use error::{OrchestratorError, OrchestratorSetupError, RefusedCalls};
pub use ids::{
    CORES_MAX, CoreId, PRIORITIES, Priority, PriorityOutOfRange, RequestHandle, SERVICES_MAX, ServiceId,
};
pub use monitor::{Hint, LoadHint, Trigger, UpRule};
pub use nic::{Descriptor, Nic, NicCounts, NicSettings, ScheduledRequest, SchedulingOrder};
pub use ranking::{Branch, RANKING_LEVELS, Ranked, Ranking};
