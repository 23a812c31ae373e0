//! Serving gRPC: the controller's service and the switch's tables, as `net`'s `proto/sluice/v1` declares
//! them.
//!
//! A [`Guard`] keeps strangers out, and a gate before all services asks each call for the role that it takes
//! ([`CallerRole`](sluice_rpc::CallerRole)); what is refused is counted. Servers have threads of their
//! own ([`RpcServer`]); nothing here touches a task's packets. Each service is listed by reflection.

mod accept;
mod gate;
mod guard;
mod line;
pub(crate) mod refused;
mod seats;
pub(crate) mod server;
pub(crate) mod tables;

pub use guard::Guard;
pub use server::RpcServer;
pub use tables::{LocalSwitch, serve_tables};

/// The services of `proto/sluice/v1`; the messages are `rpc`'s.
#[allow(unreachable_pub, unused_qualifications, clippy::pedantic, reason = "generated code")]
pub mod services {
    tonic::include_proto!("sluice.v1");

    /// Their description, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sluice.v1.bin"));
}
