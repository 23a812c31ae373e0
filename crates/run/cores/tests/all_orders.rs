//! Both rings under loom: every interleaving of a dispatcher and a core, without a bound on preemptions,
//! and every reordering that the memory orders allow. Also deliberate mistakes, each of which loom must
//! find.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::model::Builder;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use sluice_cores::rings::{NoticeReceiver, Returner, RingReceiver, RingSender, SharedWord, rings};
use sluice_host::orchestrator::Priority;

/// Maps the memory orders that a word is asked for to those that it uses.
trait Orders: Send + Sync + 'static {
    fn of(order: Ordering) -> Ordering;
}

struct AsAsked;

impl Orders for AsAsked {
    fn of(order: Ordering) -> Ordering {
        order
    }
}

/// A mistake: the publishing store does not wait until the entry is written.
struct ReleasesNothing;

impl Orders for ReleasesNothing {
    fn of(order: Ordering) -> Ordering {
        if order == Ordering::Release { Ordering::Relaxed } else { order }
    }
}

/// A mistake: an entry may be read before its publication.
struct AcquiresNothing;

impl Orders for AcquiresNothing {
    fn of(order: Ordering) -> Ordering {
        if order == Ordering::Acquire { Ordering::Relaxed } else { order }
    }
}

struct LoomWord<O>(AtomicU64, std::marker::PhantomData<O>);

impl<O: Orders> SharedWord for LoomWord<O> {
    fn zero() -> Self {
        Self(AtomicU64::new(0), std::marker::PhantomData)
    }

    fn get(&self, order: Ordering) -> u64 {
        self.0.load(O::of(order))
    }

    fn set(&self, word: u64, order: Ordering) {
        self.0.store(word, O::of(order));
    }
}

/// The priority of a word. Neighbours differ, so that their counts are read at different moments.
fn priority(word: u64) -> Priority {
    Priority::new((word % 2) as u8 * 5).unwrap()
}

/// The core: takes the words that are there and gives them back, up to a number of times.
fn core<O: Orders>(
    taker: &mut RingReceiver<LoomWord<O>>,
    returner: &mut Returner<LoomWord<O>>,
    looks: usize,
    taken: &mut Vec<u64>,
) {
    for _ in 0..looks {
        if let Some(word) = taker.take() {
            taken.push(word);
            returner.give_back(priority(word), word);
        }
    }
}

fn take_ended<O: Orders>(
    giver: &mut RingSender<LoomWord<O>>,
    hearer: &mut NoticeReceiver<LoomWord<O>>,
    heard: &mut Vec<u64>,
) {
    hearer.refresh();
    while let Some(word) = hearer.take_ended() {
        giver.returned();
        heard.push(word);
    }
}

/// A dispatcher gives `words` words to a core with room for `capacity`, and listens in between. Returns how
/// many interleavings were explored.
fn play<O: Orders>(capacity: usize, words: u64, looks: usize) -> usize {
    let played = Plain::new(AtomicUsize::new(0));
    let count = Plain::clone(&played);
    Builder::new().check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let ((mut giver, mut hearer), (mut taker, mut returner)) = rings::<LoomWord<O>>(capacity);
        let core_thread = thread::spawn(move || {
            let mut taken = Vec::new();
            core(&mut taker, &mut returner, looks, &mut taken);
            (taker, returner, taken)
        });
        let (mut given, mut heard) = (Vec::new(), Vec::new());
        for word in 1..=words {
            if giver.give(word).is_ok() {
                given.push(word);
            }
            take_ended(&mut giver, &mut hearer, &mut heard);
        }
        let (mut taker, mut returner, mut taken) = core_thread.join().unwrap();
        core(&mut taker, &mut returner, capacity, &mut taken);
        take_ended(&mut giver, &mut hearer, &mut heard);
        assert_eq!(taken, given, "each word once, in order");
        assert_eq!(heard, given, "and back");
        let counts = hearer.counts();
        assert_eq!(counts.iter().sum::<u64>(), given.len() as u64);
        assert_eq!(counts[5], given.iter().filter(|word| *word % 2 == 1).count() as u64);
    });
    played.load(Ordering::Relaxed)
}

#[test]
fn nothing_is_lost_doubled_or_overtaken_in_any_order() {
    assert!(play::<AsAsked>(2, 2, 2) > 100);
}

#[test]
fn places_that_are_used_again_lose_nothing_in_any_order() {
    assert!(play::<AsAsked>(1, 2, 2) > 20);
}

#[test]
fn what_is_published_before_it_is_written_is_found() {
    assert!(catch_unwind(AssertUnwindSafe(|| play::<ReleasesNothing>(2, 2, 2))).is_err());
}

#[test]
fn what_is_read_before_it_is_published_is_found() {
    assert!(catch_unwind(AssertUnwindSafe(|| play::<AcquiresNothing>(2, 2, 2))).is_err());
}
