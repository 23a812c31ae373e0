//! The requests that are here, by number, so that a word names one.
//!
//! A request has one owner at a time: the dispatcher until its number goes into a core's ring, the core until
//! it comes out of the other. Each is behind a lock for the compiler's sake; nobody ever waits for one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_wire::Nanos;

/// Places for requests of the caller's type.
#[derive(Debug)]
pub struct RequestTable<R> {
    places: Arc<[RequestPlace<R>]>,
}

#[derive(Debug, Default)]
struct RequestPlace<R> {
    request: Mutex<R>,
    /// When its core began it, and when that was done with it; the core writes, and its ring publishes.
    began: AtomicU64,
    ended: AtomicU64,
}

impl<R> Clone for RequestTable<R> {
    fn clone(&self) -> Self {
        Self { places: Arc::clone(&self.places) }
    }
}

impl<R: Default> RequestTable<R> {
    /// So many places, each with a request that nobody has asked for.
    pub fn new(places: usize) -> Self {
        Self { places: (0..places).map(|_| RequestPlace::default()).collect() }
    }
}

impl<R> RequestTable<R> {
    /// How many places there are.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// The request in a place, for its present owner. One whose owner panicked is as it was left.
    pub fn at(&self, place: u32) -> MutexGuard<'_, R> {
        self.places[place as usize].request.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When its core began the request in a place, and when that was done with it, if that has come back.
    pub fn times(&self, place: u32) -> (Nanos, Nanos) {
        let place = &self.places[place as usize];
        (Nanos(place.began.load(Relaxed)), Nanos(place.ended.load(Relaxed)))
    }

    pub(crate) fn begins(&self, place: u32, at: Nanos) {
        self.places[place as usize].began.store(at.0, Relaxed);
    }

    pub(crate) fn ends(&self, place: u32, at: Nanos) {
        self.places[place as usize].ended.store(at.0, Relaxed);
    }
}
