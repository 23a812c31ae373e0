//! A rack in namespaces with one of several programs in the switch's place, and the load on it.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use aya::maps::xdp::{DevMap, DevMapHash};
use aya::maps::{Array, HashMap};
use aya::programs::xdp::XdpMode;
use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use sluice_kernel::KernelError;
use sluice_kernel::spaces::{BPF_FOLDER, HOST_LINK, HostSpace, RackSpaces};
use sluice_kernel::xdp::frame::wrap;
use sluice_kernel::xdp::{XdpDriver, XdpOptions};
use sluice_net::clock::{Clock, thread_cpu};
use sluice_net::pin::pin_thread;
use sluice_net::udp::{Socket, SocketOptions, Waiting};
use sluice_switch::Config;
use sluice_switch::registry::Choice;
use sluice_switchd::switch::{SwitchConfig, SwitchDriver};
use sluice_wire::tables::{ClientRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Endpoint, Epoch, Generation, HEADER_BYTES, Handle, Incarnation, Key, Nanos, Nonce,
    Packet, Payload, Serial, SliceId, Submit, TaskId, TaskType, Token, WorkerId, encode, encoded_len, parse,
};

use crate::delays::{Arrivals, Counts, Delays, NONE, waited_ns};
use crate::object::object;

/// How many frames a socket's buffer must hold; each takes a page.
const SOCKET: u32 = 2_048;
/// How many frames the kernel generates before the links process them.
const BATCH: u32 = 64;
/// How many frames of one kind come before the other kind.
const SPELL: u32 = BATCH / 2;
/// How often a paced load is generated.
const TICK: Duration = Duration::from_millis(1);
/// How many pairs a paced load generates at once, at most.
const LATE_MAX: u32 = 512;
/// How long packets may be under way.
const PATIENCE: Duration = Duration::from_secs(5);
/// The size of the load's value in its map: two templates, two words, two counts.
const LOAD_BYTES: usize = 2 * TEMPLATE_BYTES + 24;
const TEMPLATE_BYTES: usize = 136;
const FRAME_BYTES: usize = 130;
/// The size of the headers before our own in a template.
const HEADERS_BYTES: usize = 42;
/// The position of the UDP checksum in an IPv4 frame.
const CHECK: std::ops::Range<usize> = 40..42;

const EPOCH: Epoch = Epoch(1);
const KEY: Key = Key(0x5eed);
const PORT: u16 = 7_000;
const HOST_PORT: u16 = 200;

/// What runs in the switch's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The XDP program.
    Rain,
    /// Each frame leaves by the other link.
    Hop,
    /// Each SUBMIT leaves by the other link, each TOKEN is dropped: as many frames in and out as with Rain.
    Half,
    /// The UDP switch, behind the kernel's network stack.
    Udp,
    /// A socket server: one queue, and a system call for each datagram received or sent.
    Server,
    /// Each frame is dropped on arrival.
    Door,
    /// The XDP program in generic mode, run by the kernel's network stack.
    Stack,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] =
        [Self::Rain, Self::Hop, Self::Half, Self::Udp, Self::Server, Self::Door, Self::Stack];
}

/// A rack, its load, and the program in its middle.
pub(crate) struct Side {
    kind: Kind,
    rack: RackSpaces,
    load: Ebpf,
    /// Programs that stay attached as long as these values live.
    held: Vec<Ebpf>,
    udp: Option<SwitchDriver>,
    core: String,
}

/// Shares of a core under a paced load.
pub(crate) struct Shares {
    /// Generating the load, the links' work, and XDP.
    pub(crate) kernel: f64,
    /// The thread of a switch in user space.
    pub(crate) thread: f64,
}

impl Side {
    pub(crate) fn new(kind: Kind) -> Result<Self, Box<dyn Error>> {
        let mut rack = RackSpaces::new(2)?;
        rack.bare_ends();
        let mut load = EbpfLoader::new().load_file(object("load.bpf.o"))?;
        for name in ["load", "sink", "door", "pass"] {
            program(&mut load, name)?.load()?;
        }
        for (end, host) in rack.hosts().iter().enumerate() {
            host.space.within(|| attach_host(&mut load, end as u32, host))??;
        }
        let mut side = Self { kind, rack, load, held: Vec::new(), udp: None, core: ksoftirqd(0)? };
        side.set_templates(&first())?;
        side.set_up()?;
        Ok(side)
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self.kind {
            Kind::Rain => "Rain",
            Kind::Hop => "redirect",
            Kind::Half => "half",
            Kind::Udp => "UDP",
            Kind::Server => "server",
            Kind::Door => "door",
            Kind::Stack => "in stack",
        }
    }

    /// Whether the side is a process behind the kernel's network stack.
    pub(crate) const fn is_process(&self) -> bool {
        matches!(self.kind, Kind::Udp | Kind::Server)
    }

    /// Runs a block; returns the CPU time of a pair in ns. No packet may be lost.
    pub(crate) fn block(&mut self, pairs: u32) -> Result<f64, Box<dyn Error>> {
        let (before, began) = (self.taken()?, self.cpu()?);
        // Large calls, since in each call the kernel waits for other CPUs.
        let call = if self.udp.is_some() { SOCKET } else { 2 * pairs };
        for _ in 0..2 * pairs / call {
            self.frames(call)?;
            self.serve(call)?;
        }
        self.wait(before + self.leaves(pairs))?;
        Ok((self.cpu()? - began) as f64 / f64::from(pairs))
    }

    /// Runs a block of pairs that hosts send from sockets; returns the CPU time of a pair in ns.
    pub(crate) fn sockets(&mut self, pairs: u32) -> Result<f64, Box<dyn Error>> {
        let (mut hosts, before) = (self.hosts()?, self.taken()?);
        let began = self.cpu()?;
        for _ in 0..2 * pairs / SOCKET {
            hosts.send(SOCKET / 2);
            self.serve(SOCKET)?;
        }
        self.wait(before + self.leaves(pairs))?;
        let ns = (self.cpu()? - began) as f64 / f64::from(pairs);
        self.go_on(&hosts)?;
        Ok(ns)
    }

    /// The share of a core that a load of `pairs_per_s` uses.
    pub(crate) fn paced(&mut self, pairs_per_s: f64, lasts: Duration) -> Result<Shares, Box<dyn Error>> {
        let Some(mut driver) = self.udp.take() else {
            let kernel = self.pace(pairs_per_s, lasts)?;
            return Ok(Shares { kernel, thread: 0.0 });
        };
        let (over, handle) = (AtomicBool::new(false), driver.handle());
        let shares = thread::scope(|scope| {
            let thread = scope.spawn(|| spin(&mut driver, &over));
            let kernel = self.pace(pairs_per_s, lasts);
            over.store(true, Ordering::Relaxed);
            handle.stop();
            let thread = thread.join().map_err(|_| "the switch's thread panicked")??;
            Ok(Shares { kernel: kernel?, thread })
        });
        self.udp = Some(driver);
        shares
    }

    /// The delays of tasks from their scheduled departure to their workers, at `pairs_per_s` pairs a second
    /// with random departures.
    pub(crate) fn delays(&mut self, pairs_per_s: f64) -> Result<Delays, Box<dyn Error>> {
        let mut arrivals = Arrivals::new(pairs_per_s);
        let Some(mut driver) = self.udp.take() else { return self.spells(&mut arrivals, None) };
        let (over, handle) = (AtomicBool::new(false), driver.handle());
        let (tell, told) = mpsc::channel();
        let delays = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                tell.send(rustix::thread::gettid()).map_err(|_| "nobody listens")?;
                spin(&mut driver, &over)
            });
            let delays = match told.recv() {
                Ok(switch) => self.spells(&mut arrivals, Some(switch)),
                Err(_) => Err("the switch's thread ended".into()),
            };
            over.store(true, Ordering::Relaxed);
            handle.stop();
            thread.join().map_err(|_| "the switch's thread panicked")??;
            delays
        });
        self.udp = Some(driver);
        delays
    }

    /// Runs spells of tasks, each of which begins with no packet under way, until enough spells passed in
    /// which no other process had either thread's core.
    fn spells(
        &mut self,
        arrivals: &mut Arrivals,
        switch: Option<rustix::thread::Pid>,
    ) -> Result<Delays, Box<dyn Error>> {
        let mut hosts = self.hosts()?;
        let (mut delays, began) = (Delays::new(), Instant::now());
        while !delays.are_enough() && began.elapsed() < PATIENCE {
            let (before, waited) = (self.taken()?, waited_ns(switch)?);
            self.forget_delays()?;
            let made = arrivals.spell(|due| hosts.send_one(due));
            self.wait(before + self.leaves(made))?;
            delays.add(&self.counted_delays()?, waited_ns(switch)? - waited);
        }
        self.go_on(&hosts)?;
        Ok(delays)
    }

    fn counted_delays(&self) -> Result<Counts, Box<dyn Error>> {
        let counts = self.load.map("delays").ok_or("no delays")?;
        Ok(Array::try_from(counts)?.get(&0, 0)?)
    }

    fn forget_delays(&mut self) -> Result<(), Box<dyn Error>> {
        let counts = self.load.map_mut("delays").ok_or("no delays")?;
        Array::<_, Counts>::try_from(counts)?.set(0, NONE, 0)?;
        Ok(())
    }

    fn pace(&mut self, pairs_per_s: f64, lasts: Duration) -> Result<f64, Box<dyn Error>> {
        let (mut hosts, before) = (self.hosts()?, self.taken()?);
        let (cpu, began) = (self.cpu()?, Instant::now());
        let (mut seen, mut made) = (0, 0);
        while began.elapsed() < lasts {
            let due = (began.elapsed().as_secs_f64() * pairs_per_s) as u32;
            // Limited: pairs that came due while another process had this core would overflow the switch's
            // socket.
            let now = (due - seen).min(LATE_MAX);
            hosts.send(now);
            (seen, made) = (due, made + now);
            thread::sleep(TICK);
        }
        let share = (self.cpu()? - cpu) as f64 / began.elapsed().as_nanos() as f64;
        self.wait(before + self.leaves(made))?;
        self.go_on(&hosts)?;
        Ok(share)
    }

    /// Puts `count` frames on the links.
    fn frames(&mut self, count: u32) -> Result<(), Box<dyn Error>> {
        let frame = [0; FRAME_BYTES];
        let mut options = TestRunOptions::new();
        options.data_in = Some(&frame);
        options.repeat = count;
        options.attrs = TestRunAttrs::new().xdp_live_frames(BATCH);
        program(&mut self.load, "load")?.test_run(options)?;
        Ok(())
    }

    /// Lets the switch in user space handle `count` frames.
    fn serve(&mut self, count: u32) -> Result<(), Box<dyn Error>> {
        let Some(driver) = &mut self.udp else { return Ok(()) };
        let (clock, began) = (Clock::start(), Instant::now());
        let mut left = count as usize;
        while left > 0 {
            left -= driver.step_at(clock.now())?;
            if began.elapsed() > PATIENCE {
                return Err(format!("{left} frames did not come to the UDP switch").into());
            }
        }
        Ok(())
    }

    fn wait(&self, until: u64) -> Result<(), Box<dyn Error>> {
        let began = Instant::now();
        while self.taken()? < until {
            if began.elapsed() > PATIENCE {
                return Err(format!("{}: {} frames were lost", self.name(), until - self.taken()?).into());
            }
            thread::yield_now();
        }
        Ok(())
    }

    /// How many frames come out for `pairs` pairs.
    fn leaves(&self, pairs: u32) -> u64 {
        let each = if matches!(self.kind, Kind::Hop | Kind::Door) { 2 } else { 1 };
        each * u64::from(pairs)
    }

    /// How many frames reached the sinks.
    fn taken(&self) -> Result<u64, Box<dyn Error>> {
        let load = self.value()?;
        let at = LOAD_BYTES - if self.kind == Kind::Door { 8 } else { 16 };
        Ok(u64::from_ne_bytes(load[at..at + 8].try_into()?))
    }

    fn value(&self) -> Result<[u8; LOAD_BYTES], Box<dyn Error>> {
        let loads = self.load.map("loads").ok_or("no loads")?;
        Ok(Array::try_from(loads)?.get(&0, 0)?)
    }

    /// The CPU time in ns that this core spent on the rack.
    fn cpu(&self) -> Result<u64, Box<dyn Error>> {
        let softirqs = fs::read_to_string(&self.core)?;
        let softirqs: u64 = softirqs.split_whitespace().next().ok_or("no time")?.parse()?;
        Ok(thread_cpu().0 + softirqs)
    }
}

/// The placement of the switch, the hosts and the sinks.
impl Side {
    fn set_up(&mut self) -> Result<(), Box<dyn Error>> {
        let links: Vec<String> = self.rack.links().map(str::to_owned).collect();
        match self.kind {
            Kind::Rain | Kind::Stack => {
                self.rack.switch().within(|| rain(links, self.kind == Kind::Stack, self.ops()))?
            }
            Kind::Hop => {
                self.held.push(self.rack.switch().within(|| hop(&self.rack, &[0, 1]))??);
                Ok(())
            }
            Kind::Half => {
                let workers = links[0].clone();
                let (rack, load) = (&self.rack, &mut self.load);
                let hop = rack.switch().within(|| -> Result<_, Box<dyn Error>> {
                    program(load, "door")?.attach(&workers, XdpMode::Driver)?;
                    hop(rack, &[1])
                })??;
                self.held.push(hop);
                Ok(())
            }
            Kind::Door | Kind::Udp | Kind::Server => {
                let name = if self.kind == Kind::Door { "door" } else { "pass" };
                let (rack, load) = (&self.rack, &mut self.load);
                rack.switch().within(|| -> Result<_, Box<dyn Error>> {
                    let program = program(load, name)?;
                    links.iter().try_for_each(|link| program.attach(link, XdpMode::Driver).map(drop))?;
                    Ok(())
                })??;
                if self.is_process() {
                    let policy = if self.kind == Kind::Server { "server:1" } else { "rain:2" };
                    self.udp = Some(self.rack.switch().within(|| udp(policy, self.at(), self.ops()))??);
                }
                Ok(())
            }
        }
    }

    fn set_templates(&mut self, packets: &[Packet; 2]) -> Result<(), Box<dyn Error>> {
        let mut load = self.value()?;
        for (host, packet) in packets.iter().enumerate() {
            let frame = self.framed(host, packet)?;
            load[host * TEMPLATE_BYTES..][..FRAME_BYTES].copy_from_slice(&frame);
        }
        load[2 * TEMPLATE_BYTES + 4..][..4].copy_from_slice(&SPELL.to_ne_bytes());
        let loads = self.load.map_mut("loads").ok_or("no loads")?;
        Array::<_, [u8; LOAD_BYTES]>::try_from(loads)?.set(0, load, 0)?;
        Ok(())
    }

    /// The two hosts as sockets; their packet numbers continue those of the kernel's load.
    fn hosts(&self) -> Result<Hosts, Box<dyn Error>> {
        let load = self.value()?;
        let packet = |host: usize| parse(&load[host * TEMPLATE_BYTES + HEADERS_BYTES..][..HEADER_BYTES]);
        let (Packet::Token(token), Packet::Submit(submit)) = (packet(0)?.0, packet(1)?.0) else {
            return Err("these are no templates".into());
        };
        let options = SocketOptions { stamps: false, refusals: false, ..SocketOptions::default() };
        let socket = |host: usize| -> Result<Socket, Box<dyn Error>> {
            let at = self.host_at(host);
            Ok(self.rack.hosts()[host].space.within(|| Socket::bind(at, &options))??)
        };
        Ok(Hosts { switch: self.at().into(), worker: socket(0)?, client: socket(1)?, token, submit })
    }

    /// Lets the kernel's load continue with the packet numbers of the sockets.
    fn go_on(&mut self, hosts: &Hosts) -> Result<(), Box<dyn Error>> {
        let task = Submit { payload: Payload::EMPTY, ..hosts.submit };
        self.set_templates(&[Packet::Token(hosts.token), Packet::Submit(task)])
    }

    /// A packet as the frame that leaves a host's link. It has no checksum, since its numbers will change.
    fn framed(&self, host: usize, packet: &Packet) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut bytes = vec![0; encoded_len(packet)];
        encode(packet, &[], &mut bytes)?;
        let mut frame = wrap(self.host_at(host), self.at(), &bytes).ok_or("two families")?;
        let host = &self.rack.hosts()[host];
        frame[..6].copy_from_slice(&host.at_switch.mac);
        frame[6..12].copy_from_slice(&host.at_host.mac);
        frame[CHECK].fill(0);
        Ok(frame)
    }

    fn at(&self) -> SocketAddr {
        SocketAddr::new(self.rack.switch_addresses()[0], PORT)
    }

    fn host_at(&self, host: usize) -> SocketAddr {
        SocketAddr::new(self.rack.hosts()[host].addresses()[0], HOST_PORT)
    }

    fn ops(&self) -> Vec<TableOp> {
        let slice = SliceRow { open: true, limit: 4_096, retry_after: Nanos(0), ..SliceRow::default() };
        let client = ClientRow { key: KEY, at: self.host_at(1).into(), incarnation: Incarnation(1) };
        let (generation, at) = (Generation(1), self.host_at(0).into());
        let worker = WorkerRow {
            key: KEY,
            at,
            slice: SliceId(0),
            generation,
            open: true,
            life: 1,
            ..WorkerRow::default()
        };
        vec![
            TableOp::SetSlice(SliceId(0), slice),
            TableOp::SetType(TaskType(1), Some(SliceId(0))),
            TableOp::SetClient(ClientId(0), Some((client, Serial(0)))),
            TableOp::RaiseGeneration(WorkerId(0), generation),
            TableOp::SetWorker(WorkerId(0), Some(worker)),
        ]
    }
}

/// The hosts of a rack as sockets.
struct Hosts {
    switch: Endpoint,
    worker: Socket,
    client: Socket,
    token: Token,
    submit: Submit,
}

impl Hosts {
    /// Sends `pairs` pairs, a batch of each kind at a time.
    fn send(&mut self, mut pairs: u32) {
        self.submit.payload = Payload::EMPTY;
        while pairs > 0 {
            let now = pairs.min(SPELL);
            (0..now).for_each(|_| self.next_token());
            self.worker.flush();
            (0..now).for_each(|_| self.next_task());
            self.client.flush();
            pairs -= now;
        }
    }

    /// Sends a token and its task; the task carries its scheduled departure time.
    fn send_one(&mut self, due: Nanos) {
        self.submit.payload = Payload { len: 8, inline: due.0.to_ne_bytes(), handle: Handle::NONE };
        self.next_token();
        self.worker.flush();
        self.next_task();
        self.client.flush();
    }

    fn next_token(&mut self) {
        self.token.issued = self.token.issued.plus(1);
        let packet = Packet::Token(self.token);
        self.worker.outbox().send_with(self.switch, |out| encode(&packet, &[], out).unwrap_or(0));
    }

    fn next_task(&mut self) {
        self.submit.task.sequence = self.submit.task.sequence.plus(1);
        let packet = Packet::Submit(self.submit);
        self.client.outbox().send_with(self.switch, |out| encode(&packet, &[], out).unwrap_or(0));
    }
}

/// The first packets of both hosts; later ones have higher numbers.
fn first() -> [Packet; 2] {
    let token = Packet::Token(Token {
        epoch: EPOCH,
        key: KEY,
        worker: WorkerId(0),
        generation: Generation(1),
        nonce: Nonce(1),
        issued: Serial(0),
        ..Token::default()
    });
    let task = Packet::Submit(Submit {
        epoch: EPOCH,
        key: KEY,
        client: ClientId(0),
        task: TaskId { incarnation: Incarnation(1), sequence: Serial(0) },
        attempt: Attempt(1),
        task_type: TaskType(1),
        ..Submit::default()
    });
    [token, task]
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, Box<dyn Error>> {
    Ok(ebpf.program_mut(name).ok_or("no such program")?.try_into()?)
}

fn attach_host(load: &mut Ebpf, end: u32, host: &HostSpace) -> Result<(), Box<dyn Error>> {
    program(load, "sink")?.attach(HOST_LINK, XdpMode::Driver)?;
    let ends = load.map_mut("ends").ok_or("no ends")?;
    DevMap::try_from(ends)?.set(end, host.at_host.index, None, 0)?;
    Ok(())
}

/// Attaches Rain to all links.
fn rain(interfaces: Vec<String>, generic: bool, ops: Vec<TableOp>) -> Result<(), Box<dyn Error>> {
    let at = SocketAddr::from(([10, 77, 0, 1], PORT));
    let pins = format!("{BPF_FOLDER}/bench-{generic}").into();
    let options = XdpOptions { size: size(), at, interfaces, generic, pins };
    let driver = XdpDriver::new(&options, || Ok(EPOCH))?;
    let handle = driver.handle();
    driver.spawn::<KernelError>()?;
    handle.tables().call(ops)?;
    Ok(())
}

/// Of either switch.
fn size() -> Config {
    Config { workers: 64, clients: 16, slices: 1, types: 16, tasks_per_slice: 4_096, ..Config::full(EPOCH) }
}

fn udp(policy: &str, at: SocketAddr, ops: Vec<TableOp>) -> Result<SwitchDriver, Box<dyn Error>> {
    let program = Choice::parse(policy)?;
    let config = SwitchConfig { program, at, waiting: Waiting::Spin, ..SwitchConfig::new(size()) };
    let mut driver = SwitchDriver::new(&config)?;
    driver.handle().tables().send(ops, |_| ())?;
    driver.step_at(Clock::start().now())?;
    Ok(driver)
}

/// Attaches `hop.bpf.c` to these links; each leads to the other.
fn hop(rack: &RackSpaces, on: &[usize]) -> Result<Ebpf, Box<dyn Error>> {
    let mut ebpf = EbpfLoader::new().load_file(object("hop.bpf.o"))?;
    let hosts = rack.hosts();
    let hop = program(&mut ebpf, "hop")?;
    hop.load()?;
    on.iter().try_for_each(|at| hop.attach(&hosts[*at].at_switch.name, XdpMode::Driver).map(drop))?;
    let mut links = DevMapHash::try_from(ebpf.map_mut("links").ok_or("no links")?)?;
    for host in hosts {
        links.insert(host.at_switch.index, host.at_switch.index, None, 0)?;
    }
    let mut hops: HashMap<_, u32, [u8; 24]> = ebpf.map_mut("hops").ok_or("no hops")?.try_into()?;
    for (from, to) in [(0, 1), (1, 0)] {
        let to: &HostSpace = &hosts[to];
        let mut hop = [0; 24];
        hop[..4].copy_from_slice(&to.at_switch.index.to_ne_bytes());
        hop[4..10].copy_from_slice(&to.at_host.mac);
        hop[10..16].copy_from_slice(&to.at_switch.mac);
        hops.insert(hosts[from].at_switch.index, hop, 0)?;
    }
    Ok(ebpf)
}

/// Runs the UDP switch on the other core until `over`. Returns the share of that core that it used, or
/// would have used without other processes there.
fn spin(driver: &mut SwitchDriver, over: &AtomicBool) -> Result<f64, &'static str> {
    pin_thread(1).map_err(|_| "there is no second core")?;
    let (wanted, began) = (runnable_ns()?, Instant::now());
    while !over.load(Ordering::Relaxed) {
        driver.step().map_err(|_| "the switch's socket broke")?;
    }
    Ok((runnable_ns()? - wanted) as f64 / began.elapsed().as_nanos() as f64)
}

/// For how many ns this thread ran or waited for a core.
fn runnable_ns() -> Result<u64, &'static str> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").map_err(|_| "the kernel keeps no times")?;
    Ok(text.split_whitespace().take(2).filter_map(|ns| ns.parse::<u64>().ok()).sum())
}

/// The file in which the kernel reports the time of a core's ksoftirqd thread.
fn ksoftirqd(core: u32) -> Result<String, Box<dyn Error>> {
    let name = format!("ksoftirqd/{core}\n");
    for entry in fs::read_dir("/proc")? {
        let process = entry?.path();
        if fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm == name) {
            return Ok(process.join("schedstat").display().to_string());
        }
    }
    Err("the kernel does not show its threads".into())
}
