//! The program on BMv2: compiled for a size, started, given frames, and read out.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use sluice_switch::{Config, Parked, Refusal};
use sluice_wire::tables::{ClientRow, RingCounts, SliceState, TableAnswer, TableOp, WorkerState};
use sluice_wire::{
    Attempt, ClientId, Endpoint, Generation, Kind, Nanos, ParseError, Psn, Serial, SliceId, Submit, TaskId,
    WorkerId,
};

use crate::entries::{Entries, OneLink, Ways};
use crate::error::Bmv2Error;
use crate::frames::Frames;
use crate::process::{Process, QUIET};
use crate::registers::{COUNTERS, MALFORMED, NUMBERS, REGISTERS, WRITTEN, counter, of};
use crate::runtime::Runtime;
use crate::tools::tool;

/// Kinds of packets are below this.
const KINDS: usize = Kind::Job as usize + 1;
/// How many counters stand before those of malformed packets.
const PASSED: usize = 6;
/// The link's number and name.
const LINK: &str = "0";
/// The header in front of each frame: the time, whether the frame is the controller's, whether it only asks
/// for what came before, and six bytes of zero.
const HELD_BYTES: usize = 16;
/// The time in a frame that asks. No other frame that leaves begins with these bytes.
const QUESTION: u64 = u64::MAX;
/// After so many questions a packet that has not come back never will: the longest walk of a SWEEP takes far
/// fewer passes.
const QUESTIONS_MAX: u32 = 200_000;

/// The program on BMv2, with the time that each frame names.
pub struct Bmv2Switch {
    program: P4Program,
    frames: Frames,
    _process: Process,
}

/// The program as a controller sees it: its tables and registers in a running switch.
pub(crate) struct P4Program {
    pub(crate) config: Config,
    pub(crate) entries: Entries,
    pub(crate) runtime: Runtime,
}

impl Bmv2Switch {
    /// Compiles `program` for this size and starts it. `own` are the switch's addresses.
    ///
    /// # Errors
    /// [`Bmv2Error::NoTool`] without the P4 tools; otherwise why the program does not compile or start.
    pub fn start(program: &Path, config: Config, own: &[SocketAddr]) -> Result<Self, Bmv2Error> {
        let (compiler, switch) = (tool("p4c-bm2-ss")?, tool("simple_switch")?);
        let folder = tempfile::tempdir().map_err(Bmv2Error::system("make a folder"))?;
        let compiled = folder.path().join("rain.json");
        let flags = sizes(&config).into_iter().chain(["-DHELD_TO_VECTORS".to_owned()]);
        compile(&compiler, program, flags, &compiled)?;
        let frames = Frames::new(folder.path(), LINK)?;
        let port = free_port()?;
        let mut command = Command::new(switch);
        command.current_dir(folder.path()).args(["--use-files", "0", "-i"]).arg(format!("0@{LINK}"));
        command.args(QUIET).args(["--thrift-port", &port.to_string()]).arg(compiled);
        let mut process = Process::start(&mut command)?;
        let runtime = Runtime::connect(port, || process.is_alive())?;
        let mut program = P4Program::new(config, runtime, OneLink);
        program.begin(own)?;
        Ok(Self { program, frames, _process: process })
    }

    /// Empties all tables and registers.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn clear(&mut self) -> Result<(), Bmv2Error> {
        self.program.clear()
    }

    /// Carries out one of the controller's steps.
    ///
    /// # Errors
    /// What BMv2 refuses, and [`Bmv2Error::Unknown`] for a step of which the program knows nothing.
    pub fn table(&mut self, op: TableOp) -> Result<TableAnswer, Bmv2Error> {
        self.program.table(op)
    }

    /// The counters, by the UDP switch's names.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, Bmv2Error> {
        self.program.counts()
    }
}

impl P4Program {
    /// The program in a switch that has just started; `ways` tells where hosts are.
    pub(crate) fn new(config: Config, runtime: Runtime, ways: impl Ways + 'static) -> Self {
        Self { config, entries: Entries::new(config, Box::new(ways)), runtime }
    }

    /// Writes what stays: the epoch, the switch's addresses, and a multicast group for each slice.
    pub(crate) fn begin(&mut self, own: &[SocketAddr]) -> Result<(), Bmv2Error> {
        let own: Vec<Endpoint> = own.iter().copied().map(Endpoint::from).collect();
        self.entries.begin(&mut self.runtime, &own)?;
        self.clear()
    }

    /// Empties all tables and registers.
    fn clear(&mut self) -> Result<(), Bmv2Error> {
        self.entries.clear(&mut self.runtime)?;
        for (part, names) in REGISTERS {
            names.iter().try_for_each(|name| self.runtime.reset_register(&of(part, name)))?;
        }
        self.runtime.reset_register(NUMBERS)?;
        COUNTERS.iter().try_for_each(|name| self.runtime.reset_counter(&counter(name)))?;
        [MALFORMED, WRITTEN].iter().try_for_each(|name| self.runtime.reset_counter(name))?;
        let (start, above) = (self.config.counters_start.0, self.slice_bits());
        for name in ["token_head", "token_tail", "task_head", "task_tail"] {
            for slice in 0..self.config.slices {
                let word = start << above | u32::from(slice);
                self.runtime.fill(&of("queue", name), slice.into(), 1, word.into())?;
            }
        }
        self.start_counters(0, self.config.workers.into(), self.config.counters_start)
    }

    /// Carries out one of the controller's steps. An error for a step of which the program knows nothing.
    pub(crate) fn table(&mut self, op: TableOp) -> Result<TableAnswer, Bmv2Error> {
        Ok(self.step(op)?.unwrap_or(TableAnswer::OutOfRange))
    }

    /// Carries out one step; `None` if an index or value lies outside the program's size.
    fn step(&mut self, op: TableOp) -> Result<Option<TableAnswer>, Bmv2Error> {
        let Self { entries, runtime, config, .. } = self;
        let done = match op {
            TableOp::SetType(of, slice) => entries.set_type(runtime, of, slice)?,
            TableOp::SetSlice(slice, row) => entries.set_slice(runtime, slice, row)?,
            TableOp::SetWorker(worker, row) => entries.set_worker(runtime, worker, row)?,
            TableOp::SetClient(client, row) => self.set_client(client, row)?,
            TableOp::SetServer(server, row) => {
                if let Some((_, start)) = row.filter(|_| server.0 < config.servers) {
                    runtime.fill(NUMBERS, server.0.into(), 1, start.get().into())?;
                }
                entries.set_server(runtime, server, row.map(|(row, _)| row))?
            }
            TableOp::SetRing(slice, server, row) => entries.set_ring(runtime, slice, server, row)?,
            TableOp::SetCopies(slice, copies) => entries.set_copies(runtime, slice, copies)?,
            TableOp::RaiseGeneration(worker, _)
            | TableOp::ResetCounters(worker, _)
            | TableOp::ReadWorker(worker)
                if worker.0 >= config.workers =>
            {
                None
            }
            TableOp::RaiseGeneration(worker, generation) => {
                runtime.fill(&of("tokens", "gen_out"), worker.0.into(), 1, generation.0.into())?;
                Some(())
            }
            TableOp::ResetCounters(worker, start) => {
                self.start_counters(worker.0.into(), 1, start)?;
                Some(())
            }
            TableOp::ReadWorker(worker) => return self.read_worker(worker).map(Some),
            TableOp::ReadSlice(slice) if slice.0 < config.slices => return self.read_slice(slice).map(Some),
            TableOp::ReadSlice(_) => None,
            _ => return Err(Bmv2Error::Unknown(format!("{op:?}"))),
        };
        Ok(done.map(|()| TableAnswer::Done))
    }

    /// A new row lets packets in only once its replay cells begin before the first try that may come, and no
    /// packet of the row before can change them any more.
    fn set_client(
        &mut self,
        client: ClientId,
        row: Option<(ClientRow, Serial)>,
    ) -> Result<Option<()>, Bmv2Error> {
        let removed = self.entries.set_client(&mut self.runtime, client, None)?;
        let (Some(()), Some((row, floor))) = (removed, row) else { return Ok(removed) };
        self.reset_replay(client, floor)?;
        self.entries.set_client(&mut self.runtime, client, Some(row))
    }

    fn read_worker(&mut self, worker: WorkerId) -> Result<TableAnswer, Bmv2Error> {
        let at = usize::from(worker.0);
        let mut read = |part, name| self.word(part, name, at);
        let (generation_out, seen) = (read("tokens", "gen_out")?, read("sources", "seen")?);
        let sent = read("tokens", "sent")?;
        Ok(TableAnswer::Worker(WorkerState {
            row: self.entries.workers[at],
            generation_out: Generation(generation_out),
            seen: Serial(seen),
            sent: Serial(sent),
        }))
    }

    fn read_slice(&mut self, slice: SliceId) -> Result<TableAnswer, Bmv2Error> {
        let at = usize::from(slice.0);
        let mut read = |name| self.word("queue", name, at);
        let balance = read("balance")? as i32;
        let (start, above) = (self.config.counters_start.0, self.slice_bits());
        // The word has the count's lower bits; what it counted since the start is known from these.
        let count = |word: u32| start.wrapping_add((word >> above).wrapping_sub(start) & u32::MAX >> above);
        let mut read = |name| self.word("queue", name, at).map(|word| Serial(count(word)));
        let [tokens_in, tokens_out, tasks_in, tasks_out] =
            ["token_tail", "token_head", "task_tail", "task_head"].map(&mut read);
        Ok(TableAnswer::Slice(SliceState {
            row: self.entries.slices[at],
            balance,
            tokens_in: RingCounts::of_one(tokens_in?),
            tokens_out: RingCounts::of_one(tokens_out?),
            tasks_in: RingCounts::of_one(tasks_in?),
            tasks_out: RingCounts::of_one(tasks_out?),
            ..SliceState::default()
        }))
    }

    /// Sets the counters of workers from this one on.
    fn start_counters(&mut self, from: usize, workers: usize, start: Serial) -> Result<(), Bmv2Error> {
        for (part, name) in [("sources", "seen"), ("tokens", "seen_out"), ("tokens", "sent")] {
            self.runtime.fill(&of(part, name), from, workers, start.0.into())?;
        }
        Ok(())
    }

    /// Sets a client's replay cells to the try before the first that may come.
    fn reset_replay(&mut self, client: ClientId, floor: Serial) -> Result<(), Bmv2Error> {
        let cells = self.config.replay_cells as usize;
        let (from, before) = (usize::from(client.0) * cells, floor.0.wrapping_sub(1));
        self.runtime.fill(&of("sources", "replay"), from, cells, before.into())?;
        self.runtime.fill(&of("sources", "replay_attempt"), from, cells, u16::MAX.into())
    }

    /// The counters, by the UDP switch's names: those of what passed, of malformed packets, of refusals.
    pub(crate) fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, Bmv2Error> {
        let kinds = [
            ("submits", "came", Kind::Submit),
            ("tokens", "came", Kind::Token),
            ("dispatched", "left", Kind::Dispatch),
            ("rejected", "left", Kind::Reject),
            ("recirculated", "rounds_begun", Kind::Submit),
        ];
        let mut counts = Vec::new();
        for (name, of, kind) in kinds {
            counts.push((name, self.runtime.count(&counter(of), kind as usize)?));
        }
        let mut written = 0;
        for server in 0..self.entries.servers.had() {
            written += self.runtime.count(WRITTEN, server.into())?;
        }
        counts.push(("written_ahead", written));
        for why in ParseError::ALL {
            counts.push((why.name(), self.runtime.count(MALFORMED, why as usize)?));
        }
        for refusal in Refusal::ALL {
            counts.push((refusal.name(), self.runtime.count(&counter("refused"), refusal as usize)?));
        }
        Ok(counts)
    }

    /// The counts of a switch on links: packets in and out, then as [`P4Program::counts`].
    pub(crate) fn totals(&mut self) -> Result<Vec<u64>, Bmv2Error> {
        let (mut came, mut left) = (0, 0);
        for kind in 0..KINDS {
            came += self.runtime.count(&counter("came"), kind)?;
            left += self.runtime.count(&counter("left"), kind)?;
        }
        let counts = self.counts()?;
        let malformed = counts.iter().skip(PASSED).take(ParseError::ALL.len());
        came += malformed.map(|(_, count)| count).sum::<u64>();
        Ok([came, left].into_iter().chain(counts.into_iter().map(|(_, count)| count)).collect())
    }

    /// A cell of a register array.
    /// How many bits the slice's number takes below a count, in the words of heads and tails.
    fn slice_bits(&self) -> u32 {
        bits(self.config.slices.into())
    }

    pub(crate) fn word(&mut self, part: &str, name: &str, at: usize) -> Result<u32, Bmv2Error> {
        Ok(self.runtime.word(&of(part, name), at)? as u32)
    }

    fn words(&mut self, part: &str, name: &str) -> Result<Vec<u32>, Bmv2Error> {
        Ok(self.runtime.words(&of(part, name))?.into_iter().map(|word| word as u32).collect())
    }
}

impl Bmv2Switch {
    /// Passes a frame at this time, and returns the frames that leave.
    ///
    /// # Errors
    /// [`Bmv2Error::Gone`] if the switch does not answer.
    pub fn pass(&mut self, now: Nanos, is_control: bool, frame: &[u8]) -> Result<Vec<Vec<u8>>, Bmv2Error> {
        self.frames.send(&held(now.0, is_control, false, frame))?;
        let (mut left, mut before) = (Vec::new(), None);
        for _ in 0..QUESTIONS_MAX {
            self.frames.send(&held(QUESTION, false, true, &[0; 60]))?;
            loop {
                let came = self.frames.receive()?;
                if came.starts_with(&QUESTION.to_be_bytes()) {
                    break;
                }
                left.push(came);
            }
            // What recirculates may come behind a question. So two questions in a row must find that all
            // that began to recirculate has come back.
            let rounds = self.rounds()?;
            if rounds.0 == rounds.1 && before == Some(rounds) {
                return Ok(left);
            }
            before = Some(rounds);
        }
        Err(Bmv2Error::Gone("lost a packet that recirculates".to_owned()))
    }

    /// How many packets recirculated, and how many of them came back.
    fn rounds(&mut self) -> Result<(u64, u64), Bmv2Error> {
        let mut rounds = (0, 0);
        for kind in [Kind::Submit, Kind::Sweep] {
            rounds.0 += self.program.runtime.count(&counter("rounds_begun"), kind as usize)?;
            rounds.1 += self.program.runtime.count(&counter("rounds_ended"), kind as usize)?;
        }
        Ok(rounds)
    }

    /// The number of the next WRITE to each server.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn numbers(&mut self) -> Result<Vec<Psn>, Bmv2Error> {
        let words = self.program.runtime.words(NUMBERS)?;
        Ok(words.into_iter().map(|word| Psn::new(word as u32)).collect())
    }

    /// The contents of a slice's queue, as the columns hold them.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn parked(&mut self, slice: SliceId) -> Result<Parked, Bmv2Error> {
        Ok(Parked { tasks: self.tasks(slice)?, tokens: self.tokens(slice)? })
    }

    /// The waiting tasks: who submitted them, and which try it was.
    fn tasks(&mut self, slice: SliceId) -> Result<Vec<Submit>, Bmv2Error> {
        let cells = self.cells("task", slice, self.program.config.tasks_per_slice)?;
        let names = ["client", "attempt", "incarnation_low", "sequence"];
        let [client, attempt, low, sequence] = names.map(|name| self.program.words("entry", name));
        let (client, attempt, low, sequence) = (client?, attempt?, low?, sequence?);
        let task = |cell: usize| Submit {
            client: ClientId(client[cell] as u16),
            task: TaskId {
                incarnation: self.program.entries.incarnation(ClientId(client[cell] as u16), low[cell]),
                sequence: Serial(sequence[cell]),
            },
            attempt: Attempt(attempt[cell] as u16),
            ..Submit::default()
        };
        Ok(cells.into_iter().map(task).collect())
    }

    fn tokens(&mut self, slice: SliceId) -> Result<Vec<(WorkerId, Generation)>, Bmv2Error> {
        let cells = self.cells("token", slice, self.program.config.tokens_per_slice)?;
        let worker = self.program.words("tokens", "token_worker")?;
        let generation = self.program.words("tokens", "token_generation")?;
        let token = |cell: usize| (WorkerId(worker[cell] as u16), Generation(generation[cell]));
        Ok(cells.into_iter().map(token).collect())
    }

    /// The cells of a slice's ring that are in use, the oldest first.
    fn cells(&mut self, sort: &str, slice: SliceId, len: u32) -> Result<Vec<usize>, Bmv2Error> {
        let above = self.program.slice_bits();
        let head = self.program.words("queue", &format!("{sort}_head"))?[usize::from(slice.0)];
        let tail = self.program.words("queue", &format!("{sort}_tail"))?[usize::from(slice.0)];
        let cell = |step: u32| (head.wrapping_add(step << above) % (len << above)) as usize;
        Ok((0..tail.wrapping_sub(head) >> above).map(cell).collect())
    }
}

impl fmt::Debug for Bmv2Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bmv2Switch").field("config", &self.program.config).finish_non_exhaustive()
    }
}

/// The compiler's flags for a switch of this size.
pub(crate) fn sizes(config: &Config) -> Vec<String> {
    let sizes = [
        ("WORKERS", config.workers.into()),
        ("CLIENTS", config.clients.into()),
        ("TYPES", config.types.into()),
        ("CLIENT_BITS", bits(config.clients.into())),
        ("SLICE_BITS", bits(config.slices.into())),
        ("TASK_BITS", bits(config.tasks_per_slice)),
        ("TOKEN_BITS", bits(config.tokens_per_slice)),
        ("REPLAY_BITS", bits(config.replay_cells)),
        ("SERVERS", config.servers.max(1).into()),
        ("COUNTERS_START", 0),
    ];
    sizes.map(|(name, size)| format!("-D{name}={size}")).to_vec()
}

/// How many bits tell so many things apart.
pub(crate) fn bits(count: u32) -> u32 {
    count.next_power_of_two().trailing_zeros().max(1)
}

/// Compiles a program with these flags.
pub(crate) fn compile(
    compiler: &Path,
    program: &Path,
    flags: impl Iterator<Item = String>,
    to: &Path,
) -> Result<(), Bmv2Error> {
    let mut command = Command::new(compiler);
    command.args(["--std", "p4-16"]).args(flags).arg("-o").arg(to).arg(program);
    let ran = command.output().map_err(Bmv2Error::system("run p4c-bm2-ss"))?;
    if ran.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&ran.stderr).into_owned();
    Err(Bmv2Error::Compile { program: program.to_owned(), why })
}

/// A port on which nobody listens now.
pub(crate) fn free_port() -> Result<u16, Bmv2Error> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound.map(|at| at.port()).map_err(Bmv2Error::system("find a free port"))
}

fn held(now: u64, is_control: bool, is_question: bool, frame: &[u8]) -> Vec<u8> {
    let mut held = [0; HELD_BYTES];
    held[..8].copy_from_slice(&now.to_be_bytes());
    (held[8], held[9]) = (u8::from(is_control), u8::from(is_question));
    [&held, frame].concat()
}
