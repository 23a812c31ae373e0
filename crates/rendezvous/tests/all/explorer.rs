//! Every interleaving, state by state.
//!
//! A step is one access of one CPU. A pass is run anew for each step: what its accesses so far gave stands in
//! a log, the next access is the step, and the one behind it ends the run. So a CPU's state is its log since
//! its last look at the ring, and no pass has to be written as a machine. States that were seen are known by
//! 128 bits of hash over all of it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use sluice_rendezvous::{Broom, CellState, Counter, Memory, Note, Ring, Task};

use crate::ledger::Ledger;
use crate::mistakes::{Mistake, Planted};
use crate::programs::{Op, Raw, Scene};

/// What was seen, and in how many orders it can come about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) states: usize,
    /// As many as these interleavings have; saturating.
    pub(crate) paths: u128,
}

/// Walks through all interleavings of a scene, or to the first that ends wrongly.
pub(crate) fn explore(scene: &Scene, mistake: Option<Mistake>) -> Result<Seen, String> {
    let mut state = State::new(scene);
    let one = Explorer {
        ring: scene.ring,
        programs: vec![scene.before.clone()],
        mistake: None,
        seen: HashMap::new(),
    };
    while let Some(next) = one.step(&state, 0)? {
        state = next;
    }
    state.cpus = vec![Cpu::default(); scene.cpus.len()];
    let mut all = Explorer { programs: scene.cpus.clone(), mistake, ..one };
    let paths = all.paths(&state).map_err(|why| format!("{why}, in {scene:?}"))?;
    Ok(Seen { states: all.seen.len(), paths })
}

struct Explorer {
    ring: Ring,
    programs: Vec<Vec<Op>>,
    mistake: Option<Mistake>,
    /// How many ways lead on from each state.
    seen: HashMap<[u64; 2], u128>,
}

#[derive(Clone, Debug, Hash)]
struct State {
    shared: Shared,
    cpus: Vec<Cpu>,
    ledger: Ledger,
}

/// Which op of its program a CPU is at, what its accesses gave, what it told, and its broom as it was before
/// them.
#[derive(Clone, Debug, Default)]
struct Cpu {
    at: usize,
    log: Vec<u64>,
    told: usize,
    broom: Option<Broom>,
    /// From where on its log matters for what comes.
    matters: usize,
}

impl Hash for Cpu {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.at, self.told, self.broom, &self.log[self.matters..]).hash(hasher);
    }
}

#[derive(Clone, Debug, Hash)]
struct Shared {
    tokens: u32,
    tasks: u32,
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

    /// The state after a CPU's next access; `None` if it has done all that it had to.
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
        let mut broom = before.broom;
        let ran = op.run(self.ring, &Planted::new(&turn, self.ring, self.mistake), &mut broom);
        let (result, notes) = (turn.result.get(), turn.notes.take());
        for note in &notes[before.told..] {
            next.ledger.take(*note)?;
        }
        let after = &mut next.cpus[cpu];
        match ran {
            Ok(true) => *after = Cpu { at: before.at + 1, ..Cpu::default() },
            Ok(false) => *after = Cpu { at: before.at, broom, ..Cpu::default() },
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

    /// What waits at the end is what lies in the cells between the two counts, and all other cells were given
    /// back.
    fn ends(&self, state: &State) -> Result<(), String> {
        let shared = &state.shared;
        let balance = shared.tokens.wrapping_sub(shared.tasks) as i32;
        let numbers =
            |from: u32, count: i32| (0..count.max(0) as u32).map(move |step| from.wrapping_add(step));
        let (mut tokens, mut tasks) = (Vec::new(), Vec::new());
        for number in numbers(shared.tasks, balance) {
            let word = shared.words[self.ring.cell(number)];
            if self.ring.state(number, word) != Some(CellState::Token) {
                return Err(format!("token {number} is not in its cell: {state:?}"));
            }
            tokens.push((number, Ring::token(word)));
        }
        for number in numbers(shared.tokens, -balance) {
            let cell = self.ring.cell(number);
            if self.ring.state(number, shared.words[cell]) != Some(CellState::Task) {
                return Err(format!("task {number} is not in its cell: {state:?}"));
            }
            tasks.push((number, Task(shared.data[cell])));
        }
        let used = if balance > 0 { shared.tasks } else { shared.tokens };
        let differs = |(part, released): (usize, &u32)| {
            self.ring.beyond(*released, self.ring.given_back(used, part)) != 0
        };
        if shared.released.iter().enumerate().any(differs) {
            return Err(format!("not all was given back: {state:?}"));
        }
        state.ledger.ends(&tokens, &tasks)
    }
}

impl State {
    fn new(scene: &Scene) -> Self {
        let ring = scene.ring;
        Self {
            shared: Shared {
                tokens: scene.start,
                tasks: scene.start,
                released: (0..ring.parts()).map(|part| ring.given_back(scene.start, part)).collect(),
                words: vec![0; ring.cells()],
                data: vec![[u32::MAX; 2]; ring.cells()],
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

/// One CPU's turn: what it did is told from its log, one access is done.
struct Turn<'a> {
    shared: RefCell<&'a mut Shared>,
    log: &'a [u64],
    at: Cell<usize>,
    result: Cell<Option<u64>>,
    notes: RefCell<Vec<Note>>,
}

/// The turn is over.
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
            Counter::Tokens => &mut self.tokens,
            Counter::Tasks => &mut self.tasks,
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

    fn set_word(&self, cell: usize, word: u64) -> Result<(), Over> {
        self.access(|shared| {
            shared.words[cell] = word;
            if word == 0 {
                // Nobody may read them any more; and what is left over shall make no states of its own.
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
