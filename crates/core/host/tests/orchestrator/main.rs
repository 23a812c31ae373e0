//! The orchestration of a server's cores, held to the paper's examples and to what must always be so.

mod assignment;
mod cores;
mod eligibility;
mod examples;
mod hints;
mod rankings;
mod refusals;
mod server;
