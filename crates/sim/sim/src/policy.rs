//! The policies with their names: switch programs, references without a network's limits, orchestrations of
//! one server's cores, controls of overload, and the systems of a datacenter's spines and leaves.

use core::fmt;
use std::str::FromStr;

use sluice_models::ideal::Reference;
use sluice_models::overload::OverloadControl;
use sluice_models::server::Orchestration;
use sluice_models::sparrow::Sparrow;
use sluice_switch::registry::{About, Choice};
use sluice_testbed::Testbed;
use sluice_wire::Nanos;
use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tables::Feed;

use crate::error::SimError;
use crate::fabric::Scheme;
use crate::software::detour;
use crate::system::System;

/// Decides which worker gets a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// A program of the switch, with its hosts.
    Program(Choice),
    /// A policy without a network's limits.
    Reference(Reference),
    /// Spreads one server's requests over its cores.
    Server(Orchestration),
    /// Spreads flows over a fabric's paths.
    Fabric(Scheme),
    /// Software schedulers that reserve places at workers.
    Sparrow(Sparrow),
    /// One queue in a server, kept from overload.
    Overload(OverloadControl),
    /// The system of a datacenter's spines and leaves.
    Datacenter(System),
}

impl Policy {
    /// Reads `rain:2`, `racksched:2,tracked`, `jbsq:3` and so on; the error for an unknown name names the
    /// nearest one.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        let wrong = |why| SimError::Policy { text: text.to_owned(), why };
        let name = text.split(':').next().unwrap_or(text);
        if Choice::all().any(|program| program.name == name) {
            return Choice::parse(text).map(Self::Program).map_err(|why| wrong(why.to_string()));
        }
        let references = Reference::NAMES.map(|known| known.split(':').next().unwrap_or(known));
        if references.contains(&name) {
            return Reference::parse(text).map(Self::Reference).map_err(|why| wrong(why.to_string()));
        }
        if let Some(orchestration) = Orchestration::parse(text) {
            return orchestration.map(Self::Server).map_err(|why| wrong(why.to_string()));
        }
        if name == Sparrow::ABOUT.name {
            return sparrow(text).map(Self::Sparrow).map_err(wrong);
        }
        if let Some(control) = OverloadControl::parse(text) {
            return control.map(Self::Overload).map_err(wrong);
        }
        if let Some(system) = System::parse(text) {
            return system.map(Self::Datacenter).map_err(wrong);
        }
        if let Some(scheme) = Scheme::parse(text) {
            return scheme.map(Self::Fabric).map_err(|why| wrong(why.to_string()));
        }
        let known = Self::all().map(|about| about.name.split(':').next().unwrap_or(about.name));
        Err(wrong(sluice_units::unknown("policy", name, known)))
    }

    /// All policies: the programs, then the references, those of one server, Sparrow, and those of a
    /// datacenter and of a fabric.
    pub fn all() -> impl Iterator<Item = About> {
        let references = Reference::NAMES.into_iter().filter_map(|name| {
            let reference = Reference::parse(&name.replace('N', "1")).ok()?;
            let (about, example) = (reference.about(), reference.example());
            Some(About { name, about, arguments: "", example })
        });
        let systems = System::ALL.iter().map(|of| About {
            name: of.name,
            about: of.about,
            arguments: of.arguments,
            example: of.example,
        });
        let alone =
            references.chain(Orchestration::all()).chain([Sparrow::ABOUT]).chain(OverloadControl::ALL);
        Choice::all().chain(alone).chain(systems).chain(Scheme::all())
    }

    /// Whether it spreads flows over a fabric, rather than tasks over workers.
    pub const fn is_for_flows(&self) -> bool {
        matches!(self, Self::Fabric(_))
    }

    /// How many tokens each worker may have out, now or later; 0 if it has none.
    pub fn quota(&self) -> u8 {
        match self {
            Self::Program(choice) if self.is_adaptive() => QUOTA_MAX.max(choice.traits().quota),
            Self::Program(choice) => choice.traits().quota,
            Self::Datacenter(system) => system.tokens(),
            Self::Reference(_) | Self::Server(_) | Self::Sparrow(_) | Self::Overload(_) | Self::Fabric(_) => {
                0
            }
        }
    }

    /// Whether there are agents. Then the measured span begins when their depths have settled, even if they
    /// only advise, so that fixed depths can be measured on the same tasks.
    pub fn has_agent(&self) -> bool {
        matches!(self, Self::Program(choice) if choice.traits().adaptive.is_some())
    }

    /// Whether depths are found at run time.
    fn is_adaptive(&self) -> bool {
        matches!(self, Self::Program(choice) if choice.traits().adaptive.is_some_and(|asked| !asked.advises))
    }

    /// Whether a worker fetches a large task's bytes from its client before it runs.
    pub(crate) fn fetches_large(&self) -> bool {
        matches!(self, Self::Program(choice) if choice.traits().fetches)
    }

    /// The time of a worker's core per task beside the service, and the time between two services of a
    /// worker with one token (at most the former, if there are no tokens); in nanoseconds.
    pub(crate) fn worker_times(&self, testbed: &Testbed) -> (f64, f64) {
        let reply_only = testbed.worker.receive + testbed.worker.send;
        match self {
            Self::Program(choice) if matches!(choice.traits().feed, Feed::Pushed { .. }) => {
                (reply_only.0 as f64, reply_only.0 as f64)
            }
            Self::Program(choice) => {
                let with_token = reply_only + testbed.worker.send;
                let refill = if choice.traits().early.is_some() { with_token } else { testbed.refill() };
                let detour = choice.traits().software.map_or(Nanos(0), |software| detour(software, testbed));
                (with_token.0 as f64, (refill + detour).0 as f64)
            }
            Self::Datacenter(system) if system.tokens() > 0 => {
                ((reply_only + testbed.worker.send).0 as f64, testbed.refill().0 as f64)
            }
            Self::Datacenter(_) | Self::Overload(_) => (reply_only.0 as f64, reply_only.0 as f64),
            Self::Reference(_) | Self::Fabric(_) => (0.0, 0.0),
            Self::Server(orchestration) => {
                let descriptor = orchestration.descriptor(&testbed.cores).0 as f64;
                (descriptor, descriptor)
            }
            Self::Sparrow(sparrow) => {
                let between = sparrow.refill(testbed).0 as f64;
                (between, between)
            }
        }
    }
}

/// Reads Sparrow with the settings behind its name.
fn sparrow(text: &str) -> Result<Sparrow, String> {
    let arguments = text.split_once(':').map(|(_, arguments)| arguments);
    let wrong = || format!("its arguments: {}", Sparrow::ABOUT.arguments);
    Sparrow::parse(arguments).ok_or_else(wrong)
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(choice) => choice.fmt(f),
            Self::Reference(reference) => reference.fmt(f),
            Self::Server(orchestration) => orchestration.fmt(f),
            Self::Fabric(scheme) => scheme.fmt(f),
            Self::Sparrow(sparrow) => sparrow.fmt(f),
            Self::Overload(control) => control.fmt(f),
            Self::Datacenter(system) => system.fmt(f),
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
        for text in [
            "rain:1",
            "rain:8",
            "rain:1,early",
            "rain:2,early=10%",
            "rain:1,early=learned",
            "central",
            "jbsq:3",
            "po2",
            "r2p2:9",
            "server:1",
            "server:2,bypass",
            "server:1,decision=9us",
            "sparrow:2",
            "sparrow:3,schedulers=4,message=200ns,keeps",
            "codel:50us",
            "codel:50us,interval=100us",
            "breakwater:80us",
            "breakwater:80us,wait=50us",
            "in-time:200us,shortest",
        ] {
            assert_eq!(Policy::parse(text).unwrap().to_string(), text);
        }
        for about in Policy::all() {
            for text in [about.name.replace('N', "2"), about.example.to_owned()] {
                let policy = Policy::parse(&text).unwrap();
                assert_eq!(Policy::parse(&policy.to_string()).unwrap(), policy, "{text}");
            }
        }
    }

    #[test]
    fn an_unknown_policy_is_refused_with_the_nearest_name() {
        for (text, why) in [
            ("rian:2", "did you mean `rain`?"),
            ("centrl", "did you mean `central`?"),
            ("rain:9", "`9` means nothing to rain"),
            ("jbsq:x", "bound"),
            ("r2p2:17", "`17` means nothing to r2p2"),
            ("server:9", "`9` means nothing to server"),
            ("server:decision=2s", "means nothing to server"),
            ("sparrow:0", "places reserved for each task: 1 to 8"),
            ("codel:50us,interval=10us", "how long waits may be above it before the first drop"),
            ("breakwater:0us", "the delay below which there are more credits"),
            ("breakwtaer", "did you mean `breakwater`?"),
            ("in-time:soon", "`soon` is no limit"),
            ("sparow", "did you mean `sparrow`?"),
            ("rain:1,early=10", "`early=10` means nothing to rain"),
            ("rain:2,labels,target=50us", "(not with ranked or labels, and the last class is refused first)"),
            ("rain:2,target=500ns", "`target=500ns` means nothing to rain as it stands: target=50us, a task"),
            ("rain:1,early=900%", "`early=900%` means nothing to rain"),
        ] {
            let said = Policy::parse(text).unwrap_err().to_string();
            assert!(said.contains(why) && !said.contains('\n'), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_wrong_with_any_policy_is_said_in_one_line_fit_for_a_terminal() {
        let junk = "\n\u{1b}[2J\0\u{202e}";
        for about in Policy::all() {
            let name = about.name.split(':').next().unwrap();
            for text in [format!("{name}:{junk}"), format!("{name}:2,{junk}"), format!("{name}{junk}")] {
                let said = Policy::parse(&text).unwrap_err().to_string();
                assert!(!said.contains(|c: char| c.is_control() || c == '\u{202e}'), "{said:?}");
            }
        }
    }
}
