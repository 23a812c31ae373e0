//! gRPC: the controller's service and the switch's tables.

/// The messages and services of `proto/sluice/v1`.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::pedantic, reason = "generated code")]
pub mod v1 {
    tonic::include_proto!("sluice.v1");

    /// The description of the services, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sluice.v1.bin"));
}
