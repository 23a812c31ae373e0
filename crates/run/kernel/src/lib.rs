//! The parts of a rack inside the kernel: the switch as an XDP program, a rack's network namespaces, and
//! queueing disciplines.
#![deny(unsafe_code)]

mod error;
pub mod queues;
pub mod spaces;
pub mod xdp;

pub use error::KernelError;
