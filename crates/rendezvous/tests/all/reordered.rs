//! The same code under loom: every interleaving within a bound on preemptions, and besides every reordering
//! that the asked orders allow. A cell's task is checked for races: written by one while another reads it.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::AtomicU32 as Plain;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed};
use loom::sync::atomic::{AtomicU32, AtomicU64};
use loom::thread;
use sluice_rendezvous::{Counter, Memory, Note};

use crate::ledger::Ledger;
use crate::mistakes::{Mistake, Planted};
use crate::programs::{
    Op, Raw, Scene, two_and_two, two_over_a_lap, with_a_broom, with_a_broom_of_tasks, with_two_brooms,
};

/// How often a thread may be interrupted by another while it could go on.
const PREEMPTIONS: usize = 2;

/// Which orders are asked for: the program's operations with a value give more than these.
#[derive(Clone, Copy, Debug)]
struct Orders {
    look: Ordering,
    word: Ordering,
    exchange: Ordering,
    count: Ordering,
}

const RIGHT: Orders = Orders { look: Acquire, word: Acquire, exchange: AcqRel, count: AcqRel };

/// Plays a scene in all ways, and says how many there were.
fn play(scene: &Scene, orders: Orders, mistake: Option<Mistake>) -> usize {
    let played = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (scene, count) = (scene.clone(), played.clone());
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.max_branches = 10_000;
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        let shared = Arc::new(Shared::new(&scene, orders));
        shared.run(&scene, &scene.before, None);
        let (mine, others) = scene.cpus.split_first().expect("somebody");
        let others: Vec<_> = others
            .iter()
            .map(|program| {
                let (shared, scene, program) = (shared.clone(), scene.clone(), program.clone());
                thread::spawn(move || shared.run(&scene, &program, mistake))
            })
            .collect();
        shared.run(&scene, mine, mistake);
        for other in others {
            other.join().expect("no panic");
        }
    });
    played.load(Relaxed)
}

struct Shared {
    tokens: AtomicU32,
    tasks: AtomicU32,
    released: Vec<AtomicU32>,
    words: Vec<AtomicU64>,
    /// Watched for races, with the values beside it: nothing here needs to be unsafe.
    data: Vec<[(UnsafeCell<()>, Plain); 2]>,
    orders: Orders,
    ledger: Mutex<Ledger>,
}

impl Shared {
    fn new(scene: &Scene, orders: Orders) -> Self {
        let ring = scene.ring;
        let part = || (UnsafeCell::new(()), Plain::new(u32::MAX));
        Self {
            tokens: AtomicU32::new(scene.start),
            tasks: AtomicU32::new(scene.start),
            released: (0..ring.parts())
                .map(|part| AtomicU32::new(ring.given_back(scene.start, part)))
                .collect(),
            words: (0..ring.cells()).map(|_| AtomicU64::new(0)).collect(),
            data: (0..ring.cells()).map(|_| [part(), part()]).collect(),
            orders,
            ledger: Mutex::new(scene.ledger()),
        }
    }

    fn run(&self, scene: &Scene, program: &[Op], mistake: Option<Mistake>) {
        for op in program {
            let mut broom = None;
            loop {
                let Ok(over) = op.run(scene.ring, &Planted::new(self, scene.ring, mistake), &mut broom);
                if over {
                    break;
                }
            }
        }
    }

    fn count(&self, of: Counter) -> &AtomicU32 {
        match of {
            Counter::Tokens => &self.tokens,
            Counter::Tasks => &self.tasks,
            Counter::Released(part) => &self.released[part],
        }
    }
}

impl Memory for Shared {
    type Stop = Infallible;

    fn read(&self, of: Counter) -> Result<u32, Infallible> {
        Ok(self.count(of).load(self.orders.look))
    }

    fn take(&self, of: Counter) -> Result<u32, Infallible> {
        Ok(self.count(of).fetch_add(1, self.orders.count))
    }

    fn take_if(&self, of: Counter, next: u32) -> Result<bool, Infallible> {
        let count = self.orders.count;
        Ok(self.count(of).compare_exchange(next, next.wrapping_add(1), count, Relaxed).is_ok())
    }

    fn word(&self, cell: usize) -> Result<u64, Infallible> {
        Ok(self.words[cell].load(self.orders.word))
    }

    fn exchange(&self, cell: usize, word: u64) -> Result<u64, Infallible> {
        Ok(self.words[cell].swap(word, self.orders.exchange))
    }

    fn empty(&self, cell: usize) -> Result<(), Infallible> {
        self.set_word(cell, 0)
    }

    fn write(&self, cell: usize, part: usize, value: u32) -> Result<(), Infallible> {
        let (watched, held) = &self.data[cell][part];
        watched.with_mut(|_| held.store(value, Relaxed));
        Ok(())
    }

    fn data(&self, cell: usize, part: usize) -> Result<u32, Infallible> {
        let (watched, held) = &self.data[cell][part];
        Ok(watched.with(|_| held.load(Relaxed)))
    }

    fn note(&self, note: Note) {
        let noted = self.ledger.lock().expect("nobody panics with it").take(note);
        noted.unwrap_or_else(|why| panic!("{why}"));
    }
}

impl Raw for Shared {
    fn set(&self, of: Counter, value: u32) -> Result<(), Infallible> {
        self.count(of).store(value, Relaxed);
        Ok(())
    }

    fn set_word(&self, cell: usize, word: u64) -> Result<(), Infallible> {
        self.words[cell].store(word, Relaxed);
        Ok(())
    }
}

/// Without one of the tokens, so that loom comes to an end.
fn small(mut scene: Scene) -> Scene {
    scene.cpus.remove(1);
    scene
}

#[test]
fn no_reordering_within_two_preemptions_loses_doubles_or_tears() {
    let scenes = [
        ("2 tokens and 2 tasks on a ring of 2", two_and_two()),
        ("2 CPUs over a lap of a ring of 8", two_over_a_lap()),
        ("a token, 2 tasks and a broom of tokens", small(with_a_broom())),
        ("a token, 2 tasks and a broom of tasks", small(with_a_broom_of_tasks())),
    ];
    for (name, scene) in scenes {
        println!("{name}: {} ways", play(&scene, RIGHT, None));
    }
}

#[test]
fn every_order_that_is_asked_for_is_needed() {
    let weaker = [
        ("a look", Orders { look: Relaxed, ..RIGHT }, two_over_a_lap()),
        ("a word that was found", Orders { word: Relaxed, ..RIGHT }, two_and_two()),
        ("a word that is left", Orders { exchange: Relaxed, ..RIGHT }, two_and_two()),
        ("a count", Orders { count: Relaxed, ..RIGHT }, two_over_a_lap()),
    ];
    for (what, orders, scene) in weaker {
        let ended = catch_unwind(AssertUnwindSafe(|| play(&scene, orders, None)));
        assert!(ended.is_err(), "{what} without order is not found");
    }
}

/// Who goes round again and again while others go round the ring takes more preemptions than loom gets
/// through: the other checker finds that.
#[test]
fn what_is_planted_is_found_under_loom_too() {
    let scenes = [two_and_two(), two_over_a_lap(), small(with_a_broom()), two_brooms()];
    let found = |mistake| {
        scenes
            .iter()
            .any(|scene| catch_unwind(AssertUnwindSafe(|| play(scene, RIGHT, Some(mistake)))).is_err())
    };
    let missed: Vec<Mistake> = Mistake::ALL.into_iter().filter(|mistake| !found(*mistake)).collect();
    assert_eq!(missed, [Mistake::WhoGoesRoundDoesNotLookAgain]);
}

/// Two brooms, a token that is parked before, and a task.
fn two_brooms() -> Scene {
    let mut scene = with_two_brooms();
    scene.before = vec![Op::Token(0)];
    scene.cpus[0] = vec![Op::Task(0)];
    scene.cpus.remove(1);
    scene
}
