//! Reads and prints how an overload control is asked for.

use core::fmt;

use sluice_switch::registry::About;
use sluice_units::{WholeSpan, span};
use sluice_wire::Nanos;

/// The spans that a setting may have.
const SPANS: core::ops::RangeInclusive<Nanos> = Nanos(1)..=Nanos::from_millis(1_000);
/// CoDel's interval is so many targets, unless stated: RFC 8289 (§4.3) advises a target of 5 to 10 % of it.
const INTERVAL_TARGETS: u64 = 20;
/// CoDel's target, unless stated.
const CODEL_TARGET: Nanos = Nanos::from_micros(50);
/// Breakwater's target and its clients' patience, unless stated: what its authors recommend for services of
/// 10 µs.
const BREAKWATER_TARGET: Nanos = Nanos::from_micros(80);
const BREAKWATER_WAIT: Nanos = Nanos::from_micros(10);

/// How a server with one queue before its cores is kept from overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverloadControl {
    /// Requests that have waited too long for too long are dropped at the queue's head.
    CoDel {
        /// The wait that is accepted.
        target: Nanos,
        /// How long waits may be above it before the first drop.
        interval: Nanos,
    },
    /// Clients need a credit for each request.
    Breakwater {
        /// The queue's delay below which more credits are given.
        target: Nanos,
        /// How long a request waits for a credit at its client before it is given up.
        wait: Nanos,
    },
}

impl OverloadControl {
    /// All of them, for people.
    pub const ALL: [About; 2] = [
        About {
            name: "codel",
            about: "one queue in a server drops at its head what has waited too long for too long (RFC 8289)",
            arguments: "TARGET, the wait that is accepted: 1ns to 1s, else 50us; interval=SPAN, how long \
                        waits may be above it before the first drop: 20 targets, unless stated",
            example: "codel:50us",
        },
        About {
            name: "breakwater",
            about: "clients need credits, which follow a server's queueing delay (Breakwater, OSDI 2020)",
            arguments: "TARGET, the delay below which there are more credits: 1ns to 1s, else 80us; \
                        wait=SPAN, how long a request waits for a credit before its client gives it up: \
                        10us, unless stated",
            example: "breakwater:80us",
        },
    ];

    /// Reads `codel:50us,interval=1ms` or `breakwater:80us`; `None` for other names, an error that says what
    /// may stand behind the name.
    pub fn parse(text: &str) -> Option<Result<Self, String>> {
        let (name, arguments) = match text.split_once(':') {
            Some((name, arguments)) => (name, Some(arguments)),
            None => (text, None),
        };
        let about = Self::ALL.into_iter().find(|about| about.name == name)?;
        let wrong = || format!("its arguments: {}", about.arguments);
        let read = Self::read(name == "codel", arguments).filter(Self::fits);
        Some(read.ok_or_else(wrong))
    }

    fn read(is_codel: bool, arguments: Option<&str>) -> Option<Self> {
        let (mut target, mut second) = (None, None);
        let key = if is_codel { "interval" } else { "wait" };
        for argument in arguments.into_iter().flat_map(|arguments| arguments.split(',')) {
            match argument.split_once('=') {
                None => target = Some(span(argument).ok()?),
                Some((known, text)) if known == key => second = Some(span(text).ok()?),
                Some(_) => return None,
            }
        }
        Some(if is_codel {
            let target = target.unwrap_or(CODEL_TARGET);
            Self::CoDel { target, interval: second.unwrap_or_else(|| target.times(INTERVAL_TARGETS)) }
        } else {
            let wait = second.unwrap_or(BREAKWATER_WAIT);
            Self::Breakwater { target: target.unwrap_or(BREAKWATER_TARGET), wait }
        })
    }

    fn fits(&self) -> bool {
        match self {
            Self::CoDel { target, interval } => SPANS.contains(target) && *interval >= *target,
            Self::Breakwater { target, wait } => SPANS.contains(target) && *wait <= *SPANS.end(),
        }
    }
}

impl fmt::Display for OverloadControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::CoDel { target, interval } => {
                write!(f, "codel:{}", WholeSpan(target))?;
                let is_stated = interval != target.times(INTERVAL_TARGETS);
                if is_stated { write!(f, ",interval={}", WholeSpan(interval)) } else { Ok(()) }
            }
            Self::Breakwater { target, wait } => {
                write!(f, "breakwater:{}", WholeSpan(target))?;
                if wait == BREAKWATER_WAIT { Ok(()) } else { write!(f, ",wait={}", WholeSpan(wait)) }
            }
        }
    }
}
