//! Tasks per core-second of the UDP switch, beside a bare forwarder on the same sockets.
//!
//! A task is two datagrams in (SUBMIT, TOKEN) and one out (DISPATCH). The forwarder copies each SUBMIT to the
//! worker and drops each TOKEN: the same number and sizes in and out, in the same batches. Hosts and switch take
//! turns on one thread, so that batches are always full and waiting costs nothing; only the switch's turns are on
//! its clock (CPU time of the thread). Blocks of both alternate, and the median of their ratios counts.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use sluice_net::NetError;
use sluice_net::clock::thread_cpu;
use sluice_net::switch::{SwitchConfig, SwitchDriver};
use sluice_net::udp::{Socket, SocketOptions, Wait};
use sluice_switch::Config;
use sluice_wire::tables::{ClientRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Endpoint, Epoch, Generation, Handle, Incarnation, Key, Nanos, Nonce, Packet, Payload,
    Serial, SliceId, Submit, TaskId, TaskType, Token, WorkerId, encode, large_descriptor,
};

/// Tasks that the hosts send before the switch has its turn, one per worker.
const ROUND: u16 = 64;
const ROUNDS_A_BLOCK: u32 = 150;
const BLOCKS: usize = 15;
/// The switch must reach this share of the forwarder's rate.
const TARGET: f64 = 0.85;

const EPOCH: Epoch = Epoch(1);
const KEY: Key = Key(0x5eed);

/// What a run of tasks looks like.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    payload: usize,
    token_first: bool,
}

const CASES: [Case; 4] = [
    Case { name: "8 B, token first", payload: 8, token_first: true },
    Case { name: "8 B, task first", payload: 8, token_first: false },
    Case { name: "640 B, token first", payload: 640, token_first: true },
    Case { name: "640 B, task first", payload: 640, token_first: false },
];

/// What stands between the hosts.
trait Middle {
    /// One batch; says how many datagrams it had.
    fn step(&mut self) -> Result<usize, NetError>;
}

impl Middle for SwitchDriver {
    fn step(&mut self) -> Result<usize, NetError> {
        Self::step(self)
    }
}

/// Sends each SUBMIT on as it is, and nothing else.
struct Forwarder {
    socket: Socket,
    to: Endpoint,
}

impl Middle for Forwarder {
    fn step(&mut self) -> Result<usize, NetError> {
        let taken = self.socket.receive(Wait::Forever)?;
        let (inbox, outbox) = self.socket.split();
        for index in 0..inbox.len() {
            let bytes = inbox.datagram(index).bytes;
            if bytes[1] == 1 {
                outbox.send(self.to, bytes);
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
        let (client, worker) = (socket(true)?, socket(true)?);
        Ok(Self { middle: middle.into(), client, worker, body, payload: fields, rounds: 0 })
    }

    /// Sends one task to, and one token from, each worker.
    fn send(&mut self, token_first: bool) {
        if token_first {
            self.tokens();
            self.tasks();
        } else {
            self.tasks();
            self.tokens();
        }
        self.rounds += 1;
    }

    fn tokens(&mut self) {
        for worker in 0..ROUND {
            let packet = Packet::Token(Token {
                epoch: EPOCH,
                key: KEY,
                worker: WorkerId(worker),
                generation: Generation(1),
                nonce: Nonce(self.rounds),
                issued: Serial(self.rounds + 1),
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

    /// Takes what came out, all of which must be there.
    fn collect(&mut self) -> Result<(), NetError> {
        let mut left = usize::from(ROUND);
        while left > 0 {
            let taken = self.worker.receive(Wait::Poll)?;
            assert!(taken > 0, "{left} tasks of a round did not come out");
            left -= taken;
        }
        Ok(())
    }
}

/// A middle with its hosts, and the CPU time that it took.
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
            self.hosts.send(self.case.token_first);
            let mut left = 2 * usize::from(ROUND);
            let start = thread_cpu();
            while left > 0 {
                left -= self.middle.step()?;
            }
            spent = spent + thread_cpu().since(start);
            self.hosts.collect()?;
        }
        Ok(spent.0 as f64 / f64::from(ROUNDS_A_BLOCK) / f64::from(ROUND))
    }
}

/// What one case came to.
struct Outcome {
    case: Case,
    switch_ns: f64,
    forwarder_ns: f64,
    ratio: f64,
}

fn main() -> Result<ExitCode, NetError> {
    let outcomes = CASES.into_iter().map(measure).collect::<Result<Vec<_>, _>>()?;
    for Outcome { case, switch_ns, forwarder_ns, ratio } in &outcomes {
        eprintln!(
            "{:20} switch {:9.0} tasks/core-s  forwarder {:9.0}  ratio {ratio:.3} (at least {TARGET})",
            case.name,
            1e9 / switch_ns,
            1e9 / forwarder_ns,
        );
    }
    println!("{}", json(&outcomes));
    let reached = outcomes.iter().all(|outcome| outcome.ratio >= TARGET);
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(case: Case) -> Result<Outcome, NetError> {
    let mut switch = switch_side(case)?;
    let mut forwarder = forwarder_side(case)?;
    switch.block()?;
    forwarder.block()?;
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        blocks.push((switch.block()?, forwarder.block()?));
    }
    let of = |number: fn(&(f64, f64)) -> f64| median(blocks.iter().map(number).collect());
    Ok(Outcome { case, switch_ns: of(|b| b.0), forwarder_ns: of(|b| b.1), ratio: of(|b| b.1 / b.0) })
}

fn switch_side(case: Case) -> Result<Side<SwitchDriver>, NetError> {
    let mut driver = SwitchDriver::new(&SwitchConfig::new(Config::full(EPOCH)))?;
    let hosts = Hosts::new(driver.local(), case.payload)?;
    let slice = SliceRow { open: true, limit: 4_096, retry_after: Nanos(0) };
    let client = ClientRow { key: KEY, at: hosts.client.local().into(), incarnation: Incarnation(1) };
    let mut ops = vec![
        TableOp::SetSlice(SliceId(0), slice),
        TableOp::SetType(TaskType(1), Some(SliceId(0))),
        TableOp::SetClient(ClientId(0), Some((client, Serial(0)))),
    ];
    for worker in (0..ROUND).map(WorkerId) {
        let at = hosts.worker.local().into();
        let (slice, generation) = (SliceId(0), Generation(1));
        let row = WorkerRow { key: KEY, at, slice, generation, open: true, life: 1 };
        ops.push(TableOp::RaiseGeneration(worker, generation));
        ops.push(TableOp::SetWorker(worker, Some(row)));
    }
    driver.handle().tables().send(ops, |_| ())?;
    driver.step()?;
    Ok(Side { middle: driver, hosts, case })
}

fn forwarder_side(case: Case) -> Result<Side<Forwarder>, NetError> {
    let socket = socket(false)?;
    let hosts = Hosts::new(socket.local(), case.payload)?;
    let to = hosts.worker.local().into();
    Ok(Side { middle: Forwarder { socket, to }, hosts, case })
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
            r#"{{"case":"{}","switch_ns_per_task":{:.1},"forwarder_ns_per_task":{:.1},"ratio":{:.4}}}"#,
            outcome.case.name, outcome.switch_ns, outcome.forwarder_ns, outcome.ratio
        )
    };
    let cases: Vec<String> = outcomes.iter().map(case).collect();
    format!(r#"{{"bench":"switch_vs_forwarder","target_ratio":{TARGET},"cases":[{}]}}"#, cases.join(","))
}
