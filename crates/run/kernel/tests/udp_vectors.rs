//! The UDP switch as a plane for vectors, through real sockets.
//!
//! It runs in a network namespace whose loopback has the addresses that vectors name. So hosts send from
//! the very addresses and ports of a vector, and receive at them, over IPv4 and IPv6. The test gives the
//! driver the time with each step. Covered: parsing and encoding, the program, payloads and WRITEs,
//! counters, and the socket with batches of one. Not covered: waiting, faults and testbed delays, and
//! payloads that wait in the slab (in vectors they stay with their clients). Needs root; without root these
//! tests print so and do nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sluice_conformance::explore::{
    explore, explore_draconis, explore_idle_draconis, explore_pallas, explore_racksched, explore_servers,
    explore_targets,
};
use sluice_conformance::{FinalSlice, FinalState, FinalTask, FinalWorker, Plane, Sent, Shape, Vector, play};
use sluice_kernel::KernelError;
use sluice_kernel::spaces::Space;
use sluice_switch::Refusal;
use sluice_switch::registry::Choice;
use sluice_switchd::switch::{Count, SwitchConfig, SwitchDriver};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Endpoint, Nanos, ServerId, SliceId, Sweep, WorkerId};

const PORT: u16 = 7000;
const AT4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 254));
const AT6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe));
/// How long the kernel may take to bring a datagram over the loopback.
const PATIENCE: Duration = Duration::from_mins(2);
/// Counters that vectors do not have.
const OF_THE_SOCKET: [&str; 3] = ["received", "sent", "batches"];
const RECIRCULATED: &str = "recirculated";

#[test]
fn what_the_model_does_on_random_walks_the_udp_switch_does_too() {
    in_a_network(|net| {
        for seed in 0..asked("WALKS", 200) {
            hold(net, &explore(seed, asked("STEPS", 300) as usize));
        }
    });
}

#[test]
fn what_the_model_writes_ahead_on_random_walks_the_udp_switch_writes_too() {
    in_a_network(|net| {
        for seed in 0..asked("WALKS", 200) {
            hold(net, &explore_servers(seed, asked("STEPS", 300) as usize));
        }
    });
}

#[test]
fn what_the_model_measures_for_targets_on_random_walks_the_udp_switch_measures_too() {
    in_a_network(|net| {
        for seed in 0..asked("WALKS", 200) {
            hold(net, &explore_targets(seed, asked("STEPS", 300) as usize));
        }
    });
}

#[test]
fn what_the_model_does_with_other_programs_on_random_walks_the_udp_switch_does_too() {
    in_a_network(|net| {
        for seed in 0..asked("WALKS", 100) {
            for walk in [explore_draconis, explore_idle_draconis, explore_pallas, explore_racksched] {
                hold(net, &walk(seed, asked("STEPS", 300) as usize));
            }
        }
    });
}

#[test]
fn the_udp_switch_does_what_the_vectors_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../targets/vectors");
    let vectors = sluice_conformance::all(Path::new(folder)).unwrap_or_else(|why| panic!("{why}"));
    assert!(vectors.len() > 10, "there are {}", vectors.len());
    in_a_network(|net| vectors.iter().for_each(|vector| hold(net, vector)));
}

/// Checks that a plane that differs from the vectors is found: this one has a wrong clock.
#[test]
fn another_time_than_the_vectors_is_noticed() {
    in_a_network(|net| {
        let walk = explore(1, 300);
        let mut udp = Udp::new(net, walk.shape);
        udp.slow_ns = 1_000_000;
        play(&walk, &mut udp).expect_err("waits are told in DISPATCHes");
    });
}

fn asked(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn hold(net: &Net, vector: &Vector) {
    play(vector, &mut Udp::new(net, vector.shape)).unwrap_or_else(|why| panic!("{why}"));
}

/// A network namespace, and the addresses of its loopback.
struct Net {
    space: Space,
    known: RefCell<BTreeSet<IpAddr>>,
}

fn in_a_network(work: impl FnOnce(&Net)) {
    if std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() != 0) {
        return eprintln!("skipped: a network namespace takes root");
    }
    let net = Net { space: Space::new().expect("root"), known: RefCell::default() };
    net.have(AT4);
    net.have(AT6);
    net.space.within(|| work(&net)).expect("root");
}

impl Net {
    fn have(&self, ip: IpAddr) {
        if self.known.borrow_mut().insert(ip) {
            self.space.add_address(ip).expect("root");
        }
    }
}

/// The UDP switch, and a socket for every host that has appeared.
struct Udp<'a> {
    net: &'a Net,
    driver: SwitchDriver,
    shape: Shape,
    hosts: BTreeMap<SocketAddr, UdpSocket>,
    servers: BTreeMap<SocketAddr, ServerId>,
    written: BTreeMap<ServerId, Sent>,
    now: Nanos,
    /// Passes of SWEEPs that recirculated: in a vector a SWEEP is performed to its end at once.
    walked: u64,
    /// How many ns its clock gains with each packet.
    slow_ns: u64,
}

impl<'a> Udp<'a> {
    fn new(net: &'a Net, shape: Shape) -> Self {
        let at = SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT));
        let program = Choice::parse(shape.program.policy()).expect("a program of ours");
        let config = SwitchConfig { at, program, ..SwitchConfig::new(shape.config()) };
        Self {
            net,
            driver: SwitchDriver::new(&config).expect("the port is free in a new namespace"),
            shape,
            hosts: BTreeMap::new(),
            servers: BTreeMap::new(),
            written: BTreeMap::new(),
            now: Nanos(0),
            walked: 0,
            slow_ns: 0,
        }
    }

    fn host(&mut self, at: SocketAddr) -> &UdpSocket {
        self.hosts.entry(at).or_insert_with(|| {
            self.net.have(at.ip());
            let socket = UdpSocket::bind(at).expect("the address is the loopback's");
            socket.set_nonblocking(true).expect("a plain socket");
            socket
        })
    }

    fn ask(&mut self, op: TableOp) -> Result<TableAnswer, KernelError> {
        let (give, take) = mpsc::sync_channel(1);
        self.driver.handle().tables().send(vec![op], move |answers| drop(give.send(answers)))?;
        self.driver.step_at(self.now)?;
        Ok(take.try_recv().expect("answered between two batches")[0])
    }

    fn count(&self, count: Count) -> u64 {
        self.driver.handle().counters().of(count)
    }

    /// Receives what was sent since the counter stood at `sent_before`, and collects WRITEs separately.
    fn hear(&mut self, sent_before: u64) -> Option<Sent> {
        assert_eq!(self.count(Count::SendFailed), 0, "every host has an address");
        let mut left = self.count(Count::Sent) - sent_before;
        let mut heard = None;
        let began = Instant::now();
        while left > 0 {
            assert!(began.elapsed() < PATIENCE, "{left} datagrams went to nobody that a vector names");
            for (at, socket) in &self.hosts {
                let mut bytes = vec![0; 2_048];
                let Ok(length) = socket.recv(&mut bytes) else { continue };
                bytes.truncate(length);
                left -= 1;
                let sent = Sent { to: *at, bytes };
                if let Some(server) = self.servers.get(at) {
                    self.written.insert(*server, sent);
                } else {
                    assert_eq!(heard.replace(sent), None, "one packet in, one out");
                }
            }
        }
        heard
    }
}

impl Plane for Udp<'_> {
    type Error = KernelError;

    fn table(&mut self, op: TableOp) -> Result<(), KernelError> {
        let at: Option<Endpoint> = match op {
            TableOp::SetWorker(_, Some(row)) => Some(row.at),
            TableOp::SetClient(_, Some((row, _))) => Some(row.at),
            TableOp::SetServer(server, Some((row, _))) => {
                self.servers.insert(row.at.into(), server);
                Some(row.at)
            }
            _ => None,
        };
        if let Some(at) = at {
            self.host(at.into());
        }
        self.ask(op).map(drop)
    }

    fn packet(&mut self, now: Nanos, from: SocketAddr, bytes: &[u8]) -> Result<Option<Sent>, KernelError> {
        let [received, sent] = [Count::Received, Count::Sent].map(|count| self.count(count));
        let switch = SocketAddr::new(if from.is_ipv4() { AT4 } else { AT6 }, PORT);
        self.host(from).send_to(bytes, switch).expect("over the loopback");
        self.now = Nanos(now.0 + self.slow_ns * received);
        let began = Instant::now();
        while self.count(Count::Received) == received {
            assert!(began.elapsed() < PATIENCE, "a datagram over the loopback did not arrive");
            self.driver.step_at(self.now)?;
        }
        Ok(self.hear(sent))
    }

    fn written(&mut self) -> Result<Vec<Sent>, KernelError> {
        Ok(std::mem::take(&mut self.written).into_values().collect())
    }

    fn sweep(&mut self, now: Nanos, sweep: Sweep) -> Result<Option<Sent>, KernelError> {
        let [sent, rounds] = [Count::Sent, Count::Recirculated].map(|count| self.count(count));
        self.now = now;
        self.ask(TableOp::Inject(sweep))?;
        self.walked += self.count(Count::Recirculated) - rounds;
        Ok(self.hear(sent))
    }

    fn after(&mut self) -> Result<FinalState, KernelError> {
        let handle = self.driver.handle();
        // A note recirculates once, and vectors count tasks only.
        let notes = handle.counters().refused(Refusal::LimitMeasured);
        let counts = handle.counters().all().map(|(name, count)| match name {
            RECIRCULATED => (name, count - self.walked - notes),
            _ => (name, count),
        });
        // Vectors say how many tasks are rejected, and see each reason in its REJECT.
        let is_asked = |name: &str| !OF_THE_SOCKET.contains(&name) && !name.starts_with("rejected_");
        let counts = counts.filter(|(name, count)| *count > 0 && is_asked(name));
        Ok(FinalState {
            epoch: self.shape.epoch,
            counts: counts.map(|(name, count)| (name.to_owned(), count)).collect(),
            psns: (0..self.shape.servers).map(|at| self.psn(ServerId(at))).collect::<Result<_, _>>()?,
            slices: (0..self.shape.slices).map(|at| self.slice(SliceId(at))).collect::<Result<_, _>>()?,
            workers: (0..self.shape.workers).map(|at| self.worker(WorkerId(at))).collect::<Result<_, _>>()?,
        })
    }
}

/// The read-out.
impl Udp<'_> {
    fn slice(&mut self, slice: SliceId) -> Result<FinalSlice, KernelError> {
        let TableAnswer::Slice(state) = self.ask(TableOp::ReadSlice(slice))? else { panic!("a slice") };
        let parked = self.driver.parked(slice);
        let tasks = parked.tasks.iter().map(|submit| FinalTask {
            client: submit.client.0,
            incarnation: submit.task.incarnation.0,
            sequence: submit.task.sequence.0,
            attempt: submit.attempt.0,
        });
        let tokens = parked.tokens.iter().map(|(worker, generation)| (worker.0, generation.0));
        Ok(FinalSlice {
            balance: state.balance,
            tasks: tasks.collect(),
            tokens: tokens.collect(),
            measured_limit: state.measured_limit,
        })
    }

    fn worker(&mut self, worker: WorkerId) -> Result<FinalWorker, KernelError> {
        let TableAnswer::Worker(state) = self.ask(TableOp::ReadWorker(worker))? else { panic!("a worker") };
        Ok(FinalWorker { seen: state.seen.0, sent: state.sent.0, generation_out: state.generation_out.0 })
    }

    fn psn(&mut self, server: ServerId) -> Result<u32, KernelError> {
        let TableAnswer::Server(state) = self.ask(TableOp::ReadServer(server))? else { panic!("a server") };
        Ok(state.next.get())
    }
}
