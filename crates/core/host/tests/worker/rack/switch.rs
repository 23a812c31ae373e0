//! The switch: the real program with one client and one worker's row, which changes as a controller would
//! change it.

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::{ClientRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Endpoint, Epoch, Generation, Handle, Key, Nanos, Packet, Payload, Serial, SliceId,
    Submit, TaskId, TaskType, WorkerId,
};

const WORKER: WorkerId = WorkerId(5);
const CLIENT: ClientId = ClientId(0);
const SLICE: SliceId = SliceId(1);
const TYPE: TaskType = TaskType(1);
const WAITING_MAX: u32 = 16;
const WORKER_AT: Endpoint = Endpoint { ip: [0; 16], port: 1 };
const CLIENT_AT: Endpoint = Endpoint { ip: [0; 16], port: 2 };

pub(super) struct Switch {
    program: Box<dyn Program>,
    epoch: Epoch,
    generation: Generation,
    /// The worker's row. There is none between a restart and the worker's next registration.
    row: Option<WorkerRow>,
    start: Serial,
}

impl Switch {
    pub(super) fn new(start: Serial) -> Self {
        let mut switch = Self::in_life(Epoch(100), Generation(7), start);
        switch.register_again();
        switch
    }

    /// A switch that knows its client and no worker.
    fn in_life(epoch: Epoch, generation: Generation, start: Serial) -> Self {
        let config = Config {
            workers: WORKER.0 + 1,
            clients: 1,
            slices: 2,
            types: 2,
            tasks_per_slice: WAITING_MAX,
            replay_cells: 64,
            counters_start: start,
            ..Config::full(epoch)
        };
        let mut program = Choice::default().build(config);
        let client = ClientRow { at: CLIENT_AT, ..ClientRow::default() };
        program.table(TableOp::SetClient(CLIENT, Some((client, start))));
        program.table(TableOp::SetType(TYPE, Some(SLICE)));
        let row = SliceRow { open: true, limit: WAITING_MAX, ..SliceRow::default() };
        program.table(TableOp::SetSlice(SLICE, row));
        Self { program, epoch, generation, row: None, start }
    }

    pub(super) fn grant(&self, quota: u8) -> WorkerRegistration {
        WorkerRegistration {
            worker: WORKER,
            key: self.key(),
            epoch: self.epoch,
            generation: self.generation,
            slice: SLICE,
            quota,
            start: self.start,
            ..WorkerRegistration::default()
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.row.is_some_and(|row| row.open)
    }

    /// How many parked tokens can still meet a task.
    pub(super) fn parked(&self) -> u32 {
        let tokens = self.program.parked(SLICE).tokens;
        tokens.iter().filter(|(_, generation)| *generation == self.generation).count() as u32
    }

    pub(super) const fn life(&self) -> (Epoch, Generation) {
        (self.epoch, self.generation)
    }

    pub(super) fn close(&mut self) {
        self.set(self.row.map(|row| WorkerRow { open: false, ..row }));
    }

    /// Opens the next generation; tokens of the old generation become stale.
    pub(super) fn reopen(&mut self) {
        self.generation.0 += 1;
        self.open();
    }

    /// Restarts the switch: its memory is empty, it knows no worker, and generations start anew.
    pub(super) fn restart(&mut self) {
        *self = Self::in_life(Epoch(self.epoch.0 + 1), Generation(1), self.start);
    }

    pub(super) fn register_again(&mut self) {
        if self.row.is_none() {
            self.open();
        }
    }

    /// Handles a worker's packet; returns the answer to the worker.
    pub(super) fn packet(&mut self, now: Nanos, packet: Packet) -> Option<Packet> {
        self.arrive(now, Arrival::Wire { from: WORKER_AT, packet, room: true })
    }

    /// Handles a client's task; returns the packet for the worker.
    pub(super) fn submit(&mut self, now: Nanos, task: TaskId, attempt: Attempt) -> Option<Packet> {
        let payload = Payload { len: 100, inline: [0; 8], handle: Handle::NONE };
        let submit =
            Submit { epoch: self.epoch, task, attempt, task_type: TYPE, payload, ..Submit::default() };
        self.arrive(now, Arrival::Wire { from: CLIENT_AT, packet: Packet::Submit(submit), room: true })
    }

    fn arrive(&mut self, now: Nanos, arrival: Arrival) -> Option<Packet> {
        match self.program.pass(now, arrival) {
            Verdict::Send { to: WORKER_AT, packet } => Some(packet),
            Verdict::Again(circulating) => self.arrive(now, Arrival::Round(circulating)),
            _ => None,
        }
    }

    fn open(&mut self) {
        let (key, generation) = (self.key(), self.generation);
        self.program.table(TableOp::RaiseGeneration(WORKER, generation));
        self.program.table(TableOp::ResetCounters(WORKER, self.start));
        let row =
            WorkerRow { key, at: WORKER_AT, slice: SLICE, generation, open: true, ..WorkerRow::default() };
        self.set(Some(row));
    }

    fn set(&mut self, row: Option<WorkerRow>) {
        self.row = row;
        self.program.table(TableOp::SetWorker(WORKER, row));
    }

    /// One key for each epoch: the switch answers a worker of an old generation, but not one of an old
    /// epoch.
    const fn key(&self) -> Key {
        Key(self.epoch.0 << 16 | 3)
    }
}
