//! gRPC servers: the controller's service and the switch's tables, as declared in the `proto/sluice/v1` of
//! `rpc`.
//!
//! A [`Guard`] protects the address, and a gate before all services checks for each call that the caller
//! has the required role ([`CallerRole`](sluice_rpc::CallerRole)). Refused calls are counted. Servers run
//! on threads of their own ([`RpcServer`]), so no task's packet passes through them. Reflection lists each
//! service.

mod accept;
mod connection;
mod connection_slots;
mod gate;
mod guard;
pub(crate) mod refused;
pub(crate) mod server;
mod superseded;
pub(crate) mod tables;

pub use guard::Guard;
pub use server::RpcServer;
pub use tables::{LocalSwitch, serve_tables};

/// The services of `proto/sluice/v1`; their messages come from `rpc`.
#[allow(unreachable_pub, unused_qualifications, clippy::pedantic, reason = "generated code")]
pub mod services {
    tonic::include_proto!("sluice.v1");

    /// The services' descriptors, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sluice.v1.bin"));
}
