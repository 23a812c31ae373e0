//! Checks for the tools of P4. Only `sluice switch --io bmv2` needs them, so a missing one is only a warning.

use sluice_bmv2::tool;

use super::check::Check;

/// Each tool, what it does, what needs it, and where people get it.
const TOOLS: [(&str, &str, &str, &str); 3] = [
    (
        "P4: compiler",
        "p4c-bm2-ss",
        "--io bmv2",
        "its package is p4lang-p4c; https://github.com/p4lang/p4c says how to install it",
    ),
    (
        "P4: switch",
        "simple_switch",
        "--io bmv2",
        "its package is p4lang-bmv2; https://github.com/p4lang/behavioral-model says how to install it",
    ),
    (
        "P4: P4Runtime",
        "simple_switch_grpc",
        "--runtime p4runtime",
        "its package is p4lang-bmv2; https://github.com/p4lang/behavioral-model says how to install it",
    ),
];

/// All checks of P4.
pub(super) fn checks() -> Vec<Check> {
    TOOLS.iter().map(|(what, name, needs, from)| check(what, name, needs, from)).collect()
}

fn check(what: &'static str, name: &'static str, needs: &str, from: &str) -> Check {
    match tool(name) {
        Ok(path) => Check::ok(what, path.display().to_string()),
        Err(why) => Check::warn(what, format!("{needs} will not work"), format!("{why}; {from}")),
    }
}
