//! The costs of a server's cores, compared with the least possible ones.
//!
//! *Rings*: a word is given to a core on another thread and comes back. The baseline is two bare rings with
//! one producer and one consumer, which publish a count and confirm reads. Both sides have equally many
//! words under way; threads are pinned to cores of their own if there are two. *Yields*: a coroutine yields
//! and is resumed. The baseline is the bare switch of the library. The clock of the comparison stands
//! still, since a slice reads the clock twice; the cost of the reads is reported beside it.
//!
//! Both sides take turns in one run; the result is the median of the turns' ratios. Prints one line of
//! JSON.

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Instant;

use corosensei::Coroutine;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sluice_cores::rings::rings;
use sluice_cores::{Coroutines, Handler, RequestTable, Yielding};
use sluice_host::orchestrator::Priority;
use sluice_wire::Nanos;

const TURNS: usize = 31;
const WORDS_A_TURN: u64 = 200_000;
const YIELDS_A_TURN: u32 = 200_000;
/// Words under way: as many as a core may hold at depth 4.
const WINDOW: usize = 32;

fn main() {
    let (pinned, rings) = in_turns(bare_rings, our_rings);
    let (bare_ns, ours_ns, ratio) = rings;
    let mut bare = bare_coroutine();
    let standing = Serving::new(|| Nanos(0));
    let telling = Serving::new(now);
    let (switch_ns, yield_ns, yields) = weighed(|| switches(&mut bare), standing.yields());
    let (_, clocked_ns, _) = weighed(|| switches(&mut bare_coroutine()), telling.yields());
    let rings = format!(r#""bare_ring_ns":{bare_ns:.2},"rings_ns":{ours_ns:.2},"rings_ratio":{ratio:.3}"#);
    let of_yields =
        format!(r#""switch_ns":{switch_ns:.2},"yield_ns":{yield_ns:.2},"yield_ratio":{yields:.3}"#);
    let clocked = format!(r#""yield_with_clock_ns":{clocked_ns:.2}"#);
    println!(r#"{{"bench":"cores","pinned":{pinned},{rings},{of_yields},{clocked}}}"#);
}

type Weighed = (f64, f64, f64);

/// Nanoseconds per step on both sides, and the median of their ratios.
fn weighed(mut bare: impl FnMut() -> f64, mut ours: impl FnMut() -> f64) -> Weighed {
    let turns: Vec<(f64, f64)> = (0..TURNS).map(|_| (bare(), ours())).collect();
    let of = |value: fn(&(f64, f64)) -> f64| median(turns.iter().map(value));
    (of(|turn| turn.0), of(|turn| turn.1), of(|turn| turn.1 / turn.0))
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut of: Vec<f64> = of.collect();
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn in_turns(bare: fn(bool) -> f64, ours: fn(bool) -> f64) -> (bool, Weighed) {
    let pinned = pin(0);
    (pinned, weighed(|| bare(pinned), || ours(pinned)))
}

/// Pins this thread to one of the cores that it may use. Returns whether there are two.
fn pin(nth: usize) -> bool {
    let Ok(allowed) = sched_getaffinity(None) else { return false };
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    // The first thread is pinned to the first core. The second thread was started by it, so it sees only
    // that core as allowed.
    let core = if nth == 0 { cores.first().copied() } else { Some(nth) };
    let mut own = CpuSet::new();
    core.inspect(|core| own.set(*core));
    core.is_some() && sched_setaffinity(None, &own).is_ok() && thread::available_parallelism().is_ok()
}

/// A plain ring with one producer and one consumer.
struct BareRing {
    head: Line,
    tail: Line,
    entries: [AtomicU64; WINDOW],
}

#[repr(align(64))]
struct Line(AtomicU64);

impl BareRing {
    fn new() -> Self {
        let line = || Line(AtomicU64::new(0));
        Self { head: line(), tail: line(), entries: [const { AtomicU64::new(0) }; WINDOW] }
    }

    fn push(&self, word: u64) -> bool {
        let tail = self.tail.0.load(Relaxed);
        if tail - self.head.0.load(Acquire) == WINDOW as u64 {
            return false;
        }
        self.entries[tail as usize % WINDOW].store(word, Relaxed);
        self.tail.0.store(tail + 1, Release);
        true
    }

    fn pop(&self) -> Option<u64> {
        let head = self.head.0.load(Relaxed);
        if head == self.tail.0.load(Acquire) {
            return None;
        }
        let word = self.entries[head as usize % WINDOW].load(Relaxed);
        self.head.0.store(head + 1, Release);
        Some(word)
    }
}

/// Sends all words of a turn over two bare rings; returns nanoseconds per word.
fn bare_rings(pinned: bool) -> f64 {
    let rings = Arc::new([BareRing::new(), BareRing::new()]);
    let (there, over) = (Arc::clone(&rings), Arc::new(AtomicBool::new(false)));
    let stop = Arc::clone(&over);
    let core = thread::spawn(move || {
        let _ = pinned && pin(1);
        while !stop.load(Relaxed) {
            match there[0].pop() {
                Some(word) => while !there[1].push(word) {},
                None => spin_loop(),
            }
        }
    });
    let (mut sent, mut back) = (0, 0);
    let began = Instant::now();
    while back < WORDS_A_TURN {
        while sent < WORDS_A_TURN && sent - back < WINDOW as u64 && rings[0].push(sent) {
            sent += 1;
        }
        while let Some(word) = rings[1].pop() {
            assert_eq!(word, back);
            back += 1;
        }
    }
    let took = began.elapsed();
    over.store(true, Relaxed);
    core.join().expect("no panic");
    took.as_nanos() as f64 / WORDS_A_TURN as f64
}

/// Sends all words of a turn over a core's rings; returns nanoseconds per word.
fn our_rings(pinned: bool) -> f64 {
    let ((mut giver, mut hearer), (mut taker, mut returner)) = rings::<AtomicU64>(WINDOW);
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let priorities = [1, 5].map(|number| Priority::new(number).expect("legal"));
    let core = thread::spawn(move || {
        let _ = pinned && pin(1);
        while !stop.load(Relaxed) {
            match taker.take() {
                Some(word) => returner.give_back(priorities[word as usize % 2], word),
                None => spin_loop(),
            }
        }
    });
    let (mut sent, mut back) = (0, 0);
    let began = Instant::now();
    while back < WORDS_A_TURN {
        while sent < WORDS_A_TURN && giver.give(sent).is_ok() {
            sent += 1;
        }
        hearer.refresh();
        while let Some(word) = hearer.take_ended() {
            giver.returned();
            assert_eq!(word, back);
            back += 1;
        }
    }
    let took = began.elapsed();
    over.store(true, Relaxed);
    core.join().expect("no panic");
    took.as_nanos() as f64 / WORDS_A_TURN as f64
}

/// Yields for ever.
struct Yields;

impl Handler<()> for Yields {
    fn handle(&mut self, _: &RequestTable<()>, _: u32, yielding: &Yielding<'_>) -> Nanos {
        loop {
            yielding.pause_now();
        }
    }
}

struct Serving(Coroutines<(), Yields>);

impl Serving {
    fn new(clock: fn() -> Nanos) -> Self {
        Self(Coroutines::new(RequestTable::new(1), Arc::new(|| Yields), clock))
    }

    fn yields(mut self) -> impl FnMut() -> f64 {
        let mut coroutine = self.0.idle().expect("there is a stack");
        move || {
            timed(|| {
                let ran = self.0.run(&mut coroutine, 0, Nanos::from_micros(5));
                assert!(black_box(ran).ended.is_none());
            })
        }
    }
}

fn bare_coroutine() -> Coroutine<u32, u32, ()> {
    Coroutine::new(|yielder, first| {
        let mut word = first;
        loop {
            word = yielder.suspend(word);
        }
    })
}

fn switches(coroutine: &mut Coroutine<u32, u32, ()>) -> f64 {
    timed(|| {
        assert!(black_box(coroutine.resume(7)).as_yield().is_some());
    })
}

fn timed(mut step: impl FnMut()) -> f64 {
    let began = Instant::now();
    for _ in 0..YIELDS_A_TURN {
        step();
    }
    began.elapsed().as_nanos() as f64 / f64::from(YIELDS_A_TURN)
}

fn now() -> Nanos {
    static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    Nanos(BEGAN.get_or_init(Instant::now).elapsed().as_nanos() as u64)
}
