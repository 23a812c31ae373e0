//! `sluice gateway`: a process before a rack that takes a protocol which clients speak today, and makes tasks
//! of it: RESP (what clients of Redis speak), HTTP/1.1 and gRPC.
//!
//! One thread has all connections; the rack's client has another, and each hands the other batches. A
//! connection's protocol is a state machine without I/O where that is ours ([`resp`]), and hyper's and
//! tonic's for the other two. The rack pushes back through each protocol's own means: RESP and HTTP are not
//! read on, and gRPC has its windows.
//!
//! Left out: commands that need more than a store's four tasks, streams of gRPC, pages for browsers.
#![forbid(unsafe_code)]

mod counts;
mod error;
mod gateway;
mod grpc;
mod hall;
mod http_door;
mod outcome;
mod patient;
mod port;
mod rack;
mod request;
pub mod resp;
mod resp_door;
mod talk;

pub use counts::{GatewayMetrics, Protocol};
pub use error::GatewayError;
pub use gateway::{BoundGateway, Gateway, GatewayOptions};
pub use grpc::{GrpcMethod, OpaqueCodec};
pub use outcome::{CommandOutcome, NotDone, NotDoneKind};
