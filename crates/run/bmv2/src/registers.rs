//! The names of the program's tables, registers and counters on BMv2.

/// The control of ingress that holds the program.
const RAIN: &str = "RainIngress.rain";

/// A table or register of a part of ingress.
pub(crate) fn of(part: &str, name: &str) -> String {
    format!("{RAIN}.{part}.{name}")
}

/// A counter of ingress.
pub(crate) fn counter(name: &str) -> String {
    format!("{RAIN}.{name}")
}

/// A table of egress.
pub(crate) fn egress(part: &str, name: &str) -> String {
    format!("RainEgress.{part}.{name}")
}

/// The counter of bytes that are no packet.
pub(crate) const MALFORMED: &str = "RainIngress.malformed";

/// The counter of copies of tasks that were written ahead.
pub(crate) const WRITTEN: &str = "RainEgress.write.written";

/// The numbers of the next WRITEs to each server.
pub(crate) const NUMBERS: &str = "RainEgress.write.numbers";

/// The counters of ingress.
pub(crate) const COUNTERS: [&str; 5] = ["came", "left", "rounds_begun", "rounds_ended", "refused"];

/// The register arrays of ingress, by part.
pub(crate) const REGISTERS: [(&str, &[&str]); 4] = [
    ("sources", &["seen", "replay", "replay_attempt"]),
    ("queue", &["balance", "token_head", "token_tail", "task_head", "task_tail"]),
    ("tokens", &["token_worker", "token_generation", "gen_out", "sent", "seen_out"]),
    (
        "entry",
        &[
            "client",
            "attempt",
            "budget",
            "arrived_high",
            "arrived_low_age",
            "task_type",
            "length",
            "incarnation_low",
            "sequence",
            "priority",
            "constraints",
            "ahead",
            "payload_0",
            "payload_1",
            "payload_2",
            "payload_3",
            "payload_4",
            "payload_5",
            "payload_6",
            "payload_7",
        ],
    ),
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
            let register = line.strip_prefix("REGISTER(").map(|rest| (rest, 4));
            let column = line.strip_prefix("COLUMN(").map(|rest| (rest, 0));
            register.or(column)
        });
        let names = arguments.filter_map(|(rest, at)| rest.split(',').nth(at));
        // The macro of columns names none.
        names.map(str::trim).filter(|name| *name != "NAME").map(str::to_owned).collect()
    }

    #[test]
    fn the_registers_that_are_read_out_and_cleared_are_those_of_the_program() {
        for (part, names) in REGISTERS {
            assert_eq!(declared(&format!("{part}.p4")), *names, "{part}.p4");
        }
        assert_eq!(declared("write.p4"), [NUMBERS.rsplit_once('.').expect("a path").1]);
    }
}
