//! CONGA (Alizadeh et al., SIGCOMM 2014, §3): the first switch puts a flowlet on the path that is least
//! congested from there to the last switch.
//!
//! Each port estimates its load (§3.2): the bytes that left, of which a share is forgotten each interval. A
//! frame collects the highest level on its path. Its last switch keeps that level by path, and tells it to
//! the first switch with any frame in the other direction, one path per frame. A level that is not told
//! again ages and then counts as idle (§3.3). A path is a number whose digits are the choices of the
//! switches, so that a fat-tree's paths are chosen whole.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

use crate::dcqcn::power;
use crate::error::{FabricError, require};
use crate::frame::{CongaFields, FabricFrame};
use crate::ids::PortId;
use crate::wiring::Wiring;

/// The most paths between two switches that are told apart.
const PATHS_MAX: usize = 256;

/// The settings of CONGA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conga {
    /// A gap of at least this length begins a flowlet (public set-up: 100 µs; CONGA §3.4: 500 µs).
    pub threshold: Nanos,
    /// Entries of a switch's table, a power of two (CONGA §3.4: 64 Ki).
    pub entries: u32,
    /// How often a port forgets a share of the bytes that left (public set-up: 50 µs).
    pub interval: Nanos,
    /// The share that it forgets (public set-up: 0.2).
    pub forgets: f64,
    /// Bits of a level (CONGA §3.6, public set-up: 3).
    pub bits: u32,
    /// A level that was not told for so long counts as idle (public set-up: 500 µs; CONGA §3.3: 10 ms).
    pub ages_after: Nanos,
}

impl Conga {
    /// The settings of the public set-up, with a flowlet threshold.
    pub const fn new(threshold: Nanos) -> Self {
        Self {
            threshold,
            entries: 1 << 16,
            interval: Nanos::from_micros(50),
            forgets: 0.2,
            bits: 3,
            ages_after: Nanos::from_micros(500),
        }
    }

    pub(crate) fn check(&self) -> Result<(), FabricError> {
        let Self { interval, forgets, bits, .. } = *self;
        let span = format_args!("{} ns", interval.0).to_string();
        require(interval.0 > 0, "the interval of CONGA's estimates", span, "more than 0")?;
        require(
            forgets > 0.0 && forgets < 1.0,
            "what CONGA's estimates forget",
            forgets,
            "more than 0, below 1",
        )?;
        require((1..=8).contains(&bits), "the bits of CONGA's levels", bits, "1 to 8")
    }
}

/// The state of all switches for CONGA.
#[derive(Debug)]
pub(crate) struct CongaState {
    settings: Conga,
    edges: usize,
    loads: Vec<PortLoad>,
    /// For each edge switch, other edge switch and path: how congested the path to the other is, and when
    /// that was told.
    there: Vec<(u8, Nanos)>,
    /// For each edge switch, other edge switch and path: how congested the path from the other was.
    from_there: Vec<u8>,
    /// For each pair of edge switches: how many paths there are, and which one is told next.
    pairs: Vec<(u16, u16)>,
    paths_most: usize,
}

/// A port's estimate: the bytes that left, with forgetting done up to this interval.
#[derive(Clone, Copy, Debug)]
struct PortLoad {
    bytes: f64,
    intervals: u64,
    /// The estimate at full load.
    full: f64,
}

impl CongaState {
    pub(crate) fn new(settings: Conga, plan: &Wiring) -> Self {
        let edges = plan.edges();
        let of_pair = |at: usize| plan.paths(at / edges, at % edges).min(PATHS_MAX);
        let pairs: Vec<_> = (0..edges * edges).map(|at| (of_pair(at) as u16, 0)).collect();
        let paths_most = pairs.iter().map(|(paths, _)| usize::from(*paths)).max().unwrap_or(1);
        let full = |gbps: f64| gbps / 8.0 * settings.interval.0 as f64 / settings.forgets;
        let load = |gbps| PortLoad { bytes: 0.0, intervals: 0, full: full(gbps) };
        Self {
            settings,
            edges,
            loads: plan.sockets.iter().map(|socket| load(socket.speed.gbps)).collect(),
            there: vec![(0, Nanos(0)); edges * edges * paths_most],
            from_there: vec![0; edges * edges * paths_most],
            pairs,
            paths_most,
        }
    }

    /// The path of a new flowlet: the least congested one, and the flowlet's last path if that is among the
    /// least congested.
    pub(crate) fn choose(
        &mut self,
        (from, to): (usize, usize),
        before: u32,
        ways: &[PortId],
        now: Nanos,
        dice: &mut Dice,
    ) -> u32 {
        let (paths, _) = self.pairs[from * self.edges + to];
        let first = (from * self.edges + to) * self.paths_most;
        let (mut least, mut best, mut ties) = (u8::MAX, 0, 0);
        for path in 0..u32::from(paths) {
            let (told, at) = self.there[first + path as usize];
            let told = if now.since(at) < self.settings.ages_after { told } else { 0 };
            let level = told.max(self.level(ways[path as usize % ways.len()], now));
            if level < least {
                (least, best, ties) = (level, path, 1);
            } else if level == least && best != before {
                ties += 1;
                if path == before || dice.below(ties) == 0 {
                    best = path;
                }
            }
        }
        best
    }

    /// A frame arrives at the first of several switches: it takes along what this switch knows of one path
    /// in the other direction.
    pub(crate) fn on_first_switch(&mut self, frame: &mut FabricFrame, (from, to): (usize, usize)) {
        let pair = from * self.edges + to;
        let (paths, next) = &mut self.pairs[pair];
        let path = *next;
        *next = (*next + 1) % *paths;
        let level = self.from_there[pair * self.paths_most + usize::from(path)];
        frame.told = CongaFields { back_path: path as u8, back_level: level, ..CongaFields::default() };
    }

    /// A frame arrives at the last of several switches: the switch notes what the frame carries.
    pub(crate) fn on_last_switch(&mut self, frame: &FabricFrame, (from, to): (usize, usize), now: Nanos) {
        let first = (to * self.edges + from) * self.paths_most;
        let CongaFields { path, level, back_path, back_level } = frame.told;
        self.there[first + usize::from(back_path)] = (back_level, now);
        if frame.kind.is_data() {
            self.from_there[first + usize::from(path)] = level;
        }
    }

    /// A frame of data leaves by a port.
    pub(crate) fn on_departure(&mut self, port: PortId, frame: &mut FabricFrame, now: Nanos) {
        frame.told.level = frame.told.level.max(self.level(port, now));
        self.loads[port.index()].bytes += f64::from(frame.bytes);
    }

    /// The load of a port, in steps of its full load.
    fn level(&mut self, port: PortId, now: Nanos) -> u8 {
        let load = &mut self.loads[port.index()];
        let intervals = now.0 / self.settings.interval.0;
        load.bytes *= power(1.0 - self.settings.forgets, intervals - load.intervals);
        load.intervals = intervals;
        let steps = f64::from(1_u32 << self.settings.bits);
        (load.bytes / load.full * steps).min(steps - 1.0) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameKind;
    use crate::ids::HostId;
    use crate::topology::{LinkSpeed, Topology};

    const PAIR: (usize, usize) = (0, 1);

    fn state() -> (CongaState, Wiring) {
        let speed = LinkSpeed::default();
        let plan = Wiring::new(&Topology::leaf_spine(2, 4, 2, speed, speed).unwrap()).unwrap();
        (CongaState::new(Conga::new(Nanos(100_000)), &plan), plan)
    }

    #[test]
    fn a_full_port_has_the_highest_level_and_an_idle_one_falls_back_to_none() {
        let (mut state, plan) = state();
        let port = plan.ways(crate::ids::SwitchId(0), HostId(2))[0];
        let mut frame = FabricFrame { bytes: 1_000, ..FabricFrame::default() };
        for at in (0..2_000_000).step_by(80) {
            state.on_departure(port, &mut frame, Nanos(at));
        }
        assert_eq!(state.level(port, Nanos(1_999_999)), 7);
        assert_eq!(frame.told.level, 7);
        assert_eq!(state.level(port, Nanos(4_000_000)), 0);
    }

    #[test]
    fn what_the_last_switch_saw_turns_the_next_flowlets_of_the_first_one_away_until_it_is_old() {
        let (mut state, plan) = state();
        let ways = plan.ways(crate::ids::SwitchId(0), HostId(2)).to_vec();
        let mut dice = Dice::new(1, 1);
        for path in [0, 1, 3] {
            let told = CongaFields { path, level: 5, ..CongaFields::default() };
            state.on_last_switch(&FabricFrame { told, ..FabricFrame::default() }, PAIR, Nanos(0));
        }
        let mut answer = FabricFrame { kind: FrameKind::Ack, ..FabricFrame::default() };
        for _ in 0..4 {
            state.on_first_switch(&mut answer, (1, 0));
            state.on_last_switch(&answer, (1, 0), Nanos(0));
        }
        assert_eq!(state.choose(PAIR, 0, &ways, Nanos(1_000), &mut dice), 2);
        assert_eq!(state.choose(PAIR, 3, &ways, Nanos(600_000), &mut dice), 3, "all count as idle again");
    }
}
