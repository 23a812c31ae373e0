//! Measures the cost of Rain's decision: one token and one task, matched, beside a bare ring that does the
//! same match.
//!
//! The ring implements Rain's interface: it takes the same two packets, holds the same entries and returns
//! the same packet. It knows no sources, epochs, generations, counters, replays, slices or limits, so the
//! ratio of the two is the price of these rules. Packets are made before the clock starts, for both sides.
//! Some entries always wait, so that neither side pops an entry which it has just written. The two sides
//! take turns, batch by batch, in one run. Rain with ranked tokens, with classes and with labels takes
//! turns too, and each is compared with plain Rain.
//!
//! The bench prints one line of JSON, with the cost of copying an entry in and out of a ring, and fails if
//! Rain allocates.

use std::hint::black_box;
use std::time::Instant;

use sluice_switch::rain::{Kinds, Rain, Selective};
use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{ClientRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Dispatch, Endpoint, Epoch, Generation, Handle, Incarnation, Key, Nanos, Nonce, Packet,
    Payload, Rank, Serial, SliceId, Submit, TaskId, TaskType, Token, WorkerId,
};

/// Matches per timed batch. Their packets fit the nearest cache, as a driver's batch does.
const BATCH: u32 = 128;
const BATCHES_A_TURN: u32 = 2_000;
const TURNS: usize = 15;
/// Entries that wait throughout the bench.
const STANDING: u32 = 32;
const WORKERS: u16 = 64;
/// The kinds of `rain:2,ranked`. Tokens have rank 0 and rank 1 by turns.
const RANKED: Kinds = Kinds { ranks: 2, classes: 1 };
/// The kinds of `rain:2,classes=4`. Tasks have the four classes by turns.
const CLASSED: Kinds = Kinds { ranks: 1, classes: 4 };
const CLIENTS: u16 = 16;
/// The label that every fourth task needs and every second worker has, under `rain:2,labels`.
const GPU: Labels = Labels(1);

fn main() {
    let [token_first, task_first] = [Order::TokenFirst, Order::TaskFirst].map(compare);
    let copy = median((0..TURNS).map(|_| copy_entries()).collect());
    println!(
        r#"{{"bench":"rain_decision","token_first":{},"task_first":{},"entry_copy_ns":{copy:.2}}}"#,
        token_first.json(),
        task_first.json(),
    );
    let allocations = token_first.allocations + task_first.allocations;
    assert_eq!(allocations, 0, "Rain allocates per packet");
}

/// Which of the two packets comes first and waits for the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    TokenFirst,
    TaskFirst,
}

/// The costs of both sides for one order.
struct Compared {
    ring_ns: f64,
    rain_ns: f64,
    ratio: f64,
    /// Cost with ranks, divided by the cost without.
    ranked: f64,
    /// Cost with classes, divided by the cost without.
    classed: f64,
    /// Cost with labels, divided by the cost without. Passes that recirculate are included.
    labelled: f64,
    allocations: u64,
}

impl Compared {
    fn json(&self) -> String {
        let Self { ring_ns, rain_ns, ratio, ranked, classed, labelled, allocations } = self;
        let times = format!(r#""ring_ns":{ring_ns:.2},"rain_ns":{rain_ns:.2},"ratio":{ratio:.3}"#);
        let kinds = format!(r#""ranked":{ranked:.3},"classed":{classed:.3},"labelled":{labelled:.3}"#);
        format!(r#"{{{times},{kinds},"allocations":{allocations}}}"#)
    }
}

fn compare(order: Order) -> Compared {
    let mut rain = Bench::new(order, registered(Kinds::ONE));
    let mut ranked = Bench::new(order, registered(RANKED));
    let mut classed = Bench::new(order, registered(CLASSED));
    let mut labelled = Bench::new(order, Labelled(registered_labels()));
    let mut ring = Bench::new(order, BareRing::new());
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let mut of = [0.0; 5];
        for _ in 0..BATCHES_A_TURN {
            of[0] += ring.batch();
            of[1] += rain.batch();
            of[2] += ranked.batch();
            of[3] += classed.batch();
            of[4] += labelled.batch();
        }
        turns.push(of);
    }
    let allocations = allocation_counter::measure(|| {
        rain.batch();
        ranked.batch();
        classed.batch();
        labelled.batch();
    });
    let of = |number: fn(&[f64; 5]) -> f64| median(turns.iter().map(number).collect());
    let matches = f64::from(BATCHES_A_TURN * BATCH);
    Compared {
        ring_ns: of(|turn| turn[0]) / matches,
        rain_ns: of(|turn| turn[1]) / matches,
        ratio: of(|turn| turn[1] / turn[0]),
        ranked: of(|turn| turn[2] / turn[1]),
        classed: of(|turn| turn[3] / turn[1]),
        labelled: of(|turn| turn[4] / turn[1]),
        allocations: allocations.count_total,
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Takes tokens and tasks, and matches them.
trait Matcher {
    fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict;
}

impl Matcher for Rain {
    #[inline]
    fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict {
        Program::pass(self, now, arrival)
    }
}

/// Rain with labels. A pass that recirculates is followed by its next passes at once.
struct Labelled(Selective);

impl Matcher for Labelled {
    #[inline]
    fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict {
        let mut verdict = Program::pass(&mut self.0, now, arrival);
        while let Verdict::Again(circulating) = verdict {
            verdict = Program::pass(&mut self.0, now, Arrival::Round(circulating));
        }
        verdict
    }
}

/// A matcher, and the packets of its next batch.
struct Bench<M> {
    matcher: M,
    order: Order,
    tokens: u32,
    tasks: u32,
    packets: Vec<(Arrival, Arrival)>,
}

impl<M: Matcher> Bench<M> {
    fn new(order: Order, matcher: M) -> Self {
        let mut bench = Self { matcher, order, tokens: 0, tasks: 0, packets: Vec::new() };
        for _ in 0..STANDING {
            let first = bench.first();
            assert_eq!(bench.matcher.pass(Nanos(0), first), Verdict::Parked);
        }
        bench.packets = vec![(token(0), token(0)); BATCH as usize];
        bench
    }

    /// Runs the next batch, and returns the nanoseconds that its [`BATCH`] matches took.
    fn batch(&mut self) -> f64 {
        for at in 0..self.packets.len() {
            self.packets[at] = (self.first(), self.second());
        }
        let now = Nanos(u64::from(self.tasks));
        let begun = Instant::now();
        for (first, second) in black_box(&self.packets) {
            let parked = self.matcher.pass(now, *first);
            debug_assert_eq!(parked, Verdict::Parked);
            black_box(&parked);
            let sent = self.matcher.pass(now, *second);
            debug_assert!(matches!(sent, Verdict::Send { packet: Packet::Dispatch(_), .. }));
            black_box(&sent);
        }
        begun.elapsed().as_nanos() as f64
    }

    fn first(&mut self) -> Arrival {
        if self.order == Order::TokenFirst { self.next_token() } else { self.next_task() }
    }

    fn second(&mut self) -> Arrival {
        if self.order == Order::TokenFirst { self.next_task() } else { self.next_token() }
    }

    fn next_token(&mut self) -> Arrival {
        self.tokens += 1;
        token(self.tokens - 1)
    }

    fn next_task(&mut self) -> Arrival {
        self.tasks += 1;
        let client = (self.tasks % u32::from(CLIENTS)) as u16;
        let packet = Packet::Submit(submit(client, self.tasks));
        Arrival::Wire { from: at(1_000 + client), packet, room: true }
    }
}

fn token(turn: u32) -> Arrival {
    let worker = (turn % u32::from(WORKERS)) as u16;
    let packet = Packet::Token(Token {
        epoch: Epoch(1),
        key: Key(worker.into()),
        worker: WorkerId(worker),
        generation: Generation(1),
        nonce: Nonce(turn),
        issued: Serial(turn / u32::from(WORKERS) + 1),
        rank: Rank::behind(turn % u32::from(RANKED.ranks)),
    });
    Arrival::Wire { from: at(worker), packet, room: true }
}

fn submit(client: u16, turn: u32) -> Submit {
    Submit {
        epoch: Epoch(1),
        key: Key(client.into()),
        client: ClientId(client),
        task: TaskId { incarnation: Incarnation(7), sequence: Serial(turn / u32::from(CLIENTS)) },
        attempt: Attempt(1),
        task_type: TaskType(1),
        priority: (turn % u32::from(CLASSED.classes)) as u8,
        constraints: if turn.is_multiple_of(4) { GPU.0 } else { Labels::NONE.0 },
        payload: Payload { len: 8, inline: [1; 8], ..Payload::EMPTY },
        ..Submit::default()
    }
}

fn at(host: u16) -> Endpoint {
    Endpoint { ip: [0; 16], port: host }
}

/// The size of a program on the chip.
fn full(policy: &str) -> Config {
    Choice::parse(policy).expect("a policy").traits().full_size(Epoch(1))
}

/// A switch on which all workers and clients are registered.
fn registered(kinds: Kinds) -> Rain {
    let policy = match kinds {
        RANKED => "rain:2,ranked",
        CLASSED => "rain:2,classes=4",
        _ => "rain:2",
    };
    let config = full(policy);
    let mut rain = Rain::of_kinds(config, kinds);
    register(&mut rain, config, Serving::default());
    rain
}

/// A switch with labels on which all workers and clients are registered; every second worker has a GPU.
fn registered_labels() -> Selective {
    let kinds = [Labels::NONE, GPU];
    let config = full("rain:2,labels");
    let mut rain = Selective::new(config);
    register(&mut rain, config, Serving::of(&kinds, &kinds).expect("two are told apart"));
    rain
}

fn register(rain: &mut impl Program, config: Config, serving: Serving) {
    let (limit, retry_after) = (config.tasks_per_slice, Nanos(0));
    let slice = SliceRow { open: true, limit, retry_after, serving, ..SliceRow::default() };
    rain.table(TableOp::SetSlice(SliceId(0), slice));
    rain.table(TableOp::SetType(TaskType(1), Some(SliceId(0))));
    for worker in 0..WORKERS {
        let row = WorkerRow {
            key: Key(worker.into()),
            at: at(worker),
            generation: Generation(1),
            open: true,
            kind: (usize::from(worker) % serving.kinds().len()) as u8,
            ..WorkerRow::default()
        };
        rain.table(TableOp::RaiseGeneration(WorkerId(worker), Generation(1)));
        rain.table(TableOp::SetWorker(WorkerId(worker), Some(row)));
    }
    for client in 0..CLIENTS {
        let row = ClientRow { key: Key(client.into()), at: at(1_000 + client), incarnation: Incarnation(7) };
        rain.table(TableOp::SetClient(ClientId(client), Some((row, Serial(0)))));
    }
}

/// A ring of tokens, a ring of tasks, and the addresses of workers and clients, without any rule.
struct BareRing {
    tokens: Ring<TokenRow>,
    tasks: Ring<TaskRow>,
    workers: Vec<Endpoint>,
    clients: Vec<Endpoint>,
}

impl BareRing {
    fn new() -> Self {
        let config = Config::full(Epoch(1));
        Self {
            tokens: Ring::new(config.tokens_per_slice),
            tasks: Ring::new(config.tasks_per_slice),
            workers: (0..WORKERS).map(at).collect(),
            clients: (0..CLIENTS).map(|client| at(1_000 + client)).collect(),
        }
    }

    #[inline]
    fn dispatch(&self, to: TokenRow, task: &TaskRow, now: Nanos) -> Verdict {
        let packet = Packet::Dispatch(Dispatch {
            worker: to.worker,
            generation: to.generation,
            client: task.client,
            client_at: self.clients[task.client.0 as usize],
            task: TaskId { incarnation: task.incarnation, sequence: task.sequence },
            attempt: task.attempt,
            task_type: task.task_type,
            priority: task.classes[0],
            constraints: task.classes[1],
            wait_ns: (now.0 as u32).wrapping_sub(task.arrived),
            payload: Payload { len: task.len, inline: task.inline, handle: task.handle },
            ..Dispatch::default()
        });
        Verdict::Send { to: self.workers[to.worker.0 as usize], packet }
    }
}

impl Matcher for BareRing {
    #[inline]
    fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict {
        match arrival {
            Arrival::Wire { packet: Packet::Token(Token { worker, generation, .. }), .. } => {
                let token = TokenRow { worker, generation };
                match self.tasks.pop() {
                    Some(task) => self.dispatch(token, &task, now),
                    None => self.tokens.push(token),
                }
            }
            Arrival::Wire { packet: Packet::Submit(submit), .. } => match self.tokens.pop() {
                Some(token) => self.dispatch(token, &TaskRow::of(&submit, now), now),
                None => self.tasks.push(TaskRow::of(&submit, now)),
            },
            _ => unreachable!("the bench sends tokens and tasks only"),
        }
    }
}

/// A token entry of the same size as Rain's.
#[derive(Clone, Copy, Default)]
struct TokenRow {
    worker: WorkerId,
    generation: Generation,
}

/// A task entry of the same size as Rain's.
#[derive(Clone, Copy, Default)]
struct TaskRow {
    incarnation: Incarnation,
    sequence: Serial,
    arrived: u32,
    client: ClientId,
    attempt: Attempt,
    task_type: TaskType,
    len: u16,
    inline: [u8; 8],
    handle: Handle,
    classes: [u8; 2],
}

impl TaskRow {
    #[inline]
    fn of(submit: &Submit, now: Nanos) -> Self {
        Self {
            incarnation: submit.task.incarnation,
            sequence: submit.task.sequence,
            arrived: now.0 as u32,
            client: submit.client,
            attempt: submit.attempt,
            task_type: submit.task_type,
            len: submit.payload.len,
            inline: submit.payload.inline,
            handle: submit.payload.handle,
            classes: [submit.priority, submit.constraints],
        }
    }
}

struct Ring<T> {
    rows: Vec<T>,
    head: u32,
    tail: u32,
}

impl<T: Copy + Default> Ring<T> {
    fn new(rows: u32) -> Self {
        Self { rows: vec![T::default(); rows as usize], head: 0, tail: 0 }
    }

    #[inline]
    fn push(&mut self, row: T) -> Verdict {
        let at = self.tail as usize & (self.rows.len() - 1);
        self.rows[at] = row;
        self.tail = self.tail.wrapping_add(1);
        Verdict::Parked
    }

    #[inline]
    fn pop(&mut self) -> Option<T> {
        if self.head == self.tail {
            return None;
        }
        let at = self.head as usize & (self.rows.len() - 1);
        self.head = self.head.wrapping_add(1);
        Some(self.rows[at])
    }
}

/// Nanoseconds to copy one task entry into a ring and one out, without packets and decisions. No queue is
/// cheaper.
fn copy_entries() -> f64 {
    let mut ring = Ring::new(Config::full(Epoch(1)).tasks_per_slice);
    for _ in 0..STANDING {
        ring.push(TaskRow::default());
    }
    let rows: Vec<TaskRow> = (0..BATCH).map(|turn| TaskRow::of(&submit(1, turn), Nanos(0))).collect();
    let begun = Instant::now();
    for _ in 0..BATCHES_A_TURN {
        for row in black_box(&rows) {
            ring.push(*row);
            black_box(&ring.pop());
        }
    }
    begun.elapsed().as_nanos() as f64 / f64::from(BATCHES_A_TURN * BATCH)
}
