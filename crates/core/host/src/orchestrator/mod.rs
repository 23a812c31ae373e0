//! The orchestration of a server's cores, as RingLeader's NIC and its datapath OS do it (RingLeader §3–§6).
//!
//! [`Nic`] is what the paper puts into hardware: packets are told apart by address, wait in a FIFO for each
//! service, are taken in the order of a [`Ranking`] that passes over services without room
//! (first-eligible-out), and go to a core by [`Balancing`] (JBSRQ). [`CoreScheduler`] is a core's side: a
//! short priority queue and coroutines that yield. [`CoreAllocator`] decides which services run on which
//! cores, by the hints of the NIC's load monitor. The calls between the two sides are table 1's, under their
//! own names.
//!
//! All of it is without I/O and allocates only while it is built. Left out are transports, the applications
//! that §9 of the paper would put side by side, and several NICs.

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
pub use nic::{Classified, Descriptor, Nic, NicCounts, NicSettings, ScheduledRequest, SchedulingOrder};
pub use ranking::{Branch, RANKING_LEVELS, Ranked, Ranking};
