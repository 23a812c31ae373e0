//! How many connections a server takes, in all and from one machine.
//!
//! A connection that finds no seat is not closed at once: a few at a time are let in to be told why, and no
//! further.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, getrlimit};

/// The most connections, however many files the process may have open.
const CONNECTIONS_MAX: usize = 4_096;
const CONNECTIONS_MIN: usize = 64;
/// Open files that are left for everything else.
const OTHER_FILES: u64 = 256;
/// Connections at once that only hear why they are not served.
const TOLD_MAX: usize = 32;

/// The most connections at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Of all machines.
    pub(crate) in_all: usize,
    /// Of one of them.
    pub(crate) from_one: usize,
}

impl Limits {
    /// As many as the process has files for. Where callers are asked who they are, no machine takes more than
    /// half of them.
    pub(crate) fn of_process(asks_callers: bool) -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES);
        let in_all = usize::try_from(files).unwrap_or(usize::MAX).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX);
        Self { in_all, from_one: if asks_callers { in_all / 2 } else { in_all } }
    }
}

/// Which limit a connection found reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    InAll(usize),
    FromOne(usize),
}

impl fmt::Display for Full {
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
        }
    }
}

/// All seats of a server.
#[derive(Debug)]
pub(super) struct Seats {
    limits: Limits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    in_all: usize,
    by_machine: HashMap<IpAddr, usize>,
    told: usize,
}

impl Seats {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// A seat for a connection from there, or one where it is told that there is none; `None` if even those
    /// are taken.
    pub(super) fn take(self: &Arc<Self>, from: IpAddr) -> Option<Seat> {
        let machine = machine(from);
        let mut taken = self.taken();
        let own = taken.by_machine.get(&machine).copied().unwrap_or(0);
        let full = if own >= self.limits.from_one {
            Some(Full::FromOne(self.limits.from_one))
        } else {
            (taken.in_all >= self.limits.in_all).then_some(Full::InAll(self.limits.in_all))
        };
        if full.is_some() {
            if taken.told >= TOLD_MAX {
                return None;
            }
            taken.told += 1;
        } else {
            taken.in_all += 1;
            *taken.by_machine.entry(machine).or_default() += 1;
        }
        Some(Seat { seats: Arc::clone(self), machine, full })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's seat; free again when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    machine: IpAddr,
    full: Option<Full>,
}

impl Seat {
    /// Why it is not to be served, if it is not.
    pub(super) const fn full(&self) -> Option<Full> {
        self.full
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        if self.full.is_some() {
            taken.told -= 1;
            return;
        }
        taken.in_all -= 1;
        if let Some(own) = taken.by_machine.get_mut(&self.machine) {
            *own -= 1;
            if *own == 0 {
                taken.by_machine.remove(&self.machine);
            }
        }
    }
}

/// Whoever has an address of IPv6 has all of its last 64 bits.
fn machine(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6((six.to_bits() & !u128::from(u64::MAX)).into()),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(in_all: usize, from_one: usize) -> Arc<Seats> {
        Seats::new(Limits { in_all, from_one })
    }

    fn take(seats: &Arc<Seats>, from: &str) -> Seat {
        seats.take(from.parse().unwrap()).unwrap()
    }

    #[test]
    fn one_machine_leaves_room_for_the_others() {
        let seats = seats(3, 2);
        let own = ["10.0.0.1", "::ffff:10.0.0.1"].map(|from| take(&seats, from));
        assert!(own.iter().all(|seat| seat.full().is_none()));
        assert_eq!(take(&seats, "10.0.0.1").full(), Some(Full::FromOne(2)));
        let other = take(&seats, "10.0.0.2");
        assert_eq!(other.full(), None);
        assert_eq!(take(&seats, "10.0.0.3").full(), Some(Full::InAll(3)));
        drop(own);
        assert_eq!(take(&seats, "10.0.0.1").full(), None);
        assert_eq!(seats.taken().by_machine.len(), 1, "{seats:?}");
    }

    #[test]
    fn a_network_of_64_bits_counts_as_one_machine() {
        let seats = seats(9, 1);
        let _own = take(&seats, "fd00::1");
        assert_eq!(take(&seats, "fd00::2").full(), Some(Full::FromOne(1)));
        assert_eq!(take(&seats, "fd00:0:0:1::1").full(), None);
    }

    #[test]
    fn a_few_at_a_time_are_told_and_the_rest_are_not_let_in() {
        let seats = seats(1, 1);
        let _served = take(&seats, "10.0.0.1");
        let told: Vec<_> = (0..TOLD_MAX).map(|_| take(&seats, "10.0.0.1")).collect();
        assert!(seats.take("10.0.0.2".parse().unwrap()).is_none());
        drop(told);
        assert!(seats.take("10.0.0.2".parse().unwrap()).is_some());
    }

    #[test]
    fn the_process_has_files_for_all_that_are_served() {
        for asks_callers in [false, true] {
            let Limits { in_all, from_one } = Limits::of_process(asks_callers);
            assert!((CONNECTIONS_MIN..=CONNECTIONS_MAX).contains(&in_all));
            assert_eq!(from_one, if asks_callers { in_all / 2 } else { in_all });
        }
    }
}
