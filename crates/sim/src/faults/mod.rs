//! Fault runs: a rack of the real state machines in virtual time, under losses, repeats, overtaking, delays,
//! crashes and restarts, held to the protocol's promises.
//!
//! The nodes are those of curves (`nodes`).
//!
//! One seed is one run: [`run`] tells how its tasks ended or which promise broke, [`replay`] also writes
//! every packet. What the machines claim is never asked for: an oracle beside them counts what really ran.

mod awaits;
mod bytes;
mod clients;
mod controller;
mod crossings;
mod dealings;
mod disasters;
mod early;
mod enlisting;
mod gate;
mod hosts;
mod inspection;
mod labels;
mod large;
mod many;
mod network;
mod operators;
mod oracle;
mod order;
mod rack;
mod rivals;
mod scenario;
mod servers;
mod story;
mod switch;
mod troubles;
mod workers;

use std::fmt;

pub use many::{Many, run_many};
pub use oracle::Tally;
use rack::Rack;
use sluice_switch::registry::Choice;
pub use story::{Line, Only, Who};

/// A promise that broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The run.
    pub seed: u64,
    /// Nanoseconds into it.
    pub at_ns: u64,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} at {} us: ", self.seed, self.at_ns / 1_000)?;
        let promise = PROMISES.iter().find_map(|(number, name)| {
            let rest = self.what.strip_prefix("promise ")?.strip_prefix(number)?.strip_prefix(':')?;
            Some((number, name, rest))
        });
        match promise {
            Some((number, name, rest)) => write!(f, "promise {number} ({name}):{rest}"),
            None => f.write_str(&self.what),
        }
    }
}

/// What the promises are called, as in docs/faults.md.
const PROMISES: [(&str, &str); 8] = [
    ("1", "one outcome"),
    ("2", "once per life"),
    ("3", "bounded"),
    ("4", "nobody stuck"),
    ("5", "right bytes"),
    ("6", "bounded memory"),
    ("7", "right worker"),
    ("8", "in order"),
];

impl std::error::Error for Broken {}

/// One run under a switch's program, from its seed to the closing of the books.
///
/// # Errors
/// The first promise that broke.
pub fn run(program: &Choice, seed: u64) -> Result<Tally, Broken> {
    Rack::new(program, seed, None).run()
}

/// One run, with a line for every packet, call and failure.
///
/// # Errors
/// The first promise that broke.
pub fn replay(program: &Choice, seed: u64, line: &mut dyn FnMut(&Line)) -> Result<Tally, Broken> {
    Rack::new(program, seed, Some(line)).run()
}
