//! The switch: the real program, checked by a witness (module `witness`). Recirculating packets pass again
//! at once. Only sweeps wait until a test lets them go on, so that a sweep may carry a token while tables
//! are read.

use std::collections::BTreeMap;

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Cargo, Circulating, Config, Program, Verdict};
use sluice_wire::tables::{
    ClientRow, RingRow, ServerState, Shape, SliceState, TableAnswer, TableOp, WorkerState,
};
use sluice_wire::{
    Attempt, ClientId, Epoch, Generation, Key, Nanos, Packet, Rank, Serial, ServerId, SliceId, Submit,
    TaskId, TaskType, Term, Token, WorkerId,
};

use super::address;
use super::witness::Witness;

pub(crate) struct Switch {
    pub(super) program: Box<dyn Program>,
    pub(super) witness: Witness,
    /// The types that each life of a worker serves, if a test says so.
    pub(crate) serves: BTreeMap<u64, Vec<TaskType>>,
    /// What controllers wrote to tables that cannot be read.
    pub(crate) written: Vec<TableOp>,
    /// Whether the switch says that it computes no iCRC.
    pub(crate) plain_writes: bool,
    sweeps: Vec<Arrival>,
    choice: &'static str,
    config: Config,
    submitted: u32,
}

/// Makes functions that read a row of a table.
macro_rules! reads {
    ($($name:ident($($index:ident: $of:ty),+) -> $row:ty = $question:ident, $answer:ident;)*) => {$(
        pub(crate) fn $name(&mut self, $($index: $of),+) -> $row {
            match self.table(TableOp::$question($($index),+)) {
                TableAnswer::$answer(row) => row,
                other => panic!("{other:?}"),
            }
        }
    )*};
}

/// A switch for `workers` workers. Its counters start near their end, so that they wrap in every test.
pub(crate) fn config(workers: u16, tokens_per_slice: u32) -> Config {
    Config {
        epoch: Epoch(100),
        term: Term(0),
        workers,
        clients: 4,
        slices: 3,
        types: 8,
        tasks_per_slice: 64,
        tokens_per_slice,
        replay_cells: 16,
        servers: 2,
        counters_start: Serial(u32::MAX - 8),
        polls_ahead: 0,
        seed: 0,
    }
}

impl Switch {
    /// A switch with room for one more client than controllers are told of: the tests' own client.
    pub(crate) fn new(choice: &'static str, config: Config) -> Self {
        let program = Choice::parse(choice).expect("there is such a program");
        let program = program.build(Config { clients: config.clients + 1, ..config });
        Self { choice, ..Self::running(program, config) }
    }

    /// A switch that runs this program, which has room for one more client. It cannot restart.
    pub(crate) fn running(mut program: Box<dyn Program>, config: Config) -> Self {
        let client = ClientRow { key: Key(1), at: address(3_000), ..ClientRow::default() };
        program.table(TableOp::SetClient(ClientId(config.clients), Some((client, Serial(0)))));
        Self {
            program,
            witness: Witness::default(),
            serves: BTreeMap::new(),
            written: Vec::new(),
            plain_writes: false,
            sweeps: Vec::new(),
            choice: "",
            config,
            submitted: 0,
        }
    }

    /// Loses everything but its epoch's number and the term of the controller that it obeys.
    pub(crate) fn restart(&mut self) {
        let epoch = Epoch(self.config.epoch.0 + 1);
        let config = Config { epoch, term: self.shape().term, ..self.config };
        let plain_writes = self.plain_writes;
        *self = Self { plain_writes, ..Self::new(self.choice, config) };
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape { clients: self.config.clients, plain_writes: self.plain_writes, ..self.program.shape() }
    }

    /// A step that a controller of this term asks for.
    pub(crate) fn asked(&mut self, by: Term, op: TableOp) -> TableAnswer {
        let obeyed = self.shape().term;
        if !obeyed.obeys(by, &op) {
            return TableAnswer::Superseded(obeyed);
        }
        if op == TableOp::ReadShape {
            return TableAnswer::Shape(self.shape());
        }
        self.watch(&op);
        if let TableOp::Inject(sweep) = op {
            self.sweeps.push(Arrival::Control(sweep));
        }
        if !op.only_reads() {
            self.written.push(op);
        }
        self.table(op)
    }

    /// Carries out a step that the witness does not check.
    pub(crate) fn table(&mut self, op: TableOp) -> TableAnswer {
        let answer = self.program.table(op);
        assert_ne!(answer, TableAnswer::OutOfRange, "{op:?}");
        answer
    }

    reads! {
        worker(worker: WorkerId) -> WorkerState = ReadWorker, Worker;
        slice(slice: SliceId) -> SliceState = ReadSlice, Slice;
        slice_of(task_type: TaskType) -> Option<SliceId> = ReadType, Type;
        client(client: ClientId) -> Option<ClientRow> = ReadClient, Client;
        server(server: ServerId) -> ServerState = ReadServer, Server;
        ring(slice: SliceId, server: ServerId) -> Option<RingRow> = ReadRing, Ring;
    }

    /// The tokens that are parked in a slice.
    pub(crate) fn tokens(&self, slice: SliceId) -> Vec<(WorkerId, Generation)> {
        self.program.parked(slice).tokens
    }

    /// How many parked tokens of a slice no task may meet any more.
    pub(crate) fn stale(&mut self, slice: SliceId) -> usize {
        let mut tokens = self.tokens(slice);
        tokens.retain(|(worker, generation)| self.worker(*worker).generation_out != *generation);
        tokens.len()
    }

    /// The types of the tasks that wait in a slice.
    pub(crate) fn tasks(&self, slice: SliceId) -> Vec<TaskType> {
        self.program.parked(slice).tasks.iter().map(|task| task.task_type).collect()
    }

    /// A worker sends a token, as far as its quota lets it.
    pub(crate) fn token(&mut self, worker: WorkerId, generation: Generation, quota: u8) {
        let WorkerState { row, seen, sent, .. } = self.worker(worker);
        let Some(row) = row.filter(|row| row.open && row.generation == generation) else { return };
        if seen.since(sent) < i32::from(quota) {
            let (epoch, key, issued) = (self.config.epoch, row.key, seen.plus(1));
            let rank = Rank::behind(issued.0 % 4);
            let token = Token { epoch, key, worker, generation, issued, rank, ..Token::default() };
            self.arrive(Arrival::Wire { from: row.at, packet: Packet::Token(token), room: true });
        }
    }

    /// Submits a task of this type, which goes where the table says.
    pub(crate) fn submit(&mut self, task_type: TaskType) {
        self.submitted += 1;
        let submit = Submit {
            epoch: self.config.epoch,
            key: Key(1),
            client: ClientId(self.config.clients),
            task: TaskId { sequence: Serial(self.submitted), ..TaskId::default() },
            attempt: Attempt(1),
            task_type,
            priority: (self.submitted % 4) as u8,
            ..Submit::default()
        };
        let packet = Packet::Submit(submit);
        self.arrive(Arrival::Wire { from: address(3_000), packet, room: true });
    }

    /// One pass of every sweep under way; returns whether there was any.
    pub(crate) fn sweep_once(&mut self) -> bool {
        let sweeps = std::mem::take(&mut self.sweeps);
        let any = !sweeps.is_empty();
        for sweep in sweeps {
            self.arrive(sweep);
        }
        any
    }

    fn arrive(&mut self, arrival: Arrival) {
        let verdict = self.program.pass(Nanos(0), arrival);
        self.left(&verdict);
        match verdict {
            Verdict::Again(sweep @ Circulating { cargo: Cargo::Sweep(_), .. }) => {
                self.sweeps.push(Arrival::Round(sweep));
            }
            Verdict::Again(circulating) => self.arrive(Arrival::Round(circulating)),
            _ => {}
        }
    }
}
