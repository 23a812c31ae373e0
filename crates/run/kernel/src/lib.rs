//! What the kernel does for a rack: the switch as an XDP program, a rack's network namespaces, and the queues
//! that packets leave through.
#![deny(unsafe_code)]

mod error;
pub mod queues;
pub mod spaces;
pub mod xdp;

pub use error::KernelError;
