//! The two ends of every task as a switch sees them, and a switch between them on the loopback.

use std::net::{Ipv4Addr, SocketAddr};

use sluice_net::traces::Tracer;
use sluice_net::udp::{Socket, SocketOptions, Wait};
use sluice_switch::Config;
use sluice_switchd::switch::{SwitchConfig, SwitchDriver};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{ClientRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Dispatch, Endpoint, Epoch, Generation, Handle, Incarnation, Key, Nanos, Nonce, Packet,
    Payload, Reply, Serial, SliceId, Submit, TaskId, TaskType, Token, WorkerId, encode, large_descriptor,
};

use crate::error::BenchError;

/// How many workers are registered.
pub(crate) const WORKERS: u16 = 64;
pub(crate) const EPOCH: Epoch = Epoch(1);
pub(crate) const KEY: Key = Key(0x5eed);
pub(crate) const GENERATION: Generation = Generation(1);
/// The label that one in four tasks needs and every second worker has.
pub(crate) const GPU: Labels = Labels(1);

/// A client's task number `turn`, of eight bytes.
pub(crate) fn submit(client: u16, turn: u32) -> Submit {
    Submit {
        epoch: EPOCH,
        key: KEY,
        client: ClientId(client),
        task: task(turn),
        attempt: Attempt(1),
        task_type: TaskType(1),
        payload: Payload { len: 8, inline: [1; 8], handle: Handle::NONE },
        ..Submit::default()
    }
}

/// A worker's token number `issued`.
pub(crate) fn token(worker: u16, issued: u32) -> Token {
    Token {
        epoch: EPOCH,
        key: KEY,
        worker: WorkerId(worker),
        generation: GENERATION,
        nonce: Nonce(issued),
        issued: Serial(issued),
        ..Token::default()
    }
}

/// Task number `turn` on its way to a worker.
pub(crate) fn dispatch(worker: u16, turn: u32) -> Dispatch {
    Dispatch {
        epoch: EPOCH,
        worker: WorkerId(worker),
        generation: GENERATION,
        sent: Serial(turn),
        seen: Serial(turn),
        client_at: Endpoint { ip: [1; 16], port: 1 },
        task: task(turn),
        attempt: Attempt(1),
        task_type: TaskType(1),
        wait_ns: 10_000,
        occupancy: 3,
        payload: Payload { len: 8, inline: [1; 8], handle: Handle::NONE },
        ..Dispatch::default()
    }
}

/// The answer to task number `turn`.
pub(crate) fn reply(worker: u16, turn: u32) -> Reply {
    Reply {
        epoch: EPOCH,
        worker: WorkerId(worker),
        task: task(turn),
        attempt: Attempt(1),
        task_type: TaskType(1),
        switch_wait_ns: 10_000,
        worker_wait_ns: 1_000,
        service_ns: 10_000,
        payload: Payload { len: 8, inline: [2; 8], handle: Handle::NONE },
        ..Reply::default()
    }
}

fn task(turn: u32) -> TaskId {
    TaskId { incarnation: Incarnation(7), sequence: Serial(turn) }
}

/// The table steps of a controller: slices that take type 1, 2 and so on, workers distributed over them in
/// turn, and all client indices at one address.
pub(crate) fn registrations(
    config: &Config,
    slices: u16,
    client: Endpoint,
    worker: Endpoint,
) -> Vec<TableOp> {
    let mut ops = Vec::new();
    for slice in 0..slices {
        let row = SliceRow {
            open: true,
            limit: config.tasks_per_slice,
            retry_after: Nanos(0),
            ..SliceRow::default()
        };
        ops.push(TableOp::SetSlice(SliceId(slice), row));
        ops.push(TableOp::SetType(TaskType(slice + 1), Some(SliceId(slice))));
    }
    for index in 0..config.clients {
        let row = ClientRow { key: KEY, at: client, incarnation: Incarnation(7) };
        ops.push(TableOp::SetClient(ClientId(index), Some((row, Serial(0)))));
    }
    for index in 0..WORKERS {
        let slice = SliceId(index % slices);
        let row = WorkerRow {
            key: KEY,
            at: worker,
            slice,
            generation: GENERATION,
            open: true,
            life: 1,
            ..WorkerRow::default()
        };
        ops.push(TableOp::RaiseGeneration(WorkerId(index), GENERATION));
        ops.push(TableOp::SetWorker(WorkerId(index), Some(row)));
    }
    ops
}

/// Table steps for workers that have these kinds in turn.
pub(crate) fn served(ops: Vec<TableOp>, serving: &Serving) -> impl Iterator<Item = TableOp> + use<'_> {
    ops.into_iter().map(move |mut op| {
        match &mut op {
            TableOp::SetSlice(_, row) => row.serving = *serving,
            TableOp::SetWorker(worker, Some(row)) => {
                row.kind = (worker.0 % serving.kinds().len() as u16) as u8;
            }
            _ => {}
        }
        op
    })
}

/// A full-size switch and its hosts, which take turns on one thread.
pub(crate) struct Rig {
    pub(crate) middle: SwitchDriver,
    client: Socket,
    worker: Socket,
    slices: u16,
    payload: Payload,
    body: Vec<u8>,
    tasks: u32,
    issued: u32,
}

impl Rig {
    /// A switch with `slices` slices, and tasks of `payload` bytes.
    pub(crate) fn new(slices: u16, payload: usize) -> Result<Self, BenchError> {
        Self::traced(slices, payload, None)
    }

    /// The same, which traces the tasks that the tracer takes.
    pub(crate) fn traced(slices: u16, payload: usize, traces: Option<Tracer>) -> Result<Self, BenchError> {
        let config = Config::full(EPOCH);
        let mut switch = SwitchDriver::new(&SwitchConfig { traces, ..SwitchConfig::new(config) })?;
        let (client, worker) = (socket()?, socket()?);
        let ops = registrations(&config, slices, client.local().into(), worker.local().into());
        switch.handle().tables().send(ops, |_| ())?;
        switch.step()?;
        let body: Vec<u8> = (0..payload).map(|at| at as u8).collect();
        let mut fields = Payload { len: payload as u16, inline: [1; 8], handle: Handle::NONE };
        if fields.is_large() {
            fields.inline = large_descriptor(&body);
        }
        let body = if fields.is_large() { body } else { Vec::new() };
        Ok(Self { middle: switch, client, worker, slices, payload: fields, body, tasks: 0, issued: 0 })
    }

    /// Sends a token of each worker.
    pub(crate) fn send_tokens(&mut self) {
        self.issued += 1;
        let to = self.middle.local().into();
        for worker in 0..WORKERS {
            let packet = Packet::Token(token(worker, self.issued));
            let write = |out: &mut [u8]| encode(&packet, &[], out).expect("a legal packet");
            self.worker.outbox().send_with(to, write);
        }
        self.worker.flush();
    }

    /// Sends as many tasks as there are workers, from one client, for each slice in turn.
    pub(crate) fn send_tasks(&mut self, client: u16) {
        let to = self.middle.local().into();
        for _ in 0..WORKERS {
            let mut task = submit(client, self.tasks);
            task.task_type = TaskType((self.tasks % u32::from(self.slices)) as u16 + 1);
            task.payload = self.payload;
            let (packet, body) = (Packet::Submit(task), &self.body);
            let write = |out: &mut [u8]| encode(&packet, body, out).expect("a legal packet");
            self.client.outbox().send_with(to, write);
            self.tasks += 1;
        }
        self.client.flush();
    }

    /// Lets the switch handle this many packets.
    pub(crate) fn switch(&mut self, mut left: usize) -> Result<(), BenchError> {
        while left > 0 {
            left -= self.middle.step()?;
        }
        Ok(())
    }

    /// Receives the workers' packets, and checks that none is missing.
    pub(crate) fn collect(&mut self, mut left: usize) -> Result<(), BenchError> {
        while left > 0 {
            let taken = self.worker.receive(Wait::Poll)?;
            assert!(taken > 0, "{left} tasks of a round did not come out");
            left -= taken;
        }
        Ok(())
    }
}

fn socket() -> Result<Socket, BenchError> {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let options = SocketOptions { refusals: false, ..SocketOptions::default() };
    Ok(Socket::bind(at, &options)?)
}
