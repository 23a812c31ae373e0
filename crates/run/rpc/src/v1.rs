//! The messages of `proto/sluice/v1`, and callers of its services.
#![allow(unreachable_pub, unused_qualifications, clippy::pedantic, reason = "generated code")]

tonic::include_proto!("sluice.v1");
