//! The policies by their names: the switch programs, and the references without a network's limits.

use core::fmt;
use std::str::FromStr;

use crate::error::SimError;
use crate::ideal::Reference;
use crate::testbed::Testbed;
use crate::workload::text;

/// Who decides which worker gets a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// Rain, with so many tokens a worker.
    Rain(u8),
    /// A policy without a network's limits.
    Reference(Reference),
}

impl Policy {
    /// Reads `rain:2`, `jbsq:3` and the like; an unknown name's error says which is nearest.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        let wrong = |why| SimError::Policy { text: text.to_owned(), why };
        let (name, settings) = text.split_once(':').unwrap_or((text, "2"));
        if name == "rain" {
            let quota = settings.parse().ok().filter(|quota| (1..=8).contains(quota));
            return quota.map(Self::Rain).ok_or_else(|| wrong("write a depth from 1 to 8".to_owned()));
        }
        let references = Reference::NAMES.map(|known| known.split(':').next().unwrap_or(known));
        if !references.contains(&name) {
            let known = ["rain"].into_iter().chain(references);
            return Err(wrong(text::unknown("policy", name, known)));
        }
        Reference::parse(text).map(Self::Reference).map_err(|why| wrong(why.to_string()))
    }

    /// Tokens that each worker may have out; 0 where it has none.
    pub const fn quota(&self) -> u8 {
        match self {
            Self::Rain(quota) => *quota,
            Self::Reference(_) => 0,
        }
    }

    /// Whether a worker fetches a large task's bytes from its client before it runs.
    pub(crate) const fn fetches_large(&self) -> bool {
        match self {
            Self::Rain(_) | Self::Reference(_) => false,
        }
    }

    /// What a worker's core spends on a task beside the service, and what lies between two services when the worker has
    /// one token only; in nanoseconds.
    pub(crate) fn worker_times(&self, testbed: &Testbed) -> (f64, f64) {
        match self {
            Self::Rain(_) => {
                let cpu = testbed.worker.receive + testbed.worker.send.times(2);
                (cpu.0 as f64, testbed.refill().0 as f64)
            }
            Self::Reference(_) => (0.0, 0.0),
        }
    }

    /// Whether the switch's program looks at replies.
    pub(crate) const fn program_sees_replies(&self) -> bool {
        match self {
            Self::Rain(_) | Self::Reference(_) => false,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rain(quota) => write!(f, "rain:{quota}"),
            Self::Reference(reference) => reference.fmt(f),
        }
    }
}

impl FromStr for Policy {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        for text in ["rain:1", "rain:8", "central", "jbsq:3", "po2"] {
            assert_eq!(Policy::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Policy::parse("rain").unwrap().to_string(), "rain:2");
    }

    #[test]
    fn an_unknown_policy_is_refused_with_the_nearest_name() {
        for (text, why) in [("rian:2", "did you mean `rain`?"), ("rain:9", "1 to 8"), ("jbsq:x", "bound")] {
            let said = Policy::parse(text).unwrap_err().to_string();
            assert!(said.contains(why) && !said.contains('\n'), "{text}: {said}");
        }
    }
}
