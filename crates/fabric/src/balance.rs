//! How a switch chooses among paths of equal cost.
//!
//! - **ECMP** (RFC 2992): by a hash of the flow.
//! - **LetFlow** (Vanini et al., NSDI 2017): anew, at random, for each flowlet. The first ToR switch
//!   chooses the whole path (as in the public set-up), or each switch its own part of it.
//! - **Spraying** (RPS, Dixit et al., INFOCOM 2013): at random for each frame.
//! - **DRILL** (Ghorbani et al., SIGCOMM 2017): for each frame the shortest of a few random queues and the
//!   one that was best last time.
//!
//! Answers go by ECMP under all of them.

use sluice_wire::Nanos;
use sluice_world::dice::Dice;

use crate::error::{FabricError, require};
use crate::flowlets::{FlowletCounts, Flowlets};
use crate::frame::{FabricFrame, FrameKind};
use crate::ids::{PortId, SwitchId, mix};
use crate::wires::FabricPort;

/// Most entries of a flowlet table.
const ENTRIES_MAX: u32 = 1 << 24;

/// Which rule chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancer {
    /// A path a flow.
    #[default]
    Ecmp,
    /// A path a flowlet.
    LetFlow(LetFlow),
    /// A path a frame.
    Spray,
    /// A queue a frame.
    Drill(Drill),
}

/// The settings of LetFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetFlow {
    /// A gap as long as this begins a flowlet.
    pub threshold: Nanos,
    /// Who chooses.
    pub scope: Scope,
    /// Entries of a switch's table, a power of two (LetFlow §3: 64 Ki).
    pub entries: u32,
}

/// Who chooses a flowlet's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The first switch, all of it.
    #[default]
    WholePath,
    /// Each switch where it goes on.
    EachHop,
}

impl LetFlow {
    /// Whole paths, and a table of 64 Ki entries.
    pub const fn new(threshold: Nanos) -> Self {
        Self { threshold, scope: Scope::WholePath, entries: 1 << 16 }
    }
}

/// The settings of DRILL(d, m), where m is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drill {
    /// How many queues are looked at besides the one that was best (d: 2).
    pub samples: u32,
}

impl Default for Drill {
    fn default() -> Self {
        Self { samples: 2 }
    }
}

impl Balancer {
    pub(crate) const fn threshold(&self) -> Option<Nanos> {
        match self {
            Self::LetFlow(letflow) => Some(letflow.threshold),
            _ => None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), FabricError> {
        match self {
            Self::LetFlow(LetFlow { entries, .. }) => require(
                entries.is_power_of_two() && *entries <= ENTRIES_MAX,
                "the entries of a flowlet table",
                entries,
                format_args!("a power of two up to {ENTRIES_MAX}"),
            ),
            Self::Drill(Drill { samples }) => {
                require(*samples > 0, "the samples of DRILL", samples, "at least 1")
            }
            Self::Ecmp | Self::Spray => Ok(()),
        }
    }
}

/// What all switches of a fabric choose by.
#[derive(Debug)]
pub(crate) struct Balance {
    rule: Balancer,
    dice: Dice,
    flowlets: Vec<Flowlets>,
    /// By switch: the port whose queue was the shortest (DRILL's memory).
    best: Vec<PortId>,
}

impl Balance {
    pub(crate) fn new(rule: Balancer, switches: u32, dice: Dice) -> Self {
        let flowlets = match rule {
            Balancer::LetFlow(LetFlow { threshold, entries, .. }) => {
                (0..switches).map(|_| Flowlets::new(threshold, entries)).collect()
            }
            _ => Vec::new(),
        };
        Self { rule, dice, flowlets, best: vec![PortId(u32::MAX); switches as usize] }
    }

    /// Over which of these ports a frame goes on. `is_first` where its sender hangs on this switch.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        switch: SwitchId,
        is_first: bool,
        frame: &mut FabricFrame,
        ways: &[PortId],
        ports: &[FabricPort],
        now: Nanos,
    ) -> PortId {
        if let [only] = ways {
            return *only;
        }
        if frame.kind == FrameKind::Data {
            match self.rule {
                Balancer::Ecmp => {}
                Balancer::LetFlow(LetFlow { scope: Scope::WholePath, .. }) => {
                    if is_first {
                        frame.path = self.flowlets[switch.index()].path(frame.flow, now, &mut self.dice);
                    }
                }
                Balancer::LetFlow(LetFlow { scope: Scope::EachHop, .. }) => {
                    let path = self.flowlets[switch.index()].path(frame.flow, now, &mut self.dice);
                    return ways[path as usize % ways.len()];
                }
                Balancer::Spray => return self.dice.pick(ways),
                Balancer::Drill(Drill { samples }) => return self.drill(switch, samples, ways, ports),
            }
        }
        ways[mix(frame.path, switch.0) as usize % ways.len()]
    }

    /// What all flowlet tables counted.
    pub(crate) fn flowlets(&self) -> FlowletCounts {
        self.flowlets.iter().fold(FlowletCounts::default(), |sum, table| sum.plus(table.counts()))
    }

    fn drill(&mut self, switch: SwitchId, samples: u32, ways: &[PortId], ports: &[FabricPort]) -> PortId {
        let waits = |port: PortId| ports[port.index()].backlog();
        let last = self.best[switch.index()];
        let mut best = if ways.contains(&last) { last } else { self.dice.pick(ways) };
        for _ in 0..samples {
            let sample = self.dice.pick(ways);
            if waits(sample) < waits(best) {
                best = sample;
            }
        }
        self.best[switch.index()] = best;
        best
    }
}
