//! The cases for callgrind: each layer's work for one packet or one task, in one direction.

mod agent;
mod draconis;
mod driver;
mod ends;
mod policies;
mod program;
mod rack;
mod tiers;
mod wire;

use crate::error::BenchError;

/// How often a case repeats its work: enough to average out occasional work, few enough for callgrind's
/// speed.
const REPEATS: u32 = 2_000;

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
    case("program TOKEN parks", "packet", REPEATS, program::token_parks),
    case("program SUBMIT matches", "packet", REPEATS, program::submit_matches),
    case("program SUBMIT parks", "packet", REPEATS, program::submit_parks),
    case("program TOKEN matches", "packet", REPEATS, program::token_matches),
    case("ranks TOKEN parks", "packet", REPEATS, program::ranked_token_parks),
    case("ranks SUBMIT matches", "packet", REPEATS, program::ranked_submit_matches),
    case("classes SUBMIT parks", "packet", REPEATS, program::classed_submit_parks),
    case("classes TOKEN matches", "packet", REPEATS, program::classed_token_matches),
    case("target TOKEN parks", "packet", REPEATS, program::targeted_token_parks),
    case("target SUBMIT matches", "packet", REPEATS, program::targeted_submit_matches),
    case("target SUBMIT parks", "packet", REPEATS, program::targeted_submit_parks),
    case("target TOKEN matches", "packet", REPEATS, program::targeted_token_matches),
    case("labels TOKEN parks", "packet", REPEATS, program::labelled_token_parks),
    case("labels SUBMIT matches", "packet", REPEATS, program::labelled_submit_matches),
    case("labels SUBMIT parks", "packet", REPEATS, program::labelled_submit_parks),
    case("labels TOKEN matches", "packet", REPEATS, program::labelled_token_matches),
    case("policy r2p2:2", "task", REPEATS, policies::r2p2),
    case("policy racksched:2", "task", REPEATS, policies::racksched_by_replies),
    case("policy racksched:2,tracked", "task", REPEATS, policies::racksched_tracked),
    case("policy racksched:2, all busy", "task", REPEATS, policies::racksched_busy),
    case("policy horus", "task", REPEATS, policies::horus_idle),
    case("policy horus, all busy", "task", REPEATS, policies::horus_busy),
    case("spine horus", "task", REPEATS, tiers::spine_idle),
    case("spine horus, all busy", "task", REPEATS, tiers::spine_busy),
    case("leaf horus", "task", REPEATS, tiers::leaf_idle),
    case("leaf horus, all busy", "task", REPEATS, tiers::leaf_busy),
    case("policy draconis", "task", REPEATS, policies::draconis),
    case("waiting draconis", "task", REPEATS, draconis::plain),
    case("waiting draconis:classes=2", "task", REPEATS, draconis::two_classes),
    case("waiting draconis:classes=4", "task", REPEATS, draconis::four_classes),
    case("waiting draconis:labels", "task", REPEATS, draconis::labelled),
    case("waiting draconis:jobs=5", "task", REPEATS, draconis::jobs),
    case("waiting draconis:as-published", "task", REPEATS, draconis::as_published),
    case("policy pallas", "task", REPEATS, policies::pallas),
    case("driver 8 B token first", "task", driver::TASKS, driver::short_token_first),
    case("driver 8 B task first", "task", driver::TASKS, driver::short_task_first),
    case("driver 640 B task first", "task", driver::TASKS, driver::long_task_first),
    case("worker DISPATCH to REPLY and TOKEN", "task", REPEATS, ends::worker_task),
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
