//! The same code under loom: every interleaving within a bound on preemptions, and every reordering that
//! the memory orders allow. Loom also checks a cell's task for data races.

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
use sluice_rendezvous::{Counter, LineWord, Memory, Note};

use crate::ledger::Ledger;
use crate::mistakes::{Mistake, Planted};
use crate::programs::{
    Op, Raw, Scene, ranked, taken_in_one_cell, tasks_over_a_lap, tokens_over_a_lap, two_and_two,
    two_over_a_lap, with_a_sweep, with_a_sweep_of_tasks, with_two_sweeps,
};

/// How often a thread may be preempted.
const PREEMPTIONS: usize = 2;

/// The memory orders in use. The C program's operations that return a value give stronger orders than
/// these.
#[derive(Clone, Copy, Debug)]
struct Orders {
    look: Ordering,
    line: Ordering,
    word: Ordering,
    exchange: Ordering,
    count: Ordering,
}

const RIGHT: Orders = Orders { look: Acquire, line: AcqRel, word: Acquire, exchange: AcqRel, count: AcqRel };

/// Runs a scene in all ways, and returns how many there were.
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
        shared.ends(&scene);
    });
    played.load(Relaxed)
}

struct Shared {
    tokens: Vec<AtomicU32>,
    tasks: Vec<AtomicU32>,
    line: AtomicU64,
    released: Vec<AtomicU32>,
    words: Vec<AtomicU64>,
    /// Cells that loom watches for races, with the values beside them, so that no unsafe code is needed.
    data: Vec<[(UnsafeCell<()>, Plain); 2]>,
    orders: Orders,
    ledger: Mutex<Ledger>,
}

impl Shared {
    fn new(scene: &Scene, orders: Orders) -> Self {
        let (ring, rings) = (scene.ring, scene.rules().count());
        let part = || (UnsafeCell::new(()), Plain::new(u32::MAX));
        let numbers = || (0..rings).map(|_| AtomicU32::new(scene.start)).collect();
        let released = |part| AtomicU32::new(ring.given_back(scene.start, part % ring.parts()));
        Self {
            tokens: numbers(),
            tasks: numbers(),
            line: AtomicU64::new(0),
            released: (0..ring.parts() * rings).map(released).collect(),
            words: (0..ring.cells() * rings).map(|_| AtomicU64::new(0)).collect(),
            data: (0..ring.cells() * rings).map(|_| [part(), part()]).collect(),
            orders,
            ledger: Mutex::new(scene.ledger()),
        }
    }

    fn run(&self, scene: &Scene, program: &[Op], mistake: Option<Mistake>) {
        for op in program {
            let mut sweep = None;
            loop {
                let Ok(over) = op.run(scene.rules(), &Planted::new(self, scene.ring, mistake), &mut sweep);
                if over {
                    break;
                }
            }
        }
    }

    /// Checks that the line counts what the rings hold.
    fn ends(&self, scene: &Scene) {
        let line = LineWord(self.line.load(Relaxed));
        for (ring, (tokens, tasks)) in self.tokens.iter().zip(&self.tasks).enumerate() {
            let balance = tokens.load(Relaxed).wrapping_sub(tasks.load(Relaxed)) as i32;
            let counted = scene.rules().counted(line, ring).unwrap_or(balance);
            assert_eq!(counted, balance, "the line is wrong about ring {ring}");
        }
    }

    fn count(&self, of: Counter) -> &AtomicU32 {
        match of {
            Counter::Tokens(ring) => &self.tokens[ring],
            Counter::Tasks(ring) => &self.tasks[ring],
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

    fn line(&self) -> Result<LineWord, Infallible> {
        Ok(LineWord(self.line.load(Relaxed)))
    }

    fn change_line(&self, was: LineWord, to: LineWord) -> Result<LineWord, Infallible> {
        let changed = self.line.compare_exchange(was.0, to.0, self.orders.line, Relaxed);
        Ok(LineWord(changed.unwrap_or_else(|found| found)))
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

    fn set_line(&self, line: LineWord) -> Result<(), Infallible> {
        self.line.store(line.0, Relaxed);
        Ok(())
    }

    fn set_word(&self, cell: usize, word: u64) -> Result<(), Infallible> {
        self.words[cell].store(word, Relaxed);
        Ok(())
    }
}

/// The scene without one of its tasks.
fn one_task(mut scene: Scene) -> Scene {
    scene.cpus.pop();
    scene
}

/// The scene without one of its tokens, so that loom terminates.
fn small(mut scene: Scene) -> Scene {
    scene.cpus.remove(1);
    scene
}

#[test]
fn no_reordering_within_two_preemptions_loses_doubles_or_tears() {
    let scenes = [
        ("2 tokens and 2 tasks on a ring of 2", two_and_two()),
        ("2 CPUs over a lap of a ring of 8", two_over_a_lap()),
        ("a token, 2 tasks and a sweep of tokens", small(with_a_sweep())),
        ("a token, 2 tasks and a sweep of tasks", small(with_a_sweep_of_tasks())),
        ("2 ranks and a task", one_task(ranked(4))),
        ("tokens that are taken early, over a lap", taken_in_one_cell()),
        ("2 CPUs over a lap of the tasks' ring", tasks_over_a_lap()),
        ("2 CPUs over a lap of a rank's ring", tokens_over_a_lap()),
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
        // An early taker has made no check: only the line orders it after the check of the entry that it
        // takes.
        ("the line", Orders { line: Relaxed, ..RIGHT }, taken_in_one_cell()),
    ];
    for (what, orders, scene) in weaker {
        let ended = catch_unwind(AssertUnwindSafe(|| play(&scene, orders, None)));
        assert!(ended.is_err(), "{what} without order is not found");
    }
}

/// A pass that tries several numbers while others complete a lap needs more preemptions than loom can
/// explore; the other checker finds that mistake.
#[test]
fn what_is_planted_is_found_under_loom_too() {
    let scenes = [one_task(ranked(4)), two_and_two(), two_over_a_lap(), small(with_a_sweep()), two_sweeps()];
    let found = |mistake| {
        scenes
            .iter()
            .any(|scene| catch_unwind(AssertUnwindSafe(|| play(scene, RIGHT, Some(mistake)))).is_err())
    };
    let missed: Vec<Mistake> = Mistake::ALL.into_iter().filter(|mistake| !found(*mistake)).collect();
    assert_eq!(missed, [Mistake::WhoGoesRoundDoesNotLookAgain]);
}

/// Two sweeps, a token that is parked before, and a task.
fn two_sweeps() -> Scene {
    let mut scene = with_two_sweeps();
    scene.before = vec![Op::Token(0)];
    scene.cpus[0] = vec![Op::Task(0)];
    scene.cpus.remove(1);
    scene
}
