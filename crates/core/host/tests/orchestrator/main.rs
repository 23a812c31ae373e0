//! Tests of the orchestration of a server's cores: the paper's examples, and invariants.

mod assignment;
mod cores;
mod eligibility;
mod examples;
mod hints;
mod rankings;
mod refusals;
mod server;
