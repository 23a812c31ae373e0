//! The load monitor: which services need more cores, and which fewer (RingLeader §4.4).
//!
//! The monitor checks a service's FIFO once in an interval. By default a service needs more cores when a
//! request is present at two checks in a row (Caladan's rule for congestion), and fewer when its queue
//! stayed at or below a threshold for a whole interval. When a trigger fires, the monitor is disarmed and a
//! hint becomes due. The hint leaves with a descriptor, and no further hint follows until the host re-arms
//! the monitor: one hint in flight for each service. Re-arming also acknowledges the hint. So a core's
//! un-ACKed hints are those whose services were not re-armed.

use alloc::vec;
use alloc::vec::Vec;
use core::num::{NonZeroU8, NonZeroU32};

use sluice_wire::Nanos;

use super::error::OrchestratorError;
use super::ids::{CoreId, SERVICES_MAX, ServiceId, services};

/// When a service's load triggers a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The time between two checks; above 0.
    pub interval: Nanos,
    /// When the service needs more cores.
    pub up: UpRule,
    /// The service needs fewer cores when never more than this many requests waited in an interval; `None`
    /// if it never gives cores up.
    pub down: Option<u32>,
}

/// When a service wants more cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpRule {
    /// Requests were present at this many checks in a row.
    Present(NonZeroU8),
    /// A request has waited for this long.
    Waited(Nanos),
    /// This many requests waited at some time of an interval.
    Longest(NonZeroU32),
}

impl Trigger {
    /// The paper's trigger: more cores if a request is present at two checks in a row, fewer if never more
    /// than one waited in an interval. A request that leaves at once counts as one.
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

/// Whether a service needs more cores or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The service needs one more core.
    ScaleUp,
    /// The service can give one core back.
    ScaleDown,
}

/// The seventh call of table 1, from the NIC to the host (RingLeader).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadHint {
    /// The service whose load triggered the hint.
    pub service: ServiceId,
    /// More cores or fewer.
    pub hint: Hint,
}

/// The state of a service's FIFO at a check.
pub(super) struct Seen {
    /// The arrival time of the oldest waiting request.
    pub(super) oldest: Option<Nanos>,
    /// The largest number of waiting requests since the last check.
    pub(super) longest: u32,
}

#[derive(Clone, Debug)]
pub(super) struct LoadMonitor {
    watches: [Option<Watch>; SERVICES_MAX],
    /// The services with a monitor.
    watched: u64,
    /// The services whose hint is due and has not left.
    due: u64,
    /// For each core, how many hints it has not acknowledged.
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
    /// A hint for this core waits for a descriptor.
    Due(Hint, CoreId),
    /// The hint for this core is on its way or at the host.
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

    /// Starts to watch a service. A hint that is out stays out.
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

    /// Notes how many requests of a service wait now.
    #[inline]
    pub(super) fn grown(&mut self, service: ServiceId, waiting: u32) {
        if let Some(watch) = &mut self.watches[service.index()] {
            watch.longest = watch.longest.max(waiting);
        }
    }

    /// The services whose check is due, as a mask.
    pub(super) fn to_check(&self, now: Nanos) -> u64 {
        let is_late = |service: &ServiceId| self.watch(*service).is_some_and(|watch| watch.next_check <= now);
        services(self.watched).filter(is_late).fold(0, |mask, service| mask | service.bit())
    }

    /// Checks a service's FIFO. If its trigger fires, a hint for `core` becomes due.
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

    /// The hint that leaves with a descriptor to this core, if one is due.
    #[inline]
    pub(super) fn ride(&mut self, core: CoreId) -> Option<LoadHint> {
        if self.due == 0 {
            return None;
        }
        self.leave(|to| to == core).map(|(hint, _)| hint)
    }

    /// A hint that needs a descriptor of its own, and the core that gets it.
    pub(super) fn ride_alone(&mut self) -> Option<(LoadHint, CoreId)> {
        self.leave(|_| true)
    }

    /// The first due hint for a core that `is_meant` accepts and that has not too many un-ACKed hints.
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
