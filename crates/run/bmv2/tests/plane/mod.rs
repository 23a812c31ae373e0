//! A program on BMv2 as a plane of the vectors.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sluice_bmv2::{Bmv2Error, Bmv2Switch, P4Program, RuntimeApi, tool};
use sluice_conformance::{FinalSlice, FinalState, FinalTask, FinalWorker, Plane, Sent, Shape};
use sluice_kernel::xdp::frame::{unwrap, wrap};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{HEADER_BYTES, Nanos, Packet, Psn, ServerId, SliceId, Sweep, WorkerId, encode};

const AT4: &str = "10.0.0.254:7000";
const AT6: &str = "[fd00::fe]:7000";
/// The controller's address, from which SWEEPs come.
const CONTROLLER: &str = "10.0.0.253:7000";

pub(crate) fn targets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../targets")
}

/// The program as a plane.
pub(crate) struct P4 {
    pub(crate) switch: Bmv2Switch,
    pub(crate) shape: Shape,
    /// The addresses of servers that had a row.
    servers: BTreeMap<SocketAddr, ServerId>,
    /// The copies of the last packet's WRITE.
    written: BTreeMap<ServerId, Sent>,
}

impl P4 {
    /// A switch of this size; `None` without the tools.
    pub(crate) fn new(shape: Shape, api: RuntimeApi) -> Option<Self> {
        if let Some(why) = tool("p4c-bm2-ss").and(api.switch()).err() {
            eprintln!("skipped: {why}");
            return None;
        }
        let own: Vec<SocketAddr> = [AT4, AT6].iter().map(|at| at.parse().expect("an address")).collect();
        let sources = std::env::var_os("P4_SOURCES").map_or_else(|| targets().join("p4"), PathBuf::from);
        let program = P4Program::of(shape.program.policy()).expect("written in P4");
        let switch = Bmv2Switch::start(&sources, program, shape.config(), &own, api);
        let switch = switch.unwrap_or_else(|why| panic!("{why}"));
        Some(Self { switch, shape, servers: BTreeMap::new(), written: BTreeMap::new() })
    }

    fn frame(
        &mut self,
        now: Nanos,
        is_control: bool,
        from: SocketAddr,
        bytes: &[u8],
    ) -> Result<Option<Sent>, Bmv2Error> {
        let to = if from.is_ipv4() { AT4 } else { AT6 }.parse().expect("an address");
        let frame = wrap(from, to, bytes).expect("of one family");
        let mut sent = None;
        for frame in self.switch.pass(now, is_control, &frame)? {
            let left = unwrap(&frame).unwrap_or_else(|why| panic!("{why}: {frame:02x?}"));
            let left = Sent { to: left.to, bytes: left.bytes.to_vec() };
            if let Some(server) = self.servers.get(&left.to) {
                self.written.insert(*server, left);
            } else {
                assert_eq!(sent.replace(left), None, "one packet in, one out");
            }
        }
        Ok(sent)
    }
}

impl Plane for P4 {
    type Error = Bmv2Error;

    fn table(&mut self, op: TableOp) -> Result<(), Bmv2Error> {
        if let TableOp::SetServer(server, Some((row, _))) = op {
            self.servers.insert(row.at.into(), server);
        }
        self.switch.table(op).map(drop)
    }

    fn packet(&mut self, now: Nanos, from: SocketAddr, bytes: &[u8]) -> Result<Option<Sent>, Bmv2Error> {
        self.frame(now, false, from, bytes)
    }

    fn written(&mut self) -> Result<Vec<Sent>, Bmv2Error> {
        Ok(std::mem::take(&mut self.written).into_values().collect())
    }

    fn rounds(&self) -> Option<u32> {
        Some(self.switch.recirculated())
    }

    fn sweep(&mut self, now: Nanos, sweep: Sweep) -> Result<Option<Sent>, Bmv2Error> {
        let mut bytes = [0; HEADER_BYTES];
        encode(&Packet::Sweep(sweep), &[], &mut bytes).expect("a SWEEP is its header");
        self.frame(now, true, CONTROLLER.parse().expect("an address"), &bytes)
    }

    fn after(&mut self) -> Result<FinalState, Bmv2Error> {
        let counts = self.switch.counts()?.into_iter().filter(|(_, count)| *count > 0);
        let counts: BTreeMap<String, u64> = counts.map(|(name, count)| (name.to_owned(), count)).collect();
        let slices =
            (0..self.shape.slices).map(|slice| self.slice(SliceId(slice))).collect::<Result<_, _>>()?;
        let workers =
            (0..self.shape.workers).map(|worker| self.worker(WorkerId(worker))).collect::<Result<_, _>>()?;
        let psns = self.switch.numbers()?.into_iter().map(Psn::get);
        let psns = psns.take(self.shape.servers.into()).collect();
        Ok(FinalState { epoch: self.shape.epoch, slices, workers, psns, counts })
    }
}

/// The read-out.
impl P4 {
    fn slice(&mut self, slice: SliceId) -> Result<FinalSlice, Bmv2Error> {
        let TableAnswer::Slice(state) = self.switch.table(TableOp::ReadSlice(slice))? else {
            panic!("a slice")
        };
        let parked = self.switch.parked(slice)?;
        let tasks = parked.tasks.into_iter().map(|submit| FinalTask {
            client: submit.client.0,
            incarnation: submit.task.incarnation.0,
            sequence: submit.task.sequence.0,
            attempt: submit.attempt.0,
        });
        Ok(FinalSlice {
            balance: state.balance,
            tasks: tasks.collect(),
            tokens: parked.tokens.into_iter().map(|(worker, generation)| (worker.0, generation.0)).collect(),
            measured_limit: state.measured_limit,
        })
    }

    fn worker(&mut self, worker: WorkerId) -> Result<FinalWorker, Bmv2Error> {
        let TableAnswer::Worker(state) = self.switch.table(TableOp::ReadWorker(worker))? else {
            panic!("a worker")
        };
        Ok(FinalWorker { seen: state.seen.0, sent: state.sent.0, generation_out: state.generation_out.0 })
    }
}
