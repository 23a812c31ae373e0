//! How a worker ends that was told to stop: it tells the controller, finishes what it holds and what is on
//! its way to it, and stays for clients that still fetch a long reply.

use sluice_host::worker::{Worker, WorkerSettings};
use sluice_wire::Nanos;

/// How long a worker that ends waits for the controller to end its registration.
const LEAVE_PATIENCE: Nanos = Nanos::from_millis(2_000);
/// How long a worker stays after it last sent a part of a long reply, for a client that asks for more.
/// Clients ask again after pauses that begin with a thirty-second of their first timeout, and double. So four
/// requests may be lost in a row.
const FETCH_PATIENCE: Nanos = Nanos::from_millis(50);

/// A worker, or a lane, that ends.
pub(super) struct Draining {
    give_up: Nanos,
    /// Whether the controller has answered, or was given up.
    pub(super) let_go: bool,
    /// When the worker ends, whatever it holds.
    ends_at: Nanos,
}

/// How far a worker is that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drained {
    NotYet,
    /// It holds nothing, and nothing can come.
    All,
    /// Its time is over, and it holds so many tasks.
    OutOfTime(u32),
}

impl Draining {
    /// Begins to drain; the caller asks the controller to end the registration.
    pub(super) fn begin(now: Nanos, machine: &mut Worker, limit: Nanos) -> Self {
        machine.leave();
        Self { give_up: now + LEAVE_PATIENCE, let_go: false, ends_at: Nanos(now.0.saturating_add(limit.0)) }
    }

    /// Continues. `fetched_at` is when a part of a long reply was last sent.
    pub(super) fn turn(
        &mut self,
        now: Nanos,
        machine: &mut Worker,
        settings: &WorkerSettings,
        fetched_at: Option<Nanos>,
        dilation: u32,
    ) -> Drained {
        if !self.let_go && now >= self.give_up {
            self.let_go = true;
            machine.left(now, None);
        }
        let is_fetched = fetched_at.is_none_or(|at| now >= fetch_ends(at, dilation));
        match machine.is_done(now, settings) {
            true if is_fetched => Drained::All,
            _ if now >= self.ends_at => Drained::OutOfTime(machine.stats().held),
            _ => Drained::NotYet,
        }
    }

    /// When the worker has to look again, unless something else happens first.
    pub(super) fn next_turn(&self, now: Nanos, fetched_at: Option<Nanos>, dilation: u32) -> Nanos {
        let give_up = if self.let_go { self.ends_at } else { self.give_up };
        let fetched = fetched_at.map(|at| fetch_ends(at, dilation)).filter(|at| *at > now);
        fetched.unwrap_or(self.ends_at).min(give_up).min(self.ends_at)
    }
}

/// Tells why a worker ends with tasks.
pub(super) fn warn_out_of_time(name: &str, limit: Nanos, held: u32) {
    let s = limit.0 as f64 / 1e9;
    sluice_log::log!(
        DrainLimitReached,
        host = name,
        held,
        "{name}: it drained for {s} s (the limit), and ends with {held} tasks; clients try them again"
    );
}

fn fetch_ends(at: Nanos, dilation: u32) -> Nanos {
    at + FETCH_PATIENCE.times(dilation.into())
}
