//! The rings between the dispatcher and a core: two rings of atomic words, in which each word has one
//! writer.
//!
//! To the core: entries, and a count of all entries ever given. From the core: entries, and in a cache line
//! of their own a cumulative count per priority, which is RingLeader's load feedback (§5.3). These counts
//! also publish the entries: their sum is the number of entries. A reader that loads the counts one by one
//! sees them at different moments. But it has acquired as many increments as their sum says, so the latest
//! of these increments stands behind at least as many entries.
//!
//! No entry may be lost, and readers do not confirm reads. An entry that comes back was read before, so a
//! ring with room for all that a core may hold is never overwritten; [`RingSender::give`] refuses more. The
//! agent's rings (`net::agent`) work alike, but may lose entries.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_host::orchestrator::{PRIORITIES, Priority};

use crate::error::CoresError;

/// A word shared by threads: each call is one atomic access.
pub trait SharedWord: Send + Sync {
    /// Zero.
    fn zero() -> Self;

    /// Loads the word.
    fn get(&self, order: Ordering) -> u64;

    /// Stores a value; each word has one writer.
    fn set(&self, word: u64, order: Ordering);
}

impl SharedWord for AtomicU64 {
    fn zero() -> Self {
        Self::new(0)
    }

    fn get(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn set(&self, word: u64, order: Ordering) {
        self.store(word, order);
    }
}

/// The dispatcher's ends of a core's rings.
pub type DispatcherEnds<W> = (RingSender<W>, NoticeReceiver<W>);
/// The core's.
pub type CoreEnds<W> = (RingReceiver<W>, Returner<W>);

/// Both rings of a core. They have room for `capacity` words that are at the core or on their way back.
/// Returns the dispatcher's ends and the core's.
pub fn rings<W: SharedWord>(capacity: usize) -> (DispatcherEnds<W>, CoreEnds<W>) {
    let down = Arc::new(ToCore { given: CacheLine(W::zero()), entries: entries(capacity) });
    let up = Arc::new(FromCore {
        counts: CacheLine(std::array::from_fn(|_| W::zero())),
        entries: entries(capacity),
    });
    let giver = RingSender { ring: Arc::clone(&down), given: 0, returned: 0 };
    let hearer = NoticeReceiver { ring: Arc::clone(&up), counts: [0; PRIORITIES], told: 0, heard: 0 };
    (
        (giver, hearer),
        (RingReceiver { ring: down, taken: 0 }, Returner { ring: up, counts: [0; PRIORITIES], told: 0 }),
    )
}

fn entries<W: SharedWord>(capacity: usize) -> Box<[W]> {
    (0..capacity.max(1)).map(|_| W::zero()).collect()
}

#[derive(Debug)]
#[repr(align(64))]
struct CacheLine<T>(T);

#[derive(Debug)]
struct ToCore<W> {
    given: CacheLine<W>,
    entries: Box<[W]>,
}

#[derive(Debug)]
struct FromCore<W> {
    /// A core's load feedback: how many requests ended, by priority.
    counts: CacheLine<[W; PRIORITIES]>,
    entries: Box<[W]>,
}

/// The dispatcher's end of the ring to a core.
#[derive(Debug)]
pub struct RingSender<W> {
    ring: Arc<ToCore<W>>,
    given: u64,
    returned: u64,
}

impl<W: SharedWord> RingSender<W> {
    /// Gives the core a word. Refused if the core already has as many words as the ring holds, counting
    /// those on their way back.
    #[inline]
    pub fn give(&mut self, word: u64) -> Result<(), CoresError> {
        let room = self.ring.entries.len() as u64;
        if self.given - self.returned == room {
            return Err(CoresError::RingFull(room));
        }
        self.ring.entries[(self.given % room) as usize].set(word, Relaxed);
        self.given += 1;
        self.ring.given.0.set(self.given, Release);
        Ok(())
    }

    /// Notes that a word has come back.
    #[inline]
    pub fn returned(&mut self) {
        debug_assert!(self.returned < self.given, "more came back than were given");
        self.returned += 1;
    }
}

/// The core's end of the ring to a core.
#[derive(Debug)]
pub struct RingReceiver<W> {
    ring: Arc<ToCore<W>>,
    taken: u64,
}

impl<W: SharedWord> RingReceiver<W> {
    /// Takes the next word; `None` if there is none.
    #[inline]
    pub fn take(&mut self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let entries = &self.ring.entries;
        let word = entries[(self.taken % entries.len() as u64) as usize].get(Relaxed);
        self.taken += 1;
        Some(word)
    }

    /// Whether the ring is empty now.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ring.given.0.get(Acquire) == self.taken
    }
}

/// The core's end of the ring to the dispatcher.
#[derive(Debug)]
pub struct Returner<W> {
    ring: Arc<FromCore<W>>,
    counts: [u64; PRIORITIES],
    told: u64,
}

impl<W: SharedWord> Returner<W> {
    /// Returns a word: a request of this priority has ended.
    #[inline]
    pub fn give_back(&mut self, priority: Priority, word: u64) {
        let entries = &self.ring.entries;
        entries[(self.told % entries.len() as u64) as usize].set(word, Relaxed);
        self.told += 1;
        let count = &mut self.counts[priority.index()];
        *count += 1;
        self.ring.counts.0[priority.index()].set(*count, Release);
    }
}

/// The dispatcher's end of the ring from a core.
#[derive(Debug)]
pub struct NoticeReceiver<W> {
    ring: Arc<FromCore<W>>,
    counts: [u64; PRIORITIES],
    told: u64,
    heard: u64,
}

impl<W: SharedWord> NoticeReceiver<W> {
    /// Reads the counts. Returns how many words can be read now.
    #[inline]
    pub fn refresh(&mut self) -> u64 {
        self.counts = std::array::from_fn(|priority| self.ring.counts.0[priority].get(Acquire));
        self.told = self.counts.iter().sum();
        self.told - self.heard
    }

    /// Takes the next of the words that [`Self::refresh`] reported.
    #[inline]
    pub fn take_ended(&mut self) -> Option<u64> {
        if self.heard == self.told {
            return None;
        }
        let entries = &self.ring.entries;
        let word = entries[(self.heard % entries.len() as u64) as usize].get(Relaxed);
        self.heard += 1;
        Some(word)
    }

    /// The counts at the last [`Self::refresh`]: requests that ended on the core, by priority.
    pub const fn counts(&self) -> &[u64; PRIORITIES] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ring_refuses_what_would_write_over_an_entry() {
        let ((mut giver, mut hearer), (mut taker, mut returner)) = rings::<AtomicU64>(2);
        giver.give(1).unwrap();
        giver.give(2).unwrap();
        assert!(matches!(giver.give(3), Err(CoresError::RingFull(2))));
        let word = taker.take().unwrap();
        returner.give_back(Priority::new(3).unwrap(), word);
        assert!(giver.give(3).is_err(), "it is on its way back");
        assert_eq!((hearer.refresh(), hearer.take_ended(), hearer.take_ended()), (1, Some(1), None));
        giver.returned();
        giver.give(3).unwrap();
        assert_eq!((taker.take(), taker.take(), taker.take()), (Some(2), Some(3), None));
    }

    proptest! {
        #[test]
        fn words_come_out_of_both_rings_in_order_and_counts_tell_their_priorities(
            capacity in 1_usize..5, steps in proptest::collection::vec((0_u8..3, 0_u8..8), 1..300)
        ) {
            let ((mut giver, mut hearer), (mut taker, mut returner)) = rings::<AtomicU64>(capacity);
            let (mut there, mut at_core, mut back) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
            let mut counts = [0; PRIORITIES];
            for (word, (what, priority)) in steps.into_iter().enumerate() {
                let word = word as u64;
                match what {
                    0 if there.len() + at_core.len() + back.len() < capacity => {
                        giver.give(word).unwrap();
                        there.push_back(word);
                    }
                    0 => prop_assert!(giver.give(word).is_err()),
                    1 => {
                        let taken = taker.take();
                        prop_assert_eq!(taken, there.pop_front());
                        at_core.extend(taken);
                        if let Some(ended) = at_core.pop_front() {
                            returner.give_back(Priority::new(priority).unwrap(), ended);
                            counts[usize::from(priority)] += 1;
                            back.push_back(ended);
                        }
                    }
                    _ => {
                        prop_assert_eq!(hearer.refresh(), back.len() as u64);
                        prop_assert_eq!(hearer.counts(), &counts);
                        while let Some(word) = hearer.take_ended() {
                            giver.returned();
                            prop_assert_eq!(Some(word), back.pop_front());
                        }
                    }
                }
            }
        }
    }
}
