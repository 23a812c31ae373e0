//! What Rain's decision costs: one token and one task, matched, against a bare ring's push and pop of the same
//! entries, in turn in one run. Prints one line of JSON.

use std::hint::black_box;
use std::time::Instant;

use sluice_switch::rain::{Arrival, Config, Rain, Verdict};
use sluice_wire::tables::{ClientRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Endpoint, Epoch, Generation, Incarnation, Key, Nanos, Nonce, Packet, Payload, Serial,
    SliceId, Submit, TaskId, TaskType, Token, WorkerId,
};

const MATCHES: u32 = 1_000_000;
const TURNS: usize = 15;
const WORKERS: u16 = 64;
const CLIENTS: u16 = 16;

fn main() {
    let mut rain = Bench::new();
    let mut ring = BareRing::new(rain.depth);
    let mut bare = Vec::new();
    let mut token_first = Vec::new();
    let mut task_first = Vec::new();
    for _ in 0..TURNS {
        let ring = ring.run();
        token_first.push(rain.run(true) / ring);
        task_first.push(rain.run(false) / ring);
        bare.push(ring / f64::from(MATCHES));
    }
    let allocations = allocation_counter::measure(|| {
        rain.run(true);
        rain.run(false);
    });
    println!(
        "{{\"bench\":\"rain_decision\",\"bare_ring_ns\":{:.2},\"token_first_ratio\":{:.2},\"task_first_ratio\":{:.2},\"allocations\":{}}}",
        median(bare),
        median(token_first),
        median(task_first),
        allocations.count_total
    );
    assert_eq!(allocations.count_total, 0, "Rain allocates per packet");
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// A switch with all its sources registered.
struct Bench {
    rain: Rain,
    depth: u32,
    turn: u32,
}

impl Bench {
    fn new() -> Self {
        let config = Config::full(Epoch(1));
        let mut rain = Rain::new(config);
        let slice = SliceRow { open: true, limit: config.tasks_per_slice, retry_after: Nanos(0) };
        rain.table(TableOp::SetSlice(SliceId(0), slice));
        rain.table(TableOp::SetType(TaskType(1), Some(SliceId(0))));
        (0..WORKERS).for_each(|worker| {
            let row = WorkerRow {
                key: Key(worker.into()),
                at: at(worker),
                generation: Generation(1),
                open: true,
                ..WorkerRow::default()
            };
            rain.table(TableOp::RaiseGeneration(WorkerId(worker), Generation(1)));
            rain.table(TableOp::SetWorker(WorkerId(worker), Some(row)));
        });
        (0..CLIENTS).for_each(|client| {
            let row =
                ClientRow { key: Key(client.into()), at: at(1_000 + client), incarnation: Incarnation(7) };
            rain.table(TableOp::SetClient(ClientId(client), Some((row, Serial(0)))));
        });
        Self { rain, depth: config.tasks_per_slice, turn: 0 }
    }

    /// Nanoseconds for [`MATCHES`] matches.
    fn run(&mut self, token_first: bool) -> f64 {
        let begun = Instant::now();
        for _ in 0..MATCHES {
            let (token, task) = (self.token(), self.task());
            let (first, second) = if token_first { (token, task) } else { (task, token) };
            let parked = self.rain.pass(Nanos(u64::from(self.turn)), black_box(first));
            let sent = self.rain.pass(Nanos(u64::from(self.turn) + 100), black_box(second));
            debug_assert!(matches!((parked, sent), (Verdict::Parked, Verdict::Send { .. })));
            black_box((&parked, &sent));
            self.turn += 1;
        }
        begun.elapsed().as_nanos() as f64
    }

    fn token(&self) -> Arrival {
        let worker = (self.turn % u32::from(WORKERS)) as u16;
        let packet = Packet::Token(Token {
            epoch: Epoch(1),
            key: Key(worker.into()),
            worker: WorkerId(worker),
            generation: Generation(1),
            nonce: Nonce(self.turn),
            issued: Serial(self.turn / u32::from(WORKERS) + 1),
        });
        Arrival::Wire { from: at(worker), packet, room: true }
    }

    fn task(&self) -> Arrival {
        let client = (self.turn % u32::from(CLIENTS)) as u16;
        Arrival::Wire {
            from: at(1_000 + client),
            packet: Packet::Submit(submit(client, self.turn)),
            room: true,
        }
    }
}

fn submit(client: u16, turn: u32) -> Submit {
    Submit {
        epoch: Epoch(1),
        key: Key(client.into()),
        client: ClientId(client),
        task: TaskId { incarnation: Incarnation(7), sequence: Serial(turn / u32::from(CLIENTS)) },
        attempt: Attempt(1),
        task_type: TaskType(1),
        payload: Payload { len: 8, inline: [1; 8], ..Payload::EMPTY },
        ..Submit::default()
    }
}

fn at(host: u16) -> Endpoint {
    Endpoint { ip: [0; 16], port: host }
}

/// The same entries in a ring and nothing else: no sources, no counters, no tokens.
struct BareRing {
    rows: Vec<Row>,
    head: u32,
    tail: u32,
}

/// As much as Rain's queue entry holds.
#[derive(Clone, Copy, Default)]
struct Row {
    task: TaskId,
    arrived: u64,
    client: ClientId,
    attempt: Attempt,
    task_type: TaskType,
    classes: [u8; 2],
    payload: Payload,
}

impl Row {
    fn of(submit: &Submit, arrived: u64) -> Self {
        Self {
            task: submit.task,
            arrived,
            client: submit.client,
            attempt: submit.attempt,
            task_type: submit.task_type,
            classes: [submit.priority, submit.constraints],
            payload: submit.payload,
        }
    }

    fn submit(&self) -> Submit {
        Submit {
            client: self.client,
            task: self.task,
            attempt: self.attempt,
            task_type: self.task_type,
            priority: self.classes[0],
            constraints: self.classes[1],
            payload: self.payload,
            ..Submit::default()
        }
    }
}

impl BareRing {
    fn new(depth: u32) -> Self {
        Self { rows: vec![Row::default(); depth as usize], head: 0, tail: 0 }
    }

    fn run(&mut self) -> f64 {
        let mask = self.rows.len() as u32 - 1;
        let begun = Instant::now();
        for turn in 0..MATCHES {
            let client = (turn % u32::from(CLIENTS)) as u16;
            let arrival = Arrival::Wire {
                from: at(1_000 + client),
                packet: Packet::Submit(submit(client, turn)),
                room: true,
            };
            if let Arrival::Wire { packet: Packet::Submit(submit), .. } = black_box(arrival) {
                self.rows[(self.tail & mask) as usize] = Row::of(&submit, turn.into());
                self.tail = self.tail.wrapping_add(1);
            }
            let popped = self.rows[(self.head & mask) as usize];
            self.head = self.head.wrapping_add(1);
            black_box((popped.arrived, Verdict::Send { to: at(1), packet: Packet::Submit(popped.submit()) }));
        }
        begun.elapsed().as_nanos() as f64
    }
}
