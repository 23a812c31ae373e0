//! Identifiers of services, cores and requests, and the limits on their numbers.

use core::fmt;

use thiserror::Error;

/// The largest number of services: the NIC's scheduler has one entry for each (RingLeader §6).
pub const SERVICES_MAX: usize = 64;
/// The largest number of cores behind a NIC. The paper's NIC has 64.
pub const CORES_MAX: usize = 256;
/// The number of priorities, and so of rank registers for each core (RingLeader §6).
pub const PRIORITIES: usize = 8;

/// A service, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(u8);

impl ServiceId {
    pub(super) const FIRST: Self = Self(0);

    /// The service with this number; `None` from [`SERVICES_MAX`] on.
    pub const fn new(number: usize) -> Option<Self> {
        if number < SERVICES_MAX { Some(Self(number as u8)) } else { None }
    }

    /// The service's number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The service's bit in a mask of services.
    pub(super) const fn bit(self) -> u64 {
        1 << self.0
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service {}", self.0)
    }
}

/// A core that runs services, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u16);

impl CoreId {
    /// The core's number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core {}", self.0)
    }
}

/// How important a service is: a larger number is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

/// A priority for which there is no register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("priority {0} is out of range: 0 is the lowest, and {max} goes first", max = PRIORITIES - 1)]
pub struct PriorityOutOfRange(pub u8);

impl Priority {
    pub(super) const LOWEST: Self = Self(0);

    /// 0 is the lowest, [`PRIORITIES`] − 1 the highest.
    pub const fn new(number: u8) -> Result<Self, PriorityOutOfRange> {
        if (number as usize) < PRIORITIES { Ok(Self(number)) } else { Err(PriorityOutOfRange(number)) }
    }

    /// The priority's number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The driver's name for a request; the orchestrator only passes it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestHandle(pub u64);

/// The numbers of the bits that are set, from the lowest.
pub(super) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        bit
    })
}

pub(super) fn services(mask: u64) -> impl Iterator<Item = ServiceId> {
    bits(mask).map(|number| ServiceId(number as u8))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoreSet(pub(super) [u64; CORES_MAX / 64]);

impl CoreSet {
    /// The first `cores` cores.
    pub(super) fn first(cores: usize) -> Self {
        let mut set = Self::default();
        (0..cores).for_each(|core| set.insert(core));
        set
    }

    pub(super) fn insert(&mut self, core: usize) {
        self.0[core / 64] |= 1 << (core % 64);
    }

    pub(super) fn remove(&mut self, core: usize) {
        self.0[core / 64] &= !(1 << (core % 64));
    }

    /// The cores of the set, in ascending order.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| bits(*word).map(move |bit| at * 64 + bit))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}
