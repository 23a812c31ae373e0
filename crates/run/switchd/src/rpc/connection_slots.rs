//! Limits on a server's connections, in all and from one machine.
//!
//! If callers must show certificates, all connections that have shown none yet share a part of the seats:
//! so however many machines without a certificate connect, seats remain for hosts. A connection without a
//! seat is not closed at once: a few at a time are kept open only to tell them the reason.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, getrlimit};

/// The largest number of connections, even if the process may open more files.
const CONNECTIONS_MAX: usize = 4_096;
const CONNECTIONS_MIN: usize = 64;
/// How many open files are reserved for other purposes.
const OTHER_FILES: u64 = 256;
/// How many connections at a time are kept open only to tell them why they are not served.
const TOLD_MAX: usize = 32;

/// Connections without a certificate get one in this many of all seats, and of one machine's seats.
const UNKNOWN_PART: usize = 4;
const UNKNOWN_PART_FROM_ONE: usize = 32;
const UNKNOWN_FROM_ONE_MIN: usize = 4;

/// The largest numbers of connections at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) in_all: usize,
    /// The largest number of connections from one machine.
    pub(crate) from_one: usize,
    /// The limits for connections that have shown no certificate, if callers must show one.
    pub(crate) unknown: Option<UnknownLimits>,
}

/// The largest numbers of open connections without a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownLimits {
    pub(crate) in_all: usize,
    pub(crate) from_one: usize,
}

impl Limits {
    /// Limits that follow from how many files the process may open. If callers must show certificates, one
    /// machine gets at most half of the seats.
    pub(crate) fn of_process(asks_callers: bool) -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES);
        let in_all = usize::try_from(files).unwrap_or(usize::MAX).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX);
        let unknown = asks_callers.then(|| UnknownLimits {
            in_all: in_all / UNKNOWN_PART,
            from_one: (in_all / UNKNOWN_PART_FROM_ONE).max(UNKNOWN_FROM_ONE_MIN),
        });
        Self { in_all, from_one: if asks_callers { in_all / 2 } else { in_all }, unknown }
    }
}

/// The limit that a connection exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitReached {
    InAll(usize),
    FromOne(usize),
    UnknownInAll(usize),
    UnknownFromOne(usize),
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InAll(limit) => write!(
                f,
                "all {limit} connections that are served here at once are taken: close some, call again later, or start it with \
                 room for more open files (ulimit -n)"
            ),
            Self::FromOne(limit) => write!(
                f,
                "your machine has {limit} connections open here, as many as one may have: close some, or call again later"
            ),
            Self::UnknownInAll(limit) => write!(
                f,
                "{limit} connections are open here that have shown no certificate, as many as there may be: \
                 call again later"
            ),
            Self::UnknownFromOne(limit) => write!(
                f,
                "your machine has {limit} connections open here that have shown no certificate, as many as \
                 one may have: call again later, with a certificate (--identity)"
            ),
        }
    }
}

/// All seats of a server.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    limits: Limits,
    taken: Mutex<TakenSlots>,
}

#[derive(Debug, Default)]
struct TakenSlots {
    in_all: usize,
    unknown: usize,
    by_machine: HashMap<IpAddr, MachineSlots>,
    told: usize,
}

/// How many seats a machine has, and how many of them are connections without a certificate.
#[derive(Clone, Copy, Debug, Default)]
struct MachineSlots {
    in_all: usize,
    unknown: usize,
}

impl ConnectionSlots {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// A seat for a connection from this address. If a limit is reached, a seat on which the caller is only
    /// told so; `None` if those are taken too.
    pub(super) fn take(self: &Arc<Self>, from: IpAddr) -> Option<ConnectionSlot> {
        let machine = machine(from);
        let mut taken = self.taken();
        let own = taken.by_machine.get(&machine).copied().unwrap_or_default();
        let kind = if let Some(full) = self.full(&taken, own) {
            if taken.told >= TOLD_MAX {
                return None;
            }
            taken.told += 1;
            SlotKind::Refused(full)
        } else {
            let unknown = usize::from(self.limits.unknown.is_some());
            taken.in_all += 1;
            taken.unknown += unknown;
            let own = taken.by_machine.entry(machine).or_default();
            own.in_all += 1;
            own.unknown += unknown;
            if unknown > 0 { SlotKind::Unknown } else { SlotKind::Known }
        };
        Some(ConnectionSlot { slots: Arc::clone(self), machine, kind })
    }

    /// The limit that another connection of this machine would exceed.
    fn full(&self, taken: &TakenSlots, own: MachineSlots) -> Option<LimitReached> {
        let Limits { in_all, from_one, unknown } = self.limits;
        let of_unknown = |UnknownLimits { in_all, from_one }| {
            if own.unknown >= from_one {
                Some(LimitReached::UnknownFromOne(from_one))
            } else {
                (taken.unknown >= in_all).then_some(LimitReached::UnknownInAll(in_all))
            }
        };
        if own.in_all >= from_one {
            Some(LimitReached::FromOne(from_one))
        } else if taken.in_all >= in_all {
            Some(LimitReached::InAll(in_all))
        } else {
            unknown.and_then(of_unknown)
        }
    }

    fn taken(&self) -> MutexGuard<'_, TakenSlots> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's seat; dropping it frees the seat.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    machine: IpAddr,
    kind: SlotKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotKind {
    Known,
    /// The connection has shown no certificate.
    Unknown,
    /// The connection is not served, only told the reason.
    Refused(LimitReached),
}

impl ConnectionSlot {
    /// The limit that keeps the connection from being served, if one does.
    pub(super) const fn full(&self) -> Option<LimitReached> {
        match self.kind {
            SlotKind::Refused(full) => Some(full),
            SlotKind::Known | SlotKind::Unknown => None,
        }
    }

    /// Whether the connection may keep its seat without a time limit.
    pub(super) const fn is_kept(&self) -> bool {
        matches!(self.kind, SlotKind::Known)
    }

    /// Notes that the peer showed a trusted certificate.
    pub(super) fn shows_certificate(&mut self) {
        if self.kind == SlotKind::Unknown {
            let mut taken = self.slots.taken();
            taken.unknown -= 1;
            taken.by_machine.entry(self.machine).or_default().unknown -= 1;
            self.kind = SlotKind::Known;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        let unknown = match self.kind {
            SlotKind::Refused(_) => {
                taken.told -= 1;
                return;
            }
            SlotKind::Known => 0,
            SlotKind::Unknown => 1,
        };
        taken.in_all -= 1;
        taken.unknown -= unknown;
        if let Some(own) = taken.by_machine.get_mut(&self.machine) {
            own.in_all -= 1;
            own.unknown -= unknown;
            if own.in_all == 0 {
                taken.by_machine.remove(&self.machine);
            }
        }
    }
}

/// The machine that an address belongs to. The owner of an IPv6 address controls all its last 64 bits, so
/// they are ignored.
fn machine(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6((six.to_bits() & !u128::from(u64::MAX)).into()),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(in_all: usize, from_one: usize) -> Arc<ConnectionSlots> {
        ConnectionSlots::new(Limits { in_all, from_one, unknown: None })
    }

    fn take(slots: &Arc<ConnectionSlots>, from: &str) -> ConnectionSlot {
        slots.take(from.parse().unwrap()).unwrap()
    }

    #[test]
    fn one_machine_leaves_room_for_the_others() {
        let slots = seats(3, 2);
        let own = ["10.0.0.1", "::ffff:10.0.0.1"].map(|from| take(&slots, from));
        assert!(own.iter().all(|slot| slot.full().is_none()));
        assert_eq!(take(&slots, "10.0.0.1").full(), Some(LimitReached::FromOne(2)));
        let other = take(&slots, "10.0.0.2");
        assert_eq!(other.full(), None);
        assert_eq!(take(&slots, "10.0.0.3").full(), Some(LimitReached::InAll(3)));
        drop(own);
        assert_eq!(take(&slots, "10.0.0.1").full(), None);
        assert_eq!(slots.taken().by_machine.len(), 1, "{slots:?}");
    }

    #[test]
    fn machines_without_certificates_leave_seats_for_those_with_one() {
        let slots = ConnectionSlots::new(Limits::of_process(true));
        let all_of = |from: &str| {
            let mut held = Vec::new();
            loop {
                let slot = take(&slots, from);
                if let Some(full) = slot.full() {
                    return (held, full);
                }
                held.push(slot);
            }
        };
        let (one, full) = all_of("10.0.0.1");
        assert_eq!(full, LimitReached::UnknownFromOne(one.len()));
        let (other, _) = all_of("10.0.0.2");
        let hosts = slots.limits.from_one - 1;
        let known: Vec<_> = (0..hosts)
            .map(|_| {
                let mut slot = take(&slots, "10.0.0.3");
                assert!(slot.full().is_none() && !slot.is_kept());
                slot.shows_certificate();
                assert!(slot.is_kept());
                slot
            })
            .collect();
        drop((one, other));
        let taken = slots.taken();
        assert_eq!((taken.in_all, taken.unknown), (hosts, 0));
        drop(taken);
        drop(known);
        assert!(slots.taken().by_machine.is_empty());
    }

    #[test]
    fn a_crowd_of_machines_without_certificates_is_told_that_there_are_too_many() {
        let unknown = UnknownLimits { in_all: 2, from_one: 1 };
        let slots = ConnectionSlots::new(Limits { in_all: 9, from_one: 9, unknown: Some(unknown) });
        let mut first = take(&slots, "10.0.0.1");
        let _second = take(&slots, "10.0.0.2");
        assert_eq!(take(&slots, "10.0.0.2").full(), Some(LimitReached::UnknownFromOne(1)));
        assert_eq!(take(&slots, "10.0.0.3").full(), Some(LimitReached::UnknownInAll(2)));
        first.shows_certificate();
        assert_eq!(take(&slots, "10.0.0.3").full(), None);
    }

    #[test]
    fn a_network_of_64_bits_counts_as_one_machine() {
        let slots = seats(9, 1);
        let _own = take(&slots, "fd00::1");
        assert_eq!(take(&slots, "fd00::2").full(), Some(LimitReached::FromOne(1)));
        assert_eq!(take(&slots, "fd00:0:0:1::1").full(), None);
    }

    #[test]
    fn a_few_at_a_time_are_told_and_the_rest_are_not_let_in() {
        let slots = seats(1, 1);
        let _served = take(&slots, "10.0.0.1");
        let told: Vec<_> = (0..TOLD_MAX).map(|_| take(&slots, "10.0.0.1")).collect();
        assert!(slots.take("10.0.0.2".parse().unwrap()).is_none());
        drop(told);
        assert!(slots.take("10.0.0.2".parse().unwrap()).is_some());
    }

    #[test]
    fn the_process_has_files_for_all_that_are_served() {
        for asks_callers in [false, true] {
            let Limits { in_all, from_one, unknown } = Limits::of_process(asks_callers);
            assert_eq!(unknown.is_some(), asks_callers);
            assert!((CONNECTIONS_MIN..=CONNECTIONS_MAX).contains(&in_all));
            assert_eq!(from_one, if asks_callers { in_all / 2 } else { in_all });
        }
    }
}
