//! The parts of a rack inside the kernel: the switch as an XDP program, a rack's network namespaces, and
//! queueing disciplines.
#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "what a child does before it becomes another program")]
mod child;
mod error;
mod next_hop;
pub mod queues;
mod rtnetlink;
pub mod spaces;
pub mod xdp;

pub use child::dies_with_this_thread;
pub use error::KernelError;
pub use next_hop::NextHop;
