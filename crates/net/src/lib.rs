//! Real time: the UDP drivers, the client library, and the controller's service.
//!
//! Everything that decides (the switch's program, the hosts' state machines, the controller) lives in crates
//! without I/O; what stands here only moves bytes, tells the time and keeps threads apart.
#![deny(unsafe_code)]

pub mod agent;
pub mod client;
pub mod clock;
pub mod controller;
pub mod crew;
mod error;
pub mod exit;
pub mod faults;
pub mod first;
pub mod hold;
mod identity;
mod parts;
mod payloads;
pub mod pin;
pub mod plain;
pub mod program;
pub mod rdma;
pub mod registrar;
pub mod rpc;
pub mod server;
pub mod service;
pub mod spaces;
pub mod state;
pub mod switch;
pub mod udp;
pub mod worker;
pub mod xdp;

pub use client::{Client, ClientOptions};
pub use error::NetError;
pub use program::{run_service, run_service_with};
pub use service::{Service, ServiceError, Task, service_fn};
pub use sluice_wire::{Nanos, TaskType};
pub use worker::{Worker, WorkerOptions};
