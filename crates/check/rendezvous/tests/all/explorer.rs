//! Explores every interleaving, state by state.
//!
//! A step is one access of one CPU. For each step, the pass is run again from its start: a log supplies the
//! results of its earlier accesses, the next access is the step, and the access after it stops the run. So
//! a CPU's state is its log since its last check of the ring, and passes need not be written as state
//! machines. Visited states are stored as 128-bit hashes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use sluice_rendezvous::{CellState, Counter, LineWord, Memory, Note, Ring, Spot, SweepPass, Task, Token};

use crate::ledger::Ledger;
use crate::mistakes::{Mistake, Planted};
use crate::programs::{Op, Raw, Rules, Scene};

/// How many states were visited, and in how many orders they can occur.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) states: usize,
    /// The number of interleavings; saturating.
    pub(crate) paths: u128,
}

/// Explores all interleavings of a scene, or stops at the first one with an error.
pub(crate) fn explore(scene: &Scene, mistake: Option<Mistake>) -> Result<Seen, String> {
    let (one, mut state) = before(scene)?;
    state.cpus = vec![Cpu::default(); scene.cpus.len()];
    let mut all = Explorer { programs: scene.cpus.clone(), mistake, ..one };
    let paths = all.paths(&state).map_err(|why| format!("{why}, in {scene:?}"))?;
    Ok(Seen { states: all.seen.len(), paths })
}

/// The places of all entries after the scene's first part, which one CPU performs before the others start.
pub(crate) fn alone(scene: &Scene) -> Result<Ledger, String> {
    let (one, state) = before(scene)?;
    one.ends(&state)?;
    Ok(state.ledger)
}

fn before(scene: &Scene) -> Result<(Explorer, State), String> {
    let mut state = State::new(scene);
    let one = Explorer {
        rules: scene.rules(),
        programs: vec![scene.before.clone()],
        mistake: None,
        seen: HashMap::new(),
    };
    while let Some(next) = one.step(&state, 0)? {
        state = next;
    }
    Ok((one, state))
}

struct Explorer {
    rules: Rules,
    programs: Vec<Vec<Op>>,
    mistake: Option<Mistake>,
    /// How many paths lead on from each visited state.
    seen: HashMap<[u64; 2], u128>,
}

#[derive(Clone, Debug, Hash)]
struct State {
    shared: Shared,
    cpus: Vec<Cpu>,
    ledger: Ledger,
}

/// A CPU's position in its program, the results of its accesses, its reports, and its sweep as it was
/// before them.
#[derive(Clone, Debug, Default)]
struct Cpu {
    at: usize,
    log: Vec<u64>,
    told: usize,
    sweep: Option<SweepPass>,
    /// The position in the log from which results matter.
    matters: usize,
}

impl Hash for Cpu {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.at, self.told, self.sweep, &self.log[self.matters..]).hash(hasher);
    }
}

#[derive(Clone, Debug, Hash)]
struct Shared {
    tokens: Vec<u32>,
    tasks: Vec<u32>,
    line: LineWord,
    released: Vec<u32>,
    words: Vec<u64>,
    data: Vec<[u32; 2]>,
}

impl Explorer {
    fn paths(&mut self, state: &State) -> Result<u128, String> {
        let mark = mark(state);
        if let Some(paths) = self.seen.get(&mark) {
            return Ok(*paths);
        }
        let mut paths = 0u128;
        let mut over = true;
        for cpu in 0..self.programs.len() {
            if let Some(next) = self.step(state, cpu)? {
                paths = paths.saturating_add(self.paths(&next)?);
                over = false;
            }
        }
        if over {
            self.ends(state)?;
            paths = 1;
        }
        self.seen.insert(mark, paths);
        Ok(paths)
    }

    /// The state after a CPU's next access; `None` if the CPU has finished.
    fn step(&self, state: &State, cpu: usize) -> Result<Option<State>, String> {
        let before = &state.cpus[cpu];
        let Some(op) = self.programs[cpu].get(before.at) else { return Ok(None) };
        let mut next = state.clone();
        let turn = Turn {
            shared: RefCell::new(&mut next.shared),
            log: &before.log,
            at: Cell::new(0),
            result: Cell::new(None),
            notes: RefCell::default(),
        };
        let mut sweep = before.sweep;
        let ran = op.run(self.rules, &Planted::new(&turn, self.rules.ring, self.mistake), &mut sweep);
        let (result, notes) = (turn.result.get(), turn.notes.take());
        for note in &notes[before.told..] {
            next.ledger.take(*note)?;
        }
        let after = &mut next.cpus[cpu];
        match ran {
            Ok(true) => *after = Cpu { at: before.at + 1, ..Cpu::default() },
            Ok(false) => *after = Cpu { at: before.at, sweep, ..Cpu::default() },
            Err(Over) => {
                after.log.extend(result);
                if notes[after.told..].contains(&Note::Anew) {
                    after.matters = after.log.len();
                }
                after.told = notes.len();
            }
        }
        Ok(Some(next))
    }

    /// Checks the end: the waiting entries are those in cells between the two counts of each ring, all
    /// other cells were released, and the line counts the entries.
    fn ends(&self, state: &State) -> Result<(), String> {
        let (mut tokens, mut tasks) = (Vec::new(), Vec::new());
        for ring in 0..self.rules.count() {
            self.ring_ends(state, ring, &mut tokens, &mut tasks)?;
        }
        state.ledger.ends(&tokens, &tasks)
    }

    fn ring_ends(
        &self,
        state: &State,
        ring: usize,
        parked: &mut Vec<(Spot, Token)>,
        waiting: &mut Vec<(Spot, Task)>,
    ) -> Result<(), String> {
        let (shared, measures) = (&state.shared, self.rules.ring);
        let (tokens, tasks) = (shared.tokens[ring], shared.tasks[ring]);
        let balance = tokens.wrapping_sub(tasks) as i32;
        let numbers = |from: u32, count: i32| (0..count.max(0) as u32).map(move |at| from.wrapping_add(at));
        let cell = |number| ring * measures.cells() + measures.cell(number);
        for number in numbers(tasks, balance) {
            let word = shared.words[cell(number)];
            if measures.state(number, word) != Some(CellState::Token) {
                return Err(format!("token {number} is not in its cell: {state:?}"));
            }
            parked.push((Spot { ring, number }, Ring::token(word)));
        }
        for number in numbers(tokens, -balance) {
            if measures.state(number, shared.words[cell(number)]) != Some(CellState::Task) {
                return Err(format!("task {number} is not in its cell: {state:?}"));
            }
            waiting.push((Spot { ring, number }, Task(shared.data[cell(number)])));
        }
        let used = if balance > 0 { tasks } else { tokens };
        let parts = ring * measures.parts()..(ring + 1) * measures.parts();
        let differs = |(part, released): (usize, &u32)| {
            measures.beyond(*released, measures.given_back(used, part)) != 0
        };
        if shared.released[parts].iter().enumerate().any(differs) {
            return Err(format!("not all was given back: {state:?}"));
        }
        if self.rules.counted(shared.line, ring).is_some_and(|counted| counted != balance) {
            return Err(format!("the line is wrong about ring {ring}: {state:?}"));
        }
        Ok(())
    }
}

impl State {
    fn new(scene: &Scene) -> Self {
        let (ring, rings) = (scene.ring, scene.rules().count());
        let released = (0..ring.parts()).map(|part| ring.given_back(scene.start, part));
        Self {
            shared: Shared {
                tokens: vec![scene.start; rings],
                tasks: vec![scene.start; rings],
                line: LineWord::default(),
                released: released.collect::<Vec<_>>().repeat(rings),
                words: vec![0; ring.cells() * rings],
                data: vec![[u32::MAX; 2]; ring.cells() * rings],
            },
            cpus: vec![Cpu::default()],
            ledger: scene.ledger(),
        }
    }
}

fn mark(state: &State) -> [u64; 2] {
    [0u8, 1].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, state).hash(&mut hasher);
        hasher.finish()
    })
}

/// One CPU's step: replays its log, then performs one access.
struct Turn<'a> {
    shared: RefCell<&'a mut Shared>,
    log: &'a [u64],
    at: Cell<usize>,
    result: Cell<Option<u64>>,
    notes: RefCell<Vec<Note>>,
}

/// The step is over.
struct Over;

impl Turn<'_> {
    fn access(&self, access: impl FnOnce(&mut Shared) -> u64) -> Result<u64, Over> {
        let at = self.at.replace(self.at.get() + 1);
        if let Some(known) = self.log.get(at) {
            return Ok(*known);
        }
        if at > self.log.len() {
            return Err(Over);
        }
        let result = access(&mut self.shared.borrow_mut());
        self.result.set(Some(result));
        Ok(result)
    }
}

impl Shared {
    fn count(&mut self, of: Counter) -> &mut u32 {
        match of {
            Counter::Tokens(ring) => &mut self.tokens[ring],
            Counter::Tasks(ring) => &mut self.tasks[ring],
            Counter::Released(part) => &mut self.released[part],
        }
    }

    fn take(&mut self, of: Counter) -> u32 {
        let count = self.count(of);
        *count = count.wrapping_add(1);
        count.wrapping_sub(1)
    }
}

impl Memory for Turn<'_> {
    type Stop = Over;

    fn read(&self, of: Counter) -> Result<u32, Over> {
        self.access(|shared| (*shared.count(of)).into()).map(|value| value as u32)
    }

    fn take(&self, of: Counter) -> Result<u32, Over> {
        self.access(|shared| shared.take(of).into()).map(|value| value as u32)
    }

    fn take_if(&self, of: Counter, next: u32) -> Result<bool, Over> {
        let taken = self.access(|shared| {
            let is = *shared.count(of) == next;
            if is {
                shared.take(of);
            }
            is.into()
        })?;
        Ok(taken != 0)
    }

    fn line(&self) -> Result<LineWord, Over> {
        self.access(|shared| shared.line.0).map(LineWord)
    }

    fn change_line(&self, was: LineWord, to: LineWord) -> Result<LineWord, Over> {
        let changed = self.access(|shared| {
            let found = shared.line;
            if found == was {
                shared.line = to;
            }
            found.0
        })?;
        Ok(LineWord(changed))
    }

    fn word(&self, cell: usize) -> Result<u64, Over> {
        self.access(|shared| shared.words[cell])
    }

    fn exchange(&self, cell: usize, word: u64) -> Result<u64, Over> {
        self.access(|shared| std::mem::replace(&mut shared.words[cell], word))
    }

    fn empty(&self, cell: usize) -> Result<(), Over> {
        self.set_word(cell, 0)
    }

    fn write(&self, cell: usize, part: usize, value: u32) -> Result<(), Over> {
        self.access(|shared| {
            shared.data[cell][part] = value;
            0
        })
        .map(drop)
    }

    fn data(&self, cell: usize, part: usize) -> Result<u32, Over> {
        self.access(|shared| shared.data[cell][part].into()).map(|value| value as u32)
    }

    fn note(&self, note: Note) {
        self.notes.borrow_mut().push(note);
    }
}

impl Raw for Turn<'_> {
    fn set(&self, of: Counter, value: u32) -> Result<(), Over> {
        self.access(|shared| {
            *shared.count(of) = value;
            0
        })
        .map(drop)
    }

    fn set_line(&self, line: LineWord) -> Result<(), Over> {
        self.access(|shared| {
            shared.line = line;
            0
        })
        .map(drop)
    }

    fn set_word(&self, cell: usize, word: u64) -> Result<(), Over> {
        self.access(|shared| {
            shared.words[cell] = word;
            if word == 0 {
                // No pass may read these parts any more; clearing them merges states that differ only in
                // leftovers.
                shared.data[cell] = [u32::MAX; 2];
            }
            0
        })
        .map(drop)
    }
}

#[test]
fn a_scene_that_one_cpu_plays_has_one_path() {
    let mut scene = crate::programs::two_and_two();
    scene.cpus = vec![vec![Op::Token(0), Op::Task(0)]];
    assert_eq!(explore(&scene, None).expect("right").paths, 1);
}
