//! A broken promise, and its message.

use std::fmt;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub seed: u64,
    /// Nanoseconds from the start of the run.
    pub at_ns: u64,
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

/// The numbers and names of the promises, as in docs/manual/faults.md.
const PROMISES: [(&str, &str); 10] = [
    ("1", "one outcome"),
    ("2", "once per life"),
    ("3", "bounded"),
    ("4", "nobody stuck"),
    ("5", "right bytes"),
    ("6", "bounded memory"),
    ("7", "right worker"),
    ("8", "in order"),
    ("9", "not too late"),
    ("10", "its share"),
];

impl std::error::Error for Broken {}
