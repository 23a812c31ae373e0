//! Who needs more cores, and who fewer: the load monitor (RingLeader §4.4).
//!
//! It looks at a service's FIFO once an interval. By default a service wants more when a request has been
//! there at two checks in a row (Caladan's rule for congestion), and fewer when its queue was never longer in
//! an interval than a threshold. When a trigger fires, the monitor is disarmed and a hint is due; it leaves
//! with a descriptor, and until the host re-arms the monitor there is no other: one hint in flight for each
//! service. Re-arming is also what acknowledges a hint, so that a core's un-ACKed hints are those whose
//! services were not re-armed.

use alloc::vec;
use alloc::vec::Vec;
use core::num::{NonZeroU8, NonZeroU32};

use sluice_wire::Nanos;

use super::error::OrchestratorError;
use super::ids::{CoreId, SERVICES_MAX, ServiceId, services};

/// When a service's load is worth a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The time between two checks; above 0.
    pub interval: Nanos,
    /// When it wants more.
    pub up: UpRule,
    /// It wants fewer cores when no more than so many requests waited at any time of an interval; none if it
    /// never does.
    pub down: Option<u32>,
}

/// When a service wants more cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpRule {
    /// A request was there at so many checks in a row.
    Present(NonZeroU8),
    /// A request has waited so long.
    Waited(Nanos),
    /// So many requests waited at some time of an interval.
    Longest(NonZeroU32),
}

impl Trigger {
    /// The paper's: more if a request is there at two checks in a row, fewer if no more than one waited at
    /// any time of an interval. A request that goes on at once counts as one.
    pub const fn congestion(interval: Nanos) -> Self {
        Self { interval, up: UpRule::Present(NonZeroU8::MIN.saturating_add(1)), down: Some(1) }
    }

    fn fires(&self, seen: &Seen, now: Nanos) -> Option<Hint> {
        let waited = seen.oldest.map(|arrived| now.since(arrived));
        let up = match self.up {
            UpRule::Present(checks) => {
                let apart = self.interval.times(u64::from(checks.get()) - 1);
                waited.is_some_and(|waited| waited >= apart)
            }
            UpRule::Waited(long) => waited.is_some_and(|waited| waited >= long),
            UpRule::Longest(most) => seen.longest >= most.get(),
        };
        let down = self.down.is_some_and(|threshold| seen.longest <= threshold);
        if up { Some(Hint::ScaleUp) } else { down.then_some(Hint::ScaleDown) }
    }
}

/// Whether a service should have more cores, or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// One more.
    ScaleUp,
    /// One fewer.
    ScaleDown,
}

/// The seventh call, from the NIC to the host (RingLeader, table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadHint {
    /// Whose load has triggered it.
    pub service: ServiceId,
    /// What should be done.
    pub hint: Hint,
}

/// What a check sees of a service's FIFO.
pub(super) struct Seen {
    /// When the oldest request that waits came.
    pub(super) oldest: Option<Nanos>,
    /// The most that waited since the last check.
    pub(super) longest: u32,
}

#[derive(Clone, Debug)]
pub(super) struct LoadMonitor {
    watches: [Option<Watch>; SERVICES_MAX],
    /// The services with a monitor.
    watched: u64,
    /// Those whose hint has not left.
    due: u64,
    /// Hints that a core has not acknowledged.
    unacked: Vec<u8>,
    unacked_max: u8,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    trigger: Trigger,
    next_check: Nanos,
    longest: u32,
    arming: Arming,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arming {
    Armed,
    /// A hint for a core waits for a descriptor.
    Due(Hint, CoreId),
    /// It is on its way, or at the host.
    Out(CoreId),
}

impl LoadMonitor {
    pub(super) fn new(cores: usize, unacked_max: NonZeroU8) -> Self {
        Self {
            watches: [None; SERVICES_MAX],
            watched: 0,
            due: 0,
            unacked: vec![0; cores],
            unacked_max: unacked_max.get(),
        }
    }

    /// Watches a service from now on; a hint that is out stays out.
    pub(super) fn enable(
        &mut self,
        service: ServiceId,
        trigger: Trigger,
        waiting: u32,
        now: Nanos,
    ) -> Result<(), OrchestratorError> {
        if trigger.interval == Nanos(0) {
            return Err(OrchestratorError::Trigger);
        }
        let watch = &mut self.watches[service.index()];
        let arming = watch.map_or(Arming::Armed, |watch| watch.arming);
        let next_check = now + trigger.interval;
        *watch = Some(Watch { trigger, next_check, longest: waiting, arming });
        self.watched |= service.bit();
        Ok(())
    }

    pub(super) fn rearm(&mut self, service: ServiceId) -> Result<(), OrchestratorError> {
        let watch = self.watches[service.index()].as_mut().ok_or(OrchestratorError::NoMonitor(service))?;
        let Arming::Out(core) = watch.arming else { return Err(OrchestratorError::NoHintOut(service)) };
        watch.arming = Arming::Armed;
        self.unacked[core.index()] -= 1;
        Ok(())
    }

    /// A service has so many requests waiting.
    #[inline]
    pub(super) fn grown(&mut self, service: ServiceId, waiting: u32) {
        if let Some(watch) = &mut self.watches[service.index()] {
            watch.longest = watch.longest.max(waiting);
        }
    }

    /// The services whose next check is not later than now, as a mask.
    pub(super) fn to_check(&self, now: Nanos) -> u64 {
        let is_late = |service: &ServiceId| self.watch(*service).is_some_and(|watch| watch.next_check <= now);
        services(self.watched).filter(is_late).fold(0, |mask, service| mask | service.bit())
    }

    /// Looks at a service's FIFO, where so many wait now; a hint is due for `core` if its trigger fires.
    pub(super) fn check(
        &mut self,
        service: ServiceId,
        (oldest, waiting): (Option<Nanos>, u32),
        core: CoreId,
        now: Nanos,
    ) {
        let Some(watch) = &mut self.watches[service.index()] else { return };
        let seen = Seen { oldest, longest: watch.longest.max(waiting) };
        watch.longest = waiting;
        let regular = watch.next_check + watch.trigger.interval;
        watch.next_check = if regular > now { regular } else { now + watch.trigger.interval };
        if let (Arming::Armed, Some(hint)) = (watch.arming, watch.trigger.fires(&seen, now)) {
            watch.arming = Arming::Due(hint, core);
            self.due |= service.bit();
        }
    }

    pub(super) fn next_check(&self) -> Option<Nanos> {
        services(self.watched).filter_map(|service| self.watch(service)).map(|watch| watch.next_check).min()
    }

    /// The hint that leaves with a descriptor to this core.
    #[inline]
    pub(super) fn ride(&mut self, core: CoreId) -> Option<LoadHint> {
        if self.due == 0 {
            return None;
        }
        self.leave(|to| to == core).map(|(hint, _)| hint)
    }

    /// A hint that needs a descriptor of its own, and the core that it is for.
    pub(super) fn ride_alone(&mut self) -> Option<(LoadHint, CoreId)> {
        self.leave(|_| true)
    }

    /// The first hint that is due for such a core, if that has not too many un-ACKed.
    fn leave(&mut self, is_meant: impl Fn(CoreId) -> bool) -> Option<(LoadHint, CoreId)> {
        for service in services(self.due) {
            let Some(watch) = &mut self.watches[service.index()] else { continue };
            let Arming::Due(hint, core) = watch.arming else { continue };
            if is_meant(core) && self.unacked[core.index()] < self.unacked_max {
                watch.arming = Arming::Out(core);
                self.unacked[core.index()] += 1;
                self.due &= !service.bit();
                return Some((LoadHint { service, hint }, core));
            }
        }
        None
    }

    fn watch(&self, service: ServiceId) -> Option<&Watch> {
        self.watches[service.index()].as_ref()
    }
}
