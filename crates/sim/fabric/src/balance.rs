//! How a switch chooses among paths of equal cost.
//!
//! - **ECMP** (RFC 2992): by a hash of the flow.
//! - **LetFlow** (Vanini et al., NSDI 2017): a new random path for each flowlet. The first ToR switch
//!   chooses the whole path (as in the public set-up), or each switch chooses its next hop.
//! - **Spraying** (RPS, Dixit et al., INFOCOM 2013): at random for each frame.
//! - **DRILL** (Ghorbani et al., SIGCOMM 2017): for each frame the shortest of a few random queues and the
//!   queue that was best last time.
//! - **CONGA** (Alizadeh et al., SIGCOMM 2014): for each flowlet the least congested path, see [`Conga`].
//!
//! Answers take the path of ECMP under all of them.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

use crate::conga::{Conga, CongaState};
use crate::connections::Connections;
use crate::error::{FabricError, require};
use crate::flowlets::{FlowletCounts, Flowlets};
use crate::frame::FabricFrame;
use crate::ids::{PortId, SwitchId, mix};
use crate::wires::FabricPort;
use crate::wiring::Wiring;

/// The most entries of a flowlet table.
const ENTRIES_MAX: u32 = 1 << 24;

/// The rule by which switches choose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PathBalancer {
    /// One path per flow.
    #[default]
    Ecmp,
    /// One path per flowlet.
    LetFlow(LetFlow),
    /// One path per frame.
    Spray,
    /// One queue per frame.
    Drill(Drill),
    /// The least congested path, per flowlet.
    Conga(Conga),
}

/// The settings of LetFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetFlow {
    /// A gap of at least this length begins a flowlet.
    pub threshold: Nanos,
    pub scope: Scope,
    /// Entries of a switch's table, a power of two (LetFlow §3: 64 Ki).
    pub entries: u32,
}

/// Which switch chooses a flowlet's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The first switch chooses the whole path.
    #[default]
    WholePath,
    /// Each switch chooses its next hop.
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
    /// How many random queues are compared with the one that was best (d: 2).
    pub samples: u32,
}

impl Default for Drill {
    fn default() -> Self {
        Self { samples: 2 }
    }
}

impl PathBalancer {
    pub(crate) const fn threshold(&self) -> Option<Nanos> {
        match self {
            Self::LetFlow(letflow) => Some(letflow.threshold),
            Self::Conga(conga) => Some(conga.threshold),
            Self::Ecmp | Self::Spray | Self::Drill(_) => None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), FabricError> {
        let table = |entries: &u32| {
            require(
                entries.is_power_of_two() && *entries <= ENTRIES_MAX,
                "the entries of a flowlet table",
                entries,
                format_args!("a power of two up to {ENTRIES_MAX}"),
            )
        };
        match self {
            Self::LetFlow(LetFlow { entries, .. }) => table(entries),
            Self::Conga(conga) => table(&conga.entries).and_then(|()| conga.check()),
            Self::Drill(Drill { samples }) => {
                require(*samples > 0, "the samples of DRILL", samples, "at least 1")
            }
            Self::Ecmp | Self::Spray => Ok(()),
        }
    }
}

/// The state by which all switches of a fabric choose.
#[derive(Debug)]
pub(crate) struct Balance {
    rule: PathBalancer,
    connections: Connections,
    dice: Dice,
    flowlets: Vec<Flowlets>,
    /// For each switch the port whose queue was the shortest (DRILL's memory).
    best: Vec<PortId>,
    conga: Option<CongaState>,
}

/// The place of a frame that has to be forwarded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HopContext<'p> {
    pub(crate) switch: SwitchId,
    /// Whether its sender is attached to this switch.
    pub(crate) is_first: bool,
    /// The ports of all shortest paths.
    pub(crate) ways: &'p [PortId],
    pub(crate) now: Nanos,
}

impl Balance {
    pub(crate) fn new(rule: PathBalancer, connections: Connections, plan: &Wiring, dice: Dice) -> Self {
        let switches = plan.switches;
        let tables = |threshold, entries| (0..switches).map(|_| Flowlets::new(threshold, entries)).collect();
        let (flowlets, conga) = match rule {
            PathBalancer::LetFlow(LetFlow { threshold, entries, .. }) => (tables(threshold, entries), None),
            PathBalancer::Conga(conga) => {
                (tables(conga.threshold, conga.entries), Some(CongaState::new(conga, plan)))
            }
            PathBalancer::Ecmp | PathBalancer::Spray | PathBalancer::Drill(_) => (Vec::new(), None),
        };
        Self { rule, connections, dice, flowlets, best: vec![PortId(u32::MAX); switches as usize], conga }
    }

    /// Chooses the port over which a frame is forwarded.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        at: HopContext<'_>,
        frame: &mut FabricFrame,
        plan: &Wiring,
        ports: &[FabricPort],
    ) -> PortId {
        let HopContext { switch, is_first, ways, now } = at;
        if self.conga.is_some() {
            return self.least_congested(at, frame, plan);
        }
        if let [only] = ways {
            return *only;
        }
        if frame.kind.is_data() {
            match self.rule {
                PathBalancer::Ecmp | PathBalancer::Conga(_) => {}
                PathBalancer::LetFlow(LetFlow { scope: Scope::WholePath, .. }) => {
                    if is_first {
                        let key = self.connections.key(frame);
                        frame.path = self.flowlets[switch.index()].path(key, now, &mut self.dice);
                    }
                }
                PathBalancer::LetFlow(LetFlow { scope: Scope::EachHop, .. }) => {
                    let key = self.connections.key(frame);
                    let path = self.flowlets[switch.index()].path(key, now, &mut self.dice);
                    return ways[path as usize % ways.len()];
                }
                PathBalancer::Spray => return self.dice.pick(ways),
                PathBalancer::Drill(Drill { samples }) => return self.drill(switch, samples, ways, ports),
            }
        }
        hashed(switch, frame, ways)
    }

    /// A frame of data leaves a switch by this port.
    #[inline]
    pub(crate) fn on_departure(&mut self, port: PortId, frame: &mut FabricFrame, now: Nanos) {
        if let Some(conga) = &mut self.conga {
            conga.on_departure(port, frame, now);
        }
    }

    /// The counts of all flowlet tables.
    pub(crate) fn flowlets(&self) -> FlowletCounts {
        self.flowlets.iter().fold(FlowletCounts::default(), |sum, table| sum.plus(table.counts()))
    }

    /// CONGA's choice. Answers take the path of ECMP, and carry the levels of paths as data do.
    fn least_congested(&mut self, at: HopContext<'_>, frame: &mut FabricFrame, plan: &Wiring) -> PortId {
        let HopContext { switch, is_first, ways, now } = at;
        let conga = self.conga.as_mut().expect("it is asked for where it is the rule");
        let ends = (plan.edge_of(frame.from), plan.edge_of(frame.to));
        if ends.0 == ends.1 {
            return ways[0];
        }
        if plan.is_edge_of(switch, frame.to) {
            conga.on_last_switch(frame, ends, now);
            return ways[0];
        }
        if is_first {
            conga.on_first_switch(frame, ends);
        }
        if !frame.kind.is_data() {
            return hashed(switch, frame, ways);
        }
        if is_first {
            let dice = &mut self.dice;
            let choose = |before| conga.choose(ends, before, ways, now, dice);
            frame.path = self.flowlets[switch.index()].path_or(self.connections.key(frame), now, choose);
            frame.told.path = frame.path as u8;
        }
        let choices = ways.len() as u32;
        let way = frame.path % choices;
        frame.path /= choices;
        ways[way as usize]
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

#[inline]
fn hashed(switch: SwitchId, frame: &FabricFrame, ways: &[PortId]) -> PortId {
    ways[mix(frame.path, switch.0) as usize % ways.len()]
}
