//! The latency within which an answer is in time: goodput counts such answers only.

use core::fmt;
use core::str::FromStr;

use sluice_units::{WholeSpan, span};
use sluice_wire::Nanos;
use sluice_workload::Class;

/// A limit for all tasks, or one for each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// All tasks have this limit.
    All(Nanos),
    /// Each class has a limit of its own.
    Each(Vec<(String, Nanos)>),
}

impl Within {
    /// The limit of each class, in their order.
    ///
    /// # Errors
    /// One line that says what to change: a class is unknown, or has no limit.
    pub fn limits(&self, classes: &[Class]) -> Result<Vec<Nanos>, String> {
        let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        self.limits_of("class", &names)
    }

    /// The limit of each of these names, in their order; `what` is the kind of thing that they name.
    ///
    /// # Errors
    /// As [`Within::limits`].
    pub fn limits_of(&self, what: &str, names: &[&str]) -> Result<Vec<Nanos>, String> {
        let each = match self {
            Self::All(limit) => return Ok(vec![*limit; names.len()]),
            Self::Each(each) => each,
        };
        let is_twice = |at: usize| each[..at].iter().any(|(name, _)| *name == each[at].0);
        if let Some(at) = (0..each.len()).find(|at| is_twice(*at)) {
            return Err(format!(
                "{what} `{}` has two latencies within which it is in time: keep one",
                each[at].0
            ));
        }
        if let Some((unknown, _)) = each.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            return Err(sluice_units::unknown(what, unknown, names.iter().copied()));
        }
        let limit = |wanted: &&str| {
            let found = each.iter().find(|(name, _)| name == wanted).map(|(_, limit)| *limit);
            found.ok_or_else(|| {
                format!("{what} `{wanted}` has no latency within which it is in time: add {wanted}=200us")
            })
        };
        names.iter().map(limit).collect()
    }
}

impl FromStr for Within {
    type Err = String;

    /// Reads `200us`, or `get=100us,scan=1ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        let positive = |text: &str| match span(text)? {
            Nanos(0) => Err(format!("no answer comes within `{text}`: write a latency such as 200us")),
            limit => Ok(limit),
        };
        if !text.contains('=') {
            return positive(text).map(Self::All);
        }
        let one = |part: &str| {
            let (class, limit) = part.split_once('=').ok_or_else(|| {
                format!("`{part}` names no class: write get=100us,scan=1ms, or one latency for all")
            })?;
            Ok((class.to_owned(), positive(limit)?))
        };
        text.split(',').map(one).collect::<Result<_, String>>().map(Self::Each)
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(limit) => write!(f, "{}", WholeSpan(*limit)),
            Self::Each(each) => each.iter().enumerate().try_for_each(|(at, (class, limit))| {
                write!(f, "{}{class}={}", if at == 0 { "" } else { "," }, WholeSpan(*limit))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_workload::Workload;

    use super::*;

    const MIX: &str = "get=0.9@const:8us+scan=0.1@const:107us";

    fn limits(text: &str) -> Result<Vec<Nanos>, String> {
        let workload = Workload::parse(MIX).expect("legal");
        text.parse::<Within>()?.limits(&workload.classes)
    }

    #[test]
    fn a_limit_is_for_all_classes_or_for_each_and_is_written_as_it_is_read() {
        assert_eq!(limits("200us"), Ok(vec![Nanos(200_000); 2]));
        assert_eq!(limits("scan=1ms,get=100us"), Ok(vec![Nanos(100_000), Nanos(1_000_000)]));
        for text in ["200us", "get=100us,scan=1ms"] {
            assert_eq!(text.parse::<Within>().map(|within| within.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (text, why) in [
            ("0us", "no answer comes within `0us`"),
            ("200", "`200` is not a span"),
            ("get=100us,1ms", "`1ms` names no class"),
            ("get=100us", "class `scan` has no latency"),
            ("get=100us,scna=1ms", "did you mean `scan`"),
            ("get=100us,scan=1ms,get=2ms", "class `get` has two latencies"),
        ] {
            let said = limits(text).expect_err(text);
            assert!(said.contains(why) && !said.contains('\n'), "{text}: {said}");
        }
    }
}
