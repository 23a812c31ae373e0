//! Real time for an application: UDP sockets, clients and workers.
//!
//! All decisions are made by the hosts' state machines, in crates without I/O; this crate moves bytes,
//! reads the clock and runs threads. Calls to the controller are in `sluice-rpc`; the switch and the
//! controller are in `sluice-switchd` and `sluice-kernel`.
#![deny(unsafe_code)]

pub mod agent;
pub mod client;
pub mod clock;
mod error;
pub mod exit;
pub mod first;
mod identity;
pub mod metrics;
mod parts;
mod payloads;
pub mod pin;
pub mod program;
pub mod rdma;
pub mod served;
pub mod server;
pub mod service;
#[allow(unsafe_code, reason = "system calls")]
mod sys;
pub mod udp;
pub mod worker;

pub use client::{Client, ClientOptions};
pub use error::NetError;
pub use program::{run_service, run_service_with};
pub use service::{Service, ServiceError, Task, service_fn};
pub use sluice_netem::{FaultPlan, Rates};
pub use sluice_rpc::{ClientTls, Remote, registrar::Controllers};
pub use sluice_traces as traces;
pub use sluice_wire::{Nanos, TaskType};
pub use worker::{Worker, WorkerOptions};
