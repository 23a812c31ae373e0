//! The names of the program's tables, registers and counters on BMv2.

use crate::program::{OWN, P4Program};

/// The control of ingress that holds the program.
const PROGRAM: &str = "SwitchIngress.program";

/// A table or register of a part of ingress, or of the scheduler itself.
pub(crate) fn of(part: &str, name: &str) -> String {
    if part == OWN { format!("{PROGRAM}.{name}") } else { format!("{PROGRAM}.{part}.{name}") }
}

/// A table of egress.
pub(crate) fn egress(part: &str, name: &str) -> String {
    format!("SwitchEgress.{part}.{name}")
}

/// The counter of bytes that are no packet.
pub(crate) const MALFORMED: &str = "SwitchIngress.malformed";

/// The counter of copies of tasks that were written ahead.
pub(crate) const WRITTEN: &str = "SwitchEgress.write.written";

/// The numbers of the next WRITEs to each server.
pub(crate) const NUMBERS: &str = "SwitchEgress.write.slots.numbers";

/// The counters of ingress, by part.
pub(crate) const COUNTERS: [(&str, &str); 5] = [
    ("begin", "came"),
    ("end", "left"),
    ("end", "rounds_begun"),
    ("begin", "rounds_ended"),
    ("end", "refused"),
];

/// Register arrays by the part of ingress that has them.
pub(crate) type Registers = &'static [(&'static str, &'static [&'static str])];

/// The register arrays of ingress.
pub(crate) fn registers(program: P4Program) -> impl Iterator<Item = (&'static str, &'static str)> {
    let own: Registers = match program {
        P4Program::Rain => RAIN,
        P4Program::Draconis => DRACONIS,
        P4Program::Pallas => &[(OWN, &["turn"]), TOLD],
        P4Program::RackSched => &[(OWN, &["loads_0", "loads_1"]), TOLD],
    };
    SHARED.iter().chain(own).flat_map(|(part, names)| names.iter().map(|name| (*part, *name)))
}

/// The arrays of all programs.
const SHARED: Registers = &[("sources", &["seen", "replay", "replay_attempt"])];

/// What each worker is told.
const TOLD: (&str, &[&str]) = ("numbers", &["sent", "seen_out"]);

const RAIN: Registers = &[
    ("queue", &["balance", "token_head", "token_tail", "task_head", "task_tail"]),
    ("tokens", &["token_worker", "token_generation", "gen_out", "sent", "seen_out"]),
    ("entry", COLUMNS),
];

const DRACONIS: Registers = &[
    (OWN, &["retrieve_pointer", "add_pointer", "add_flag", "retrieve_flag", "ticket", "arrived_high"]),
    TOLD,
    ("wide_entry", WIDE_COLUMNS),
];

/// The columns of a waiting task's entry.
const COLUMNS: &[&str] = &[
    "client",
    "attempt",
    "budget",
    "arrived_high",
    "age",
    "arrived_low",
    "task_type",
    "length",
    "incarnation_low",
    "sequence",
    "priority",
    "constraints",
    "payload_0",
    "payload_1",
    "payload_2",
    "payload_3",
    "payload_4",
    "payload_5",
    "payload_6",
    "payload_7",
];

/// The same where fields share columns; the upper half of the arrival time stands with the scheduler.
const WIDE_COLUMNS: &[&str] = &[
    "client",
    "arrived_low",
    "incarnation_low",
    "sequence",
    "attempt_length",
    "age",
    "type_priority_constraints",
    "payload_0_to_3",
    "budget",
    "payload_4_to_7",
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The names of the registers that a file of the program declares.
    fn declared(file: &str) -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../targets/p4").join(file);
        let text = fs::read_to_string(path).expect("a file of the program");
        let lines = text.lines().map(str::trim_start);
        let arguments = lines.filter_map(|line| {
            let of = |start, at| line.strip_prefix(start).map(|rest| (rest, at));
            of("REGISTER(", 4).or(of("PAIR_REGISTER(", 2)).or(of("COLUMN(", 0))
        });
        let names = arguments.filter_map(|(rest, at)| rest.split(',').nth(at));
        // The macro of columns names none.
        let names = names.map(|name| name.trim().trim_end_matches(')')).filter(|name| *name != "NAME");
        names.map(str::to_owned).collect()
    }

    #[test]
    fn the_registers_that_are_read_out_and_cleared_are_those_of_the_program() {
        for program in P4Program::ALL {
            let mut parts: Vec<&str> = registers(program).map(|(part, _)| part).collect();
            parts.dedup();
            for part in parts {
                let mut names: Vec<&str> =
                    registers(program).filter(|(of, _)| *of == part).map(|(_, name)| name).collect();
                let file = if part == OWN { program.name() } else { part };
                let mut declared = declared(&format!("{file}.p4"));
                names.sort_unstable();
                declared.sort_unstable();
                assert_eq!(declared, names, "{file}.p4");
            }
        }
        assert_eq!(declared("copies.p4"), [NUMBERS.rsplit_once('.').expect("a path").1]);
    }
}
