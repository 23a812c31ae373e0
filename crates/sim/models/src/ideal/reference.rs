//! The references, with their short names.

use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;

use sluice_units::{WholeSpan, span};
use sluice_wire::Nanos;

/// The name of the reference that knows service times, and its limit unless stated.
const IN_TIME: &str = "in-time";
const LIMIT: Nanos = Nanos::from_micros(200);

/// A policy without a switch's limits: it knows every queue, and its decisions take effect at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// One queue, first come first served: no worker idles while a task waits.
    Central,
    /// Join the bounded shortest queue: at most so many tasks at a worker, in service or waiting; the
    /// others wait in one queue (first come first served). `None` means no bound.
    Jbsq(Option<NonZeroU32>),
    /// Join the shortest queue at once.
    Jsq,
    /// Join the shorter queue of two workers drawn at random.
    PowerOfTwo,
    /// Join a queue at random.
    Random,
    /// Join the queues in turn.
    RoundRobin,
    /// Every service time is known, and only tasks that are answered within the limit are served.
    InTime {
        limit: Nanos,
        /// Whether the shortest task goes first; otherwise one queue, first come first served.
        shortest: bool,
    },
}

/// Why a text does not name a reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The name is unknown: use a known one.
    #[error("unknown reference `{}`; {near}known: {}", .name.escape_debug(), Reference::NAMES.join(", "))]
    Unknown {
        name: String,
        /// A question that names the nearest known name, if one is near.
        near: String,
    },
    /// The bound cannot be read: give a whole number above zero, or `inf`.
    #[error("`{}` is no bound: write how many tasks a worker may hold, such as jbsq:3, or jbsq:inf", .0.escape_debug())]
    Bound(String),
    /// The limit cannot be read: give a latency, and perhaps `shortest`.
    #[error("`{}` is no limit: write a latency, as in in-time:200us or in-time:200us,shortest", .0.escape_debug())]
    Limit(String),
    /// This reference takes no settings: leave them out.
    #[error("`{0}` has no settings: write {0} alone")]
    Settings(&'static str),
}

impl Reference {
    /// How each reference is written; `jbsq` needs a bound behind it.
    pub const NAMES: [&str; 7] = ["central", "jbsq:N", "jsq", "po2", "random", "round-robin", "in-time"];

    /// Reads `central`, `jbsq:3`, `jbsq:inf`, `jsq`, `po2`, `random`, `round-robin` or `in-time:200us`.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let (name, settings) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        if name == "jbsq" {
            return parse_bound(settings.unwrap_or_default()).map(Self::Jbsq);
        }
        if name == IN_TIME {
            return parse_limit(settings);
        }
        let known = [Self::Central, Self::Jsq, Self::PowerOfTwo, Self::Random, Self::RoundRobin];
        let found =
            known.into_iter().find(|reference| reference.name() == name).ok_or_else(|| unknown(name))?;
        if settings.is_some() { Err(ReferenceError::Settings(found.name())) } else { Ok(found) }
    }

    /// The name before the colon.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Central => "central",
            Self::Jbsq(_) => "jbsq",
            Self::Jsq => "jsq",
            Self::PowerOfTwo => "po2",
            Self::Random => "random",
            Self::RoundRobin => "round-robin",
            Self::InTime { .. } => IN_TIME,
        }
    }

    /// An example of how to ask for it.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Jbsq(_) => "jbsq:3",
            Self::InTime { .. } => "in-time:200us",
            other => other.name(),
        }
    }

    /// One line that says what it does.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Central => "reference: one queue for all workers, first come first served",
            Self::Jbsq(_) => {
                "reference: the shortest queue, of at most N tasks with the one in service; jbsq:inf has no bound"
            }
            Self::Jsq => "reference: the shortest queue at once",
            Self::PowerOfTwo => "reference: the shorter queue of two drawn at random",
            Self::Random => "reference: a queue at random",
            Self::RoundRobin => "reference: the queues in turn",
            Self::InTime { .. } => {
                "reference: knows each service time, and lets in what is answered within a limit \
                 (in-time:200us), first come first served; in-time:200us,shortest: the shortest first"
            }
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jbsq(Some(bound)) => write!(f, "jbsq:{bound}"),
            Self::Jbsq(None) => f.write_str("jbsq:inf"),
            Self::InTime { limit, shortest } => {
                write!(f, "{IN_TIME}:{}{}", WholeSpan(*limit), if *shortest { ",shortest" } else { "" })
            }
            other => f.write_str(other.name()),
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

fn parse_bound(text: &str) -> Result<Option<NonZeroU32>, ReferenceError> {
    match text {
        "inf" | "∞" => Ok(None),
        _ => text.parse().map(Some).map_err(|_| ReferenceError::Bound(text.to_owned())),
    }
}

/// A limit, or the default one, and perhaps the order.
fn parse_limit(settings: Option<&str>) -> Result<Reference, ReferenceError> {
    let Some(text) = settings else { return Ok(Reference::InTime { limit: LIMIT, shortest: false }) };
    let (limit, shortest) = match text.strip_suffix(",shortest") {
        Some(limit) => (limit, true),
        None => (text, false),
    };
    let limit = span(limit).ok().filter(|limit| *limit > Nanos(0));
    let limit = limit.ok_or_else(|| ReferenceError::Limit(text.to_owned()))?;
    Ok(Reference::InTime { limit, shortest })
}

fn unknown(name: &str) -> ReferenceError {
    let known = Reference::NAMES.map(|known| known.split(':').next().unwrap_or(known));
    let near = sluice_units::did_you_mean(name, known);
    ReferenceError::Unknown { name: name.to_owned(), near }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_is_read_as_it_is_written() {
        for text in [
            "central",
            "jbsq:1",
            "jbsq:3",
            "jbsq:inf",
            "jsq",
            "po2",
            "random",
            "round-robin",
            "in-time:200us",
            "in-time:1ms,shortest",
        ] {
            assert_eq!(Reference::parse(text).map(|reference| reference.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_helps() {
        for (text, why) in [
            (
                "centrall",
                "unknown reference `centrall`; did you mean `central`? known: central, jbsq:N, jsq, po2, \
                 random, round-robin, in-time",
            ),
            (
                "fifo-of-all",
                "unknown reference `fifo-of-all`; known: central, jbsq:N, jsq, po2, random, round-robin, \
                 in-time",
            ),
            ("jbsq", "`` is no bound: write how many tasks a worker may hold, such as jbsq:3, or jbsq:inf"),
            (
                "jbsq:0",
                "`0` is no bound: write how many tasks a worker may hold, such as jbsq:3, or jbsq:inf",
            ),
            (
                "jbsq:-1",
                "`-1` is no bound: write how many tasks a worker may hold, such as jbsq:3, or jbsq:inf",
            ),
            ("in-time:3", "`3` is no limit: write a latency, as in in-time:200us or in-time:200us,shortest"),
            ("jsq:2", "`jsq` has no settings: write jsq alone"),
        ] {
            assert_eq!(Reference::parse(text).map_err(|error| error.to_string()), Err(why.to_owned()));
        }
    }
}
