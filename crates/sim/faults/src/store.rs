//! The store that grants a lease to one of two controllers, as etcd does, in racks that have one: its state,
//! what becomes of it, and what each controller knows of it.
//!
//! All of it is drawn from a stream of its own.

use sluice_control::HeldLease;
use sluice_events::dice::Dice;
use sluice_wire::Nanos;

use super::kind::RackKind;
use super::limits::{FAULTS_END, LEASE};
use super::standbys::{ControllerSeat, SEATS, StoreFailure, Struck};

/// How many of a thousand calls to the store are lost while faults last.
const LOST: u64 = 30;

#[derive(Debug)]
pub(super) struct LeaseStore {
    dice: Dice,
    /// The process that holds the lease, and until when it does.
    granted: Option<(u32, Nanos)>,
    down_until: Nanos,
    cut_until: [Nanos; SEATS],
    /// When the call left after which each controller's process held the lease, as far as it knows.
    known: [Option<Nanos>; SEATS],
}

impl LeaseStore {
    pub(super) fn new(kind: &RackKind, seed: u64) -> Option<Self> {
        kind.has_store.then(|| Self {
            dice: Dice::named(seed, "store", 0),
            granted: None,
            down_until: Nanos(0),
            cut_until: [Nanos(0); SEATS],
            known: [None; SEATS],
        })
    }

    /// The failures of the run, with their times.
    pub(super) fn draw(&mut self) -> Vec<(Nanos, Struck, StoreFailure)> {
        let dice = &mut self.dice;
        let count = dice.between(0, 4);
        let one = |_| {
            let at = dice.span(Nanos::from_millis(1), Nanos::from_millis(26));
            let struck =
                if dice.chance(700) { None } else { Some(dice.below(SEATS as u64) as ControllerSeat) };
            let lasts = dice.span(Nanos::from_micros(50), LEASE.times(3)).min(FAULTS_END - at);
            let is_down = dice.chance(400);
            (at, struck, if is_down { StoreFailure::Down { lasts } } else { StoreFailure::Cut { lasts } })
        };
        (0..count).map(one).collect()
    }

    pub(super) fn fails(&mut self, now: Nanos, seat: ControllerSeat, failure: StoreFailure) {
        let (until, lasts) = match failure {
            StoreFailure::Down { lasts } => (&mut self.down_until, lasts),
            StoreFailure::Cut { lasts } => (&mut self.cut_until[seat], lasts),
        };
        *until = (*until).max(now + lasts);
    }

    /// How long a call, or an answer, of this controller is on its way; `None` if it is lost.
    pub(super) fn way(&mut self, now: Nanos, seat: ControllerSeat) -> Option<Nanos> {
        let is_lost = now < FAULTS_END && self.dice.chance(LOST);
        let way = self.dice.span(Nanos(500), Nanos(60_000));
        (!is_lost && now >= self.cut_until[seat]).then_some(way)
    }

    /// A process asks for the lease, or gives it up. Whether it holds it; `None` if the store is silent.
    pub(super) fn asked(
        &mut self,
        now: Nanos,
        seat: ControllerSeat,
        process: u32,
        ends: bool,
    ) -> Option<bool> {
        if now < self.down_until || now < self.cut_until[seat] {
            return None;
        }
        let holds = self.granted.is_none_or(|(by, until)| by == process || until <= now);
        if holds {
            self.granted = (!ends).then_some((process, now + LEASE));
        }
        Some(holds && !ends)
    }

    /// The store's answer to the call that left at `sent` is there.
    pub(super) fn answered(&mut self, seat: ControllerSeat, sent: Nanos, holds: bool) {
        let known = &mut self.known[seat];
        *known = if holds { (*known).max(Some(sent)) } else { None };
    }

    /// A process ended; the next one knows nothing.
    pub(super) fn forgets(&mut self, seat: ControllerSeat) {
        self.known[seat] = None;
    }

    /// What a controller knows of the lease.
    pub(super) fn lease(&self, now: Nanos, seat: ControllerSeat) -> HeldLease {
        let asked = self.known[seat].filter(|asked| now < *asked + LEASE);
        HeldLease { is_held: asked.is_some(), asked: asked.unwrap_or_default() }
    }
}
