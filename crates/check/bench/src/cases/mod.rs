//! The cases for callgrind: each layer's work for one packet or one task, in one direction.

mod agent;
mod draconis;
mod driver;
mod ends;
mod metrics;
mod policies;
mod program;
mod rack;
mod tiers;
mod traces;
mod wire;

use program::CountedPart::{First, Second};
use program::PacketOrder::{TaskFirst, TokenFirst};

use crate::error::BenchError;

/// How often a case repeats its work: enough to average out occasional work, few enough for callgrind's
/// speed.
const REPEATS: u32 = 2_000;

/// Rain with a target.
const TARGETED: &str = "rain:2,target=50us";

/// One counted case.
pub(crate) struct Case {
    /// The layer, and the operation.
    pub(crate) name: &'static str,
    /// The unit of operations.
    pub(crate) per: &'static str,
    /// How many operations are counted.
    pub(crate) operations: u32,
    run: fn(u32),
}

const fn case(name: &'static str, per: &'static str, operations: u32, run: fn(u32)) -> Case {
    Case { name, per, operations, run }
}

/// All cases, from the wire format upwards.
pub(crate) const ALL: &[Case] = &[
    case("wire parse SUBMIT", "packet", REPEATS, wire::parse_submit),
    case("wire parse TOKEN", "packet", REPEATS, wire::parse_token),
    case("wire parse DISPATCH", "packet", REPEATS, wire::parse_dispatch),
    case("wire parse REPLY", "packet", REPEATS, wire::parse_reply),
    case("wire encode SUBMIT", "packet", REPEATS, wire::encode_submit),
    case("wire encode TOKEN", "packet", REPEATS, wire::encode_token),
    case("wire encode DISPATCH", "packet", REPEATS, wire::encode_dispatch),
    case("wire encode REPLY", "packet", REPEATS, wire::encode_reply),
    case("program TOKEN parks", "packet", REPEATS, |n| program::named(n, "rain:2", TokenFirst, First)),
    case("program SUBMIT matches", "packet", REPEATS, |n| program::named(n, "rain:2", TokenFirst, Second)),
    case("program SUBMIT parks", "packet", REPEATS, |n| program::named(n, "rain:2", TaskFirst, First)),
    case("program TOKEN matches", "packet", REPEATS, |n| program::named(n, "rain:2", TaskFirst, Second)),
    case("ranks TOKEN parks", "packet", REPEATS, |n| program::named(n, "rain:2,ranked", TokenFirst, First)),
    case("ranks SUBMIT matches", "packet", REPEATS, |n| {
        program::named(n, "rain:2,ranked", TokenFirst, Second);
    }),
    case("classes SUBMIT parks", "packet", REPEATS, |n| program::classed(n, TaskFirst, First)),
    case("classes TOKEN matches", "packet", REPEATS, |n| program::classed(n, TaskFirst, Second)),
    case("target TOKEN parks", "packet", REPEATS, |n| program::named(n, TARGETED, TokenFirst, First)),
    case("target SUBMIT matches", "packet", REPEATS, |n| program::named(n, TARGETED, TokenFirst, Second)),
    case("target SUBMIT parks", "packet", REPEATS, |n| program::named(n, TARGETED, TaskFirst, First)),
    case("target TOKEN matches", "packet", REPEATS, |n| program::named(n, TARGETED, TaskFirst, Second)),
    case("labels TOKEN parks", "packet", REPEATS, |n| program::labelled(n, TokenFirst, First)),
    case("labels SUBMIT matches", "packet", REPEATS, |n| program::labelled(n, TokenFirst, Second)),
    case("labels SUBMIT parks", "packet", REPEATS, |n| program::labelled(n, TaskFirst, First)),
    case("labels TOKEN matches", "packet", REPEATS, |n| program::labelled(n, TaskFirst, Second)),
    case("policy r2p2:2", "task", REPEATS, |n| policies::idle(n, "r2p2:2")),
    case("policy racksched:2", "task", REPEATS, |n| policies::idle(n, "racksched:2")),
    case("policy racksched:2,tracked", "task", REPEATS, |n| policies::idle(n, "racksched:2,tracked")),
    case("policy racksched:2, all busy", "task", REPEATS, |n| policies::busy(n, "racksched:2")),
    case("policy horus", "task", REPEATS, |n| policies::idle(n, "horus")),
    case("policy horus, all busy", "task", REPEATS, |n| policies::busy(n, "horus")),
    case("spine horus", "task", REPEATS, tiers::spine_idle),
    case("spine horus, all busy", "task", REPEATS, tiers::spine_busy),
    case("leaf horus", "task", REPEATS, tiers::leaf_idle),
    case("leaf horus, all busy", "task", REPEATS, tiers::leaf_busy),
    case("policy draconis", "task", REPEATS, |n| policies::idle(n, "draconis")),
    case("waiting draconis", "task", REPEATS, |n| draconis::tasks(n, "draconis")),
    case("waiting draconis:classes=2", "task", REPEATS, |n| draconis::tasks(n, "draconis:classes=2")),
    case("waiting draconis:classes=4", "task", REPEATS, |n| draconis::tasks(n, "draconis:classes=4")),
    case("waiting draconis:labels", "task", REPEATS, |n| draconis::tasks(n, "draconis:labels")),
    case("waiting draconis:jobs=5", "task", REPEATS, |n| draconis::tasks(n, "draconis:jobs=5")),
    case("waiting draconis:as-published", "task", REPEATS, |n| draconis::tasks(n, "draconis:as-published")),
    case("policy pallas", "task", REPEATS, |n| policies::idle(n, "pallas")),
    case("driver 8 B token first", "task", driver::TASKS, |n| driver::count(n, 8, true)),
    case("driver 8 B task first", "task", driver::TASKS, |n| driver::count(n, 8, false)),
    case("driver 640 B task first", "task", driver::TASKS, |n| driver::count(n, 640, false)),
    case("driver 8 B task first, one in 1000 traced", "task", driver::TASKS, |n| driver::traced(n, 1_000)),
    case("driver 8 B task first, each traced", "task", driver::TASKS, |n| driver::traced(n, 1)),
    case("spans of a traced task", "task", REPEATS, traces::spans),
    case("worker DISPATCH to REPLY and TOKEN", "task", REPEATS, ends::worker_task),
    case("metrics of a worker", "task", REPEATS, metrics::worker),
    case("metrics of a client", "task", REPEATS, metrics::client),
    case("agent task", "task", agent::TASKS, agent::tasks),
    case("agent interval", "interval of 32 workers", agent::INTERVALS, agent::intervals),
    case("client SUBMIT to outcome", "task", REPEATS, ends::client_task),
    case("simulated rack", "task", rack::TASKS, rack::tasks),
];

/// Runs a case under callgrind.
pub(crate) fn count(name: &str) -> Result<(), BenchError> {
    let case = ALL.iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| BenchError::Case(name.to_owned()))?;
    (case.run)(case.operations);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_does_its_work() {
        for case in ALL {
            count(case.name).unwrap_or_else(|why| panic!("{}: {why}", case.name));
        }
    }

    #[test]
    fn no_two_cases_have_one_name() {
        for (at, case) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.name != case.name), "{}", case.name);
        }
    }
}
