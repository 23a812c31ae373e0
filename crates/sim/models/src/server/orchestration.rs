//! The ways to orchestrate a server's cores, with their names.

use core::fmt;

use sluice_host::orchestrator::{Assignment, Balancing, Lambda};
use sluice_switch::registry::About;
use sluice_testbed::CoreTimes;
use sluice_units::{WholeSpan, span};
use sluice_wire::Nanos;

/// How a server's requests get to its cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orchestration {
    /// RingLeader's NIC and cores.
    RingLeader {
        /// How many requests of one priority a core has room for.
        depth: u32,
        /// The rule by which a core is chosen.
        balancing: Balancing,
        /// Whether services without room are passed over (FEO); otherwise they block the others (PIFO).
        passes_over: bool,
        /// Which services run on which cores; hints move cores.
        assignment: Assignment,
        /// After how long a core yields; `None`: as the testbed says.
        yields: Option<Nanos>,
    },
    /// A dispatcher with a core of its own and one queue for each priority.
    Shinjuku {
        /// When it takes a core away from a request that has run for an interval.
        preempts: Preempts,
    },
    /// A queue for each core; a request's queue is random.
    Rss {
        /// Whether a queue is drawn once for each of so many flows; `None`: for each request.
        flows: Option<u32>,
    },
    /// As `Rss` by request; a core without work steals another core's request.
    Stealing,
    /// As `Stealing`; idle cores are taken away, and given back when requests wait.
    Caladan,
    /// So many orchestrators without costs, each with one queue and an equal share of the cores; a request
    /// goes to a random one.
    DIdeal { orchestrators: u32 },
}

/// When a dispatcher takes a core away from a request that has run for an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preempts {
    Never,
    /// While requests wait, even if they only wait for the dispatcher while a core is idle.
    WhileOthersWait,
    /// While requests wait and no core is idle.
    WhileNoneIsIdle,
}

/// Why a text does not name an orchestration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` means nothing to {policy}: {usage}", .text.escape_debug())]
pub struct OrchestrationError {
    text: String,
    policy: &'static str,
    usage: &'static str,
}

/// The paper's settings (§7.1).
const DEPTH: u32 = 4;
const LAMBDA: (u32, u32) = (1, 5);

const ALL: [About; 6] = [
    About {
        name: "ringleader",
        about: "one server: a NIC that ranks and balances requests over cores that yield (RingLeader)",
        arguments: "N, requests of a priority at a core (4); lambda=1/5, what less important ones count; \
                    global, the shortest queue of all services; by-service, of the request's own service; \
                    pifo, services without room block the others; \
                    dedicated, one service a core, moved by hints; hybrid=N, with N cores at least of all; \
                    yields=1us, when a core looks for another request (the testbed's)",
        example: "ringleader:4",
    },
    About {
        name: "shinjuku",
        about: "one server: a dispatcher core with one queue, which takes cores away from long requests",
        arguments: "nopre, it never takes a core away; spares, it does not while another core is idle",
        example: "shinjuku",
    },
    About {
        name: "rss",
        about: "one server: a queue for each core, chosen by chance",
        arguments: "N, chosen once for each of N flows; without, for each request",
        example: "rss",
    },
    About {
        name: "stealing",
        about: "one server: a queue for each core, and cores without work take others'",
        arguments: "",
        example: "stealing",
    },
    About {
        name: "caladan",
        about: "one server: the same, and cores come and go with the load",
        arguments: "",
        example: "caladan",
    },
    About {
        name: "d-ideal",
        about: "one server: N orchestrators without costs, each with one queue and its share of the cores",
        arguments: "N, orchestrators (1)",
        example: "d-ideal:4",
    },
];

impl Orchestration {
    /// All orchestrations, as lists of policies show them.
    pub fn all() -> impl Iterator<Item = About> {
        ALL.into_iter()
    }

    /// The time of a core for each request beside its service.
    pub fn descriptor(self, times: &CoreTimes) -> Nanos {
        if matches!(self, Self::RingLeader { .. }) { times.descriptor } else { Nanos(0) }
    }

    /// The highest rate that its one dispatcher or allocator can handle, per second; infinite if it has
    /// none.
    pub fn rate_max_per_s(self, times: &CoreTimes) -> f64 {
        let each = match self {
            Self::Shinjuku { .. } => times.dispatch,
            Self::Caladan => times.allocate,
            _ => Nanos(0),
        };
        1e9 / each.0 as f64
    }

    /// Reads `ringleader:4,lambda=1/5`, `shinjuku:nopre`, `rss`, `rss:64`, `stealing`, `caladan` or
    /// `d-ideal:16`; `None` if no orchestration has this name.
    pub fn parse(text: &str) -> Option<Result<Self, OrchestrationError>> {
        let (name, settings) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let about = ALL.iter().find(|about| about.name == name)?;
        let wrong = |usage| {
            let text = settings.unwrap_or_default().to_owned();
            Err(OrchestrationError { text, policy: about.name, usage })
        };
        let number = |default| settings.map_or(Some(default), positive);
        Some(match about.name {
            "ringleader" => settings.map_or_else(|| ringleader(""), ringleader).map_or_else(
                || {
                    wrong(
                        "write a depth from 1 to 1024, lambda=1/5, global, by-service, pifo, dedicated, \
                       hybrid=4 or yields=1us, with commas",
                    )
                },
                Ok,
            ),
            "shinjuku" => match settings {
                None => Ok(Self::Shinjuku { preempts: Preempts::WhileOthersWait }),
                Some("spares") => Ok(Self::Shinjuku { preempts: Preempts::WhileNoneIsIdle }),
                Some("nopre") => Ok(Self::Shinjuku { preempts: Preempts::Never }),
                Some(_) => wrong("write nopre, spares, or nothing"),
            },
            "rss" => match settings.map(positive) {
                None => Ok(Self::Rss { flows: None }),
                Some(Some(flows)) => Ok(Self::Rss { flows: Some(flows) }),
                Some(None) => wrong("write how many flows there are, or nothing"),
            },
            "d-ideal" => match number(1) {
                Some(orchestrators) => Ok(Self::DIdeal { orchestrators }),
                None => wrong("write how many orchestrators there are"),
            },
            _ if settings.is_some() => wrong("it has no settings"),
            "stealing" => Ok(Self::Stealing),
            _ => Ok(Self::Caladan),
        })
    }
}

fn positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| (1..=1 << 20).contains(number))
}

fn ringleader(settings: &str) -> Option<Orchestration> {
    let lambda = Balancing::Jbsrq(Lambda::new(LAMBDA.0, LAMBDA.1).ok()?);
    let (mut depth, mut balancing, mut passes_over) = (DEPTH, lambda, true);
    let (mut assignment, mut yields) = (Assignment::CompleteShare, None);
    for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
        match setting.split_once('=') {
            Some(("lambda", ratio)) => {
                balancing = Balancing::Jbsrq(ratio.parse().ok()?);
            }
            Some(("hybrid", _)) => assignment = setting.parse().ok()?,
            Some(("yields", after)) => {
                let after = span(after).ok();
                yields = Some(after.filter(|after| *after > Nanos(0))?);
            }
            None if setting == "dedicated" => assignment = Assignment::Dedicated,
            None if setting == "global" => balancing = Balancing::GlobalJbsq,
            None if setting == "by-service" => balancing = Balancing::PerServiceJbsq,
            None if setting == "pifo" => passes_over = false,
            _ => depth = positive(setting).filter(|depth| *depth <= 1_024)?,
        }
    }
    Some(Orchestration::RingLeader { depth, balancing, passes_over, assignment, yields })
}

impl fmt::Display for Orchestration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RingLeader { depth, balancing, passes_over, assignment, yields } => {
                write!(f, "ringleader:{depth}")?;
                match balancing {
                    Balancing::Jbsrq(lambda) if lambda.parts() == LAMBDA => {}
                    Balancing::Jbsrq(lambda) => write!(f, ",lambda={lambda}")?,
                    Balancing::GlobalJbsq => f.write_str(",global")?,
                    Balancing::PerServiceJbsq => f.write_str(",by-service")?,
                }
                f.write_str(if *passes_over { "" } else { ",pifo" })?;
                if *assignment != Assignment::CompleteShare {
                    write!(f, ",{assignment}")?;
                }
                yields.map_or(Ok(()), |after| write!(f, ",yields={}", WholeSpan(after)))
            }
            Self::Shinjuku { preempts } => f.write_str(match preempts {
                Preempts::Never => "shinjuku:nopre",
                Preempts::WhileOthersWait => "shinjuku",
                Preempts::WhileNoneIsIdle => "shinjuku:spares",
            }),
            Self::Rss { flows: None } => f.write_str("rss"),
            Self::Rss { flows: Some(flows) } => write!(f, "rss:{flows}"),
            Self::Stealing => f.write_str("stealing"),
            Self::Caladan => f.write_str("caladan"),
            Self::DIdeal { orchestrators } => write!(f, "d-ideal:{orchestrators}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        for text in [
            "ringleader:4",
            "ringleader:1,lambda=0/1",
            "ringleader:2,global,pifo",
            "ringleader:8,by-service",
            "ringleader:4,dedicated",
            "ringleader:4,lambda=1/3,hybrid=4",
            "ringleader:4,global,yields=1us",
            "shinjuku",
            "shinjuku:nopre",
            "shinjuku:spares",
            "rss",
            "rss:64",
            "stealing",
            "caladan",
            "d-ideal:16",
        ] {
            assert_eq!(Orchestration::parse(text).unwrap().unwrap().to_string(), text);
        }
        assert_eq!(Orchestration::parse("ringleader"), Orchestration::parse("ringleader:4,lambda=1/5"));
        assert_eq!(Orchestration::parse("central"), None);
    }

    #[test]
    fn settings_that_mean_nothing_are_refused_in_a_line() {
        for (text, why) in [
            ("ringleader:0", "`0` means nothing to ringleader: write a depth from 1 to 1024"),
            ("ringleader:4,lambda=2/1", "write a depth"),
            ("ringleader:4,hybrid=0", "hybrid=4"),
            ("ringleader:4,hybrid", "hybrid=4"),
            ("ringleader:4,yields=0us", "yields=1us"),
            ("shinjuku:pre", "write nopre"),
            ("rss:0", "how many flows"),
            ("caladan:2", "it has no settings"),
            ("d-ideal:x", "how many orchestrators"),
        ] {
            let said = Orchestration::parse(text).unwrap().unwrap_err().to_string();
            assert!(said.contains(why) && !said.contains('\n'), "{said}");
        }
    }
}
