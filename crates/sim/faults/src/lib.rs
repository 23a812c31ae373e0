//! Fault runs: a rack of the real state machines in virtual time, under losses, repeats, overtaking,
//! delays, crashes and restarts. The runs check the protocol's promises.
//!
//! The nodes are those of curves (`nodes`). `rack` holds all parts of a run. The parts stand in files that
//! do not use `rack`; what happens with them stands in `effects`, as in curves.
//!
//! One seed gives one run: [`run`] returns how its tasks ended or which promise broke, and [`replay`] also
//! writes every packet. The checks never rely on what the machines claim: an oracle beside them counts what
//! really ran.
#![forbid(unsafe_code)]

mod broken;
mod budgets;
mod bytes;
mod clients;
mod controller;
mod cores;
mod crossings;
mod drawing;
mod early;
mod effects;
mod event;
mod gate;
mod hosts;
mod inspection;
mod kind;
mod labels;
mod limits;
mod long_times;
mod many;
mod network;
mod oracle;
mod order;
mod orders;
mod partitions;
mod pieces;
mod rack;
mod reckoning;
mod replay_log;
mod scenario;
mod servers;
mod switch;
mod turns;
mod workers;

pub use broken::Broken;
pub use kind::{NotForServers, RackKind};
pub use many::{Many, run_each, run_many};
pub use oracle::Tally;
use rack::Rack;
pub use replay_log::{LogLine, Only, Party};

/// Runs a rack, from the seed to the final check.
///
/// # Errors
/// The first promise that broke.
pub fn run(kind: &RackKind, seed: u64) -> Result<Tally, Broken> {
    Rack::new(kind, seed, None).run()
}

/// Runs a rack, with a line for every packet, call and failure.
///
/// # Errors
/// The first promise that broke.
pub fn replay(kind: &RackKind, seed: u64, line: &mut dyn FnMut(&LogLine)) -> Result<Tally, Broken> {
    Rack::new(kind, seed, Some(line)).run()
}
