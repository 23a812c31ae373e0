//! `sluice gateway` before a rack of real processes, with the clients that people have: the commands of
//! `docs/manual/gateway.md`, redis-benchmark while a worker is killed, HTTP, gRPC and TLS.
//!
//! Without redis-cli or curl the tests that need them print so and do nothing.

#[path = "../common/mod.rs"]
mod common;

mod benchmarks;
mod grpc;
mod http;
mod pages;
mod refusals;
mod resp;
mod rig;
mod tls;
