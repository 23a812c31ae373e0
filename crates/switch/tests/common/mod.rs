//! A small rack for the tests: one slice, one client, any number of workers, no driver.

use sluice_switch::rain::Rain;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::tables::{ClientRow, SliceRow, SliceState, TableAnswer, TableOp, WorkerRow, WorkerState};
use sluice_wire::{
    Attempt, ClientId, Dispatch, Endpoint, Epoch, Generation, Incarnation, Key, Nanos, Nonce, Packet,
    Payload, Probe, Serial, SliceId, Submit, TaskId, TaskType, Token, WorkerId,
};

pub(crate) const EPOCH: Epoch = Epoch(7);
pub(crate) const SLICE: SliceId = SliceId(1);
pub(crate) const GET: TaskType = TaskType(1);
pub(crate) const CLIENT: ClientId = ClientId(2);
pub(crate) const START: Serial = Serial(u32::MAX - 7);

pub(crate) fn at(port: u16) -> Endpoint {
    Endpoint { ip: [1; 16], port }
}

pub(crate) struct Rack {
    pub(crate) rain: Rain,
    pub(crate) now: Nanos,
    issued: [Serial; 8],
    next: Serial,
}

impl Rack {
    /// A slice of `limit` waiting tasks with `workers` open workers of generation 1.
    pub(crate) fn new(workers: u16, limit: u32) -> Self {
        let mut rain = Rain::new(Config {
            workers: 8,
            clients: 4,
            slices: 2,
            types: 4,
            tasks_per_slice: 16,
            tokens_per_slice: 64,
            replay_cells: 64,
            counters_start: START,
            ..Config::full(EPOCH)
        });
        let slice = SliceRow { open: true, limit, retry_after: Nanos(500) };
        rain.table(TableOp::SetSlice(SLICE, slice));
        rain.table(TableOp::SetType(GET, Some(SLICE)));
        let client = ClientRow { key: Key(22), at: at(200), incarnation: Incarnation(99) };
        rain.table(TableOp::SetClient(CLIENT, Some((client, START))));
        let mut rack = Self { rain, now: Nanos(1_000_000), issued: [START; 8], next: START };
        (0..workers).for_each(|worker| rack.admit(worker, 1));
        rack
    }

    /// Opens a worker at a generation, its counters reset.
    pub(crate) fn admit(&mut self, worker: u16, generation: u32) {
        let id = WorkerId(worker);
        self.rain.table(TableOp::RaiseGeneration(id, Generation(generation)));
        self.rain.table(TableOp::ResetCounters(id, START));
        self.rain.table(TableOp::SetWorker(id, Some(row(worker, generation, true))));
        self.issued[worker as usize] = START;
    }

    pub(crate) fn wire(&mut self, from: Endpoint, packet: Packet) -> Verdict {
        self.now = self.now + Nanos(1_600);
        self.rain.pass(self.now, Arrival::Wire { from, packet, room: true })
    }

    /// The worker's next TOKEN.
    pub(crate) fn token(&mut self, worker: u16) -> Verdict {
        let issued = &mut self.issued[worker as usize];
        *issued = issued.plus(1);
        let token = token(worker, *issued);
        self.wire(at(100 + worker), Packet::Token(token))
    }

    /// The client's next task.
    pub(crate) fn task(&mut self) -> Verdict {
        let submit = submit(self.next);
        self.next = self.next.plus(1);
        self.wire(at(200), Packet::Submit(submit))
    }

    pub(crate) fn state(&mut self) -> SliceState {
        match self.rain.table(TableOp::ReadSlice(SLICE)) {
            TableAnswer::Slice(state) => state,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn worker(&mut self, worker: u16) -> WorkerState {
        match self.rain.table(TableOp::ReadWorker(WorkerId(worker))) {
            TableAnswer::Worker(state) => state,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn row(worker: u16, generation: u32, open: bool) -> WorkerRow {
    WorkerRow {
        key: Key(10 + worker as u32),
        at: at(100 + worker),
        slice: SLICE,
        generation: Generation(generation),
        open,
        life: 5,
    }
}

pub(crate) fn token(worker: u16, issued: Serial) -> Token {
    Token {
        epoch: EPOCH,
        key: Key(10 + worker as u32),
        worker: WorkerId(worker),
        generation: Generation(1),
        nonce: Nonce(3),
        issued,
    }
}

pub(crate) fn probe(worker: u16) -> Probe {
    let token = token(worker, START);
    Probe {
        epoch: token.epoch,
        key: token.key,
        worker: token.worker,
        generation: token.generation,
        nonce: Nonce(4),
    }
}

pub(crate) fn submit(sequence: Serial) -> Submit {
    Submit {
        epoch: EPOCH,
        key: Key(22),
        client: CLIENT,
        task: TaskId { incarnation: Incarnation(99), sequence },
        attempt: Attempt(1),
        task_type: GET,
        payload: Payload { len: 4, inline: [1, 2, 3, 4, 0, 0, 0, 0], ..Payload::EMPTY },
        ..Submit::default()
    }
}

pub(crate) fn dispatched(verdict: Verdict) -> Dispatch {
    match verdict {
        Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => dispatch,
        other => panic!("not dispatched: {other:?}"),
    }
}
