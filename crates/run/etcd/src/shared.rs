//! What the thread that speaks with etcd and the controllers share.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sluice_control::PodPlace;
use tokio::sync::Notify;

/// What a controller does when it begins to lead: it takes the places of all hosts that are stored.
pub type OnLead = Box<dyn FnMut(BTreeMap<String, PodPlace>) + Send>;

/// Whether this process leads, as far as etcd has said. Clones share what is known.
#[derive(Clone, Debug)]
pub struct EtcdLead(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    lease: Duration,
    known: Mutex<Known>,
    /// Places of hosts that etcd does not have yet.
    moves: Mutex<BTreeMap<String, Option<PodPlace>>>,
    ends: AtomicBool,
    pub(crate) bell: Notify,
}

#[derive(Clone, Debug, Default)]
struct Known {
    /// When the call left whose answer said that this process leads.
    leads_since: Option<Instant>,
    leader: String,
    /// Why etcd does not answer; empty if it does.
    lost: String,
}

impl EtcdLead {
    pub(crate) fn new(lease: Duration) -> Self {
        Self(Arc::new(Shared {
            lease,
            known: Mutex::default(),
            moves: Mutex::default(),
            ends: AtomicBool::new(false),
            bell: Notify::new(),
        }))
    }

    /// How long a leader may be silent.
    pub fn lease(&self) -> Duration {
        self.0.lease
    }

    /// How old the call is of which etcd's answer said that this process leads; `None` if it does not lead,
    /// or if its lease is over.
    pub fn age(&self) -> Option<Duration> {
        let since = lock(&self.0.known).leads_since?;
        Some(since.elapsed()).filter(|age| *age < self.0.lease)
    }

    /// The addresses of another process that leads; empty if none is known.
    pub fn leader(&self) -> String {
        lock(&self.0.known).leader.clone()
    }

    /// Why etcd does not answer; empty if it does.
    pub fn lost(&self) -> String {
        lock(&self.0.known).lost.clone()
    }

    /// Stores where hosts are now, as long as this process leads.
    pub fn store(&self, moves: Vec<(String, Option<PodPlace>)>) {
        if !moves.is_empty() {
            lock(&self.0.moves).extend(moves);
            self.0.bell.notify_one();
        }
    }
}

impl Shared {
    pub(crate) fn leads(&self, since: Instant) {
        *lock(&self.known) = Known { leads_since: Some(since), ..Known::default() };
    }

    pub(crate) fn leads_not(&self, leader: String) {
        *lock(&self.known) = Known { leader, ..Known::default() };
        lock(&self.moves).clear();
    }

    pub(crate) fn is_lost(&self, why: &str) {
        why.clone_into(&mut lock(&self.known).lost);
    }

    pub(crate) fn take_moves(&self) -> BTreeMap<String, Option<PodPlace>> {
        mem::take(&mut lock(&self.moves))
    }

    /// These could not be stored; newer ones count.
    pub(crate) fn put_back(&self, unstored: BTreeMap<String, Option<PodPlace>>) {
        let mut moves = lock(&self.moves);
        for (host, place) in unstored {
            moves.entry(host).or_insert(place);
        }
    }

    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
        self.bell.notify_one();
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

/// Nothing that can panic happens under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
