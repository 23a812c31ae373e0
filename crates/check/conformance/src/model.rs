//! The model as a plane: the program, and the parts of the UDP driver around it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Cargo, Config, Program, Verdict, WriteAhead};
use sluice_wire::roce::{Transport, Write, encode_write_of, write_len};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{
    Endpoint, Nanos, Packet, ParseError, ServerId, SliceId, Sweep, WorkerId, encode, encoded_len, parse,
    slot_head,
};

use crate::play::Plane;
use crate::sent::Sent;
use crate::vector::{FinalSlice, FinalState, FinalTask, FinalWorker, Shape, TestedProgram};

/// A program in the model.
#[derive(Debug)]
pub struct Model {
    program: Box<dyn Program>,
    config: Config,
    /// Whether notes count as recirculated. Rain's close a target's window, which not every plane has.
    counts_notes: bool,
    malformed: [u64; ParseError::ALL.len()],
    counts: BTreeMap<&'static str, u64>,
    /// Whether the shape has servers.
    has_servers: bool,
    written: BTreeMap<ServerId, Sent>,
    /// How often the last packet recirculated.
    rounds: u32,
}

impl Model {
    /// An empty switch of this size.
    pub fn new(shape: &Shape) -> Self {
        let config = shape.config();
        Self {
            program: Choice::parse(shape.program.policy()).expect("a program of ours").build(config),
            config,
            counts_notes: shape.program != TestedProgram::Rain,
            malformed: [0; ParseError::ALL.len()],
            counts: BTreeMap::new(),
            has_servers: shape.servers > 0,
            written: BTreeMap::new(),
            rounds: 0,
        }
    }

    fn add(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// Passes a recirculated packet again at once, until a packet leaves.
    /// Other planes perform a sweep in one run, so nothing of it is counted.
    fn settle(&mut self, now: Nanos, mut verdict: Verdict, body: Option<&[u8]>) -> Option<Sent> {
        let is_counted = self.counts_notes && body.is_some();
        let body = body.unwrap_or_default();
        while let Verdict::Again(circulating) = verdict {
            self.rounds += 1;
            match circulating.cargo {
                Cargo::Task(_) => self.add("recirculated"),
                Cargo::Note if is_counted => self.add("recirculated"),
                _ => {}
            }
            verdict = self.program.pass(now, Arrival::Round(circulating));
        }
        if let Verdict::Ahead(write) = verdict {
            self.write_ahead(&write, body);
        }
        // The kernel's switch sends one packet a run, and leaves late tasks to their workers.
        assert!(!matches!(verdict, Verdict::Late { .. }), "no vector has a task that is late: {verdict:?}");
        let (Verdict::Send { to, packet } | Verdict::Swept { to, packet, .. }) = verdict else { return None };
        if to == Endpoint::default() {
            return None;
        }
        match packet {
            Packet::Dispatch(_) => self.add("dispatched"),
            Packet::Reject(_) => self.add("rejected"),
            _ => {}
        }
        let mut bytes = vec![0; encoded_len(&packet)];
        let body = if packet.body_len() == 0 { &[] } else { body };
        encode(&packet, body, &mut bytes).expect("it is as long as what came");
        Some(Sent { to: to.into(), bytes })
    }

    /// Makes a copy for each server that gets one.
    fn write_ahead(&mut self, write: &WriteAhead, body: &[u8]) {
        for copy in 0..write.copies {
            let Some(replica) = self.program.replica(write, copy) else { continue };
            self.add("written_ahead");
            let head = slot_head(write.task);
            let packet = Write {
                transport: Transport::Uc,
                to: replica.qpn,
                psn: replica.psn,
                ack_request: false,
                address: replica.address,
                rkey: replica.rkey,
            };
            let mut bytes = vec![0; write_len(head.len() + body.len())];
            encode_write_of(&packet, [&head, body], None, &mut bytes).expect("it fits a slot");
            self.written.insert(replica.server, Sent { to: replica.to.into(), bytes });
        }
    }

    fn psn(&mut self, server: ServerId) -> u32 {
        let TableAnswer::Server(state) = self.program.table(TableOp::ReadServer(server)) else {
            unreachable!("the server is one of the shape's")
        };
        state.next.get()
    }

    fn slice(&mut self, slice: SliceId) -> FinalSlice {
        let TableAnswer::Slice(state) = self.program.table(TableOp::ReadSlice(slice)) else {
            unreachable!("the slice is one of the shape's")
        };
        let parked = self.program.parked(slice);
        FinalSlice {
            balance: state.balance,
            tasks: parked
                .tasks
                .iter()
                .map(|submit| FinalTask {
                    client: submit.client.0,
                    incarnation: submit.task.incarnation.0,
                    sequence: submit.task.sequence.0,
                    attempt: submit.attempt.0,
                })
                .collect(),
            measured_limit: state.measured_limit,
            tokens: parked.tokens.iter().map(|(worker, generation)| (worker.0, generation.0)).collect(),
        }
    }

    fn worker(&mut self, worker: WorkerId) -> FinalWorker {
        let TableAnswer::Worker(state) = self.program.table(TableOp::ReadWorker(worker)) else {
            unreachable!("the worker is one of the shape's")
        };
        FinalWorker { seen: state.seen.0, sent: state.sent.0, generation_out: state.generation_out.0 }
    }
}

impl Plane for Model {
    type Error = Infallible;

    fn table(&mut self, op: TableOp) -> Result<(), Infallible> {
        self.program.table(op);
        Ok(())
    }

    fn packet(&mut self, now: Nanos, from: SocketAddr, bytes: &[u8]) -> Result<Option<Sent>, Infallible> {
        self.rounds = 0;
        let (packet, body) = match parse(bytes) {
            Ok(parsed) => parsed,
            Err(reason) => {
                self.malformed[reason as usize] += 1;
                return Ok(None);
            }
        };
        match packet {
            Packet::Submit(_) => self.add("submits"),
            Packet::Token(_) => self.add("tokens"),
            _ => {}
        }
        let verdict = self.program.pass(now, Arrival::Wire { from: from.into(), packet, room: true });
        Ok(self.settle(now, verdict, Some(body)))
    }

    fn written(&mut self) -> Result<Vec<Sent>, Infallible> {
        Ok(std::mem::take(&mut self.written).into_values().collect())
    }

    fn rounds(&self) -> Option<u32> {
        Some(self.rounds)
    }

    fn sweep(&mut self, now: Nanos, sweep: Sweep) -> Result<Option<Sent>, Infallible> {
        self.rounds = 0;
        let verdict = self.program.pass(now, Arrival::Control(sweep));
        Ok(self.settle(now, verdict, None))
    }

    fn after(&mut self) -> Result<FinalState, Infallible> {
        let mut counts: BTreeMap<String, u64> =
            self.counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let malformed = ParseError::ALL.iter().map(|why| (why.name(), self.malformed[*why as usize]));
        let refused = self.program.refusals().iter().map(|(why, count)| (why.name(), count));
        counts
            .extend(malformed.chain(refused).filter(|(_, count)| *count > 0).map(|(n, c)| (n.to_owned(), c)));
        let servers = if self.has_servers { self.config.servers } else { 0 };
        Ok(FinalState {
            epoch: self.config.epoch.0,
            psns: (0..servers).map(|server| self.psn(ServerId(server))).collect(),
            slices: (0..self.config.slices).map(|slice| self.slice(SliceId(slice))).collect(),
            workers: (0..self.config.workers).map(|worker| self.worker(WorkerId(worker))).collect(),
            counts,
        })
    }
}
