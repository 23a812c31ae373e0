//! Measures the cost of each Draconis policy: a task and the poll that takes it, with all their
//! recirculations. Each cost is divided by the cost of plain `draconis` in the same run.
//!
//! Some tasks always wait, so that every poll finds one. Tasks have the four classes by turns, every fourth
//! task needs a label that every second worker has, and a job holds five tasks. A policy that was not asked
//! for classes, labels or jobs takes the tasks in their order. Packets are made before the clock starts.
//! The policies take turns, batch by batch.
//!
//! The bench prints one line of JSON, and fails if a pass allocates.

use std::hint::black_box;
use std::time::Instant;

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{ClientRow, SliceRow, TableAnswer, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, Endpoint, Epoch, Generation, Incarnation, Key, Nanos, Packet, Payload, Serial, SliceId, Submit,
    TaskId, TaskJob, TaskType, Token, WorkerId,
};

/// Tasks per timed batch, a multiple of the tasks in a job.
const BATCH: u32 = 120;
const BATCHES: usize = 15_000;
/// Tasks that wait throughout the bench.
const STANDING: u32 = 30;
const WORKERS: u16 = 64;
const CLIENT: Endpoint = Endpoint { ip: [0; 16], port: 1_000 };
const GPU: Labels = Labels(1);
/// The policies. The first is the one that the others are compared with.
const ASKED: [&str; 6] = [
    "draconis",
    "draconis:classes=2",
    "draconis:classes=4",
    "draconis:labels",
    "draconis:jobs=5",
    "draconis:as-published",
];

fn main() {
    let mut benches = ASKED.map(Bench::new);
    let mut blocks = ASKED.map(|_| Vec::with_capacity(BATCHES));
    for _ in 0..BATCHES {
        blocks.iter_mut().zip(&mut benches).for_each(|(blocks, bench)| blocks.push(bench.batch()));
    }
    // Batches are short, so that the median batch is one that no interrupt disturbed.
    let ns = blocks.map(|blocks| median(blocks) / f64::from(BATCH));
    for bench in &benches {
        let served = bench.served + u64::from(bench.program.waiting());
        assert_eq!(served, u64::from(bench.tasks), "each task is served, or waits");
    }
    let allocations = allocation_counter::measure(|| {
        for bench in &mut benches {
            bench.take();
        }
    });
    let cases: Vec<String> = benches
        .iter()
        .zip(ns)
        .zip(ASKED)
        .map(|((bench, of), policy)| {
            let (ratio, passes) = (of / ns[0], bench.passes as f64 / bench.served as f64);
            format!(r#"{{"policy":"{policy}","ns":{of:.2},"ratio":{ratio:.3},"passes":{passes:.3}}}"#)
        })
        .collect();
    println!(r#"{{"bench":"draconis_policies","cases":[{}]}}"#, cases.join(","));
    assert_eq!(allocations.count_total, 0, "Draconis allocates per packet");
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// A policy, and the packets of its next batch.
struct Bench {
    program: Box<dyn Program>,
    jobs: u32,
    tasks: u32,
    tokens: u32,
    packets: Vec<Arrival>,
    passes: u64,
    served: u64,
}

impl Bench {
    fn new(asked: &str) -> Self {
        let choice = Choice::parse(asked).expect("it is known");
        let config = choice.traits().full_size(Epoch(1));
        let mut program = choice.build(config);
        register(&mut *program, config, choice.traits().kinds);
        let (jobs, packets) = (choice.traits().jobs.into(), Vec::with_capacity(2 * BATCH as usize));
        let mut bench = Self { program, jobs, tasks: 0, tokens: 0, packets, passes: 0, served: 0 };
        (0..STANDING / bench.jobs).for_each(|_| bench.next_tasks());
        bench.take();
        bench.passes = 0;
        bench
    }

    /// Runs the next batch, and returns the nanoseconds that its [`BATCH`] tasks took.
    fn batch(&mut self) -> f64 {
        for _ in 0..BATCH / self.jobs {
            self.next_tasks();
            (0..self.jobs).for_each(|_| self.next_token());
        }
        let begun = Instant::now();
        self.take();
        begun.elapsed().as_nanos() as f64
    }

    /// Passes the packets that were made, with all their recirculations.
    fn take(&mut self) {
        let now = Nanos(u64::from(self.tasks));
        let (mut passes, mut served) = (0, 0);
        for arrival in black_box(&self.packets) {
            let mut verdict = self.program.pass(now, *arrival);
            passes += 1;
            while let Verdict::Again(circulating) = verdict {
                verdict = self.program.pass(now, Arrival::Round(circulating));
                passes += 1;
            }
            served += u64::from(matches!(&verdict, Verdict::Send { packet: Packet::Dispatch(_), .. }));
            black_box(&verdict);
        }
        self.packets.clear();
        (self.passes, self.served) = (self.passes + passes, self.served + served);
    }

    /// Makes the next task, or as many tasks as a job holds.
    fn next_tasks(&mut self) {
        let first = submit(self.tasks);
        let mut packet = Packet::Submit(first);
        if self.jobs > 1 {
            let mut job = TaskJob::of(first).expect("it is short");
            (1..self.jobs).for_each(|at| assert!(job.push(&Submit { task: task(self.tasks + at), ..first })));
            packet = Packet::Job(job);
        }
        self.tasks += self.jobs;
        self.packets.push(Arrival::Wire { from: CLIENT, packet, room: true });
    }

    fn next_token(&mut self) {
        let worker = (self.tokens % u32::from(WORKERS)) as u16;
        self.tokens += 1;
        let packet = Packet::Token(Token {
            epoch: Epoch(1),
            key: Key(worker.into()),
            worker: WorkerId(worker),
            generation: Generation(1),
            issued: Serial(self.tokens.div_ceil(WORKERS.into())),
            ..Token::default()
        });
        self.packets.push(Arrival::Wire { from: at(worker), packet, room: true });
    }
}

fn submit(turn: u32) -> Submit {
    Submit {
        epoch: Epoch(1),
        task: task(turn),
        attempt: Attempt(1),
        task_type: TaskType(1),
        priority: (turn % 4) as u8,
        constraints: if turn.is_multiple_of(4) { GPU.0 } else { Labels::NONE.0 },
        payload: Payload { len: 8, inline: [1; 8], ..Payload::EMPTY },
        ..Submit::default()
    }
}

fn task(turn: u32) -> TaskId {
    TaskId { incarnation: Incarnation(7), sequence: Serial(turn) }
}

fn at(worker: u16) -> Endpoint {
    Endpoint { ip: [0; 16], port: worker }
}

/// Registers one slice, one client, and the workers. Workers are of two kinds by turns if the program tells
/// kinds apart.
fn register(program: &mut dyn Program, config: Config, kinds_max: u8) {
    let mut set = |op| assert_eq!(program.table(op), TableAnswer::Done, "{op:?}");
    let kinds = [Labels::NONE, GPU];
    let serving = Serving::of(&kinds, &kinds).expect("two are told apart");
    let slice = SliceRow { open: true, limit: config.tasks_per_slice, serving, ..SliceRow::default() };
    set(TableOp::SetSlice(SliceId(0), slice));
    set(TableOp::SetType(TaskType(1), Some(SliceId(0))));
    for worker in 0..WORKERS {
        let row = WorkerRow {
            key: Key(worker.into()),
            at: at(worker),
            generation: Generation(1),
            open: true,
            kind: (worker % u16::from(kinds_max.min(2))) as u8,
            ..WorkerRow::default()
        };
        set(TableOp::RaiseGeneration(WorkerId(worker), Generation(1)));
        set(TableOp::SetWorker(WorkerId(worker), Some(row)));
    }
    let row = ClientRow { at: CLIENT, incarnation: Incarnation(7), ..ClientRow::default() };
    set(TableOp::SetClient(sluice_wire::ClientId(0), Some((row, Serial(0)))));
}
