//! Rain in the kernel: loads the XDP program of `targets/ebpf` and manages its tables.
//!
//! [`XdpSwitch`] loads the program with maps of the switch's size, carries out the controller's steps while
//! packets pass, and reads the program's state. [`XdpDriver`] attaches it to links and manages it. Packets
//! can also be passed through it one by one ([`XdpSwitch::frame`], the kernel's test run), which is how
//! vectors compare it with the model.

mod driver;
mod failing;
pub mod frame;
mod layout;
mod links;
pub mod machine;
mod maps;
mod pins;
mod server_rows;
mod servers;
#[expect(unsafe_code, reason = "system calls")]
mod sys;
mod tables;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use aya::maps::{Array, Map, PerCpuArray};
use aya::programs::{TestRun as _, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use sluice_switch::{Config, Refusal};
use sluice_switchd::switch::Count;
use sluice_wire::{ClientId, Epoch, Nanos, ParseError, SliceId, Sweep, Term, encode, encoded_len};
use zerocopy::IntoBytes as _;

use crate::KernelError;
pub use driver::{XdpDriver, XdpOptions, detach};
use failing::{chain, errno, failed};
use layout::{Cell, Client, LAYOUT_VERSION, Layout, Life, MapShape, Queue, WorkerCounters};
pub use layout::{SliceQueue, TaskInRing, TokenInRing};
pub use links::AttachMode;
use links::PROGRAM;
use maps::{Maps, Table, Values};
use pins::Pins;
pub use server_rows::HostPath;
use server_rows::Servers;

/// The program that performs the controller's sweep.
const SWEEP: &str = "sweep";

/// The object file, built by `build.rs`; empty if there was no compiler.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/rain.bpf.o"));

/// The program's own counters, in order.
const OWN: [Count; 14] = [
    Count::Received,
    Count::Sent,
    Count::Submits,
    Count::Tokens,
    Count::Dispatched,
    Count::Rejected,
    Count::Recirculated,
    Count::Truncated,
    Count::Fragment,
    Count::IpOptions,
    Count::RingBusy,
    Count::SendFailed,
    Count::CellBroken,
    Count::WrittenAhead,
];
const COUNTS: usize = OWN.len() + ParseError::ALL.len() + Refusal::ALL.len();

/// The longest frame in a test run.
const FRAME_MAX: usize = 4096;

/// Values of the kernel's `enum xdp_action`. Any other value means that the program failed.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;
const XDP_REDIRECT: u32 = 4;

/// The settings of an XDP switch.
#[derive(Clone, Copy, Debug)]
pub struct XdpConfig {
    /// The sizes of the tables, and the epoch of the registers. The program stores no payloads.
    pub size: Config,
    /// The switch's addresses, of either family or both, with the same port.
    pub at: [Option<SocketAddr>; 2],
    /// Whether the time is the one last set by [`XdpSwitch::set_now`].
    pub test_mode: bool,
}

/// What the program did with a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameAction {
    Dropped,
    /// The frame goes to the kernel's network stack.
    Passed,
    /// This frame leaves by the link that the original came from.
    Sent(Vec<u8>),
    /// This frame leaves by another link than the original's.
    Redirected(Vec<u8>),
    /// The program failed.
    Aborted,
}

/// The result of a test run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRunResult {
    /// What the program did with the frame in the last repetition.
    pub fate: FrameAction,
    /// The mean time of a repetition.
    pub mean_time: Duration,
}

/// The program in the kernel.
pub struct XdpSwitch {
    ebpf: Ebpf,
    maps: Maps,
    config: XdpConfig,
    /// The binary logarithm of the number of cells in a slice's ring.
    ring_bits: u32,
    servers: Servers,
}

impl XdpSwitch {
    /// Loads the program from the bytes of its object file, with an empty switch.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the message of the kernel or the loader.
    pub fn load(object: &[u8], config: XdpConfig) -> Result<Self, KernelError> {
        let mut switch = Self::with_maps(object, config, None, false)?;
        switch.clear()?;
        Ok(switch)
    }

    /// Loads the program with the pinned maps, or with new maps, which it pins.
    fn pinned(
        object: &[u8],
        config: XdpConfig,
        pins: &Pins,
        redirects_back: bool,
    ) -> Result<Self, KernelError> {
        let mut switch = Self::with_maps(object, config, pins.is_whole().then_some(pins), redirects_back)?;
        if pins.is_whole() {
            // Passes may still read what the previous process changed last.
            switch.maps.drain()?;
            switch.regroup()?;
            return Ok(switch);
        }
        switch.clear()?;
        let mut maps: Vec<(&str, &Map)> =
            switch.ebpf.maps().filter(|(name, _)| !name.contains('.')).collect();
        maps.sort_by_key(|(name, _)| *name == pins::LAYOUT);
        for (name, map) in maps {
            let pinned = map.pin(pins.path().join(name));
            pinned.map_err(|why| pins.failed("pin a map", &chain(&why)))?;
        }
        Ok(switch)
    }

    fn with_maps(
        object: &[u8],
        config: XdpConfig,
        pins: Option<&Pins>,
        redirects_back: bool,
    ) -> Result<Self, KernelError> {
        let redirects_back = u32::from(redirects_back);
        let layout = layout_of(&config.size, config.test_mode)?;
        let ring_bits = layout.shape.ring_bits;
        let pinned = pins.map_or(Ok(Vec::new()), Pins::maps)?;
        let mut loader = EbpfLoader::new();
        loader.override_global("shape", layout.shape.as_bytes(), true);
        loader.override_global("redirects_back", &redirects_back, true);
        let entries = maps::entries(&config.size, ring_bits);
        for (map, count) in entries {
            loader.map_max_entries(map, count);
        }
        for (map, pins) in pinned.iter().filter_map(|map| pins.map(|pins| (map, pins))) {
            loader.map_pin_path(map, pins.path().join(map));
        }
        let mut ebpf = loader.load(object).map_err(|why| load_failed(&config.size, ring_bits, &why))?;
        for (_, program) in ebpf.programs_mut() {
            let program: &mut Xdp = program.try_into().map_err(|why| failed("load the program", &why))?;
            program.load().map_err(|why| failed("load the program", &chain(&why)))?;
        }
        let maps = Maps::open(&mut ebpf, !config.test_mode)?;
        Ok(Self { ebpf, maps, config, ring_bits, servers: Servers::default() })
    }

    /// Empties the switch: no sources, no open slices, all counters reset. Must not be called while packets
    /// pass.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn clear(&mut self) -> Result<(), KernelError> {
        let start = self.config.size.counters_start.0;
        self.maps.clear(WorkerCounters::starting(start), Queue::starting(start, self.ring_bits));
        let cpus = aya::util::nr_cpus().map_err(|(_, why)| failed("count CPUs", &why))?;
        let none = aya::maps::PerCpuValues::try_from(vec![[0u64; COUNTS]; cpus])
            .map_err(|why| failed("clear counters", &why))?;
        let map = self.ebpf.map_mut("counters").ok_or_else(|| failed("find the map", "counters"))?;
        let mut counters =
            PerCpuArray::<_, [u64; COUNTS]>::try_from(map).map_err(|why| failed("open counters", &why))?;
        counters.set(0, none, 0).map_err(|why| failed("clear counters", &why))?;
        self.set_life(self.config.size.term);
        self.maps.layout.set(0, layout_of(&self.config.size, self.config.test_mode)?);
        self.regroup()
    }

    /// Sets the time, in test mode.
    pub fn set_now(&mut self, now: Nanos) {
        let life: Life = self.maps.lives.get(0);
        self.maps.lives.set(0, Life { now_ns: now.0, ..life });
    }

    fn set_life(&mut self, term: Term) {
        let epoch = self.config.size.epoch.0;
        let mut life = Life { epoch, term: term.0, ..Life::default() };
        for at in self.config.at.into_iter().flatten() {
            life.port = at.port().to_be_bytes();
            match at.ip() {
                IpAddr::V4(ip) => life.at4 = ip.octets(),
                IpAddr::V6(ip) => life.at6 = ip.octets(),
            }
        }
        self.maps.lives.set(0, life);
    }

    /// Passes one frame through the program, without any link.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn frame(&self, frame: &[u8]) -> Result<FrameAction, KernelError> {
        Ok(self.run(PROGRAM, frame, 1)?.fate)
    }

    /// The copy of a WRITE from [`XdpSwitch::frame`] that leaves over a link, adapted to that link's
    /// server.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn copy(&self, link: u32, write: &[u8]) -> Result<FrameAction, KernelError> {
        let mut frame = write.to_vec();
        frame[..4].copy_from_slice(&link.to_ne_bytes());
        Ok(self.run("copy", &frame, 1)?.fate)
    }

    /// Passes a frame through one of the object's programs `repeat` times; each repetition gets the frame
    /// as the one before left it.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn run(&self, name: &str, frame: &[u8], repeat: u32) -> Result<TestRunResult, KernelError> {
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
            XDP_DROP => FrameAction::Dropped,
            XDP_PASS => FrameAction::Passed,
            XDP_TX => FrameAction::Sent(left()),
            XDP_REDIRECT => FrameAction::Redirected(left()),
            _ => FrameAction::Aborted,
        };
        Ok(TestRunResult { fate, mean_time: ran.duration })
    }

    /// Sets the templates of the measuring programs; see `targets/ebpf/pair.bpf.c`.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] if the object has no such programs.
    pub fn set_templates(&mut self, templates: [u8; 272]) -> Result<(), KernelError> {
        let found = self.ebpf.map_mut("templates").ok_or_else(|| failed("find the map", "templates"))?;
        let mut array = Array::<_, [u8; 272]>::try_from(found).map_err(|why| failed("open a map", &why))?;
        array.set(0, templates, 0).map_err(|why| failed("write a map", &chain(&why)))
    }

    /// Performs the controller's sweep to its end. Returns the frame for the host that must be told
    /// something, if there is one.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn sweep(&self, sweep: Sweep) -> Result<FrameAction, KernelError> {
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
        Ok(self.run(SWEEP, &frame, 1)?.fate)
    }

    /// All counters by name. Counters that the UDP switch has too have the same names.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn counts(&self) -> Result<Vec<(&'static str, u64)>, KernelError> {
        let malformed = ParseError::ALL.iter().map(|why| why.name());
        let names = OWN.into_iter().map(Count::name).chain(malformed);
        Ok(names.chain(Refusal::ALL.iter().map(|why| why.name())).zip(self.totals()?).collect())
    }

    /// All counts in their order.
    fn totals(&self) -> Result<[u64; COUNTS], KernelError> {
        let map = self.ebpf.map("counters").ok_or_else(|| failed("find the map", "counters"))?;
        let counters =
            PerCpuArray::<_, [u64; COUNTS]>::try_from(map).map_err(|why| failed("open counters", &why))?;
        let each = counters.get(&0, 0).map_err(|why| failed("read counters", &why))?;
        Ok(std::array::from_fn(|at| each.iter().map(|counts| counts[at]).sum()))
    }

    /// The contents of a slice's queue.
    pub fn parked(&self, slice: SliceId) -> SliceQueue {
        let cell = |number: u32| -> Cell {
            let index = (u32::from(slice.0) << self.ring_bits) + (number & ((1 << self.ring_bits) - 1));
            self.maps.cells.get(index)
        };
        let queue: Queue = self.maps.queues.get(slice.0.into());
        let [tasks, tokens] = queue.waiting();
        let row = |client: ClientId| self.maps.rows::<Client>(Table::Clients, client.0.into()).holds().row();
        let task = |cell: Cell| cell.task(row(cell.client()));
        let tasks = tasks.into_iter().map(|number| task(cell(number)));
        let tokens = tokens.into_iter().map(|number| cell(number).token());
        SliceQueue { tasks: tasks.collect(), tokens: tokens.collect() }
    }
}

/// The object file that was built with this crate.
///
/// # Errors
/// [`KernelError::XdpNotBuilt`] if there was no compiler for it.
pub fn embedded() -> Result<&'static [u8], KernelError> {
    if OBJECT.is_empty() { Err(KernelError::XdpNotBuilt) } else { Ok(OBJECT) }
}

/// The size in bytes of a switch's maps in the kernel.
pub fn map_bytes(size: &Config) -> u64 {
    // The layout fails only on a machine without CPUs.
    layout_of(size, false).map_or(0, |layout| maps::bytes(size, layout.shape.ring_bits))
}

/// The switch's address in the pinned maps, and the epoch of its registers; `None` if no maps are pinned.
fn kept(pins: &Pins, size: &Config) -> Result<Option<(SocketAddr, Epoch)>, KernelError> {
    if !pins.is_whole() {
        return Ok(None);
    }
    let other = |why: &str| KernelError::PinsOther { path: pins.path().to_owned(), why: why.to_owned() };
    let open = |name: &str, bytes: usize| {
        let values = Values::pinned(&pins.path().join(name)).ok().filter(|values| values.bytes() == bytes);
        values.ok_or_else(|| other("of another version of sluice"))
    };
    let held: Layout = open(pins::LAYOUT, size_of::<Layout>().next_multiple_of(8))?.get(0);
    let wanted = layout_of(size, false)?;
    if held.version != wanted.version {
        return Err(other("of another version of sluice"));
    }
    if held.shape != wanted.shape {
        return Err(other("of another size than this plan's"));
    }
    let life: Life = open("lives", size_of::<Life>())?.get(0);
    Ok(Some((life.at(), Epoch(life.epoch))))
}

/// The layout that the maps of such a switch must have.
fn layout_of(size: &Config, test_mode: bool) -> Result<Layout, KernelError> {
    let cpus = aya::util::nr_cpus().map_err(|(_, why)| failed("count CPUs", &why))?;
    let ahead = 2 * (cpus as u32 + 1);
    let held = size.tasks_per_slice.max(size.tokens_per_slice);
    let ring_bits = (2 * held).max(8 * ahead).next_power_of_two().trailing_zeros();
    let shape = MapShape {
        workers: size.workers.into(),
        clients: size.clients.into(),
        slices: size.slices.into(),
        types: size.types.into(),
        tokens_per_slice: size.tokens_per_slice,
        replay_cells: size.replay_cells,
        ring_bits,
        ahead,
        test_mode: test_mode.into(),
        servers: size.servers.into(),
        tickets_start: size.counters_start.0,
    };
    Ok(Layout { version: LAYOUT_VERSION, shape })
}

/// Why a program could not be loaded with its maps. If memory was short, the error tells how much the maps
/// need.
fn load_failed(size: &Config, ring_bits: u32, why: &(dyn std::error::Error + 'static)) -> KernelError {
    let no_room = [libc::ENOMEM, libc::E2BIG, libc::ENOSPC];
    if errno(why).is_some_and(|errno| no_room.contains(&errno)) {
        let mib = maps::bytes(size, ring_bits) >> 20;
        return KernelError::XdpMemory { mib, why: chain(why) };
    }
    failed("load the program", &chain(why))
}
