//! Fault runs: a rack of the real state machines in virtual time, under losses, repeats, overtaking,
//! delays, crashes and restarts. The runs check the protocol's promises.
//!
//! The nodes are those of curves (`nodes`). Code calls downwards only: `run` passes each event to the file of
//! its machine or failure; `effects` carries out what machines say, as in curves; `inspection` checks the
//! promises from outside; `rack` holds all parts of a run; the parts are in the other files.
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
mod passes;
mod pieces;
mod rack;
mod reckoning;
mod replay_log;
mod run;
mod scenario;
mod servers;
mod standbys;
mod store;
mod switch;
mod tally;
mod turns;
mod workers;

pub use broken::Broken;
pub use kind::{NotForServers, RackKind};
pub use many::{Many, run_each, run_many};
pub use replay_log::{LogLine, Only, Party};
pub use tally::{Scatter, Tally};

/// Runs a rack, from the seed to the final check.
///
/// # Errors
/// The first promise that broke.
pub fn run(kind: &RackKind, seed: u64) -> Result<Tally, Broken> {
    run::run(kind, seed, None)
}

/// Runs a rack, with a line for every packet, call and failure.
///
/// # Errors
/// The first promise that broke.
pub fn replay(kind: &RackKind, seed: u64, line: &mut dyn FnMut(&LogLine)) -> Result<Tally, Broken> {
    run::run(kind, seed, Some(line))
}
