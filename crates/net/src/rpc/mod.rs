//! gRPC: the controller's service and the switch's tables, as `proto/sluice/v1` declares them.
//!
//! A [`Guard`] keeps strangers out. Servers have threads of their own ([`RpcServer`]);
//! nothing here touches a task's packets. Each service is listed by reflection.

pub(crate) mod fields;
pub(crate) mod hosts;
mod ops;
mod remote;
pub(crate) mod server;
mod servers;
pub(crate) mod tables;
mod tls;

pub use fields::Malformed;
pub use remote::{Remote, reason};
pub use server::RpcServer;
pub use tables::{LocalSwitch, serve_tables};
pub use tls::{ClientTls, Guard, ServerTls};

/// The messages and services of `proto/sluice/v1`.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::pedantic, reason = "generated code")]
pub mod v1 {
    tonic::include_proto!("sluice.v1");

    /// The description of the services, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sluice.v1.bin"));
}
