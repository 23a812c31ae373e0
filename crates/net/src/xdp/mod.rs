//! Rain in the kernel: the XDP program of `targets/ebpf`, loaded and fed.
//!
//! [`XdpSwitch`] loads the program with maps as large as the switch, takes the controller's steps and reads its state. So
//! far packets only go through it by hand ([`XdpSwitch::frame`], the kernel's test run), which is how vectors hold it to
//! the model. Left out as yet: attaching it to links, pinning, steps while packets pass (a row may be written again only
//! after a drain; see `targets/ebpf/README.md`), servers.

pub mod frame;
mod layout;
mod tables;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use aya::maps::{Array, Map, MapData, PerCpuArray};
use aya::programs::{TestRun as _, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader, Pod};
use sluice_switch::{Config, Refusal};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Nanos, ParseError, SliceId, Sweep, encode, encoded_len};
use zerocopy::transmute;

use crate::NetError;
pub use layout::Way;
use layout::{Cell, Life, Queue};

/// The counts of the program's own, in their order.
const OWN: [&str; 13] = [
    "received",
    "sent",
    "submits",
    "tokens",
    "dispatched",
    "rejected",
    "recirculated",
    "truncated",
    "fragment",
    "ip_options",
    "ring_busy",
    "send_failed",
    "cell_broken",
];
const COUNTS: usize = OWN.len() + ParseError::ALL.len() + Refusal::ALL.len();

/// The longest frame that a test run takes and gives.
const FRAME_MAX: usize = 4096;

/// How an XDP switch is set up.
#[derive(Clone, Copy, Debug)]
pub struct XdpConfig {
    /// The program's size, and the life of its registers. It keeps no payloads and writes none ahead.
    pub size: Config,
    /// Its addresses, of either family or both, with one port.
    pub at: [Option<SocketAddr>; 2],
    /// Whether its time is what [`XdpSwitch::set_now`] said last.
    pub test_mode: bool,
}

/// What becomes of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It ended in the switch.
    Dropped,
    /// It goes to the kernel's stack.
    Passed,
    /// This leaves, by the link that it came from.
    Sent(Vec<u8>),
    /// This leaves by another link.
    Redirected(Vec<u8>),
    /// The program went wrong.
    Aborted,
}

/// The program in the kernel.
#[derive(Debug)]
pub struct XdpSwitch {
    ebpf: Ebpf,
    config: XdpConfig,
    /// Two to this power: cells in a slice's ring.
    ring_bits: u32,
}

impl XdpSwitch {
    /// Loads the program from its object file, with an empty switch.
    ///
    /// # Errors
    /// [`NetError::Xdp`] with what the kernel or the loader said.
    pub fn load(object: &Path, config: XdpConfig) -> Result<Self, NetError> {
        let size = &config.size;
        let cpus = aya::util::nr_cpus().map_err(|(_, why)| failed("count CPUs", &why))?;
        let ahead = 2 * (cpus as u32 + 1);
        let held = size.tasks_per_slice.max(size.tokens_per_slice);
        let ring_bits = (2 * held).max(8 * ahead).next_power_of_two().trailing_zeros();
        let (workers, clients, slices) = (size.workers.into(), size.clients.into(), size.slices.into());
        let shape: [u32; 9] = [
            workers,
            clients,
            slices,
            size.types.into(),
            size.tokens_per_slice,
            size.replay_cells,
            ring_bits,
            ahead,
            config.test_mode.into(),
        ];
        let mut loader = EbpfLoader::new();
        loader.override_global("shape", &shape, true);
        let entries = [
            ("types", size.types.into()),
            ("slices", slices),
            ("workers", workers),
            ("worker_counters", workers),
            ("clients", clients),
            ("replay", clients * size.replay_cells),
            ("queues", slices),
            ("cells", slices << ring_bits),
        ];
        for (map, count) in entries {
            loader.map_max_entries(map, count);
        }
        let ebpf = loader.load_file(object).map_err(|why| failed("load the program", &chain(&why)))?;
        let mut switch = Self { ebpf, config, ring_bits };
        let names: Vec<String> = switch.ebpf.programs().map(|(name, _)| name.to_owned()).collect();
        for name in &names {
            switch.program(name)?.load().map_err(|why| failed("load the program", &chain(&why)))?;
        }
        switch.clear()?;
        Ok(switch)
    }

    /// Makes the switch empty again: no sources, no slices open, all counters at their start. Not while it is in use.
    ///
    /// # Errors
    /// [`NetError::Xdp`] with what the kernel said.
    pub fn clear(&mut self) -> Result<(), NetError> {
        let size = self.config.size;
        let start = size.counters_start.0;
        let queue: [u8; 64] = transmute!(Queue::starting(start, self.ring_bits));
        self.fill("types", size.types.into(), 0u32)?;
        self.fill("slices", size.slices.into(), [0u8; 40])?;
        self.fill("workers", size.workers.into(), [0u8; 136])?;
        self.fill("worker_counters", size.workers.into(), tables::counters_at(start))?;
        self.fill("clients", size.clients.into(), [0u8; 120])?;
        self.fill("replay", u32::from(size.clients) * size.replay_cells, 0u64)?;
        self.fill("queues", size.slices.into(), queue)?;
        self.fill("cells", u32::from(size.slices) << self.ring_bits, [0u8; 64])?;
        let cpus = aya::util::nr_cpus().map_err(|(_, why)| failed("count CPUs", &why))?;
        let none = aya::maps::PerCpuValues::try_from(vec![[0u64; COUNTS]; cpus])
            .map_err(|why| failed("clear counters", &why))?;
        let map = self.ebpf.map_mut("counters").ok_or_else(|| failed("find the map", &"counters"))?;
        let mut counters =
            PerCpuArray::<_, [u64; COUNTS]>::try_from(map).map_err(|why| failed("open counters", &why))?;
        counters.set(0, none, 0).map_err(|why| failed("clear counters", &why))?;
        self.set_now(Nanos(0))
    }

    /// Sets the time, in test mode.
    ///
    /// # Errors
    /// [`NetError::Xdp`] with what the kernel said.
    pub fn set_now(&mut self, now: Nanos) -> Result<(), NetError> {
        let mut life = Life { epoch: self.config.size.epoch.0, now_ns: now.0, ..Life::default() };
        for at in self.config.at.into_iter().flatten() {
            life.port = at.port().to_be_bytes();
            match at.ip() {
                IpAddr::V4(ip) => life.at4 = ip.octets(),
                IpAddr::V6(ip) => life.at6 = ip.octets(),
            }
        }
        let life: [u8; 40] = transmute!(life);
        self.set("lives", 0, life)
    }

    /// Takes one step of the controller's; SWEEPs go through [`XdpSwitch::sweep`].
    ///
    /// # Errors
    /// [`NetError::Xdp`] with what the kernel said.
    pub fn table(&mut self, op: TableOp) -> Result<TableAnswer, NetError> {
        tables::table(self, op)
    }

    /// One frame through the program, without any link.
    ///
    /// # Errors
    /// [`NetError::Xdp`] with what the kernel said.
    pub fn frame(&self, frame: &[u8]) -> Result<Fate, NetError> {
        Ok(self.run("rain", frame, 1)?.0)
    }

    /// A frame through one of the object's programs so often, each time as the time before left it; and how long one run
    /// took on average.
    ///
    /// # Errors
    /// [`NetError::Xdp`] with what the kernel said.
    pub fn run(&self, name: &str, frame: &[u8], repeat: u32) -> Result<(Fate, Duration), NetError> {
        let mut out = [0; FRAME_MAX];
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(&mut out);
        options.repeat = repeat;
        let program = self.ebpf.program(name).ok_or_else(|| failed("find the program", &name))?;
        let program: &Xdp = program.try_into().map_err(|why| failed("run the program", &why))?;
        let ran = program.test_run(options).map_err(|why| failed("run the program", &chain(&why)))?;
        let left = || out[..ran.data_size_out as usize].to_vec();
        let fate = match ran.return_value {
            1 => Fate::Dropped,
            2 => Fate::Passed,
            3 => Fate::Sent(left()),
            4 => Fate::Redirected(left()),
            _ => Fate::Aborted,
        };
        Ok((fate, ran.duration))
    }

    /// Puts a template for the programs that measure; see `targets/ebpf/pair.bpf.c`.
    ///
    /// # Errors
    /// [`NetError::Xdp`] if the object has no such programs.
    pub fn set_templates(&mut self, templates: [u8; 272]) -> Result<(), NetError> {
        self.set("templates", 0, templates)
    }

    /// Walks with the controller's broom to its end, as a frame for the host that it has to tell something.
    ///
    /// # Errors
    /// [`NetError::Xdp`] with what the kernel said.
    pub fn sweep(&self, sweep: Sweep) -> Result<Fate, NetError> {
        let at = self
            .config
            .at
            .into_iter()
            .flatten()
            .next()
            .ok_or_else(|| failed("sweep", &"the switch has no address"))?;
        let packet = sluice_wire::Packet::Sweep(sweep);
        let mut bytes = vec![0; encoded_len(&packet)];
        encode(&packet, &[], &mut bytes).map_err(|why| failed("sweep", &why))?;
        let frame =
            frame::wrap(at, at, &bytes).ok_or_else(|| failed("sweep", &"one address is of two families"))?;
        Ok(self.run("sweep", &frame, 1)?.0)
    }

    /// Every count under its name: those that the UDP switch has too have the same.
    ///
    /// # Errors
    /// [`NetError::Xdp`] with what the kernel said.
    pub fn counts(&self) -> Result<Vec<(&'static str, u64)>, NetError> {
        let map = self.ebpf.map("counters").ok_or_else(|| failed("find the map", &"counters"))?;
        let counters =
            PerCpuArray::<_, [u64; COUNTS]>::try_from(map).map_err(|why| failed("open counters", &why))?;
        let each = counters.get(&0, 0).map_err(|why| failed("read counters", &why))?;
        let malformed = ParseError::ALL.iter().map(|why| why.name());
        let names = OWN.into_iter().chain(malformed).chain(Refusal::ALL.iter().map(|why| why.name()));
        let total = |at: usize| each.iter().map(|counts| counts[at]).sum();
        Ok(names.enumerate().map(|(at, name)| (name, total(at))).collect())
    }

    /// The tasks that wait in a slice (client, incarnation, sequence, attempt) and its parked tokens (worker,
    /// generation), oldest first.
    ///
    /// # Errors
    /// [`NetError::Xdp`] with what the kernel said.
    #[expect(clippy::type_complexity, reason = "two lists of what their names say")]
    pub fn parked(&self, slice: SliceId) -> Result<(Vec<(u16, u64, u32, u16)>, Vec<(u16, u32)>), NetError> {
        let cell = |number: u32| -> Result<Cell, NetError> {
            let index = (u32::from(slice.0) << self.ring_bits) + (number & ((1 << self.ring_bits) - 1));
            let bytes: [u8; 64] = self.get("cells", index)?;
            Ok(transmute!(bytes))
        };
        let [tasks, tokens] = self.queue(slice)?.waiting();
        let tasks = tasks.into_iter().map(|number| Ok(cell(number)?.task()));
        let tokens = tokens.into_iter().map(|number| Ok(cell(number)?.token()));
        Ok((tasks.collect::<Result<_, NetError>>()?, tokens.collect::<Result<_, NetError>>()?))
    }

    fn queue(&self, slice: SliceId) -> Result<Queue, NetError> {
        let bytes: [u8; 64] = self.get("queues", slice.0.into())?;
        Ok(transmute!(bytes))
    }

    fn program(&mut self, name: &str) -> Result<&mut Xdp, NetError> {
        let program = self.ebpf.program_mut(name).ok_or_else(|| failed("find the program", &name))?;
        program.try_into().map_err(|why| failed("load the program", &why))
    }

    fn array<V: Pod>(&self, map: &'static str) -> Result<Array<&MapData, V>, NetError> {
        let found: &Map = self.ebpf.map(map).ok_or_else(|| failed("find the map", &map))?;
        Array::try_from(found).map_err(|why| failed("open a map", &why))
    }

    fn get<V: Pod>(&self, map: &'static str, index: u32) -> Result<V, NetError> {
        self.array(map)?.get(&index, 0).map_err(|why| failed("read a map", &chain(&why)))
    }

    fn set<V: Pod>(&mut self, map: &'static str, index: u32, value: V) -> Result<(), NetError> {
        let found = self.ebpf.map_mut(map).ok_or_else(|| failed("find the map", &map))?;
        let mut array = Array::<_, V>::try_from(found).map_err(|why| failed("open a map", &why))?;
        array.set(index, value, 0).map_err(|why| failed("write a map", &chain(&why)))
    }

    fn fill<V: Pod>(&mut self, map: &'static str, count: u32, value: V) -> Result<(), NetError> {
        (0..count).try_for_each(|index| self.set(map, index, value))
    }
}

fn failed(doing: &'static str, why: &(impl ToString + ?Sized)) -> NetError {
    NetError::Xdp { doing, why: why.to_string() }
}

/// An error with all that caused it, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}
