//! Reads and prints how Sparrow is asked for, and computes the rates that follow.

use core::fmt;

use sluice_switch::registry::About;
use sluice_testbed::Testbed;
use sluice_units::WholeSpan;
use sluice_wire::Nanos;

/// The time of a scheduler's core per message: half of a decision behind sockets, as for `server`.
const MESSAGE: Nanos = Nanos::from_micros(3);

/// The settings of Sparrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparrow {
    /// Places reserved for each task (d).
    pub probes: u8,
    /// Schedulers, which get jobs in turn.
    pub schedulers: u8,
    /// The time of a scheduler's core per message that arrives, including the messages that it sends in
    /// answer.
    pub message: Nanos,
    /// Whether reservations that are no longer needed are cancelled.
    pub cancels: bool,
}

impl Default for Sparrow {
    fn default() -> Self {
        Self { probes: 2, schedulers: 1, message: MESSAGE, cancels: true }
    }
}

impl Sparrow {
    /// The description for people.
    pub const ABOUT: About = About {
        name: "sparrow",
        about: "schedulers in software that reserve places at random workers; the first to ask gets the task",
        arguments: "D, places reserved for each task: 1 to 8, else 2; schedulers=S, 1 to 64; message=SPAN, \
                    what a message takes of a scheduler's core: 0ns to 1ms (3us, unless stated); keeps, \
                    reservations are not taken back",
        example: "sparrow:2",
    };

    /// Reads the part behind the name, if there is one; `None` if an argument is unknown.
    pub fn parse(arguments: Option<&str>) -> Option<Self> {
        let mut sparrow = Self::default();
        for argument in arguments.into_iter().flat_map(|arguments| arguments.split(',')) {
            sparrow.take(argument)?;
        }
        Some(sparrow)
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        let within = |text: &str, most: u8| text.parse().ok().filter(|number| (1..=most).contains(number));
        match argument.split_once('=') {
            None if argument == "keeps" => self.cancels = false,
            None => self.probes = within(argument, 8)?,
            Some(("schedulers", number)) => self.schedulers = within(number, 64)?,
            Some(("message", span)) => {
                self.message = sluice_units::span(span).ok().filter(|span| *span <= Nanos::from_millis(1))?;
            }
            Some(_) => return None,
        }
        Some(())
    }

    /// The highest rate that its schedulers can handle, per second: each task costs two messages, the task
    /// itself and its worker's question.
    pub fn rate_max_per_s(self) -> f64 {
        f64::from(self.schedulers) * 1e9 / (2.0 * self.message.0 as f64)
    }

    /// How long a worker is idle between two tasks: the time of its question and the answer.
    pub fn refill(self, testbed: &Testbed) -> Nanos {
        let worker = testbed.worker;
        worker.send.times(2) + worker.receive + way(testbed).times(2) + self.message
    }
}

/// The delay between a worker and a scheduler, through the switch.
pub(super) fn way(testbed: &Testbed) -> Nanos {
    testbed.links.worker.times(2) + testbed.switch.pass
}

impl fmt::Display for Sparrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        write!(f, "{}:{}", Self::ABOUT.name, self.probes)?;
        if self.schedulers != default.schedulers {
            write!(f, ",schedulers={}", self.schedulers)?;
        }
        if self.message != default.message {
            write!(f, ",message={}", WholeSpan(self.message))?;
        }
        f.write_str(if self.cancels { "" } else { ",keeps" })
    }
}
