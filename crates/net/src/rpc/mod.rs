//! gRPC: the controller's service and the switch's tables, as `proto/sluice/v1` declares them.
//!
//! A [`Guard`] keeps strangers out, and a gate before all services asks each call for the role that it takes
//! ([`CallerRole`]); what is refused is counted. Servers have threads of their own ([`RpcServer`]);
//! nothing here touches a task's packets. Each service is listed by reflection.

mod accept;
pub(crate) mod caller;
pub(crate) mod fields;
mod gate;
mod guard;
pub(crate) mod hosts;
mod line;
mod ops;
pub(crate) mod refused;
mod remote;
mod seats;
pub(crate) mod server;
mod servers;
mod shown;
pub(crate) mod tables;
mod tls;

pub use caller::CallerRole;
pub use fields::Malformed;
pub use guard::Guard;
pub use remote::{Remote, is_silence, reason};
pub use server::RpcServer;
pub use shown::shown;
pub use tables::{LocalSwitch, serve_tables};
pub use tls::{ClientTls, ServerTls};

/// The messages and services of `proto/sluice/v1`.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::pedantic, reason = "generated code")]
pub mod v1 {
    tonic::include_proto!("sluice.v1");

    /// The description of the services, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sluice.v1.bin"));
}
