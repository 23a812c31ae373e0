//! What the kernel does for a rack: the switch as an XDP program, and a rack's network namespaces.
#![deny(unsafe_code)]

mod error;
pub mod spaces;
pub mod xdp;

pub use error::KernelError;
