//! The messages of `proto/sluice/v1`, and how its services are called.
#![allow(unreachable_pub, unused_qualifications, clippy::pedantic, reason = "generated code")]

tonic::include_proto!("sluice.v1");
