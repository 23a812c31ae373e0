//! Errors of the orchestrator's calls, and counters for them.

use core::net::SocketAddr;

use thiserror::Error;

use super::ids::{CORES_MAX, CoreId, PRIORITIES, SERVICES_MAX, ServiceId};

/// Why a call or a packet was refused. A refused call has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OrchestratorError {
    /// No core has this number.
    #[error("{0} does not exist: this NIC has {1} cores")]
    UnknownCore(CoreId, usize),
    /// The service was not registered.
    #[error("{0} is not known: register it first")]
    UnknownService(ServiceId),
    /// No service is registered for this address.
    #[error("no service is registered at {0}: register one there, or send elsewhere")]
    UnknownDestination(SocketAddr),
    /// The service is registered already.
    #[error("{0} is registered already: give the new one another number")]
    ServiceTaken(ServiceId),
    /// The address belongs to another service.
    #[error("{0} is another service's address: take another port")]
    AddressTaken(SocketAddr),
    /// The ranking lists services by name, and this one is not in it.
    #[error("{0} does not stand in the ranking: name it there")]
    Unranked(ServiceId),
    /// Per-service JBSQ has one register for each service, and none is left.
    #[error("per-service JBSQ has registers for {PRIORITIES} services: no room for {0}")]
    NoRegister(ServiceId),
    /// More requests were reported as finished than were dispatched.
    #[error(
        "{service} has {outstanding} requests on {core}, and {count} are said to be finished: count again"
    )]
    FeedbackOverrun { service: ServiceId, core: CoreId, count: u32, outstanding: u32 },
    /// The trigger's interval is zero.
    #[error("a load monitor without an interval would look all the time: give it 1 ns at least")]
    Trigger,
    /// The service has no load monitor.
    #[error("{0} has no load monitor: enable one first")]
    NoMonitor(ServiceId),
    /// The monitor was re-armed although no hint is out.
    #[error("no hint of {0} is out: re-arm its load monitor once for each hint")]
    NoHintOut(ServiceId),
    /// The request is larger than the whole buffer.
    #[error("a request of {bytes} bytes is larger than the buffer of {room}: send less")]
    TooLarge { bytes: u32, room: u32 },
    /// The buffer is full, and everything in it is at least as important.
    #[error("the buffer is full of requests that go before this one of {0}: it is dropped")]
    BufferFull(ServiceId),
    /// A descriptor came to the wrong core.
    #[error("a descriptor for {1} came to {0}: hand it to that core")]
    OtherCore(CoreId, CoreId),
    /// A core got more requests than its queue has room for.
    #[error("the queue of {0} is full: give it the depth that the NIC has")]
    CoreQueueFull(CoreId),
    /// A core that runs no request was told to finish one or to yield.
    #[error("{0} runs nothing: start a request first")]
    NothingRuns(CoreId),
}

impl OrchestratorError {
    /// Counter names: lower case with underscores.
    pub const NAMES: [&'static str; 16] = [
        "unknown_core",
        "unknown_service",
        "unknown_destination",
        "service_taken",
        "address_taken",
        "unranked",
        "no_register",
        "feedback_overrun",
        "trigger",
        "no_monitor",
        "no_hint_out",
        "too_large",
        "buffer_full",
        "other_core",
        "core_queue_full",
        "nothing_runs",
    ];

    /// The counter name of this error.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[self.place()]
    }

    const fn place(&self) -> usize {
        match self {
            Self::UnknownCore(..) => 0,
            Self::UnknownService(_) => 1,
            Self::UnknownDestination(_) => 2,
            Self::ServiceTaken(_) => 3,
            Self::AddressTaken(_) => 4,
            Self::Unranked(_) => 5,
            Self::NoRegister(_) => 6,
            Self::FeedbackOverrun { .. } => 7,
            Self::Trigger => 8,
            Self::NoMonitor(_) => 9,
            Self::NoHintOut(_) => 10,
            Self::TooLarge { .. } => 11,
            Self::BufferFull(_) => 12,
            Self::OtherCore(..) => 13,
            Self::CoreQueueFull(_) => 14,
            Self::NothingRuns(_) => 15,
        }
    }
}

/// How many calls were refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedCalls([u64; OrchestratorError::NAMES.len()]);

impl RefusedCalls {
    /// Calls refused for a reason, by its [name](OrchestratorError::NAMES).
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        OrchestratorError::NAMES.into_iter().zip(self.0)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Passes a result on, and counts it if it is an error.
    pub(super) fn count<T>(&mut self, result: Result<T, OrchestratorError>) -> Result<T, OrchestratorError> {
        if let Err(why) = &result {
            self.0[why.place()] += 1;
        }
        result
    }
}

/// Why an orchestrator cannot be built from these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OrchestratorSetupError {
    /// The number of cores is zero or above [`CORES_MAX`](super::CORES_MAX).
    #[error("{0} cores cannot be: a NIC has 1 to {CORES_MAX}")]
    Cores(usize),
    /// The depth is zero or too large.
    #[error("a depth of {0} cannot be: a core holds 1 to {1} requests of a priority")]
    Depth(u32, u32),
    /// λ is not between 0 and 1.
    #[error("λ = {0}/{1} cannot be: it is a ratio from 0 to 1")]
    Lambda(u32, u32),
    /// λ is not written as a ratio.
    #[error("this is no ratio of whole numbers: write λ as 1/5, or 0 or 1")]
    NoRatio,
    /// The largest rank, in units of λ's denominator, does not fit into its register.
    #[error("ranks overflow: with depth {depth} λ's denominator may not be {denominator}; shorten the ratio")]
    RankOverflow {
        depth: u32,
        /// λ's denominator.
        denominator: u32,
    },
    /// The buffer has no room for one word, or more words than can be counted.
    #[error("a buffer of {0} bytes cannot be: it has 64 bytes to 64 MiB")]
    Buffer(u32),
    /// A service stands in two places of the ranking.
    #[error("{0} stands in the ranking twice: name it once")]
    RankedTwice(ServiceId),
    /// A ranking function has no branches.
    #[error("a strict or weighted function ranks nothing: put services into it")]
    EmptyRanking,
    /// The ranking has too many levels or too many branches.
    #[error("a ranking has {levels} levels at most, and {SERVICES_MAX} branches in each function")]
    RankingShape {
        /// The largest number of levels.
        levels: usize,
    },
    /// The text is not one of the three assignments.
    #[error(
        "this is no assignment of cores: write shared, dedicated, or hybrid=N with N from 1 to {CORES_MAX}"
    )]
    NoAssignment,
    /// The floors do not fit into the cores.
    #[error("{cores} cores are too few for {floor}: every service keeps one of its own")]
    Assignment { cores: usize, floor: usize },
}
