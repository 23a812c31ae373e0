//! Tasks per core-second of the UDP switch, compared with a bare forwarder on the same sockets.
//!
//! A task is two datagrams in (SUBMIT, TOKEN) and one out (DISPATCH). The forwarder copies each SUBMIT to
//! the worker and drops each TOKEN, so both sides send and receive the same number and sizes of datagrams,
//! in the same batches. In the case where half of the tasks park, the switch writes those tasks ahead to a
//! server; the forwarder sends the server as many bytes, and a bare header for each late token. Hosts and
//! switch take turns on one thread, so that batches are always full and waiting costs nothing. Only the
//! switch's turns are measured (CPU time of the thread). Blocks of both sides alternate; the result is the
//! median of their ratios.
//!
//! The switch publishes its counters in every case. In the scraped case another thread reads them a
//! thousand times a second.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sluice_metrics::{TextForm, written};
use sluice_net::NetError;
use sluice_net::clock::thread_cpu;
use sluice_net::udp::{Socket, SocketOptions, Wait};
use sluice_switch::Config;
use sluice_switchd::SwitchdError;
use sluice_switchd::switch::{SwitchConfig, SwitchDriver, SwitchHandle};
use sluice_wire::roce::write_len;
use sluice_wire::tables::{ClientRow, RingRow, ServerRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Endpoint, Epoch, Generation, HEADER_BYTES, Handle, Incarnation, Key, Nanos, Nonce,
    Packet, Payload, Psn, Qpn, Rkey, SLOT_HEAD_BYTES, Serial, ServerId, SliceId, Submit, TaskId, TaskType,
    Token, WorkerId, encode, large_descriptor,
};

/// Tasks that the hosts send before the switch's turn, one for each worker.
const ROUND: u16 = 64;
const ROUNDS_A_BLOCK: u32 = 150;
const BLOCKS: usize = 15;
/// The switch must reach this share of the forwarder's rate.
const TARGET: f64 = 0.85;
/// The share that the switch must reach when half of the tasks park and are written ahead.
const TARGET_HALF_PARKED: f64 = 0.75;

const EPOCH: Epoch = Epoch(1);
const KEY: Key = Key(0x5eed);

/// How many bytes a WRITE has less than the SUBMIT of its task.
const WRITE_LESS: usize = HEADER_BYTES + ICRC_BYTES - write_len(SLOT_HEAD_BYTES);
const ICRC_BYTES: usize = 4;

/// The kind of tasks in a run.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    payload: usize,
    order: Order,
    is_scraped: bool,
}

/// Which packets come first in a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    TokensFirst,
    TasksFirst,
    /// Half of the tokens come first: so half of the tasks find a token, and the others park and are
    /// written ahead.
    HalfParked,
}

impl Case {
    fn target(&self) -> f64 {
        if self.order == Order::HalfParked { TARGET_HALF_PARKED } else { TARGET }
    }
}

const fn case(name: &'static str, payload: usize, order: Order) -> Case {
    Case { name, payload, order, is_scraped: false }
}

const CASES: [Case; 6] = [
    case("8 B, token first", 8, Order::TokensFirst),
    case("8 B, task first", 8, Order::TasksFirst),
    Case { is_scraped: true, ..case("8 B, task first, scraped", 8, Order::TasksFirst) },
    case("640 B, token first", 640, Order::TokensFirst),
    case("640 B, task first", 640, Order::TasksFirst),
    case("640 B, half written ahead", 640, Order::HalfParked),
];

/// A switch or a forwarder between the hosts.
trait Middle {
    /// Handles one batch. Returns how many datagrams it had.
    fn step(&mut self) -> Result<usize, NetError>;
}

impl Middle for SwitchDriver {
    fn step(&mut self) -> Result<usize, NetError> {
        Self::step(self)
    }
}

/// Forwards each SUBMIT unchanged and nothing else. With a server, sends what a switch would send, without
/// looking at it.
struct Forwarder {
    socket: Socket,
    to: Endpoint,
    server: Option<Endpoint>,
    tokens: u32,
    waiting: u32,
}

impl Middle for Forwarder {
    fn step(&mut self) -> Result<usize, NetError> {
        let taken = self.socket.receive(Wait::Forever)?;
        let (inbox, outbox) = self.socket.split();
        for index in 0..inbox.len() {
            let bytes = inbox.datagram(index).bytes;
            match (bytes[1] == 1, self.server) {
                (true, None) => outbox.send(self.to, bytes),
                (false, None) => {}
                (true, Some(_)) if self.tokens > 0 => {
                    self.tokens -= 1;
                    outbox.send(self.to, bytes);
                }
                (true, Some(server)) => {
                    self.waiting += 1;
                    outbox.send(server, &bytes[..bytes.len() - WRITE_LESS]);
                }
                (false, Some(_)) if self.waiting > 0 => {
                    self.waiting -= 1;
                    outbox.send(self.to, &bytes[..HEADER_BYTES]);
                }
                (false, Some(_)) => self.tokens += 1,
            }
        }
        outbox.flush();
        Ok(taken)
    }
}

/// The two ends of every task.
struct Hosts {
    middle: Endpoint,
    client: Socket,
    worker: Socket,
    /// The server to which tasks are written ahead.
    server: Socket,
    body: Vec<u8>,
    payload: Payload,
    rounds: u32,
}

impl Hosts {
    fn new(middle: SocketAddr, payload: usize) -> Result<Self, NetError> {
        let body: Vec<u8> = (0..payload).map(|i| i as u8).collect();
        let mut fields = Payload { len: payload as u16, inline: [0; 8], handle: Handle::NONE };
        if fields.is_large() {
            fields.inline = large_descriptor(&body);
        } else {
            fields.inline[..payload].copy_from_slice(&body);
        }
        let body = if fields.is_large() { body } else { Vec::new() };
        let (client, worker, server) = (socket(true)?, socket(true)?, socket(false)?);
        Ok(Self { middle: middle.into(), client, worker, server, body, payload: fields, rounds: 0 })
    }

    /// Sends one task to, and one token from, each worker.
    fn send(&mut self, order: Order) {
        match order {
            Order::TokensFirst => {
                self.tokens(0..ROUND);
                self.tasks();
            }
            Order::TasksFirst => {
                self.tasks();
                self.tokens(0..ROUND);
            }
            Order::HalfParked => {
                self.tokens(0..ROUND / 2);
                self.tasks();
                self.tokens(ROUND / 2..ROUND);
            }
        }
        self.rounds += 1;
    }

    fn tokens(&mut self, of: std::ops::Range<u16>) {
        for worker in of {
            let packet = Packet::Token(Token {
                epoch: EPOCH,
                key: KEY,
                worker: WorkerId(worker),
                generation: Generation(1),
                nonce: Nonce(self.rounds),
                issued: Serial(self.rounds + 1),
                ..Token::default()
            });
            let outbox = self.worker.outbox();
            outbox.send_with(self.middle, |out| encode(&packet, &[], out).expect("a legal packet"));
        }
        self.worker.flush();
    }

    fn tasks(&mut self) {
        for index in 0..ROUND {
            let sequence = Serial(self.rounds * u32::from(ROUND) + u32::from(index));
            let packet = Packet::Submit(Submit {
                epoch: EPOCH,
                key: KEY,
                client: ClientId(0),
                task: TaskId { incarnation: Incarnation(1), sequence },
                attempt: Attempt(1),
                task_type: TaskType(1),
                payload: self.payload,
                ..Submit::default()
            });
            let (body, outbox) = (&self.body, self.client.outbox());
            outbox.send_with(self.middle, |out| encode(&packet, body, out).expect("a legal packet"));
        }
        self.client.flush();
    }

    /// Receives the datagrams that came out, and checks that none is missing.
    fn collect(&mut self, order: Order) -> Result<(), NetError> {
        take(&mut self.worker, ROUND, "tasks")?;
        if order == Order::HalfParked { take(&mut self.server, ROUND / 2, "WRITEs") } else { Ok(()) }
    }
}

fn take(from: &mut Socket, count: u16, what: &str) -> Result<(), NetError> {
    let mut left = usize::from(count);
    while left > 0 {
        let taken = from.receive(Wait::Poll)?;
        assert!(taken > 0, "{left} {what} of a round did not come out");
        left -= taken;
    }
    Ok(())
}

/// A switch or forwarder with its hosts, and the CPU time that it used.
struct Side<M> {
    middle: M,
    hosts: Hosts,
    case: Case,
}

impl<M: Middle> Side<M> {
    /// CPU time per task over one block.
    fn block(&mut self) -> Result<f64, NetError> {
        let mut spent = Nanos(0);
        for _ in 0..ROUNDS_A_BLOCK {
            self.hosts.send(self.case.order);
            let mut left = 2 * usize::from(ROUND);
            let start = thread_cpu();
            while left > 0 {
                left -= self.middle.step()?;
            }
            spent = spent + thread_cpu().since(start);
            self.hosts.collect(self.case.order)?;
        }
        Ok(spent.0 as f64 / f64::from(ROUNDS_A_BLOCK) / f64::from(ROUND))
    }
}

/// The result of one case.
struct Outcome {
    case: Case,
    switch_ns: f64,
    forwarder_ns: f64,
    ratio: f64,
}

fn main() -> Result<ExitCode, SwitchdError> {
    let outcomes = CASES.into_iter().map(measure).collect::<Result<Vec<_>, _>>()?;
    for Outcome { case, switch_ns, forwarder_ns, ratio } in &outcomes {
        eprintln!(
            "{:26} switch {:9.0} tasks/core-s  forwarder {:9.0}  ratio {ratio:.3} (at least {})",
            case.name,
            1e9 / switch_ns,
            1e9 / forwarder_ns,
            case.target(),
        );
    }
    println!("{}", json(&outcomes));
    let reached = outcomes.iter().all(|outcome| outcome.ratio >= outcome.case.target());
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(case: Case) -> Result<Outcome, SwitchdError> {
    let mut switch = switch_side(case)?;
    let mut forwarder = forwarder_side(case)?;
    let _scraper = case.is_scraped.then(|| Scraper::start(&switch.middle.handle()));
    switch.block()?;
    forwarder.block()?;
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        blocks.push((switch.block()?, forwarder.block()?));
    }
    let of = |number: fn(&(f64, f64)) -> f64| median(blocks.iter().map(number).collect());
    Ok(Outcome { case, switch_ns: of(|b| b.0), forwarder_ns: of(|b| b.1), ratio: of(|b| b.1 / b.0) })
}

/// A thread that reads the switch's metrics again and again, until it is dropped.
struct Scraper(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Scraper {
    fn start(switch: &SwitchHandle) -> Self {
        let (source, stop) = (switch.counters().metrics(), Arc::new(AtomicBool::new(false)));
        let is_stopped = Arc::clone(&stop);
        let read = move || {
            while !is_stopped.load(Ordering::Relaxed) {
                let samples = source.collect().as_mut().poll(&mut Context::from_waker(Waker::noop()));
                let Poll::Ready(samples) = samples else { panic!("counters need no waiting") };
                black_box(written(samples, TextForm::OpenMetrics).expect("a string takes all"));
                thread::sleep(Duration::from_millis(1));
            }
        };
        Self(stop, Some(thread::spawn(read)))
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.1.take() {
            thread.join().expect("it reads until it is told to stop");
        }
    }
}

fn switch_side(case: Case) -> Result<Side<SwitchDriver>, SwitchdError> {
    let servers = u16::from(case.order == Order::HalfParked);
    let mut driver = SwitchDriver::new(&SwitchConfig::new(Config { servers, ..Config::full(EPOCH) }))?;
    let hosts = Hosts::new(driver.local(), case.payload)?;
    let slice = SliceRow { open: true, limit: 4_096, retry_after: Nanos(0), ..SliceRow::default() };
    let client = ClientRow { key: KEY, at: hosts.client.local().into(), incarnation: Incarnation(1) };
    let mut ops = vec![
        TableOp::SetSlice(SliceId(0), slice),
        TableOp::SetType(TaskType(1), Some(SliceId(0))),
        TableOp::SetClient(ClientId(0), Some((client, Serial(0)))),
    ];
    for worker in (0..ROUND).map(WorkerId) {
        let at = hosts.worker.local().into();
        let (slice, generation) = (SliceId(0), Generation(1));
        let row = WorkerRow { key: KEY, at, slice, generation, open: true, life: 1, ..WorkerRow::default() };
        ops.push(TableOp::RaiseGeneration(worker, generation));
        ops.push(TableOp::SetWorker(worker, Some(row)));
    }
    if servers > 0 {
        let at = hosts.server.local().into();
        let row = ServerRow { at, qpn: Qpn(17), reliable: false, icrc: true };
        let ring = RingRow { rkey: Rkey(5), address: 0, slots: 8_192, slot_bytes: 2_048 };
        ops.push(TableOp::SetServer(ServerId(0), Some((row, Psn::default()))));
        ops.push(TableOp::SetRing(SliceId(0), ServerId(0), Some(ring)));
    }
    driver.handle().tables().send(ops, |_| ())?;
    driver.step()?;
    Ok(Side { middle: driver, hosts, case })
}

fn forwarder_side(case: Case) -> Result<Side<Forwarder>, NetError> {
    let socket = socket(false)?;
    let hosts = Hosts::new(socket.local(), case.payload)?;
    let to = hosts.worker.local().into();
    let server = (case.order == Order::HalfParked).then(|| hosts.server.local().into());
    Ok(Side { middle: Forwarder { socket, to, server, tokens: 0, waiting: 0 }, hosts, case })
}

fn socket(stamps: bool) -> Result<Socket, NetError> {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Socket::bind(at, &SocketOptions { stamps, refusals: false, ..SocketOptions::default() })
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn json(outcomes: &[Outcome]) -> String {
    let case = |outcome: &Outcome| {
        format!(
            r#"{{"case":"{}","switch_ns_per_task":{:.1},"forwarder_ns_per_task":{:.1},"ratio":{:.4},"target_ratio":{}}}"#,
            outcome.case.name,
            outcome.switch_ns,
            outcome.forwarder_ns,
            outcome.ratio,
            outcome.case.target()
        )
    };
    let cases: Vec<String> = outcomes.iter().map(case).collect();
    format!(r#"{{"bench":"switch_vs_forwarder","cases":[{}]}}"#, cases.join(","))
}
