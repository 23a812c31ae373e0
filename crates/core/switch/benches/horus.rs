//! Measures the cost of a task in Horus' switches: a spine above 20 racks, a leaf with 24 workers below it,
//! and the switch of a rack without a spine.
//!
//! Each switch runs twice: once every task finds an idle node, once no node is idle. The cost of a task is
//! the cost of all its passes: the task's own, those of its REPLY at a leaf, and at a spine the UPDATE that
//! a rack sends after as many tasks as it has workers. Packets are made before the clock starts. The
//! switches take turns, batch by batch, in one run.
//!
//! The bench prints one line of JSON.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use sluice_switch::horus::{Average, FabricReading, Horus, RackSize, Spine, SpineLink};
use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::tables::{ClientRow, SliceRow, TableAnswer, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Dispatch, Endpoint, Epoch, Generation, Incarnation, Key, MeanQueue, Nanos, Packet,
    RackNews, Reply, Serial, SliceId, Submit, TaskId, TaskType, Update, WorkerId,
};

const RACKS: u16 = 20;
const WORKERS: u16 = 24;
/// Tasks at each worker that is not idle.
const EACH: u32 = 4;
const BATCH: u32 = 120;
const BATCHES: usize = 5_000;
const EPOCH: Epoch = Epoch(1);
const CLIENT: Endpoint = at(1_000);
const SPINE: Endpoint = at(2_000);

const fn at(port: u16) -> Endpoint {
    Endpoint { ip: [0; 16], port }
}

fn main() {
    let kinds = [Kind::Spine, Kind::Leaf, Kind::Alone];
    let mut benches: Vec<Bench> =
        kinds.into_iter().flat_map(|kind| [false, true].map(|busy| Bench::new(kind, busy))).collect();
    for _ in 0..BATCHES {
        benches.iter_mut().for_each(Bench::batch);
    }
    let shown: Vec<String> = benches.iter().map(Bench::json).collect();
    println!(r#"{{"bench":"horus","cases":[{}]}}"#, shown.join(","));
}

/// The kind of switch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Spine,
    Leaf,
    Alone,
}

/// A switch, and its cost so far.
struct Bench {
    kind: Kind,
    busy: bool,
    program: Box<dyn Program>,
    next: u32,
    /// Tasks at each node, then the outstanding tasks of all nodes, the oldest first.
    held: Vec<u32>,
    outstanding: VecDeque<Dispatch>,
    /// Tasks that each rack got since it last told its mean queue.
    untold: Vec<u32>,
    passes: u64,
    ns: Vec<f64>,
}

impl Bench {
    fn new(kind: Kind, busy: bool) -> Self {
        let program = match kind {
            Kind::Spine => spine(busy),
            Kind::Leaf => leaf(),
            Kind::Alone => alone(),
        };
        let nodes = if kind == Kind::Spine { RACKS } else { WORKERS };
        let mut bench = Self {
            kind,
            busy,
            program,
            next: 0,
            held: vec![0; nodes.into()],
            outstanding: VecDeque::new(),
            untold: vec![0; nodes.into()],
            passes: 0,
            ns: Vec::new(),
        };
        if busy && kind != Kind::Spine {
            for _ in 0..u32::from(WORKERS) * EACH {
                let task = bench.task();
                let dispatch = bench.settled(task);
                bench.sent(dispatch);
            }
        }
        bench.passes = 0;
        bench
    }

    /// Runs a batch of tasks, from the first pass of each to the last pass of its reply.
    fn batch(&mut self) {
        let tasks: Vec<Arrival> = (0..BATCH).map(|_| self.task()).collect();
        let begun = Instant::now();
        for task in tasks {
            let dispatch = self.settled(black_box(task));
            self.sent(dispatch);
            self.ended();
        }
        self.ns.push(begun.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }

    /// The next task, as a switch of this kind receives it.
    fn task(&mut self) -> Arrival {
        self.next += 1;
        let task = TaskId { incarnation: Incarnation(7), sequence: Serial(self.next) };
        let (from, packet) = match self.kind {
            Kind::Leaf => (
                SPINE,
                Packet::Dispatch(Dispatch {
                    epoch: EPOCH,
                    sent: Serial(self.next),
                    task,
                    attempt: Attempt(1),
                    ..Dispatch::default()
                }),
            ),
            Kind::Spine | Kind::Alone => (
                CLIENT,
                Packet::Submit(Submit {
                    epoch: EPOCH,
                    key: Key(1),
                    task,
                    attempt: Attempt(1),
                    ..Submit::default()
                }),
            ),
        };
        Arrival::Wire { from, packet, room: true }
    }

    fn settled(&mut self, arrival: Arrival) -> Dispatch {
        match self.passed(arrival) {
            Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => dispatch,
            other => panic!("no DISPATCH: {other:?}"),
        }
    }

    fn passed(&mut self, arrival: Arrival) -> Verdict {
        let now = Nanos(self.next.into());
        let mut verdict = self.program.pass(now, arrival);
        self.passes += 1;
        while let Verdict::Again(circulating) = verdict {
            verdict = self.program.pass(now, Arrival::Round(circulating));
            self.passes += 1;
        }
        black_box(self.program.mirrored());
        verdict
    }

    fn sent(&mut self, dispatch: Dispatch) {
        self.held[usize::from(dispatch.worker.0)] += 1;
        self.untold[usize::from(dispatch.worker.0)] += 1;
        self.outstanding.push_back(dispatch);
    }

    /// Ends the oldest task, and passes to the switch the packet that tells it so.
    fn ended(&mut self) {
        let Some(task) = self.outstanding.pop_front() else { return };
        let node = usize::from(task.worker.0);
        self.held[node] -= 1;
        if self.kind != Kind::Spine {
            let load = self.held[node];
            let reply =
                Reply { epoch: EPOCH, worker: task.worker, task: task.task, load, ..Reply::default() };
            let arrival =
                Arrival::Wire { from: worker_at(task.worker.0), packet: Packet::Reply(reply), room: true };
            let passed = self.passed(arrival);
            assert!(matches!(passed, Verdict::Send { .. }), "{passed:?}");
        } else if self.busy && self.untold[node] >= WORKERS.into() {
            self.untold[node] = 0;
            let told = self.passed(told(task.worker.0, full()));
            assert_eq!(told, Verdict::Parked);
        }
    }

    fn json(&self) -> String {
        let switch = match self.kind {
            Kind::Spine => "spine",
            Kind::Leaf => "leaf",
            Kind::Alone => "rack",
        };
        let tasks = BATCHES as f64 * f64::from(BATCH);
        format!(
            r#"{{"switch":"{switch}","busy":{},"ns":{:.1},"passes":{:.3}}}"#,
            self.busy,
            median(self.ns.clone()),
            self.passes as f64 / tasks
        )
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn config(workers: u16) -> Config {
    Config { workers, clients: 4, slices: 1, types: 1, replay_cells: 1_024, ..Config::full(EPOCH) }
}

fn done(program: &mut dyn Program, op: TableOp) {
    assert_eq!(program.table(op), TableAnswer::Done, "{op:?}");
}

fn open(program: &mut dyn Program, nodes: u16) {
    let slice = SliceRow { open: true, limit: 16, ..SliceRow::default() };
    done(program, TableOp::SetSlice(SliceId(0), slice));
    done(program, TableOp::SetType(TaskType(0), Some(SliceId(0))));
    let client = ClientRow { key: Key(1), at: CLIENT, ..ClientRow::default() };
    done(program, TableOp::SetClient(ClientId(0), Some((client, Serial(0)))));
    for node in 0..nodes {
        let row = WorkerRow { at: worker_at(node), open: true, ..WorkerRow::default() };
        done(program, TableOp::SetWorker(WorkerId(node), Some(row)));
    }
}

const fn worker_at(node: u16) -> Endpoint {
    at(3_000 + node)
}

/// A rack whose workers have four tasks each.
fn full() -> RackNews {
    let share = Average::share(RackSize::new(WORKERS.into()).expect("a size"));
    let mean = Average::of(u32::from(WORKERS) * EACH, share).expect("it fits");
    RackNews::Load(MeanQueue(mean.bits()))
}

fn told(leaf: u16, news: RackNews) -> Arrival {
    let update =
        Update { epoch: EPOCH, leaf: WorkerId(leaf), generation: Generation(0), pool: SliceId(0), news };
    Arrival::Wire { from: worker_at(leaf), packet: Packet::Update(update), room: true }
}

fn spine(busy: bool) -> Box<dyn Program> {
    let mut spine = Box::new(Spine::new(FabricReading::default(), config(RACKS)).expect("few leaves"));
    open(&mut *spine, RACKS);
    let size = RackSize::new(WORKERS.into()).expect("a size");
    for leaf in 0..RACKS {
        let row = (WorkerId(leaf), Generation(0));
        spine.set_workers(SliceId(0), row, Some(size)).expect("its row is there");
        let news = if busy { full() } else { RackNews::Idle };
        assert_eq!(spine.pass(Nanos(0), told(leaf, news)), Verdict::Parked);
    }
    spine
}

fn leaf() -> Box<dyn Program> {
    let mut leaf = Box::new(Horus::in_fabric(FabricReading::default(), config(WORKERS), 1));
    open(&mut *leaf, WORKERS);
    let link = SpineLink { at: SPINE, epoch: EPOCH, ..SpineLink::default() };
    leaf.set_spine(0, Some((link, Serial(0)))).expect("room for it");
    leaf.link(SliceId(0), Some(0)).expect("a spine that it knows");
    leaf
}

fn alone() -> Box<dyn Program> {
    let mut rack = Choice::parse("horus").expect("a program of ours").build(config(WORKERS));
    open(&mut *rack, WORKERS);
    rack
}
