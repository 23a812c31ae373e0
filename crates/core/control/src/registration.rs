//! Names, indices, lives and leases, the same for workers, clients and servers.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sluice_wire::Nanos;

use crate::message::CallId;

/// After how many leases another life that asks for a held name is told to give up.
const LEASES_UNTIL_REFUSED: u64 = 3;

/// How many calls may wait for one registration; beyond that the oldest is answered.
const WAITERS_MAX: usize = 16;

/// A name, the life that holds it, and the end of its lease.
#[derive(Debug)]
pub(crate) struct Registration {
    /// `None` if the row was read back and its holder has not called since.
    pub(crate) name: Option<String>,
    pub(crate) life: u64,
    pub(crate) renewed: Nanos,
    claimant: Option<Claimant>,
    waiters: Vec<Waiter>,
}

/// Another life that asks for a held name.
#[derive(Debug)]
struct Claimant {
    life: u64,
    since: Nanos,
    asked: Nanos,
}

/// A call that is answered when the registration is as the call asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) call: CallId,
    pub(crate) wants: Wants,
}

/// What a waiting call asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    Grant,
    Left,
    Moved,
}

/// The answer to another life that asks for a held name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameConflict {
    Wait,
    GiveUp,
}

/// Whether a host stays registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Stays,
    Leaves,
    Dies,
}

impl Registration {
    pub(crate) fn new(name: Option<String>, life: u64, now: Nanos) -> Self {
        Self { name, life, renewed: now, claimant: None, waiters: Vec::new() }
    }

    pub(crate) fn ends(&self, lease: Nanos) -> Nanos {
        self.renewed + lease
    }

    /// The name for notes; empty while it is unknown.
    pub(crate) fn shown(&self) -> String {
        self.name.clone().unwrap_or_default()
    }

    /// Another life asks for this name. It waits for the lease to end, and is told to give up only if the
    /// holder has renewed all the time that it asked.
    pub(crate) fn contest(&mut self, life: u64, now: Nanos, lease: Nanos) -> NameConflict {
        let asks_on = |claimant: &Claimant| claimant.life == life && now.since(claimant.asked) <= lease;
        if !self.claimant.as_ref().is_some_and(asks_on) {
            self.claimant = Some(Claimant { life, since: now, asked: now });
            return NameConflict::Wait;
        }
        let Some(claimant) = &mut self.claimant else { return NameConflict::Wait };
        claimant.asked = now;
        let long = now.since(claimant.since) > lease.times(LEASES_UNTIL_REFUSED);
        if long && self.renewed > claimant.since { NameConflict::GiveUp } else { NameConflict::Wait }
    }

    /// Lets a call wait; returns the oldest waiting call if it had to make room.
    pub(crate) fn wait(&mut self, waiter: Waiter) -> Option<Waiter> {
        let oldest = (self.waiters.len() >= WAITERS_MAX).then(|| self.waiters.remove(0));
        self.waiters.push(waiter);
        oldest
    }

    pub(crate) fn take_waiters(&mut self) -> Vec<Waiter> {
        core::mem::take(&mut self.waiters)
    }
}

/// A host that holds a registration.
pub(crate) trait Holder {
    fn registration(&self) -> &Registration;
    fn registration_mut(&mut self) -> &mut Registration;
}

/// All registrations of one kind, by index and by name.
#[derive(Debug)]
pub(crate) struct Registry<T> {
    seats: Vec<Option<T>>,
    names: BTreeMap<String, u16>,
    freed: Vec<u64>,
    departures: u64,
}

impl<T: Holder> Registry<T> {
    pub(crate) fn new(seats: u16) -> Self {
        Self {
            seats: (0..seats).map(|_| None).collect(),
            names: BTreeMap::new(),
            freed: alloc::vec![0; usize::from(seats)],
            departures: 0,
        }
    }

    pub(crate) fn len(&self) -> u16 {
        self.seats.len() as u16
    }

    pub(crate) fn get(&self, index: u16) -> Option<&T> {
        self.seats.get(usize::from(index))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u16) -> Option<&mut T> {
        self.seats.get_mut(usize::from(index))?.as_mut()
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<u16> {
        self.names.get(name).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        self.seats.iter().enumerate().filter_map(|(i, seat)| Some((i as u16, seat.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u16, &mut T)> {
        self.seats.iter_mut().enumerate().filter_map(|(i, seat)| Some((i as u16, seat.as_mut()?)))
    }

    /// Of the empty seats for which `fit` holds, the one that has been empty longest.
    pub(crate) fn vacant(&self, fit: impl Fn(u16) -> bool) -> Option<u16> {
        let empty = (0..self.len()).filter(|i| self.get(*i).is_none() && fit(*i));
        empty.min_by_key(|i| self.freed[usize::from(*i)])
    }

    /// Puts a holder into a seat. The index comes from [`Registry::vacant`], or was just read back.
    pub(crate) fn seat(&mut self, index: u16, holder: T) {
        if let Some(name) = &holder.registration().name {
            self.names.insert(name.clone(), index);
        }
        self.seats[usize::from(index)] = Some(holder);
    }

    /// Gives a name to a holder whose row was read back without one.
    pub(crate) fn name(&mut self, index: u16, name: &str) {
        if let Some(holder) = self.get_mut(index) {
            holder.registration_mut().name = Some(name.to_string());
            self.names.insert(name.to_string(), index);
        }
    }

    pub(crate) fn remove(&mut self, index: u16) -> Option<T> {
        let holder = self.seats.get_mut(usize::from(index))?.take()?;
        if let Some(name) = &holder.registration().name {
            self.names.remove(name);
        }
        self.departures += 1;
        self.freed[usize::from(index)] = self.departures;
        Some(holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Nanos = Nanos::from_millis(1_000);

    fn held() -> Registration {
        Registration::new(Some("w".to_string()), 1, Nanos(0))
    }

    #[test]
    fn another_life_waits_while_the_holder_is_silent() {
        let mut held = held();
        for ms in (0..5_000).step_by(100) {
            assert_eq!(held.contest(2, Nanos::from_millis(ms), LEASE), NameConflict::Wait);
        }
    }

    #[test]
    fn another_life_gives_up_when_the_holder_renewed_for_three_leases() {
        let mut held = held();
        let mut told = Vec::new();
        for ms in (0..4_000).step_by(250) {
            held.renewed = Nanos::from_millis(ms);
            told.push(held.contest(2, Nanos::from_millis(ms), LEASE));
        }
        assert_eq!(told[12], NameConflict::Wait);
        assert_eq!(told[13], NameConflict::GiveUp);
    }

    #[test]
    fn a_rival_that_paused_starts_anew() {
        let mut held = held();
        held.contest(2, Nanos(0), LEASE);
        held.renewed = Nanos::from_millis(5_000);
        assert_eq!(held.contest(2, Nanos::from_millis(5_000), LEASE), NameConflict::Wait);
    }

    #[test]
    fn the_oldest_call_makes_room_for_the_newest() {
        let mut held = held();
        let waiter = |n| Waiter { call: CallId(n), wants: Wants::Grant };
        for n in 0..WAITERS_MAX as u64 {
            assert_eq!(held.wait(waiter(n)), None);
        }
        assert_eq!(held.wait(waiter(99)), Some(waiter(0)));
    }
}
