//! The messages of `proto`, and the calls of P4Runtime.
#![allow(
    unreachable_pub,
    unused_qualifications,
    dead_code,
    clippy::pedantic,
    clippy::enum_variant_names,
    reason = "generated code"
)]

pub(crate) mod google {
    pub(crate) mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

pub(crate) mod p4 {
    pub(crate) mod v1 {
        tonic::include_proto!("p4.v1");
    }
    pub(crate) mod config {
        pub(crate) mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
}
