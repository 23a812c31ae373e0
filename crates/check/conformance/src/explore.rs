//! Random vectors: a small rack sends valid and invalid packets to a switch, and the model gives the
//! expected outputs.
//!
//! Steps are drawn so that queues fill, empty, overflow and change sides, counters wrap, and generations
//! change while tokens are parked. About one packet in six has a wrong field or wrong bytes.

mod copies;
mod halves;
mod laps;
mod programs;
mod servers;
mod sweeps;
mod targets;
mod trailers;

use std::net::{IpAddr, SocketAddr};

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sluice_wire::{
    Age, Attempt, ClientId, Epoch, Generation, HEADER_BYTES, Incarnation, Key, Kind, Nonce, Packet, Payload,
    Probe, Rank, Serial, Submit, TaskId, TaskJob, TaskType, Token, WorkerId, encode, encoded_len,
    large_descriptor,
};

use crate::model::Model;
use crate::play::{Plane, take};
use crate::vector::{Shape, Step, TestedProgram, Vector};
pub use copies::copies;
pub use halves::halves;
pub use laps::laps;
pub use programs::{explore_draconis, explore_idle_draconis, explore_pallas, explore_racksched};
pub use servers::{SERVERS_SHAPE, explore_servers};
pub use sweeps::sweeps;
pub use targets::explore_targets;
pub use trailers::trailers;

/// The size of the explored switches: small, so that they fill up.
pub const SHAPE: Shape = Shape {
    epoch: 7,
    workers: 6,
    clients: 3,
    slices: 2,
    types: 4,
    tasks_per_slice: 16,
    tokens_per_slice: 64,
    replay_cells: 16,
    counters_start: u32::MAX - 7,
    servers: 0,
    program: TestedProgram::Rain,
    polls_ahead: 0,
};

/// The ages of tasks at arrival, the oldest last. The last but one is kept in steps, and is between two of
/// them.
pub(crate) const AGES: [u32; 6] = [0, 0, 0, 3_000, (1 << 20) + 1, u32::MAX - 2];
/// The unit of the longest pauses, in ns. A pause has up to four billion units: one minute, or 36. A
/// programmable switch's clock wraps after 78 hours, and no task of a vector waits for longer.
const PAUSE_UNIT_NS: u64 = 16;
const PAUSE_UNIT_OF_HOURS_NS: u64 = 500;

/// How many workers and clients exist at the start; the last index of each stays free.
const WORKERS: u16 = SHAPE.workers - 1;
const CLIENTS: u16 = SHAPE.clients - 1;

/// A vector with `steps` steps after those that set the rack up.
pub fn explore(seed: u64, steps: usize) -> Vector {
    let mut rack = Rack::new(seed, SHAPE);
    rack.set_up();
    (0..steps).for_each(|_| rack.step());
    rack.end()
}

/// A vector in which tasks wait for hours and days.
pub fn explore_hours(seed: u64, steps: usize) -> Vector {
    let mut rack = Rack::new(seed, SHAPE);
    rack.vector.name = format!("hours-{seed}");
    rack.pause_unit_ns = PAUSE_UNIT_OF_HOURS_NS;
    rack.set_up();
    (0..steps).for_each(|_| rack.step());
    rack.end()
}

/// What the rack's hosts know.
struct Rack {
    dice: ChaCha8Rng,
    clocks: ChaCha8Rng,
    model: Model,
    vector: Vector,
    now_ns: u64,
    pause_unit_ns: u64,
    /// Whether slices have targets, and pauses are rare.
    has_targets: bool,
    workers: [Host; SHAPE.workers as usize],
    clients: [u32; SHAPE.clients as usize],
    /// Tokens accepted since the rings were last known to have room.
    open: [bool; SHAPE.slices as usize],
}

/// A worker's registration, and how many tokens it issued in it.
#[derive(Clone, Copy)]
struct Host {
    generation: u32,
    issued: u32,
    slice: u16,
}

impl Rack {
    fn new(seed: u64, shape: Shape) -> Self {
        let host = Host { generation: 1, issued: SHAPE.counters_start, slice: 0 };
        let mut clocks = ChaCha8Rng::seed_from_u64(seed);
        clocks.set_stream(1);
        Self {
            dice: ChaCha8Rng::seed_from_u64(seed),
            clocks,
            model: Model::new(&shape),
            vector: Vector::new(&format!("explored-{seed}"), "a random walk", shape),
            now_ns: 1_000_000,
            pause_unit_ns: PAUSE_UNIT_NS,
            has_targets: false,
            workers: [host; SHAPE.workers as usize],
            clients: [SHAPE.counters_start; SHAPE.clients as usize],
            open: [true; SHAPE.slices as usize],
        }
    }

    /// Sets up two slices, for types 0 and 1; most workers are in the first. Type 3 has no slice.
    fn set_up(&mut self) {
        for slice in 0..SHAPE.slices {
            self.set_slice(slice, true, if slice == 0 { 16 } else { 3 });
            self.take(Step::SetType { r#type: slice, slice: Some(slice) });
        }
        self.take(Step::SetType { r#type: 2, slice: Some(0) });
        for client in 0..CLIENTS {
            self.set_client(client);
        }
        for worker in 0..WORKERS {
            self.workers[usize::from(worker)].slice = u16::from(worker == WORKERS - 1);
            self.admit(worker);
        }
    }

    fn end(mut self) -> Vector {
        let Ok(after) = self.model.after();
        self.vector.after = after;
        self.vector
    }

    fn step(&mut self) {
        self.now_ns += match self.below(8) {
            0 => 0,
            1..=7 if self.has_targets && self.below(64) > 0 => u64::from(self.below(30_000)),
            1..=5 => u64::from(self.below(100_000)),
            6 => u64::from(self.below(1_000_000_000)),
            _ => u64::from(self.below(4_000_000_000)) * self.pause_unit_ns,
        };
        if self.vector.shape.program == TestedProgram::RackSched && self.below(4) == 0 {
            return self.reply();
        }
        // Long spells of tokens or tasks drive the queue to either side.
        let spell = (self.vector.steps.len() / 40) % 3;
        let (tasks, tokens) = [(40, 40), (62, 18), (18, 62)][spell];
        match self.below(100) {
            draw if draw < tasks => self.submit(),
            draw if draw < tasks + tokens => self.token(),
            80..=84 => self.probe(),
            85..=88 => self.bent(),
            89..=92 => self.sweep(),
            93..=95 => self.regenerate(),
            _ => self.rearrange(),
        }
    }

    /// Sends a worker's next TOKEN, or one with an error.
    fn token(&mut self) {
        let worker = self.below(u32::from(WORKERS)) as u16;
        let host = self.workers[usize::from(worker)];
        // Not tried: more tokens than a ring holds, which would be a bug of the controller.
        let parked = self.model_tokens(host.slice);
        if parked + 9 > SHAPE.tokens_per_slice {
            return self.submit();
        }
        let issued = host.issued.wrapping_add(match self.below(12) {
            0 => 0,
            1 => 2,
            2 => self.below(12),
            _ => 1,
        });
        if issued.wrapping_sub(host.issued) == 1 {
            self.workers[usize::from(worker)].issued = issued;
        }
        let nonce = self.dice.next_u32();
        let mut token = Token {
            epoch: Epoch(SHAPE.epoch),
            key: worker_key(worker),
            worker: WorkerId(worker),
            generation: Generation(host.generation),
            nonce: Nonce(nonce),
            issued: Serial(issued),
            rank: Rank::behind(nonce % 8),
        };
        let mut from = worker_at(worker);
        match self.below(48) {
            0 => token.epoch = Epoch(SHAPE.epoch - 1),
            1 => token.key = Key(1),
            2 => token.worker = WorkerId(worker + 1),
            3 => token.worker = WorkerId(SHAPE.workers),
            4 => token.generation = Generation(host.generation.wrapping_sub(1)),
            5 => from = client_at(0),
            6 => token.epoch = Epoch(SHAPE.epoch + 1),
            7 => from.set_port(from.port() + 1),
            8 => from = elsewhere(from),
            _ => {}
        }
        self.packet(from, &Packet::Token(token), &[]);
    }

    fn probe(&mut self) {
        let worker = self.below(u32::from(SHAPE.workers) + 1) as u16;
        let generation = self.workers.get(usize::from(worker)).map_or(1, |host| host.generation);
        let mut probe = Probe {
            epoch: Epoch(SHAPE.epoch),
            key: worker_key(worker),
            worker: WorkerId(worker),
            generation: Generation(generation),
            nonce: Nonce(self.dice.next_u32()),
        };
        match self.below(8) {
            0 => probe.epoch = Epoch(9),
            1 => probe.key = Key(1),
            2 => probe.generation = Generation(generation + 1),
            _ => {}
        }
        let from = if self.below(12) == 0 { worker_at(worker + 1) } else { worker_at(worker) };
        self.packet(from, &Packet::Probe(probe), &[]);
    }

    /// Sends a client's next task, or one with an error.
    fn submit(&mut self) {
        let client = self.below(u32::from(CLIENTS)) as u16;
        let next = &mut self.clients[usize::from(client)];
        let mut sequence = *next;
        *next = next.wrapping_add(1);
        let mut attempt = 1;
        match self.below(16) {
            0 => sequence = sequence.wrapping_sub(1),
            1 => (sequence, attempt) = (sequence.wrapping_sub(1), 2),
            2 => sequence = sequence.wrapping_sub(self.below(20)),
            _ => {}
        }
        let body: Vec<u8> = match self.below(8) {
            0 => (0..9 + self.below(700)).map(|at| (at * 7) as u8).collect(),
            1..5 if self.vector.shape.servers > 0 => self.large_body(),
            _ => Vec::new(),
        };
        let payload = self.payload(&body);
        let mut submit = Submit {
            epoch: Epoch(SHAPE.epoch),
            key: client_key(client),
            client: ClientId(client),
            task: TaskId { incarnation: incarnation(client), sequence: Serial(sequence) },
            attempt: Attempt(attempt),
            task_type: TaskType([0, 0, 0, 0, 0, 1, 1, 2][self.below(8) as usize]),
            priority: self.below(256) as u8,
            constraints: self.below(256) as u8,
            age: Age(AGES[self.below(6) as usize]),
            budget: self.budget(),
            payload,
        };
        let mut from = client_at(client);
        match self.below(48) {
            0 => submit.epoch = Epoch(SHAPE.epoch - 1),
            1 => submit.key = Key(1),
            2 => submit.client = ClientId(client + 1),
            3 => submit.client = ClientId(SHAPE.clients + 2),
            4 => submit.task_type = TaskType(3),
            5 => submit.task_type = TaskType(900),
            6 => from = worker_at(0),
            7 => from.set_port(from.port() + 1),
            8 => from = elsewhere(from),
            9 => return self.job(from, &submit),
            _ => {}
        }
        self.packet(from, &Packet::Submit(submit), &body);
    }

    /// Sends this task with others behind it in one submission, which Rain refuses.
    fn job(&mut self, from: SocketAddr, first: &Submit) {
        let Some(mut job) = TaskJob::of(*first) else { return };
        for _ in 0..=self.below(4) {
            let sequence = first.task.sequence.plus(job.tasks().into());
            let task = TaskId { sequence, ..first.task };
            job.push(&Submit { task, payload: self.payload(&[]), ..*first });
        }
        self.packet(from, &Packet::Job(job), &[]);
    }

    fn payload(&mut self, body: &[u8]) -> Payload {
        if !body.is_empty() {
            return Payload { len: body.len() as u16, inline: large_descriptor(body), ..Payload::EMPTY };
        }
        let len = self.below(9) as u16;
        let mut inline = self.dice.next_u64().to_be_bytes();
        inline[usize::from(len)..].fill(0);
        Payload { len, inline, ..Payload::EMPTY }
    }

    /// Sends a packet of any kind in which a byte was changed, or bytes are missing or added.
    fn bent(&mut self) {
        let skipped = self.below(6) as usize;
        let mut before = self.vector.steps.iter().rev().filter_map(|step| match step {
            Step::Packet { from, r#in, out, .. } => Some((*from, r#in.clone(), out.clone())),
            _ => None,
        });
        let Some((from, mut bytes, out)) = before.nth(skipped) else { return };
        if let (Some(out), 0) = (out, self.below(3)) {
            bytes = out.bytes;
        }
        if bytes.len() < HEADER_BYTES {
            return;
        }
        let at = self.below(bytes.len() as u32) as usize;
        match self.below(9) {
            0 => bytes.truncate(at),
            1 => bytes.push(0),
            2 => bytes[1] = self.below(14) as u8,
            3 => bytes[self.below(4) as usize] = self.below(100) as u8,
            4 => bytes[at] ^= 1 << self.below(8),
            5 => {
                let kind = 1 + self.below(12) as u8;
                bytes.fill(0);
                bytes[..4].copy_from_slice(&[1, kind, 88, self.below(6) as u8]);
            }
            6 => bytes[38..40].fill([0xff, 0][self.below(2) as usize]),
            _ => bytes[at.min(87)] = self.below(256) as u8,
        }
        // Nothing is left of a budget that a change made: Rain refuses such a task, and the kernel's switch
        // leaves it to its worker.
        if bytes.len() >= HEADER_BYTES && [Kind::Submit, Kind::Job].map(|kind| kind as u8).contains(&bytes[1])
        {
            bytes[80..82].fill(0);
        }
        // A TOKEN that a change turned into a valid one is granted and may park.
        if (0..SHAPE.slices).any(|slice| self.model_tokens(slice) + 9 > SHAPE.tokens_per_slice) {
            return;
        }
        self.datagram(from, bytes);
    }

    fn sweep(&mut self) {
        let (slice, tasks) = (self.below(u32::from(SHAPE.slices)) as u16, self.below(3) == 0);
        let left = [0, 1, 3, 20, 300][self.below(5) as usize];
        let at_ns = self.looked_ns();
        self.take(Step::Sweep { at_ns, slice, tasks, left, out: None, rounds: 0 });
    }

    /// Changes a worker's generation step by step, or only in part.
    fn regenerate(&mut self) {
        let worker = self.below(u32::from(WORKERS)) as u16;
        let open = self.below(4) != 0;
        let host = &mut self.workers[usize::from(worker)];
        self.vector.steps.reserve(4);
        let closed = worker_step(worker, host, false);
        host.generation = host.generation.wrapping_add(1);
        let generation = host.generation;
        self.take(closed);
        self.take(Step::RaiseGeneration { worker, generation });
        self.take(Step::ResetCounters { worker, start: SHAPE.counters_start });
        self.workers[usize::from(worker)].issued = SHAPE.counters_start;
        let host = self.workers[usize::from(worker)];
        self.take(worker_step(worker, &host, open));
    }

    /// Changes something else in the tables.
    fn rearrange(&mut self) {
        let (worker, slice) =
            (self.below(u32::from(WORKERS)) as u16, self.below(u32::from(SHAPE.slices)) as u16);
        match self.below(9) {
            0 => {
                let open = !self.open[usize::from(slice)];
                self.set_slice(slice, open, 16);
            }
            1 => {
                let limit = self.below(17);
                self.set_slice(slice, true, limit);
            }
            2 => self.take(Step::ClearWorker { worker }),
            // Half of a controller's change: its steps are small, and a packet may come between any two of
            // them.
            7 => {
                let host = self.workers[usize::from(worker)];
                self.take(worker_step(worker, &host, false));
            }
            8 => {
                let generation = self.workers[usize::from(worker)].generation.wrapping_add(1);
                self.take(Step::RaiseGeneration { worker, generation });
            }
            3 => self.take(Step::ClearClient { client: self.vector.steps.len() as u16 % CLIENTS }),
            4 => {
                let client = self.below(u32::from(CLIENTS)) as u16;
                self.set_client(client);
            }
            5 => {
                let slice = [None, Some(0), Some(1)][(worker % 3) as usize];
                self.take(Step::SetType { r#type: 2, slice });
            }
            _ => self.admit(worker),
        }
    }

    fn set_slice(&mut self, slice: u16, open: bool, limit: u32) {
        self.open[usize::from(slice)] = open;
        let retry_after_ns = [500, 7_000_000_000][usize::from(slice)];
        let (target_ns, expected) = if self.has_targets {
            let target_ns = [300_000, 300_000, 8, 150_000, 0][self.below(5) as usize];
            (target_ns, [0, 0, 2, 9][self.below(4) as usize])
        } else {
            (0, 0)
        };
        self.take(Step::SetSlice { slice, open, limit, retry_after_ns, target_ns, expected });
    }

    fn set_client(&mut self, client: u16) {
        self.row_of(client, incarnation(client));
    }

    fn admit(&mut self, worker: u16) {
        let host = &mut self.workers[usize::from(worker)];
        host.issued = SHAPE.counters_start;
        let (row, generation) = (worker_step(worker, host, true), host.generation);
        self.take(Step::RaiseGeneration { worker, generation });
        self.take(Step::ResetCounters { worker, start: SHAPE.counters_start });
        self.take(row);
    }

    fn packet(&mut self, from: SocketAddr, packet: &Packet, body: &[u8]) {
        self.datagram(from, encoded(packet, body));
    }

    fn datagram(&mut self, from: SocketAddr, bytes: Vec<u8>) {
        let at_ns = self.looked_ns();
        self.take(Step::Packet { at_ns, from, r#in: bytes, out: None, written: Vec::new(), rounds: 0 });
    }

    /// When a pass read the clock. A pass on another CPU may have read it before the previous pass began,
    /// and reach the queue after it.
    fn looked_ns(&mut self) -> u64 {
        let before = match self.clocks.next_u32() % 64 {
            0 => u64::from(self.clocks.next_u32()) / 2,
            1..=8 => u64::from(self.clocks.next_u32() % 50_000),
            _ => 0,
        };
        self.now_ns.saturating_sub(before)
    }

    /// Performs a step on the model, and records the step with its output.
    fn take(&mut self, mut step: Step) {
        let Ok(left) = take(&mut self.model, &step, SHAPE.epoch);
        step.set_left(left);
        self.vector.steps.push(step);
    }

    fn model_tokens(&mut self, slice: u16) -> u32 {
        let Ok(after) = self.model.after();
        after.slices[usize::from(slice)].balance.max(0) as u32
    }

    fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.dice.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

fn encoded(packet: &Packet, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; encoded_len(packet)];
    encode(packet, body, &mut bytes).expect("legal, and the buffer is as long");
    bytes
}

fn worker_step(worker: u16, host: &Host, open: bool) -> Step {
    let (key, at) = (worker_key(worker).0, worker_at(worker));
    Step::SetWorker { worker, key, at, slice: host.slice, generation: host.generation, open }
}

/// Every other host has an IPv6 address.
fn worker_at(worker: u16) -> SocketAddr {
    let ip = if worker % 2 == 1 {
        [0xfd00, 0, 0, 0, 0, 0, 1, worker].into()
    } else {
        IpAddr::from([10, 0, 1, worker as u8])
    };
    SocketAddr::new(ip, 100 + worker)
}

fn client_at(client: u16) -> SocketAddr {
    let ip = if client % 2 == 1 {
        [0xfd00, 0, 0, 0, 0, 0, 2, client].into()
    } else {
        IpAddr::from([10, 0, 2, client as u8])
    };
    SocketAddr::new(ip, 200 + client)
}

/// Another host's address, which differs in its first part.
fn elsewhere(mut at: SocketAddr) -> SocketAddr {
    at.set_ip(match at.ip() {
        IpAddr::V4(ip) => IpAddr::from([11, ip.octets()[1], ip.octets()[2], ip.octets()[3]]),
        IpAddr::V6(ip) => {
            let mut parts = ip.segments();
            parts[0] += 1;
            IpAddr::from(parts)
        }
    });
    at
}

fn worker_key(worker: u16) -> Key {
    Key(0x1000 + u32::from(worker))
}

fn client_key(client: u16) -> Key {
    Key(0x2000 + u32::from(client))
}

fn incarnation(client: u16) -> Incarnation {
    Incarnation(0x9900_0000_0000_0001 + u64::from(client))
}
