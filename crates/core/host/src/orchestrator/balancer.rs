//! Which core a request goes to: the load balancer (RingLeader §4.2, §5.1).
//!
//! Each core has one rank register for each priority. At dispatch, JBSRQ adds 1 to the registers at and
//! below the request's priority, and λ to the registers above it; at feedback it subtracts the same. So a
//! register always holds the sum that the paper defines. Ranks are whole numbers, in units of 1/denominator
//! of λ. Both kinds of JBSQ use the same registers with other weights: one register for all requests (as in
//! RackSched), or one for each service (as in nanoPU).
//!
//! A core has room for a service while the service's rank on that core is below the depth. Only the
//! request's own priority is tested against this bound, as in figure 7: a queue full of less important
//! requests still accepts more important ones. So a core may hold up to depth × priorities requests
//! ([`Balancing::held_max`]), and its ring must have room for as many.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::error::{OrchestratorError, OrchestratorSetupError};
use super::ids::{CORES_MAX, CoreId, CoreSet, PRIORITIES, Priority, SERVICES_MAX, ServiceId, bits, services};
use super::levels::Levels;

/// The largest depth: requests of one priority that a core may hold.
const DEPTH_MAX: u32 = 1_024;
const CORE_BITS: u32 = CORES_MAX.trailing_zeros();
/// A rank and a core's number share 32 bits, of which one is the sign of a difference of ranks.
const RANK_MAX: u32 = (u32::MAX >> 1 >> CORE_BITS) - 1;

/// λ: how much a less important request counts in the rank of a more important one, as a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lambda {
    numerator: u32,
    denominator: u32,
}

impl Lambda {
    /// `numerator / denominator`, from 0 to 1. The paper uses 1/5.
    pub const fn new(numerator: u32, denominator: u32) -> Result<Self, OrchestratorSetupError> {
        if denominator == 0 || numerator > denominator {
            return Err(OrchestratorSetupError::Lambda(numerator, denominator));
        }
        Ok(Self { numerator, denominator })
    }

    /// Numerator and denominator, not reduced.
    pub const fn parts(self) -> (u32, u32) {
        (self.numerator, self.denominator)
    }
}

impl FromStr for Lambda {
    type Err = OrchestratorSetupError;

    /// Reads `1/5`, `0` or `1`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
        let whole = |part: &str| part.parse().map_err(|_| OrchestratorSetupError::NoRatio);
        Self::new(whole(numerator)?, whole(denominator)?)
    }
}

impl fmt::Display for Lambda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// The rule that chooses a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// Join the bounded shortest ranked queue.
    Jbsrq(Lambda),
    /// Join the bounded shortest queue, counting all services' requests together.
    GlobalJbsq,
    /// Join the bounded shortest queue, counting each service's requests separately; 8 services at most.
    PerServiceJbsq,
}

impl Balancing {
    /// How many requests a core may hold at most.
    pub const fn held_max(self, depth: u32) -> u32 {
        match self {
            Self::GlobalJbsq => depth,
            Self::Jbsrq(_) | Self::PerServiceJbsq => depth * PRIORITIES as u32,
        }
    }

    /// What one request adds to its own register: the unit of the bound.
    const fn unit(self) -> u32 {
        match self {
            Self::Jbsrq(lambda) => lambda.denominator,
            Self::GlobalJbsq | Self::PerServiceJbsq => 1,
        }
    }

    /// What a request of row `of` adds to the register of row `row`.
    fn weight(self, of: usize, row: usize) -> u32 {
        match self {
            Self::Jbsrq(lambda) if row > of => lambda.numerator,
            Self::Jbsrq(lambda) => lambda.denominator,
            Self::GlobalJbsq | Self::PerServiceJbsq => u32::from(row == of),
        }
    }
}

type Ranks = [u32; PRIORITIES];

/// The rank registers, and which services have room on which cores.
#[derive(Clone, Debug)]
pub struct CoreBalancer {
    balancing: Balancing,
    /// A core whose rank has reached this bound has no room.
    bound: u32,
    weights: [Ranks; PRIORITIES],
    /// Each core's registers.
    ranks: Vec<Ranks>,
    /// Requests dispatched and not yet reported as finished, by core and service.
    outstanding: Vec<u16>,
    /// The services that run on each core.
    running: Vec<u64>,
    services: Services,
    levels: Option<Levels>,
}

/// Precomputed masks and counts of services.
#[derive(Clone, Debug)]
struct Services {
    known: u64,
    row: [u8; SERVICES_MAX],
    /// For each row, the services whose rank it holds.
    of_row: [u64; PRIORITIES],
    cores: [CoreSet; SERVICES_MAX],
    /// For each service, how many of its cores have room.
    open: [u16; SERVICES_MAX],
    /// The services with room on at least one core: the mask of RingLeader §4.3.
    eligible: u64,
    /// The services that run on all cores.
    everywhere: u64,
}

impl CoreBalancer {
    /// Idle cores without services, each with room for `depth` requests of a priority.
    pub fn new(balancing: Balancing, depth: u32, cores: usize) -> Result<Self, OrchestratorSetupError> {
        if cores == 0 || cores > CORES_MAX {
            return Err(OrchestratorSetupError::Cores(cores));
        }
        if depth == 0 || depth > DEPTH_MAX {
            return Err(OrchestratorSetupError::Depth(depth, DEPTH_MAX));
        }
        let denominator = balancing.unit();
        let overflow = OrchestratorSetupError::RankOverflow { depth, denominator };
        let most = balancing.held_max(depth).checked_mul(denominator);
        most.filter(|rank| *rank <= RANK_MAX).ok_or(overflow)?;
        let weights = |of| core::array::from_fn(|row| balancing.weight(of, row));
        Ok(Self {
            balancing,
            bound: depth * denominator,
            weights: core::array::from_fn(weights),
            ranks: vec![[0; PRIORITIES]; cores],
            outstanding: vec![0; cores * SERVICES_MAX],
            running: vec![0; cores],
            services: Services {
                known: 0,
                row: [0; SERVICES_MAX],
                of_row: [0; PRIORITIES],
                cores: [CoreSet::default(); SERVICES_MAX],
                open: [0; SERVICES_MAX],
                eligible: 0,
                everywhere: 0,
            },
            levels: Levels::for_cores(cores, depth * denominator),
        })
    }

    /// Registers a service and its priority. It runs nowhere yet.
    pub fn register(&mut self, service: ServiceId, priority: Priority) -> Result<(), OrchestratorError> {
        let services = &mut self.services;
        if services.known & service.bit() != 0 {
            return Err(OrchestratorError::ServiceTaken(service));
        }
        let row = match self.balancing {
            Balancing::Jbsrq(_) => priority.index(),
            Balancing::GlobalJbsq => 0,
            Balancing::PerServiceJbsq => services.known.count_ones() as usize,
        };
        let of_row = services.of_row.get_mut(row).ok_or(OrchestratorError::NoRegister(service))?;
        *of_row |= service.bit();
        services.row[service.index()] = row as u8;
        services.known |= service.bit();
        if let Some(levels) = &mut self.levels {
            levels.keep(row, &self.ranks);
        }
        self.levels.take_if(|levels| !levels.pays(self.ranks.len()));
        Ok(())
    }

    /// Lets a service run on a core from now on; repeating the call changes nothing.
    pub fn enable(&mut self, service: ServiceId, core: CoreId) -> Result<(), OrchestratorError> {
        self.check(service, core)?;
        if !self.runs(service, core) {
            self.running[core.index()] |= service.bit();
            let cores = &mut self.services.cores[service.index()];
            cores.insert(core.index());
            if *cores == CoreSet::first(self.ranks.len()) {
                self.services.everywhere |= service.bit();
            }
            if self.has_room(service, core) {
                self.services.opened(service);
            }
        }
        Ok(())
    }

    /// Stops a service on a core: its rank there becomes infinite. Requests that the core already has still
    /// count until their feedback comes.
    pub fn disable(&mut self, service: ServiceId, core: CoreId) -> Result<(), OrchestratorError> {
        self.check(service, core)?;
        if self.runs(service, core) {
            self.running[core.index()] &= !service.bit();
            self.services.cores[service.index()].remove(core.index());
            self.services.everywhere &= !service.bit();
            if self.has_room(service, core) {
                self.services.closed(service);
            }
        }
        Ok(())
    }

    /// The services that have room on some core, as a mask.
    #[inline]
    pub fn eligible(&self) -> u64 {
        self.services.eligible
    }

    /// How many more requests of a service its cores have room for, if no other service sends any.
    pub fn room(&self, service: ServiceId) -> u32 {
        if self.services.known & service.bit() == 0 {
            return 0;
        }
        let row = usize::from(self.services.row[service.index()]);
        let ranks = self.services.cores[service.index()].members().map(|core| self.ranks[core][row]);
        ranks.map(|rank| self.bound.saturating_sub(rank).div_ceil(self.balancing.unit())).sum()
    }

    /// Dispatches a request of a service to the core with the lowest rank (the first of equals); `None` if
    /// no core has room.
    #[inline]
    pub fn dispatch(&mut self, service: ServiceId) -> Option<CoreId> {
        let row = usize::from(self.services.row[service.index()]);
        let core = self.least_with_room(service, row)?;
        self.outstanding[core * SERVICES_MAX + service.index()] += 1;
        self.change::<true>(core, row);
        Some(CoreId(core as u16))
    }

    /// Takes the feedback that `count` requests of a service are finished on a core.
    #[inline]
    pub fn feedback(
        &mut self,
        service: ServiceId,
        core: CoreId,
        count: u32,
    ) -> Result<(), OrchestratorError> {
        self.check(service, core)?;
        let held = &mut self.outstanding[core.index() * SERVICES_MAX + service.index()];
        let outstanding = u32::from(*held);
        if count > outstanding {
            return Err(OrchestratorError::FeedbackOverrun { service, core, count, outstanding });
        }
        *held -= count as u16;
        let row = usize::from(self.services.row[service.index()]);
        for _ in 0..count {
            self.change::<false>(core.index(), row);
        }
        Ok(())
    }

    /// A service's rank on a core, in units of 1/denominator of λ; `None` (infinite) if the service does
    /// not run on that core.
    pub fn rank(&self, service: ServiceId, core: CoreId) -> Option<u32> {
        let runs = self.check(service, core).is_ok() && self.runs(service, core);
        runs.then(|| self.ranks[core.index()][usize::from(self.services.row[service.index()])])
    }

    /// A core's registers, lowest priority first, whether or not a service uses them.
    pub fn registers(&self, core: CoreId) -> Option<&[u32; PRIORITIES]> {
        self.ranks.get(core.index())
    }

    /// Requests of a service that a core holds.
    pub fn outstanding(&self, service: ServiceId, core: CoreId) -> u32 {
        let place = core.index() * SERVICES_MAX + service.index();
        self.outstanding.get(place).map_or(0, |held| u32::from(*held))
    }

    /// Whether a service runs on a core.
    pub fn runs(&self, service: ServiceId, core: CoreId) -> bool {
        self.running.get(core.index()).is_some_and(|running| running & service.bit() != 0)
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.ranks.len()
    }

    /// The core that is told of a service's load: the one with the lowest rank among the cores that run the
    /// service, even without room. If no core runs the service, the lowest rank of all cores.
    pub(super) fn least_loaded(&self, service: ServiceId) -> CoreId {
        let row = usize::from(self.services.row[service.index()]);
        let own = least(&self.ranks, row, Some(&self.services.cores[service.index()]));
        let any = || least(&self.ranks, row, None);
        CoreId(own.or_else(any).map_or(0, |(_, core)| core) as u16)
    }

    pub(super) fn check(&self, service: ServiceId, core: CoreId) -> Result<(), OrchestratorError> {
        if core.index() >= self.ranks.len() {
            return Err(OrchestratorError::UnknownCore(core, self.ranks.len()));
        }
        self.check_service(service)
    }

    pub(super) fn check_service(&self, service: ServiceId) -> Result<(), OrchestratorError> {
        let is_known = self.services.known & service.bit() != 0;
        if is_known { Ok(()) } else { Err(OrchestratorError::UnknownService(service)) }
    }

    #[inline]
    fn least_with_room(&mut self, service: ServiceId, row: usize) -> Option<usize> {
        let allowed = &self.services.cores[service.index()];
        if let Some(levels) = &mut self.levels {
            return levels.least(row, allowed);
        }
        let is_everywhere = self.services.everywhere & service.bit() != 0;
        let (rank, core) = least(&self.ranks, row, (!is_everywhere).then_some(allowed))?;
        (rank < self.bound).then_some(core)
    }

    fn has_room(&self, service: ServiceId, core: CoreId) -> bool {
        self.ranks[core.index()][usize::from(self.services.row[service.index()])] < self.bound
    }

    /// Adds the weights of a row to a core's registers, or subtracts them, and tests whether a register
    /// crossed the bound. It did if its difference to the bound changed its sign; ranks have at most 31
    /// bits.
    ///
    /// The rare cases recompute the registers' earlier state: to keep both states here would send them
    /// through memory, which takes longer than everything else.
    #[inline]
    fn change<const ADDS: bool>(&mut self, core: usize, row: usize) {
        let (before, weights, bound) = (self.ranks[core], self.weights[row], self.bound);
        let changed = |row: usize| if ADDS { before[row] + weights[row] } else { before[row] - weights[row] };
        let after: Ranks = core::array::from_fn(changed);
        let sign = |row: usize| before[row].wrapping_sub(bound) ^ after[row].wrapping_sub(bound);
        let signs = (0..PRIORITIES).fold(0, |signs, row| signs | sign(row));
        self.ranks[core] = after;
        if signs >> 31 == 1 {
            self.crossed::<ADDS>(core, row);
        }
        if self.levels.is_some() {
            self.move_levels::<ADDS>(core, row);
        }
    }

    /// A core's registers before the last change.
    fn before<const ADDED: bool>(&self, core: usize, row: usize) -> Ranks {
        let (ranks, weights) = (&self.ranks[core], &self.weights[row]);
        let before = |row: usize| if ADDED { ranks[row] - weights[row] } else { ranks[row] + weights[row] };
        core::array::from_fn(before)
    }

    #[inline(never)]
    fn move_levels<const ADDED: bool>(&mut self, core: usize, row: usize) {
        let before = self.before::<ADDED>(core, row);
        if let Some(levels) = &mut self.levels {
            levels.moved(core, &before, &self.ranks[core]);
        }
    }

    /// Updates the masks after a core's registers crossed the bound, in either direction.
    #[cold]
    fn crossed<const ADDED: bool>(&mut self, core: usize, row: usize) {
        let (before, after) = (self.before::<ADDED>(core, row), self.ranks[core]);
        for row in 0..PRIORITIES {
            let (was_full, is_full) = (before[row] >= self.bound, after[row] >= self.bound);
            if was_full == is_full {
                continue;
            }
            for service in services(self.services.of_row[row] & self.running[core]) {
                if is_full { self.services.closed(service) } else { self.services.opened(service) }
            }
        }
    }
}

impl Services {
    fn opened(&mut self, service: ServiceId) {
        self.open[service.index()] += 1;
        self.eligible |= service.bit();
    }

    fn closed(&mut self, service: ServiceId) {
        self.open[service.index()] -= 1;
        if self.open[service.index()] == 0 {
            self.eligible &= !service.bit();
        }
    }
}

/// The lowest rank and its core, among the `allowed` cores or among all; the first of equals.
///
/// Rank and core form one number, so no branch depends on it. Four minima are computed side by side, since
/// each minimum waits for the one before it.
#[inline]
fn least(ranks: &[Ranks], row: usize, allowed: Option<&CoreSet>) -> Option<(u32, usize)> {
    let key = |ranks: &Ranks, core: usize| ranks[row] << CORE_BITS | core as u32;
    let mut best = [u32::MAX; 4];
    if let Some(allowed) = allowed {
        for (at, ranks) in ranks.chunks(64).enumerate() {
            for core in bits(allowed.0[at]) {
                best[core % 4] = best[core % 4].min(key(&ranks[core], at * 64 + core));
            }
        }
    } else {
        let (fours, rest) = ranks.as_chunks::<4>();
        for (at, four) in fours.iter().enumerate() {
            best = core::array::from_fn(|lane| best[lane].min(key(&four[lane], at * 4 + lane)));
        }
        for (core, ranks) in rest.iter().enumerate() {
            best[core] = best[core].min(key(ranks, fours.len() * 4 + core));
        }
    }
    let best = best.into_iter().fold(u32::MAX, u32::min);
    let core = (best & (CORES_MAX as u32 - 1)) as usize;
    (best != u32::MAX).then_some((best >> CORE_BITS, core))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn service(number: usize) -> ServiceId {
        ServiceId::new(number).unwrap()
    }

    fn register(balancer: &mut CoreBalancer, number: usize) {
        balancer.register(service(number), Priority::new(number as u8).unwrap()).unwrap();
    }

    proptest! {
        #[test]
        fn sets_of_cores_and_a_scan_choose_the_same_core(
            steps in proptest::collection::vec((0_u8..6, 0_usize..4, 0_u16..200), 1..600),
            kind in 0_u8..3,
        ) {
            let lambda = Lambda::new(1, 5).unwrap();
            let kinds = [Balancing::Jbsrq(lambda), Balancing::GlobalJbsq, Balancing::PerServiceJbsq];
            let mut scanning = CoreBalancer::new(kinds[usize::from(kind)], 4, 200).unwrap();
            let mut by_level = scanning.clone();
            scanning.levels = None;
            by_level.levels = Some(Levels::new(by_level.bound));
            for (at, (what, number, core)) in steps.into_iter().enumerate() {
                if at % 20 == 0 && at < 80 {
                    register(&mut scanning, at / 20);
                    register(&mut by_level, at / 20);
                }
                let (id, core) = (service(number), CoreId(core));
                match what {
                    0 | 1 => prop_assert_eq!(scanning.enable(id, core), by_level.enable(id, core)),
                    2 => prop_assert_eq!(scanning.disable(id, core), by_level.disable(id, core)),
                    3 => prop_assert_eq!(scanning.feedback(id, core, 1), by_level.feedback(id, core, 1)),
                    _ => prop_assert_eq!(scanning.dispatch(id), by_level.dispatch(id)),
                }
                prop_assert_eq!(scanning.eligible(), by_level.eligible());
            }
        }
    }

    #[test]
    fn ranks_that_would_overflow_are_refused_when_it_is_built() {
        let long = Balancing::Jbsrq(Lambda::new(1, 1 << 30).unwrap());
        let why = OrchestratorSetupError::RankOverflow { depth: 4, denominator: 1 << 30 };
        assert_eq!(CoreBalancer::new(long, 4, 8).unwrap_err(), why);
        let fits = Balancing::Jbsrq(Lambda::new(1, (1 << 18) - 1).unwrap());
        assert!(CoreBalancer::new(fits, 4, 8).is_ok());
        for (numerator, denominator) in [(1, 0), (2, 1), (0, 0)] {
            assert!(Lambda::new(numerator, denominator).is_err());
        }
    }
}
