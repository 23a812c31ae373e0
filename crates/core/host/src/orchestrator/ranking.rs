//! The order in which services are served: nested functions, and first-eligible-out (RingLeader §3.2,
//! §4.3).
//!
//! A ranking is a tree. Services are its leaves; each function ranks its branches, strictly (the first
//! branch goes first) or by weight (start-time fair queueing by bytes). A branch may have a rate limit. For
//! each service with waiting requests, the functions yield a rank, a rate and an earliest transmission time
//! ([`Ranked`]). Ranks are compared level by level from the root.
//!
//! **How FIFOs relate to the 64 entries** (the paper leaves it open): an entry stands for a service, not
//! for a request. The entry exists while the service has waiting requests, and ranks the first of them; the
//! others wait behind it in the service's FIFO. So 64 entries are 64 services, however many requests the
//! buffer holds.
//!
//! The scheduler skips a service that is not eligible. A branch earns no credit for the time in which it
//! was skipped: when it can continue, it starts level with the branch that was served last.

use alloc::vec;
use alloc::vec::Vec;
use core::num::{NonZeroU32, NonZeroU64};

use sluice_wire::Nanos;

use super::error::OrchestratorSetupError;
use super::ids::{PRIORITIES, Priority, SERVICES_MAX, ServiceId, services};

/// The largest number of levels below the root, functions and services together.
pub const RANKING_LEVELS: usize = 4;
/// The virtual time of one byte at weight 1.
const BYTE: u128 = 1 << 16;

/// What is ranked, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranking {
    Service(ServiceId),
    /// The first branch that can send goes first.
    Strict(Vec<Branch>),
    /// Branches that can send share the capacity by their weights.
    Weighted(Vec<Branch>),
    /// Strictly by the services' priorities; services of one priority share evenly. Allowed only as the
    /// whole ranking.
    ByPriority,
}

/// A branch of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The service or function of this branch.
    pub of: Ranking,
    /// The branch's share under a weighted function; strict functions ignore it.
    pub weight: NonZeroU32,
    /// The branch's rate limit in bytes a second; `None` for no limit.
    pub rate_bytes_per_s: Option<NonZeroU64>,
}

impl Branch {
    /// A branch of weight 1 without a rate limit.
    pub const fn new(of: Ranking) -> Self {
        Self { of, weight: NonZeroU32::MIN, rate_bytes_per_s: None }
    }
}

/// The rank, rate and transmission time of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// One number for each level from the root; the lower rank goes first.
    pub rank: [u64; RANKING_LEVELS],
    /// The lowest rate limit on the way from the root.
    pub rate_bytes_per_s: Option<NonZeroU64>,
    /// The earliest time at which the service may be transmitted.
    pub transmission: Nanos,
}

/// The scheduler's entries: services with waiting requests, in the order of a ranking.
#[derive(Clone, Debug)]
pub(super) struct FirstEligibleOut {
    /// All functions and services; the root is the first.
    nodes: Vec<Node>,
    leaf_of: [Option<u16>; SERVICES_MAX],
    is_by_priority: bool,
    waiting: u64,
    /// The nodes with a rate limit.
    shaped: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Option<u16>,
    /// The position among its parent's branches.
    place: u16,
    kind: Kind,
    children: Vec<u16>,
    /// The services below this node.
    members: u64,
    weight: u32,
    rate: Option<NonZeroU64>,
    transmission: Nanos,
    /// The node's start tag in its parent's virtual time.
    start: u128,
    /// The node's own virtual time: the start tag of the branch that was served last.
    reached: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Service(ServiceId),
    Strict,
    Weighted,
}

impl FirstEligibleOut {
    pub(super) fn new(ranking: &Ranking) -> Result<Self, OrchestratorSetupError> {
        let mut block = Self {
            nodes: Vec::with_capacity(1 + PRIORITIES + SERVICES_MAX),
            leaf_of: [None; SERVICES_MAX],
            is_by_priority: *ranking == Ranking::ByPriority,
            waiting: 0,
            shaped: Vec::new(),
        };
        if block.is_by_priority {
            let even = || Branch::new(Ranking::Weighted(Vec::new()));
            let root = Branch::new(Ranking::Strict(vec![even(); PRIORITIES]));
            block.add(&root, None, 0)?;
        } else {
            block.add(&Branch::new(ranking.clone()), None, 0)?;
        }
        block.shaped = (0..block.nodes.len()).filter(|at| block.nodes[*at].rate.is_some()).collect();
        Ok(block)
    }

    /// Whether the ranking can place a service of this priority: it names the service, or it goes by
    /// priority.
    pub(super) fn admit(&mut self, service: ServiceId, priority: Priority) -> bool {
        if self.is_by_priority && self.leaf_of[service.index()].is_none() {
            // The nodes for the priorities follow the root, the highest priority first.
            let parent = PRIORITIES - priority.index();
            self.push(Kind::Service(service), Some(parent as u16), &Branch::new(Ranking::Service(service)));
        }
        self.leaf_of[service.index()].is_some()
    }

    /// Notes that a service has waiting requests from now on.
    #[inline]
    pub(super) fn enter(&mut self, service: ServiceId) {
        self.waiting |= service.bit();
    }

    /// Notes that no request of the service waits any more.
    #[inline]
    pub(super) fn leave(&mut self, service: ServiceId) {
        self.waiting &= !service.bit();
    }

    /// The services with requests waiting, as a mask.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// First-eligible-out: among the waiting services that may send now and are in the mask, the one with
    /// the lowest rank.
    #[inline]
    pub(super) fn first(&self, eligible: u64, now: Nanos) -> Option<ServiceId> {
        self.least(self.waiting & eligible & !self.held(now))
    }

    /// Push-in-first-out: among the waiting services that may send now, the one with the lowest rank, if it
    /// is in the mask; otherwise it blocks all others.
    pub(super) fn front(&self, eligible: u64, now: Nanos) -> Option<ServiceId> {
        self.least(self.waiting & !self.held(now)).filter(|service| service.bit() & eligible != 0)
    }

    /// Notes that a request of `bytes` bytes has left.
    #[inline]
    pub(super) fn taken(&mut self, service: ServiceId, bytes: u32, now: Nanos) {
        let mut at = self.leaf_of[service.index()].map(usize::from);
        while let Some(here) = at {
            let reached = self.nodes[here].parent.map(|parent| self.nodes[usize::from(parent)].reached);
            let node = &mut self.nodes[here];
            if let Some(rate) = node.rate {
                let takes_ns = u128::from(bytes) * 1_000_000_000 / u128::from(rate.get());
                node.transmission = node.transmission.max(now) + Nanos(takes_ns.min(1 << 62) as u64);
            }
            let start = node.start.max(reached.unwrap_or(0));
            node.start = start + u128::from(bytes.max(1)) * BYTE / u128::from(node.weight);
            at = node.parent.map(usize::from);
            if let Some(parent) = at {
                self.nodes[parent].reached = start;
            }
        }
    }

    /// The services that a rate limit still holds back, as a mask.
    #[inline]
    pub(super) fn held(&self, now: Nanos) -> u64 {
        let held = self.shaped.iter().filter(|at| self.nodes[**at].transmission > now);
        held.fold(0, |held, at| held | self.nodes[*at].members)
    }

    /// The next time at which a waiting service of the mask may send that may not send now.
    pub(super) fn next_transmission(&self, eligible: u64, now: Nanos) -> Option<Nanos> {
        let held = services(self.waiting & eligible & self.held(now));
        held.filter_map(|service| self.ranked(service)).map(|ranked| ranked.transmission).min()
    }

    /// The rank of a service now; `None` if it is not in the ranking.
    pub(super) fn ranked(&self, service: ServiceId) -> Option<Ranked> {
        let mut ranked = Ranked { rank: [0; RANKING_LEVELS], rate_bytes_per_s: None, transmission: Nanos(0) };
        let mut at = usize::from(self.leaf_of[service.index()]?);
        let mut path = [0; RANKING_LEVELS];
        let mut levels = 0;
        loop {
            let node = &self.nodes[at];
            ranked.transmission = ranked.transmission.max(node.transmission);
            let rates = [ranked.rate_bytes_per_s, node.rate];
            ranked.rate_bytes_per_s = rates.into_iter().flatten().min();
            let Some(parent) = node.parent else { break };
            path[levels] = self.rank_in_parent(node, usize::from(parent));
            levels += 1;
            at = usize::from(parent);
        }
        path[..levels].reverse();
        ranked.rank = path;
        Some(ranked)
    }

    /// How far a branch is ahead of the one that was served last, and its position among equals.
    #[inline]
    fn rank_in_parent(&self, node: &Node, parent: usize) -> u64 {
        let parent = &self.nodes[parent];
        let lead = match parent.kind {
            Kind::Weighted => node.start.saturating_sub(parent.reached).min(1 << 55) as u64,
            Kind::Strict | Kind::Service(_) => 0,
        };
        lead << 8 | u64::from(node.place)
    }

    #[inline]
    fn least(&self, candidates: u64) -> Option<ServiceId> {
        if candidates == 0 {
            return None;
        }
        let mut at = 0;
        loop {
            let node = &self.nodes[at];
            if let Kind::Service(service) = node.kind {
                return (candidates & service.bit() != 0).then_some(service);
            }
            let can_go = |child: &u16| self.nodes[usize::from(*child)].members & candidates != 0;
            let mut children = node.children.iter().copied().filter(can_go);
            let next = match node.kind {
                Kind::Strict => children.next(),
                _ => children.min_by_key(|child| self.rank_in_parent(&self.nodes[usize::from(*child)], at)),
            };
            at = usize::from(next?);
        }
    }

    /// Adds a branch and what is below it.
    fn add(
        &mut self,
        branch: &Branch,
        parent: Option<u16>,
        level: usize,
    ) -> Result<(), OrchestratorSetupError> {
        let (kind, below) = match &branch.of {
            Ranking::Service(service) if self.leaf_of[service.index()].is_some() => {
                return Err(OrchestratorSetupError::RankedTwice(*service));
            }
            Ranking::Service(service) => (Kind::Service(*service), &[][..]),
            Ranking::Strict(branches) => (Kind::Strict, &branches[..]),
            Ranking::Weighted(branches) => (Kind::Weighted, &branches[..]),
            Ranking::ByPriority => return Err(OrchestratorSetupError::EmptyRanking),
        };
        let is_empty = below.is_empty() && !matches!(kind, Kind::Service(_));
        if is_empty && !self.is_by_priority {
            return Err(OrchestratorSetupError::EmptyRanking);
        }
        if level > RANKING_LEVELS || below.len() > SERVICES_MAX {
            return Err(OrchestratorSetupError::RankingShape { levels: RANKING_LEVELS });
        }
        let at = self.push(kind, parent, branch);
        below.iter().try_for_each(|child| self.add(child, Some(at), level + 1))
    }

    fn push(&mut self, kind: Kind, parent: Option<u16>, branch: &Branch) -> u16 {
        let at = self.nodes.len() as u16;
        let mut node = Node {
            parent,
            place: 0,
            kind,
            children: Vec::with_capacity(if matches!(kind, Kind::Service(_)) { 0 } else { SERVICES_MAX }),
            members: 0,
            weight: branch.weight.get(),
            rate: branch.rate_bytes_per_s,
            transmission: Nanos(0),
            start: 0,
            reached: 0,
        };
        if let Some(parent) = parent {
            let parent = &mut self.nodes[usize::from(parent)];
            node.place = parent.children.len() as u16;
            parent.children.push(at);
        }
        self.nodes.push(node);
        if let Kind::Service(service) = kind {
            self.leaf_of[service.index()] = Some(at);
            self.join(usize::from(at), service);
        }
        at
    }

    fn join(&mut self, leaf: usize, service: ServiceId) {
        let mut at = Some(leaf);
        while let Some(here) = at {
            self.nodes[here].members |= service.bit();
            at = self.nodes[here].parent.map(usize::from);
        }
    }
}
