//! Checks for the tools of P4. Only what runs P4 programs needs them, so a missing one is only a warning.

use sluice_bmv2::tool;

use super::check::Check;

/// Where people get the tools.
const COMPILER: &str = "its package is p4lang-p4c; https://github.com/p4lang/p4c says how to install it";
const SWITCH: &str =
    "its package is p4lang-bmv2; https://github.com/p4lang/behavioral-model says how to install it";
const TOFINO: &str =
    "no package brings it; https://github.com/p4lang/p4c says how to build its Tofino backend";

const NO_RECEIPT: &str = "make p4 will write no receipt";

/// Each tool: what it does, its name, what is so without it, and where people get it.
const TOOLS: [(&str, &str, &str, &str); 6] = [
    ("P4: compiler", "p4c-bm2-ss", "--io bmv2 will not work", COMPILER),
    ("P4: switch", "simple_switch", "--io bmv2 will not work", SWITCH),
    ("P4: P4Runtime", "simple_switch_grpc", "--runtime p4runtime will not work", SWITCH),
    ("P4: checker", "p4test", NO_RECEIPT, COMPILER),
    ("P4: for Tofino", "p4c-barefoot", NO_RECEIPT, TOFINO),
    ("P4: assembler", "bfas", NO_RECEIPT, TOFINO),
];

/// All checks of P4.
pub(super) fn checks() -> Vec<Check> {
    TOOLS.iter().map(|(what, name, without, from)| check(what, name, without, from)).collect()
}

fn check(what: &'static str, name: &'static str, without: &str, from: &str) -> Check {
    match tool(name) {
        Ok(path) => Check::ok(what, path.display().to_string()),
        Err(why) => Check::warn(what, without, format!("{why}; {from}")),
    }
}
