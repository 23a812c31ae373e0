//! A switch that does what the table operations say, and panics where the protocol is broken: a generation
//! raised before the worker was closed and drained, opened before its counters were reset, used twice, a ring
//! that overflows, an index given away while tokens of its last holder are parked, a task that comes to a
//! worker which does not serve its type.

use std::collections::{BTreeMap, VecDeque};

use sluice_wire::serving::Labels;
use sluice_wire::tables::{
    ClientRow, Feed, RingCounts, RingRow, ServerRow, ServerState, Shape, SliceRow, SliceState, TableAnswer,
    TableOp, WorkerRow, WorkerState,
};
use sluice_wire::{Epoch, Generation, Psn, Serial, SliceId, Sweep, SweepOf, TaskType, Term, WorkerId};

/// Where the ring's counters start: they wrap early in every test.
const RING_START: Serial = Serial(u32::MAX - 8);

/// Room for so many servers.
const SERVERS: usize = 2;

pub(crate) struct Switch {
    pub(crate) shape: Shape,
    pub(crate) types: Vec<Option<SliceId>>,
    pub(crate) needs: Vec<Labels>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) clients: Vec<Option<ClientRow>>,
    pub(crate) servers: [Option<(ServerRow, Psn)>; SERVERS],
    pub(crate) rings: Vec<[Option<RingRow>; SERVERS]>,
    pub(crate) copies: Vec<u16>,
    brooms: Vec<Sweep>,
    opened: BTreeMap<(WorkerId, Generation), u64>,
    /// Which types each life of a worker serves, where a test says so.
    pub(crate) serves: BTreeMap<u64, Vec<TaskType>>,
}

pub(crate) struct Slice {
    pub(crate) row: SliceRow,
    pub(crate) ring: VecDeque<(WorkerId, Generation)>,
    /// Of the tasks that wait, the type where a test says it.
    pub(crate) tasks: VecDeque<Option<TaskType>>,
    tasks_out: [Serial; 4],
    tokens_in: Serial,
    tokens_out: Serial,
}

pub(crate) struct Worker {
    pub(crate) row: Option<WorkerRow>,
    pub(crate) generation_out: Generation,
    pub(crate) seen: Serial,
    pub(crate) sent: Serial,
    last_life: u64,
    /// Passes that were let in may still be under way; those that matched the last generation may.
    entering: bool,
    matching: bool,
    raised: bool,
    reset: bool,
}

impl Switch {
    pub(crate) fn new(epoch: u32, workers: u16, tokens_per_slice: u32) -> Self {
        let shape = Shape {
            epoch: Epoch(epoch),
            term: Term(0),
            workers,
            clients: 4,
            slices: 3,
            types: 8,
            tasks_per_slice: 64,
            tokens_per_slice,
            replay_cells: 16,
            servers: SERVERS as u16,
            feed: Feed::TOKENS,
            classes: 1,
            kinds: 1,
            plain_writes: false,
        };
        let slice = || Slice {
            row: SliceRow::default(),
            ring: VecDeque::new(),
            tasks: VecDeque::new(),
            tasks_out: [RING_START; 4],
            tokens_in: RING_START,
            tokens_out: RING_START,
        };
        let worker = || Worker {
            row: None,
            generation_out: Generation(0),
            seen: Serial(0),
            sent: Serial(0),
            last_life: 0,
            entering: false,
            matching: false,
            raised: false,
            reset: false,
        };
        Self {
            shape,
            types: vec![None; usize::from(shape.types)],
            needs: vec![Labels::NONE; usize::from(shape.types)],
            slices: (0..shape.slices).map(|_| slice()).collect(),
            workers: (0..workers).map(|_| worker()).collect(),
            clients: vec![None; usize::from(shape.clients)],
            brooms: Vec::new(),
            servers: [None; SERVERS],
            rings: vec![[None; SERVERS]; usize::from(shape.slices)],
            copies: vec![u16::MAX; usize::from(shape.slices)],
            opened: BTreeMap::new(),
            serves: BTreeMap::new(),
        }
    }

    /// A step that a controller of this term asks for.
    pub(crate) fn asked(&mut self, by: Term, op: TableOp) -> TableAnswer {
        let obeyed = self.shape.term;
        if obeyed.obeys(by, &op) { self.apply(op) } else { TableAnswer::Superseded(obeyed) }
    }

    fn apply(&mut self, op: TableOp) -> TableAnswer {
        match op {
            TableOp::ReadShape => return TableAnswer::Shape(self.shape),
            TableOp::Claim(term) => return self.shape.term.claim(term),
            TableOp::SetType(TaskType(t), slice) => self.types[usize::from(t)] = slice,
            TableOp::SetNeeds(TaskType(t), needs) => self.needs[usize::from(t)] = needs,
            TableOp::ReadType(TaskType(t)) => return TableAnswer::Type(self.types[usize::from(t)]),
            TableOp::SetSlice(s, row) => {
                assert!(row.limit >= 1 && row.limit <= self.shape.tasks_per_slice, "limit {}", row.limit);
                self.slices[usize::from(s.0)].row = row;
            }
            TableOp::ReadSlice(s) => {
                return TableAnswer::Slice(self.slices[usize::from(s.0)].state(&self.needs));
            }
            TableOp::SetWorker(w, row) => self.set_worker(w, row),
            TableOp::ReadWorker(w) => return TableAnswer::Worker(self.workers[usize::from(w.0)].state()),
            TableOp::RaiseGeneration(w, generation) => self.raise(w, generation),
            TableOp::ResetCounters(w, start) => self.reset(w, start),
            TableOp::SetClient(c, row) => {
                self.clients[usize::from(c.0)] = row.map(|(row, _)| row);
            }
            TableOp::ReadClient(c) => return TableAnswer::Client(self.clients[usize::from(c.0)]),
            TableOp::SetServer(s, row) => self.servers[usize::from(s.0)] = row,
            TableOp::ReadServer(s) => {
                let row = self.servers[usize::from(s.0)];
                let next = row.map_or(Psn::default(), |(_, first)| first);
                return TableAnswer::Server(ServerState { row: row.map(|(row, _)| row), next });
            }
            TableOp::SetRing(s, server, row) => {
                assert!(
                    row.is_none() || self.servers[usize::from(server.0)].is_some(),
                    "a ring of a server that the switch does not know"
                );
                self.rings[usize::from(s.0)][usize::from(server.0)] = row;
            }
            TableOp::ReadRing(s, server) => {
                return TableAnswer::Ring(self.rings[usize::from(s.0)][usize::from(server.0)]);
            }
            TableOp::SetCopies(s, copies) => self.copies[usize::from(s.0)] = copies,
            TableOp::Inject(sweep) => self.brooms.push(sweep),
            TableOp::Drain => {
                for worker in &mut self.workers {
                    (worker.entering, worker.matching) = (false, false);
                }
            }
        }
        TableAnswer::Done
    }

    /// A worker sends a token, as far as it may have one out.
    pub(crate) fn token(&mut self, w: WorkerId, generation: Generation, quota: u8) {
        let worker = &mut self.workers[usize::from(w.0)];
        let Some(row) = worker.row.filter(|row| row.open && row.generation == generation) else { return };
        if worker.seen.since(worker.sent) >= i32::from(quota) {
            return;
        }
        worker.seen = worker.seen.plus(1);
        self.park_or_dispatch(row.slice, w, generation);
    }

    pub(crate) fn submit(&mut self, s: SliceId) {
        self.enter(s, None);
    }

    /// A task of this type, which goes where the table says.
    pub(crate) fn submit_of(&mut self, task_type: TaskType) {
        if let Some(slice) = self.types[usize::from(task_type.0)] {
            self.enter(slice, Some(task_type));
        }
    }

    fn enter(&mut self, s: SliceId, task: Option<TaskType>) {
        if !self.slices[usize::from(s.0)].row.open {
            return;
        }
        while let Some((w, generation)) = self.pop_for(s, task) {
            if self.workers[usize::from(w.0)].generation_out == generation {
                self.send(w, task);
                return;
            }
        }
        let slice = &mut self.slices[usize::from(s.0)];
        if slice.tasks.len() < slice.row.limit as usize {
            slice.tasks.push_back(task);
        }
    }

    fn send(&mut self, w: WorkerId, task: Option<TaskType>) {
        let worker = &mut self.workers[usize::from(w.0)];
        worker.sent = worker.sent.plus(1);
        if let (Some(task), Some(served)) = (task, self.serves.get(&worker.last_life)) {
            assert!(served.contains(&task), "worker {w} serves {served:?} and got a task of type {task}");
        }
    }

    /// One pass of every broom that is about; says whether any was.
    pub(crate) fn sweep_once(&mut self) -> bool {
        let brooms = std::mem::take(&mut self.brooms);
        let any = !brooms.is_empty();
        for broom in brooms {
            let next = self.sweep(broom);
            self.brooms.extend(next);
        }
        any
    }

    fn sweep(&mut self, broom: Sweep) -> Option<Sweep> {
        assert_eq!(broom.epoch, self.shape.epoch);
        if let Some((w, generation)) = broom.carried {
            self.park_or_dispatch(broom.slice, w, generation);
            return Some(Sweep { carried: None, ..broom });
        }
        if broom.left == 0 {
            return None;
        }
        if broom.of == SweepOf::Tasks {
            let slice = &mut self.slices[usize::from(broom.slice.0)];
            let in_vain = |task: &Option<TaskType>| {
                !slice.row.open || slice.row.closed >> slice.class_of(&self.needs, *task) & 1 == 1
            };
            if let Some(place) = slice.tasks.iter().position(in_vain) {
                let task = slice.tasks.remove(place).expect("it is there");
                slice.left(&self.needs, task);
            }
            return None;
        }
        let (w, generation) = self.pop(broom.slice)?;
        let live = self.workers[usize::from(w.0)].generation_out == generation;
        Some(Sweep { left: broom.left - 1, carried: live.then_some((w, generation)), ..broom })
    }

    fn park_or_dispatch(&mut self, s: SliceId, w: WorkerId, generation: Generation) {
        let limit = self.shape.tokens_per_slice as usize;
        let slice = &mut self.slices[usize::from(s.0)];
        let kind = self.workers[usize::from(w.0)].row.map_or(0, |row| row.kind);
        let serves = slice.row.serving.serves(kind);
        let served = |task: &Option<TaskType>| serves >> slice.class_of(&self.needs, *task) & 1 == 1;
        if let Some(place) = slice.tasks.iter().position(served) {
            let task = slice.tasks.remove(place).expect("it is there");
            slice.left(&self.needs, task);
            self.send(w, task);
            return;
        }
        slice.ring.push_back((w, generation));
        slice.tokens_in = slice.tokens_in.plus(1);
        assert!(slice.ring.len() <= limit, "the token ring of slice {s} overflows");
    }

    /// The oldest token that may meet this task.
    fn pop_for(&mut self, s: SliceId, task: Option<TaskType>) -> Option<(WorkerId, Generation)> {
        let slice = &mut self.slices[usize::from(s.0)];
        let class = slice.class_of(&self.needs, task);
        let kind = |w: WorkerId| self.workers[usize::from(w.0)].row.map_or(0, |row| row.kind);
        let serves = |(w, _): &(WorkerId, _)| slice.row.serving.serves(kind(*w)) >> class & 1 == 1;
        let place = slice.ring.iter().position(serves)?;
        slice.tokens_out = slice.tokens_out.plus(1);
        slice.ring.remove(place)
    }

    fn pop(&mut self, s: SliceId) -> Option<(WorkerId, Generation)> {
        let slice = &mut self.slices[usize::from(s.0)];
        let token = slice.ring.pop_front()?;
        slice.tokens_out = slice.tokens_out.plus(1);
        Some(token)
    }

    fn set_worker(&mut self, w: WorkerId, row: Option<WorkerRow>) {
        let worker = &mut self.workers[usize::from(w.0)];
        let was = worker.row;
        worker.row = row;
        let Some(row) = row.filter(|row| row.open) else {
            worker.entering |= was.is_some_and(|was| was.open);
            return;
        };
        assert_ne!(row.key.0, 0, "keys are never 0");
        if let Some(was) = was.filter(|was| was.open) {
            assert_eq!((was.generation, was.life, was.key), (row.generation, row.life, row.key));
            assert_eq!(was.slice, row.slice, "a slice move needs a new generation");
            return;
        }
        assert!(worker.reset && worker.raised, "worker {w} opened before its counters were reset");
        assert_eq!(row.generation, worker.generation_out);
        (worker.reset, worker.raised) = (false, false);
        let before = self.opened.insert((w, row.generation), row.life);
        assert_eq!(before, None, "worker {w}'s generation {} is used twice", row.generation);
        if std::mem::replace(&mut worker.last_life, row.life) != row.life {
            let parked = self.slices.iter().flat_map(|s| &s.ring).any(|(of, _)| *of == w);
            assert!(!parked, "index {w} is given away while its last holder's tokens are parked");
        }
    }

    fn raise(&mut self, w: WorkerId, generation: Generation) {
        let worker = &mut self.workers[usize::from(w.0)];
        assert!(generation > worker.generation_out, "generations only grow");
        assert!(worker.row.is_none_or(|row| !row.open), "raised while tokens are let in");
        assert!(!worker.entering, "raised before the passes that had begun ended");
        worker.generation_out = generation;
        worker.matching = true;
        (worker.raised, worker.reset) = (true, false);
    }

    fn reset(&mut self, w: WorkerId, start: Serial) {
        let worker = &mut self.workers[usize::from(w.0)];
        assert!(worker.raised && !worker.matching, "reset before raised and drained");
        assert!(worker.row.is_none_or(|row| !row.open), "reset while tokens are let in");
        (worker.seen, worker.sent, worker.reset) = (start, start, true);
    }
}

impl Slice {
    pub(crate) fn stale<'a>(
        &'a self,
        workers: &'a [Worker],
    ) -> impl Iterator<Item = &'a (WorkerId, Generation)> {
        self.ring.iter().filter(|(w, g)| workers[usize::from(w.0)].generation_out != *g)
    }

    fn class_of(&self, needs: &[Labels], task: Option<TaskType>) -> u8 {
        let needs = task.map_or(Labels::NONE, |task| needs[usize::from(task.0)]);
        self.row.serving.class_of(needs).expect("a task of a class that is known")
    }

    fn left(&mut self, needs: &[Labels], task: Option<TaskType>) {
        let out = &mut self.tasks_out[usize::from(self.class_of(needs, task))];
        *out = out.plus(1);
    }

    fn state(&self, needs: &[Labels]) -> SliceState {
        let mut tasks_in = self.tasks_out;
        for task in &self.tasks {
            let count = &mut tasks_in[usize::from(self.class_of(needs, *task))];
            *count = count.plus(1);
        }
        let balance = if self.tasks.is_empty() { self.ring.len() as i32 } else { -(self.tasks.len() as i32) };
        SliceState {
            row: self.row,
            balance,
            tasks_in: RingCounts(tasks_in),
            tasks_out: RingCounts(self.tasks_out),
            tokens_in: RingCounts::of_one(self.tokens_in),
            tokens_out: RingCounts::of_one(self.tokens_out),
        }
    }
}

impl Worker {
    fn state(&self) -> WorkerState {
        WorkerState { row: self.row, generation_out: self.generation_out, seen: self.seen, sent: self.sent }
    }
}
