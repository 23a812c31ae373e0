//! The program on BMv2: compiled for a size, started, given frames, and read out.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sluice_switch::{Config, Parked, Refusal};
use sluice_wire::tables::{RingCounts, SliceState, TableAnswer, TableOp, WorkerState};
use sluice_wire::{
    Attempt, ClientId, Endpoint, Generation, Incarnation, Kind, Nanos, ParseError, Psn, Serial, SliceId,
    Submit, TaskId, WorkerId,
};
use tempfile::TempDir;

use crate::entries::Entries;
use crate::error::Bmv2Error;
use crate::frames::Frames;
use crate::registers::{COUNTERS, MALFORMED, NUMBERS, REGISTERS, WRITTEN, counter, of};
use crate::runtime::Runtime;
use crate::tools::tool;

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
    config: Config,
    entries: Entries,
    runtime: Runtime,
    frames: Frames,
    _process: Process,
}

/// The switch's process, which ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
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
        compile(&compiler, program, &config, &compiled)?;
        let frames = Frames::new(folder.path(), LINK)?;
        let port = free_port()?;
        let mut process = start(&switch, &folder, &compiled, port)?;
        let runtime = Runtime::connect(port, || matches!(process.0.try_wait(), Ok(None)))?;
        let mut started = Self { config, entries: Entries::new(config), runtime, frames, _process: process };
        started.begin(own)?;
        Ok(started)
    }

    /// Writes what stays: the epoch, the switch's addresses, and a multicast group for each slice.
    fn begin(&mut self, own: &[SocketAddr]) -> Result<(), Bmv2Error> {
        let own: Vec<Endpoint> = own.iter().copied().map(Endpoint::from).collect();
        self.entries.begin(&mut self.runtime, &own)?;
        for slice in 0..self.config.slices {
            // Copies for servers without a ring for the slice are dropped at egress.
            self.runtime.make_group(slice + 1, 0..self.config.servers)?;
        }
        self.clear()
    }

    /// Empties all tables and registers.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn clear(&mut self) -> Result<(), Bmv2Error> {
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
        for worker in 0..self.config.workers {
            self.reset_counters(WorkerId(worker), self.config.counters_start)?;
        }
        Ok(())
    }

    /// Carries out one of the controller's steps.
    ///
    /// # Errors
    /// What BMv2 refuses, and [`Bmv2Error::Unknown`] for a step of which the program knows nothing.
    pub fn table(&mut self, op: TableOp) -> Result<TableAnswer, Bmv2Error> {
        Ok(self.step(op)?.unwrap_or(TableAnswer::OutOfRange))
    }

    /// Carries out one step; `None` if an index or value lies outside the program's size.
    fn step(&mut self, op: TableOp) -> Result<Option<TableAnswer>, Bmv2Error> {
        let Self { entries, runtime, config, .. } = self;
        let done = match op {
            TableOp::SetType(of, slice) => entries.set_type(runtime, of, slice)?,
            TableOp::SetSlice(slice, row) => entries.set_slice(runtime, slice, row)?,
            TableOp::SetWorker(worker, row) => entries.set_worker(runtime, worker, row)?,
            TableOp::SetClient(client, row) => {
                let set = entries.set_client(runtime, client, row.map(|(row, _)| row))?;
                if let (Some(()), Some((_, floor))) = (set, row) {
                    self.reset_replay(client, floor)?;
                }
                set
            }
            TableOp::SetServer(server, row) => {
                let set = entries.set_server(runtime, server, row.map(|(row, _)| row))?;
                if let (Some(()), Some((_, start))) = (set, row) {
                    runtime.fill(NUMBERS, server.0.into(), 1, start.get().into())?;
                }
                set
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
                self.reset_counters(worker, start)?;
                Some(())
            }
            TableOp::ReadWorker(worker) => return self.read_worker(worker).map(Some),
            TableOp::ReadSlice(slice) if slice.0 < config.slices => return self.read_slice(slice).map(Some),
            TableOp::ReadSlice(_) => None,
            _ => return Err(Bmv2Error::Unknown(format!("{op:?}"))),
        };
        Ok(done.map(|()| TableAnswer::Done))
    }

    fn read_worker(&mut self, worker: WorkerId) -> Result<TableAnswer, Bmv2Error> {
        let at = usize::from(worker.0);
        let mut read = |part, name| self.words(part, name).map(|words| words[at]);
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
        let mut read = |name| self.words("queue", name).map(|words| words[at]);
        let balance = read("balance")? as i32;
        let above = self.slice_bits();
        let mut read = |name| self.words("queue", name).map(|words| Serial(words[at] >> above));
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

    fn reset_counters(&mut self, worker: WorkerId, start: Serial) -> Result<(), Bmv2Error> {
        for (part, name) in [("sources", "seen"), ("tokens", "seen_out"), ("tokens", "sent")] {
            self.runtime.fill(&of(part, name), worker.0.into(), 1, start.0.into())?;
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
            rounds.0 += self.runtime.count(&counter("rounds_begun"), kind as usize)?;
            rounds.1 += self.runtime.count(&counter("rounds_ended"), kind as usize)?;
        }
        Ok(rounds)
    }

    /// The counters, by the UDP switch's names.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, Bmv2Error> {
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
        for server in 0..self.config.servers {
            written += self.runtime.count(WRITTEN, server.into())?;
        }
        counts.push(("written_ahead", written));
        for refusal in Refusal::ALL {
            counts.push((refusal.name(), self.runtime.count(&counter("refused"), refusal as usize)?));
        }
        for why in ParseError::ALL {
            counts.push((why.name(), self.runtime.count(MALFORMED, why as usize)?));
        }
        Ok(counts)
    }

    /// The number of the next WRITE to each server.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn numbers(&mut self) -> Result<Vec<Psn>, Bmv2Error> {
        let words = self.runtime.words(NUMBERS)?;
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
        let cells = self.cells("task", slice, self.config.tasks_per_slice)?;
        let names = ["client", "attempt", "incarnation_low", "sequence"];
        let [client, attempt, low, sequence] = names.map(|name| self.words("entry", name));
        let (client, attempt, low, sequence) = (client?, attempt?, low?, sequence?);
        let task = |cell: usize| Submit {
            client: ClientId(client[cell] as u16),
            task: TaskId {
                incarnation: self.entries.incarnation(ClientId(client[cell] as u16), low[cell]),
                sequence: Serial(sequence[cell]),
            },
            attempt: Attempt(attempt[cell] as u16),
            ..Submit::default()
        };
        Ok(cells.into_iter().map(task).collect())
    }

    fn tokens(&mut self, slice: SliceId) -> Result<Vec<(WorkerId, Generation)>, Bmv2Error> {
        let cells = self.cells("token", slice, self.config.tokens_per_slice)?;
        let worker = self.words("tokens", "token_worker")?;
        let generation = self.words("tokens", "token_generation")?;
        let token = |cell: usize| (WorkerId(worker[cell] as u16), Generation(generation[cell]));
        Ok(cells.into_iter().map(token).collect())
    }

    /// The cells of a slice's ring that are in use, the oldest first.
    fn cells(&mut self, sort: &str, slice: SliceId, len: u32) -> Result<Vec<usize>, Bmv2Error> {
        let above = self.slice_bits();
        let head = self.words("queue", &format!("{sort}_head"))?[usize::from(slice.0)];
        let tail = self.words("queue", &format!("{sort}_tail"))?[usize::from(slice.0)];
        let cell = |step: u32| (head.wrapping_add(step << above) % (len << above)) as usize;
        Ok((0..tail.wrapping_sub(head) >> above).map(cell).collect())
    }

    /// How many bits the slice's number takes below a count, in the words of heads and tails.
    fn slice_bits(&self) -> u32 {
        bits(self.config.slices.into())
    }

    fn words(&mut self, part: &str, name: &str) -> Result<Vec<u32>, Bmv2Error> {
        Ok(self.runtime.words(&of(part, name))?.into_iter().map(|word| word as u32).collect())
    }
}

impl fmt::Debug for Bmv2Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bmv2Switch").field("config", &self.config).finish_non_exhaustive()
    }
}

fn compile(compiler: &Path, program: &Path, config: &Config, to: &Path) -> Result<(), Bmv2Error> {
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
    let mut command = Command::new(compiler);
    command.args(["--std", "p4-16", "-DHELD_TO_VECTORS"]);
    command.args(sizes.map(|(name, size)| format!("-D{name}={size}")));
    let ran = command.arg("-o").arg(to).arg(program).output();
    let ran = ran.map_err(Bmv2Error::system("run p4c-bm2-ss"))?;
    if ran.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&ran.stderr).into_owned();
    Err(Bmv2Error::Compile { program: program.to_owned(), why })
}

/// How many bits an index below this count takes, at least one.
fn bits(count: u32) -> u32 {
    count.next_power_of_two().trailing_zeros().max(1)
}

fn start(switch: &Path, folder: &TempDir, compiled: &Path, port: u16) -> Result<Process, Bmv2Error> {
    let mut command = Command::new(switch);
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.args(["--use-files", "0", "-i"]).arg(format!("0@{LINK}"));
    command.args(["--thrift-port", &port.to_string()]).arg(compiled);
    command.spawn().map(Process).map_err(Bmv2Error::system("start simple_switch"))
}

/// A port on which nobody listens now.
fn free_port() -> Result<u16, Bmv2Error> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound.map(|at| at.port()).map_err(Bmv2Error::system("find a free port"))
}

fn held(now: u64, is_control: bool, is_question: bool, frame: &[u8]) -> Vec<u8> {
    let mut held = [0; HELD_BYTES];
    held[..8].copy_from_slice(&now.to_be_bytes());
    (held[8], held[9]) = (u8::from(is_control), u8::from(is_question));
    [&held, frame].concat()
}
