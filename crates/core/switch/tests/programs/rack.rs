//! A small rack for the tests: one slice, one client, any number of workers, no driver.

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Circulating, Config, Program, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{ClientRow, SliceRow, SliceState, TableAnswer, TableOp, WorkerRow, WorkerState};
use sluice_wire::{
    Attempt, Budget, ClientId, Dispatch, Endpoint, Epoch, Generation, Incarnation, Key, Nanos, Nonce, Packet,
    Payload, Probe, Rank, RejectReason, Serial, SliceId, Submit, Sweep, TaskId, TaskJob, TaskType, Token,
    WorkerId,
};

pub(crate) const EPOCH: Epoch = Epoch(7);
/// How many tasks of the client may be outstanding.
pub(crate) const REPLAY_CELLS: u32 = 64;
pub(crate) const SLICE: SliceId = SliceId(1);
pub(crate) const GET: TaskType = TaskType(1);
pub(crate) const CLIENT: ClientId = ClientId(2);
pub(crate) const START: Serial = Serial(u32::MAX - 7);

pub(crate) fn at(port: u16) -> Endpoint {
    Endpoint { ip: [1; 16], port }
}

pub(crate) struct Rack {
    pub(crate) program: Box<dyn Program>,
    pub(crate) now: Nanos,
    /// Packets that the program was given, and their recirculations.
    pub(crate) passes: u32,
    issued: [Serial; 8],
    generations: [Generation; 8],
    kinds: [u8; 8],
    next: Serial,
}

impl Rack {
    /// Rain, with a slice of `limit` waiting tasks and `workers` open workers of generation 1.
    pub(crate) fn new(workers: u16, limit: u32) -> Self {
        Self::of("rain", workers, limit)
    }

    /// As [`Rack::new`], with room for four servers to write tasks ahead to.
    pub(crate) fn with_servers(program: &str, workers: u16) -> Self {
        Self::made(program, workers, 16, 4, 0)
    }

    /// As [`Rack::new`], with another program.
    pub(crate) fn of(program: &str, workers: u16, limit: u32) -> Self {
        Self::made(program, workers, limit, 0, 0)
    }

    /// As [`Rack::of`], after so many polls that found no task.
    pub(crate) fn polled(program: &str, workers: u16, limit: u32, polls: u32) -> Self {
        Self::made(program, workers, limit, 0, polls)
    }

    fn made(program: &str, workers: u16, limit: u32, servers: u16, polls_ahead: u32) -> Self {
        let mut program = Choice::parse(program).unwrap().build(Config {
            workers: 8,
            clients: 4,
            slices: 2,
            types: 4,
            tasks_per_slice: 16,
            tokens_per_slice: 64,
            replay_cells: REPLAY_CELLS,
            servers,
            counters_start: START,
            polls_ahead,
            ..Config::full(EPOCH)
        });
        let slice = SliceRow { open: true, limit, retry_after: Nanos(500), ..SliceRow::default() };
        program.table(TableOp::SetSlice(SLICE, slice));
        program.table(TableOp::SetType(GET, Some(SLICE)));
        let client = ClientRow { key: Key(22), at: at(200), incarnation: Incarnation(99) };
        program.table(TableOp::SetClient(CLIENT, Some((client, START))));
        let mut rack = Self {
            program,
            now: Nanos(1_000_000),
            passes: 0,
            issued: [START; 8],
            generations: [Generation(1); 8],
            kinds: [0; 8],
            next: START,
        };
        (0..workers).for_each(|worker| rack.admit(worker, 1));
        rack
    }

    /// Rain with workers of these kinds, and a slice where `serving` says which worker serves which task.
    pub(crate) fn of_kinds(serving: Serving, kinds: &[u8], limit: u32) -> Self {
        Self::of_kinds_under("rain:2,labels", serving, kinds, limit)
    }

    /// As [`Rack::of_kinds`]; tasks ask `wait` times again for workers that meet their wishes.
    pub(crate) fn waiting(serving: Serving, kinds: &[u8], limit: u32, wait: u8) -> Self {
        let wait = if wait > 0 { format!(",wait={wait}") } else { String::new() };
        Self::of_kinds_under(&format!("rain:2,labels{wait}"), serving, kinds, limit)
    }

    /// As [`Rack::of_kinds`], under another program.
    pub(crate) fn of_kinds_under(program: &str, serving: Serving, kinds: &[u8], limit: u32) -> Self {
        let mut rack = Self::of(program, 0, limit);
        let row = rack.state().row;
        rack.set_slice(SliceRow { serving, ..row });
        for (worker, kind) in kinds.iter().enumerate() {
            rack.kinds[worker] = *kind;
            rack.admit(worker as u16, 1);
        }
        rack
    }

    pub(crate) fn set_slice(&mut self, row: SliceRow) {
        assert_eq!(self.program.table(TableOp::SetSlice(SLICE, row)), TableAnswer::Done);
    }

    /// Opens a worker at a generation, its counters reset.
    pub(crate) fn admit(&mut self, worker: u16, generation: u32) {
        let (id, kind) = (WorkerId(worker), self.kinds[worker as usize]);
        self.program.table(TableOp::RaiseGeneration(id, Generation(generation)));
        self.program.table(TableOp::ResetCounters(id, START));
        self.program.table(TableOp::SetWorker(id, Some(WorkerRow { kind, ..row(worker, generation, true) })));
        self.issued[worker as usize] = START;
        self.generations[worker as usize] = Generation(generation);
    }

    pub(crate) fn wire(&mut self, from: Endpoint, packet: Packet) -> Verdict {
        self.now = self.now + Nanos(1_600);
        self.passes += 1;
        self.program.pass(self.now, Arrival::Wire { from, packet, room: true })
    }

    /// Passes recirculating packets until a verdict other than a recirculation comes out.
    pub(crate) fn go_round(&mut self, mut verdict: Verdict) -> Verdict {
        while let Verdict::Again(circulating) = verdict {
            verdict = self.once_more(circulating);
        }
        verdict
    }

    /// One pass of a recirculating packet.
    pub(crate) fn once_more(&mut self, circulating: Circulating) -> Verdict {
        self.now = self.now + Nanos(1_600);
        self.passes += 1;
        self.program.pass(self.now, Arrival::Round(circulating))
    }

    /// The worker's next TOKEN.
    pub(crate) fn token(&mut self, worker: u16) -> Verdict {
        self.ranked_token(worker, 0)
    }

    /// The worker's next TOKEN, behind so many tasks.
    pub(crate) fn ranked_token(&mut self, worker: u16, rank: u32) -> Verdict {
        let issued = &mut self.issued[worker as usize];
        *issued = issued.plus(1);
        let generation = self.generations[worker as usize];
        let token = Token { generation, rank: Rank::behind(rank), ..token(worker, *issued) };
        self.wire(at(100 + worker), Packet::Token(token))
    }

    /// Passes the controller's sweep.
    pub(crate) fn control(&mut self, sweep: Sweep) -> Verdict {
        self.program.pass(self.now, Arrival::Control(sweep))
    }

    /// Opens another slice for tasks.
    pub(crate) fn open(&mut self, slice: SliceId) {
        let row = SliceRow { open: true, limit: 16, retry_after: Nanos(500), ..SliceRow::default() };
        self.program.table(TableOp::SetSlice(slice, row));
    }

    /// The number of the client's next task.
    pub(crate) const fn next(&self) -> Serial {
        self.next
    }

    /// The client's next task.
    pub(crate) fn task(&mut self) -> Verdict {
        self.task_of(0)
    }

    /// The client's next tasks, in one submission.
    pub(crate) fn job(&mut self, tasks: u8) -> Verdict {
        let job = job(self.next, tasks);
        self.next = self.next.plus(tasks.into());
        self.wire(at(200), Packet::Job(job))
    }

    /// The client's next task, of this class.
    pub(crate) fn task_of(&mut self, class: u8) -> Verdict {
        let submit = Submit { priority: class, ..submit(self.next) };
        self.next = self.next.plus(1);
        self.wire(at(200), Packet::Submit(submit))
    }

    /// The client's next task, with this budget.
    pub(crate) fn task_within(&mut self, budget: Budget) -> Verdict {
        let submit = Submit { budget, ..submit(self.next) };
        self.next = self.next.plus(1);
        self.wire(at(200), Packet::Submit(submit))
    }

    /// The client's next task, which needs these labels.
    pub(crate) fn task_with(&mut self, needs: Labels) -> Verdict {
        let submit = Submit { constraints: needs.0, ..submit(self.next) };
        self.next = self.next.plus(1);
        self.wire(at(200), Packet::Submit(submit))
    }

    /// The client's next task, with `len` bytes that the driver does not keep.
    pub(crate) fn large_task(&mut self, len: u16) -> Verdict {
        self.large_task_of(0, len)
    }

    /// The client's next task of this class, with `len` bytes that the driver does not keep.
    pub(crate) fn large_task_of(&mut self, class: u8, len: u16) -> Verdict {
        let payload = Payload { len, inline: [9; 8], ..Payload::EMPTY };
        let submit = Submit { payload, priority: class, constraints: class, ..submit(self.next) };
        self.next = self.next.plus(1);
        self.wire(at(200), Packet::Submit(submit))
    }

    pub(crate) fn state(&mut self) -> SliceState {
        match self.program.table(TableOp::ReadSlice(SLICE)) {
            TableAnswer::Slice(state) => state,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn worker(&mut self, worker: u16) -> WorkerState {
        match self.program.table(TableOp::ReadWorker(WorkerId(worker))) {
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
        ..WorkerRow::default()
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
        ..Token::default()
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

/// So many tasks in one submission.
pub(crate) fn job(first: Serial, tasks: u8) -> TaskJob {
    let mut job = TaskJob::of(submit(first)).unwrap();
    (1..tasks.into()).for_each(|at| assert!(job.push(&submit(first.plus(at)))));
    job
}

pub(crate) fn dispatched(verdict: Verdict) -> Dispatch {
    match verdict {
        Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => dispatch,
        other => panic!("not dispatched: {other:?}"),
    }
}

/// The packet that recirculates after this verdict.
pub(crate) fn circulating(verdict: Verdict) -> Circulating {
    match verdict {
        Verdict::Again(circulating) => circulating,
        other => panic!("does not go round: {other:?}"),
    }
}

/// The reason for which a task was refused.
pub(crate) fn rejected(verdict: Verdict) -> RejectReason {
    match verdict {
        Verdict::Send { to, packet: Packet::Reject(reject) }
        | Verdict::Swept { to, packet: Packet::Reject(reject), .. } => {
            assert_eq!(to, at(200));
            reject.reason
        }
        other => panic!("not rejected: {other:?}"),
    }
}
