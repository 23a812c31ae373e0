//! The common base of all commands: plans and loads, the state of a running rack, and how a command prints,
//! fails and stops.
#![forbid(unsafe_code)]

pub mod adaptation;
pub mod board;
pub mod controller_caller;
pub mod decisions;
mod errors;
pub mod fail;
mod failure_report;
pub mod file_name;
pub mod findings;
pub mod flags;
pub mod load;
pub mod peers;
pub mod plan;
pub mod print;
pub mod rack_change;
pub mod results;
pub mod rocksdb;
pub mod running;
pub mod seed;
pub mod service_manager;
pub mod shared_memory;
pub mod status_json;
pub mod stop;
pub mod units;
pub mod utc;
pub mod view;
