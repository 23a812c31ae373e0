//! The switch's counters, for other threads to read.
//!
//! The switch's thread counts in plain integers and publishes them once a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_net::udp::{Lateness, PublishedLateness, SocketCounts};
use sluice_switch::{Refusal, Refusals};
use sluice_wire::{ParseError, RejectReason};

/// Counters of the driver itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Datagrams received.
    Received,
    /// Datagrams sent.
    Sent,
    /// SUBMITs received, before any check.
    Submits,
    /// TOKENs received, before any check.
    Tokens,
    /// Tasks sent to a worker.
    Dispatched,
    /// Tasks refused with a REJECT.
    Rejected,
    /// Copies of waiting tasks written to servers.
    WrittenAhead,
    /// Passes that were followed by another pass of the same packet.
    Recirculated,
    /// Batches taken.
    Batches,
    /// Payloads that wait now (a level, not a running total).
    PayloadsWaiting,
    /// Datagrams that could not be sent.
    SendFailed,
    /// Datagrams that exceeded the longest accepted length.
    Oversized,
    /// Datagrams dropped because too many others were being delayed.
    HeldOverrun,
    /// Datagrams that the kernel dropped because the switch fell behind.
    KernelDropped,
    /// On links: frames to the switch that are shorter than their headers say.
    Truncated,
    /// On links: first fragments of datagrams to the switch.
    Fragment,
    /// On links: frames to the switch with IPv4 options.
    IpOptions,
    /// On links: arrivals refused because a ring cell of the previous lap was still being read.
    RingBusy,
    /// On links: ring cells whose contents do not match their number, which is a bug.
    CellBroken,
    /// Datagrams that reached the switch over a link without the program. They were not switched.
    OffLink,
    /// Steps of a controller that another controller had superseded.
    Superseded,
    /// At a leaf: tasks that its spine handed down, before any check.
    HandedDown,
    /// At a leaf: packets that it sent to tell its spine something.
    ToldAbove,
    /// SUBMITs and JOBs that the switch did not take because it drains; their clients submit them again.
    NotTaken,
    /// Datagrams that the fault injector lost.
    FaultLost,
    /// Datagrams that the fault injector duplicated.
    FaultDoubled,
    /// Datagrams that the fault injector delayed.
    FaultHeld,
}

impl Count {
    /// All counters, in order.
    pub const ALL: [Self; 27] = [
        Self::Received,
        Self::Sent,
        Self::Submits,
        Self::Tokens,
        Self::Dispatched,
        Self::Rejected,
        Self::WrittenAhead,
        Self::Recirculated,
        Self::Batches,
        Self::PayloadsWaiting,
        Self::SendFailed,
        Self::Oversized,
        Self::HeldOverrun,
        Self::KernelDropped,
        Self::Truncated,
        Self::Fragment,
        Self::IpOptions,
        Self::RingBusy,
        Self::CellBroken,
        Self::OffLink,
        Self::Superseded,
        Self::HandedDown,
        Self::ToldAbove,
        Self::NotTaken,
        Self::FaultLost,
        Self::FaultDoubled,
        Self::FaultHeld,
    ];

    /// The counter's name on status pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Sent => "sent",
            Self::Submits => "submits",
            Self::Tokens => "tokens",
            Self::Dispatched => "dispatched",
            Self::Rejected => "rejected",
            Self::WrittenAhead => "written_ahead",
            Self::Recirculated => "recirculated",
            Self::Batches => "batches",
            Self::PayloadsWaiting => "payloads_waiting",
            Self::SendFailed => "send_failed",
            Self::Oversized => "oversized",
            Self::HeldOverrun => "held_overrun",
            Self::KernelDropped => "kernel_dropped",
            Self::Truncated => "truncated",
            Self::Fragment => "fragment",
            Self::IpOptions => "ip_options",
            Self::RingBusy => "ring_busy",
            Self::CellBroken => "cell_broken",
            Self::OffLink => "off_link",
            Self::Superseded => "superseded",
            Self::HandedDown => "handed_down",
            Self::ToldAbove => "told_above",
            Self::NotTaken => "not_taken",
            Self::FaultLost => "fault_lost",
            Self::FaultDoubled => "fault_doubled",
            Self::FaultHeld => "fault_held",
        }
    }
}

/// The published counters; clones share them.
#[derive(Clone, Debug)]
pub struct SwitchCounters(Arc<Published>);

#[derive(Debug)]
struct Published {
    own: [AtomicU64; Count::ALL.len()],
    malformed: [AtomicU64; ParseError::ALL.len()],
    refused: [AtomicU64; Refusal::ALL.len()],
    rejected: [AtomicU64; RejectReason::ALL.len()],
    late: PublishedLateness,
}

impl SwitchCounters {
    pub(crate) fn new() -> Self {
        let zero = |_| AtomicU64::new(0);
        Self(Arc::new(Published {
            own: std::array::from_fn(zero),
            malformed: std::array::from_fn(zero),
            refused: std::array::from_fn(zero),
            rejected: std::array::from_fn(zero),
            late: PublishedLateness::default(),
        }))
    }

    /// The value of one of the driver's counters.
    pub fn of(&self, count: Count) -> u64 {
        self.0.own[count as usize].load(Ordering::Relaxed)
    }

    /// Datagrams that were not a valid packet, for this reason.
    pub fn malformed(&self, reason: ParseError) -> u64 {
        self.0.malformed[reason as usize].load(Ordering::Relaxed)
    }

    /// Packets that the program refused, for this reason.
    pub fn refused(&self, reason: Refusal) -> u64 {
        self.0.refused[reason as usize].load(Ordering::Relaxed)
    }

    /// Tasks refused with a REJECT, for this reason. Only a switch on a socket counts them by reason.
    pub fn rejected(&self, reason: RejectReason) -> u64 {
        self.0.rejected[reason as usize].load(Ordering::Relaxed)
    }

    /// How late packets left that were delayed to emulate a testbed.
    pub fn late(&self) -> Lateness {
        self.0.late.load()
    }

    /// All counters by name: the driver's, then malformed datagrams, refused packets and rejected tasks by
    /// reason.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let own = Count::ALL.iter().map(|count| (count.name(), self.of(*count)));
        let malformed = ParseError::ALL.iter().map(|reason| (reason.name(), self.malformed(*reason)));
        let refused = Refusal::ALL.iter().map(|reason| (reason.name(), self.refused(*reason)));
        let rejected =
            RejectReason::ALL.iter().map(|reason| (rejected_name(*reason), self.rejected(*reason)));
        own.chain(malformed).chain(refused).chain(rejected)
    }

    /// Copies the totals that the program on links keeps: first these counters, then malformed datagrams by
    /// reason, then refused packets by reason.
    pub fn take_over(&self, counts: &[Count], totals: &[u64]) {
        let published = counts.iter().map(|count| &self.0.own[*count as usize]);
        let published = published.chain(&self.0.malformed).chain(&self.0.refused);
        published.zip(totals).for_each(|(to, value)| to.store(*value, Ordering::Relaxed));
    }

    /// Sets one count.
    pub fn set(&self, count: Count, value: u64) {
        self.0.own[count as usize].store(value, Ordering::Relaxed);
    }

    /// Packets that changed nothing, counted by reason: malformed and refused ones.
    pub fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.all().skip(Count::ALL.len()).take(ParseError::ALL.len() + Refusal::ALL.len())
    }
}

/// The name of the counter of tasks that were rejected for this reason.
pub(super) const fn rejected_name(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::QueueFull => "rejected_queue_full",
        RejectReason::NoRoom => "rejected_no_room",
        RejectReason::NoWorkers => "rejected_no_workers",
        RejectReason::UnknownType => "rejected_unknown_type",
        RejectReason::StaleTokens => "rejected_stale_tokens",
        RejectReason::Unserved => "rejected_unserved",
        RejectReason::Busy => "rejected_busy",
        RejectReason::Late => "rejected_late",
    }
}

/// The counters of the switch's thread, before publication.
#[derive(Debug)]
pub(super) struct Tally {
    own: [u64; Count::ALL.len()],
    malformed: [u64; ParseError::ALL.len()],
    rejected: [u64; RejectReason::ALL.len()],
    late: Lateness,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            own: [0; Count::ALL.len()],
            malformed: [0; ParseError::ALL.len()],
            rejected: [0; RejectReason::ALL.len()],
            late: Lateness::default(),
        }
    }

    #[inline]
    pub(super) const fn add(&mut self, count: Count) {
        self.own[count as usize] += 1;
    }

    pub(super) const fn add_many(&mut self, count: Count, times: u64) {
        self.own[count as usize] += times;
    }

    #[inline]
    pub(super) const fn set(&mut self, count: Count, value: u64) {
        self.own[count as usize] = value;
    }

    #[inline]
    pub(super) const fn malformed(&mut self, reason: ParseError) {
        self.malformed[reason as usize] += 1;
    }

    #[inline]
    pub(super) const fn rejected(&mut self, reason: RejectReason) {
        self.add(Count::Rejected);
        self.rejected[reason as usize] += 1;
    }

    /// Copies the socket's counters.
    pub(super) const fn socket(&mut self, counts: &SocketCounts) {
        let (inward, outward) = (&counts.faults_in, &counts.faults_out);
        self.late = counts.late;
        self.set(Count::Received, counts.received);
        self.set(Count::Sent, counts.sent);
        self.set(Count::SendFailed, counts.failed);
        self.set(Count::Oversized, counts.oversized);
        self.set(Count::FaultLost, inward.lost + outward.lost);
        self.set(Count::FaultDoubled, inward.doubled + outward.doubled);
        self.set(Count::FaultHeld, inward.held + outward.held);
    }

    /// Makes the counters visible to other threads.
    pub(super) fn publish(&self, refusals: &Refusals, to: &SwitchCounters) {
        let store = |to: &AtomicU64, value: u64| to.store(value, Ordering::Relaxed);
        to.0.own.iter().zip(self.own).for_each(|(to, value)| store(to, value));
        to.0.malformed.iter().zip(self.malformed).for_each(|(to, value)| store(to, value));
        to.0.rejected.iter().zip(self.rejected).for_each(|(to, value)| store(to, value));
        to.0.late.store(self.late);
        to.0.refused.iter().zip(refusals.iter()).for_each(|(to, (_, value))| store(to, value));
    }
}
