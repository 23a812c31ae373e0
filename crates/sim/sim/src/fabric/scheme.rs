//! The schemes: the load balancers of a fabric and the makers of flowlets, with their names.

use core::fmt;

use sluice_fabric::{Conga, Drill, LetFlow, PathBalancer, Scope};
use sluice_host::pacer::{Alpha, GapShare, PacerSettings};
use sluice_switch::registry::About;
use sluice_testbed::{FabricTestbed, FlowletThreshold};
use sluice_wire::Nanos;

/// A load balancer, and whether hosts make flowlets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    way: BalancerKind,
    /// The flowlet threshold; `None`: the testbed's.
    threshold: Option<FlowletThreshold>,
    /// Whether each switch chooses the next hop; otherwise the testbed decides.
    each_hop: bool,
    pacing: Option<Pacing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BalancerKind {
    Ecmp,
    LetFlow,
    Conga,
    Spray,
    Drill,
}

/// How hosts make flowlets (HF²T §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pacing {
    percentile: GapShare,
    alpha: Option<Alpha>,
}

/// Why a text does not name a scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` means nothing to {policy}: {usage}", .text.escape_debug())]
pub struct SchemeError {
    text: String,
    policy: &'static str,
    usage: &'static str,
}

/// The settings of the paper (HF²T §5.1).
const PAPER: Pacing = Pacing { percentile: GapShare::P99, alpha: Some(Alpha { short: 20, long: 80 }) };
const USAGE: &str = "write a threshold such as 2rtt or 100us, each-hop, paced, alpha=20/80, \
                     alpha=none or t=99, with commas";
const FLOWLETS: &str = "Nrtt or a span such as 100us, the pause that begins a flowlet (the testbed's, 2rtt); \
                        each-hop, each switch chooses; paced, hosts make pauses (HF²T); alpha=20/80 or \
                        alpha=none, how T follows the flowlet\'s length; t=99, the percentile of gaps that \
                        T is";

impl BalancerKind {
    const ALL: [Self; 5] = [Self::Ecmp, Self::LetFlow, Self::Conga, Self::Spray, Self::Drill];

    /// The description for people.
    const fn about(self) -> About {
        let (name, about, arguments, example) = match self {
            Self::Ecmp => ("ecmp", "a fabric: a path for each flow, by a hash", "", "ecmp"),
            Self::LetFlow => (
                "letflow",
                "a fabric: a path for each flowlet, at random (LetFlow), and hosts that make some (HF²T)",
                FLOWLETS,
                "letflow:2rtt,paced",
            ),
            Self::Conga => (
                "conga",
                "a fabric: the least congested path for each flowlet (CONGA)",
                FLOWLETS,
                "conga:100us",
            ),
            Self::Spray => ("spray", "a fabric: a path for each frame, at random", "", "spray"),
            Self::Drill => {
                ("drill", "a fabric: the shortest of a few queues for each frame (DRILL)", "", "drill")
            }
        };
        About { name, about, arguments, example }
    }
}

impl Scheme {
    pub(crate) fn all() -> impl Iterator<Item = About> {
        BalancerKind::ALL.into_iter().map(BalancerKind::about)
    }

    /// Reads `ecmp`, `letflow:2rtt,paced,alpha=none`, `conga:100us` and so on; `None` if no scheme has this
    /// name.
    pub fn parse(text: &str) -> Option<Result<Self, SchemeError>> {
        let (name, given) = text.split_once(':').map_or((text, ""), |(name, given)| (name, given));
        let way = BalancerKind::ALL.into_iter().find(|way| way.about().name == name)?;
        let (about, mut scheme) = (way.about(), Self { way, threshold: None, each_hop: false, pacing: None });
        let wrong =
            |part: &str, usage| Some(Err(SchemeError { text: part.to_owned(), policy: about.name, usage }));
        if about.arguments.is_empty() {
            return if text.contains(':') { wrong(given, "write its name alone") } else { Some(Ok(scheme)) };
        }
        for part in given.split(',').filter(|_| text.contains(':')) {
            if scheme.take(part).is_none() {
                return wrong(part, USAGE);
            }
        }
        Some(Ok(scheme))
    }

    /// The load balancer, for a given round trip.
    pub(crate) fn balancer(self, fabric: &FabricTestbed, round_trip: Nanos) -> PathBalancer {
        let threshold = self.threshold(fabric, round_trip);
        match self.way {
            BalancerKind::Ecmp => PathBalancer::Ecmp,
            BalancerKind::Spray => PathBalancer::Spray,
            BalancerKind::Drill => PathBalancer::Drill(Drill::default()),
            BalancerKind::Conga => PathBalancer::Conga(Conga::new(threshold)),
            BalancerKind::LetFlow => {
                let each_hop = self.each_hop || fabric.each_hop;
                let scope = if each_hop { Scope::EachHop } else { Scope::WholePath };
                PathBalancer::LetFlow(LetFlow { scope, ..LetFlow::new(threshold) })
            }
        }
    }

    /// The pacer of the hosts, if they make flowlets.
    pub(crate) fn pacer(self, fabric: &FabricTestbed, round_trip: Nanos) -> Option<PacerSettings> {
        let Pacing { percentile, alpha } = self.pacing?;
        let (threshold, training_gaps) = (self.threshold(fabric, round_trip), fabric.training_gaps);
        Some(PacerSettings { threshold, percentile, training_gaps, alpha })
    }

    fn threshold(self, fabric: &FabricTestbed, round_trip: Nanos) -> Nanos {
        self.threshold.unwrap_or(fabric.threshold).of(round_trip)
    }

    fn take(&mut self, part: &str) -> Option<()> {
        let pacing = || self.pacing.unwrap_or(PAPER);
        match part.split_once('=') {
            None if part == "each-hop" && self.way == BalancerKind::LetFlow => self.each_hop = true,
            None if part == "paced" => self.pacing = Some(pacing()),
            None => self.threshold = Some(FlowletThreshold::parse(part)?),
            Some(("alpha", "none")) => self.pacing = Some(Pacing { alpha: None, ..pacing() }),
            Some(("alpha", bounds)) => {
                self.pacing = Some(Pacing { alpha: Some(Alpha::read(bounds)?), ..pacing() });
            }
            Some(("t", percent)) => {
                self.pacing = Some(Pacing { percentile: GapShare::read(percent)?, ..pacing() });
            }
            Some(_) => return None,
        }
        Some(())
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.way.about().name;
        let mut parts = Vec::new();
        parts.extend(self.threshold.map(|threshold| threshold.to_string()));
        if self.each_hop {
            parts.push("each-hop".to_owned());
        }
        if let Some(Pacing { percentile, alpha }) = self.pacing {
            parts.push("paced".to_owned());
            match alpha {
                None => parts.push("alpha=none".to_owned()),
                alpha if alpha == PAPER.alpha => {}
                Some(Alpha { short, long }) => parts.push(format!("alpha={short}/{long}")),
            }
            if percentile != PAPER.percentile {
                parts.push(format!("t={percentile}"));
            }
        }
        f.write_str(name)?;
        if parts.is_empty() { Ok(()) } else { write!(f, ":{}", parts.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again_and_the_papers_settings_are_the_defaults() {
        for text in [
            "ecmp",
            "letflow",
            "letflow:3rtt,each-hop",
            "letflow:paced",
            "conga:100us,paced,alpha=none,t=97.5",
        ] {
            assert_eq!(Scheme::parse(text).unwrap().unwrap().to_string(), text);
        }
        let round_trip = Nanos(12_550);
        let scheme = Scheme::parse("letflow:paced,alpha=20/80,t=99").unwrap().unwrap();
        assert_eq!(scheme.to_string(), "letflow:paced");
        let paper = PacerSettings::new(Nanos(25_100));
        assert_eq!(scheme.pacer(&FabricTestbed::default(), round_trip), Some(paper));
        let other = Scheme::parse("letflow:50us,paced").unwrap().unwrap();
        let threshold = other.pacer(&FabricTestbed::default(), round_trip).unwrap().threshold;
        assert_eq!(threshold, Nanos(50_000));
    }

    #[test]
    fn what_means_nothing_is_refused_in_one_line() {
        for (text, part) in [
            ("letflow:2rrt", "`2rrt` means nothing to letflow"),
            ("letflow:paced,t=high", "`t=high`"),
            ("letflow:alpha=20", "`alpha=20`"),
            ("conga:each-hop", "`each-hop` means nothing to conga"),
            ("letflow:0rtt", "`0rtt`"),
            ("ecmp:paced", "write its name alone"),
        ] {
            let said = Scheme::parse(text).unwrap().unwrap_err().to_string();
            assert!(said.contains(part) && !said.contains('\n'), "{text}: {said}");
        }
        assert!(Scheme::parse("rain:2").is_none());
    }
}
