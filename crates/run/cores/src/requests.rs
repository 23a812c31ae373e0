//! The table of requests; a request's number fits into a word of a ring.
//!
//! A request has one owner at a time: the dispatcher, until the number goes into a core's ring; then the
//! core, until the number comes out of the other ring. Each request is behind a lock only because the
//! compiler requires one; no thread ever waits for it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_wire::Nanos;

/// A table of places for requests of the caller's type.
#[derive(Debug)]
pub struct RequestTable<R> {
    places: Arc<[RequestPlace<R>]>,
}

#[derive(Debug, Default)]
struct RequestPlace<R> {
    request: Mutex<R>,
    /// When the core began the request and when it finished it. The core writes both, and its ring
    /// publishes them.
    began: AtomicU64,
    ended: AtomicU64,
}

impl<R> Clone for RequestTable<R> {
    fn clone(&self) -> Self {
        Self { places: Arc::clone(&self.places) }
    }
}

impl<R: Default> RequestTable<R> {
    /// A table with `places` places, each with a default request.
    pub fn new(places: usize) -> Self {
        Self { places: (0..places).map(|_| RequestPlace::default()).collect() }
    }
}

impl<R> RequestTable<R> {
    /// How many places there are.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// The request in a place, for its present owner. After a panic of the owner it is as the owner left
    /// it.
    pub fn at(&self, place: u32) -> MutexGuard<'_, R> {
        self.places[place as usize].request.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the core began the request in a place and when it finished it. Valid once the request has come
    /// back.
    pub fn times(&self, place: u32) -> (Nanos, Nanos) {
        let place = &self.places[place as usize];
        (Nanos(place.began.load(Relaxed)), Nanos(place.ended.load(Relaxed)))
    }

    pub(crate) fn record_start(&self, place: u32, at: Nanos) {
        self.places[place as usize].began.store(at.0, Relaxed);
    }

    pub(crate) fn record_end(&self, place: u32, at: Nanos) {
        self.places[place as usize].ended.store(at.0, Relaxed);
    }
}
