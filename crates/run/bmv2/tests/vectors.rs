//! The P4 programs on BMv2 do what the model does: packets out, then queues and counters.
//!
//! Needs p4c-bm2-ss and simple_switch (and simple_switch_grpc), on the path or in the folders of `P4_TOOLS`;
//! without them these tests print so and do nothing. `P4_SOURCES` names another folder of the programs' files, and `P4_PROGRAM`
//! the only program to test.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sluice_bmv2::{Bmv2Error, Bmv2Switch, P4Program, RuntimeApi, tool};
use sluice_conformance::explore::{
    explore, explore_draconis, explore_hours, explore_idle_draconis, explore_pallas, explore_racksched,
    explore_servers,
};
use sluice_conformance::{
    FinalSlice, FinalState, FinalTask, FinalWorker, Plane, Sent, Shape, Step, Vector, play,
};
use sluice_kernel::xdp::frame::{unwrap, wrap};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{HEADER_BYTES, Nanos, Packet, Psn, ServerId, SliceId, Sweep, WorkerId, encode};

const AT4: &str = "10.0.0.254:7000";
const AT6: &str = "[fd00::fe]:7000";
/// The controller's address, from which SWEEPs come.
const CONTROLLER: &str = "10.0.0.253:7000";

fn targets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../targets")
}

/// The program as a plane.
struct P4 {
    switch: Bmv2Switch,
    shape: Shape,
    /// The addresses of servers that had a row.
    servers: BTreeMap<SocketAddr, ServerId>,
    /// The copies of the last packet's WRITE.
    written: BTreeMap<ServerId, Sent>,
}

impl P4 {
    /// A switch of this size; `None` without the tools.
    fn new(shape: Shape, api: RuntimeApi) -> Option<Self> {
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

/// Rain has no targets yet.
fn is_held(vector: &Vector) -> bool {
    if !is_asked(vector) {
        return false;
    }
    let has_target = |step: &Step| matches!(step, Step::SetSlice { target_ns, .. } if *target_ns > 0);
    !vector.steps.iter().any(has_target)
}

#[test]
fn the_programs_do_what_the_vectors_say() {
    play_vectors(RuntimeApi::Thrift);
}

#[test]
fn with_tables_over_p4runtime_they_do_the_same() {
    play_vectors(RuntimeApi::P4Runtime);
}

fn play_vectors(api: RuntimeApi) {
    let mut running: Option<P4> = None;
    let mut held = 0;
    for vector in sluice_conformance::all(&targets().join("vectors")).unwrap_or_else(|why| panic!("{why}")) {
        if !is_held(&vector) {
            continue;
        }
        if running.as_ref().is_none_or(|plane| plane.shape != vector.shape) {
            let Some(plane) = P4::new(vector.shape, api) else { return };
            running = Some(plane);
        }
        let plane = running.as_mut().expect("just started");
        plane.switch.clear().unwrap_or_else(|why| panic!("{why}"));
        play(&vector, plane).unwrap_or_else(|why| panic!("{why}"));
        held += 1;
    }
    assert!(held > 90 || std::env::var_os("P4_PROGRAM").is_some(), "{held} vectors");
}

/// `P4_SEEDS` and `P4_STEPS` set a longer run.
#[test]
fn what_the_model_does_on_random_walks_the_programs_do_too() {
    let walks: [fn(u64, usize) -> Vector; 7] = [
        explore,
        explore_servers,
        explore_hours,
        explore_draconis,
        explore_idle_draconis,
        explore_pallas,
        explore_racksched,
    ];
    for walk in walks {
        let mut running: Option<P4> = None;
        for seed in 0..asked("P4_SEEDS", 2) {
            let vector = walk(seed, asked("P4_STEPS", 200) as usize);
            if !is_asked(&vector) {
                continue;
            }
            if running.as_ref().is_none_or(|plane| plane.shape != vector.shape) {
                let Some(plane) = P4::new(vector.shape, RuntimeApi::Thrift) else { return };
                running = Some(plane);
            }
            let plane = running.as_mut().expect("just started");
            plane.switch.clear().unwrap_or_else(|why| panic!("{why}"));
            play(&vector, plane).unwrap_or_else(|why| panic!("{why}"));
        }
    }
}

fn is_asked(vector: &Vector) -> bool {
    let program = P4Program::of(vector.shape.program.policy()).map(P4Program::name);
    std::env::var("P4_PROGRAM").map_or(true, |only| program == Some(only.as_str()))
}

fn asked(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
