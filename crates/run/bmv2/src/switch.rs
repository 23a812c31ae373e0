//! The program on BMv2: compiled for a size, started, given frames, and read out.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sluice_switch::{Config, Random, Refusal};
use sluice_wire::tables::{SliceState, TableAnswer, TableOp, WorkerState};
use sluice_wire::{
    ClientId, Endpoint, Generation, Kind, Nanos, ParseError, Psn, Serial, SliceId, TaskType, WorkerId,
};
use tempfile::TempDir;

use crate::entries::Entries;
use crate::error::Bmv2Error;
use crate::frames::{Frames, packet_in};
use crate::program::P4Program;
use crate::registers::{COUNTERS, MALFORMED, NUMBERS, OWN, WRITTEN, of, registers};
use crate::runtime::Runtime;
use crate::seats::{Draws, SeatPlace};
use crate::sizes::{definitions, draw_bits};
use crate::tools::tool;

/// The link's number and name.
const LINK: &str = "0";
/// The header in front of each frame: the time, whether the frame is the controller's, whether it only asks
/// for what came before, two numbers of the random unit, and two bytes of zero.
const HELD_BYTES: usize = 16;
/// The time in a frame that asks. No other frame that leaves begins with these bytes.
const QUESTION: u64 = u64::MAX;
/// After so many questions a packet that has not come back never will: the longest walk of a SWEEP takes far
/// fewer passes.
const QUESTIONS_MAX: u32 = 200_000;

/// The program on BMv2, with the time that each frame names.
pub struct Bmv2Switch {
    pub(crate) program: P4Program,
    pub(crate) config: Config,
    pub(crate) entries: Entries,
    pub(crate) runtime: Runtime,
    frames: Frames,
    random: Random,
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
    /// Compiles a program, whose files are in the folder `sources`, for this size and starts it. `own` are
    /// the switch's addresses.
    ///
    /// # Errors
    /// [`Bmv2Error::NoTool`] without the P4 tools; otherwise why the program does not compile or start.
    pub fn start(
        sources: &Path,
        program: P4Program,
        config: Config,
        own: &[SocketAddr],
    ) -> Result<Self, Bmv2Error> {
        let (compiler, switch) = (tool("p4c-bm2-ss")?, tool("simple_switch")?);
        let folder = tempfile::tempdir().map_err(Bmv2Error::system("make a folder"))?;
        let compiled = folder.path().join("program.json");
        let top = sources.join(format!("{}_v1model.p4", program.name()));
        compile(&compiler, &top, &config, &compiled)?;
        let frames = Frames::new(folder.path(), LINK)?;
        let port = free_port()?;
        let mut process = start(&switch, &folder, &compiled, port)?;
        let runtime = Runtime::connect(port, || matches!(process.0.try_wait(), Ok(None)))?;
        let (entries, random) = (Entries::new(program, config), Random::new(config.seed));
        let mut started = Self { program, config, entries, runtime, frames, random, _process: process };
        started.begin(own)?;
        Ok(started)
    }

    /// Writes what stays: the epoch, the switch's addresses, and a multicast group for each slice.
    fn begin(&mut self, own: &[SocketAddr]) -> Result<(), Bmv2Error> {
        let own: Vec<Endpoint> = own.iter().copied().map(Endpoint::from).collect();
        self.entries.begin(&mut self.runtime, &own)?;
        let groups = if self.program.has_servers() { self.config.slices } else { 0 };
        for slice in 0..groups {
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
        registers(self.program).try_for_each(|(part, name)| self.runtime.reset_register(&of(part, name)))?;
        COUNTERS.iter().try_for_each(|(part, name)| self.runtime.reset_counter(&of(part, name)))?;
        self.runtime.reset_counter(MALFORMED)?;
        if self.program.has_servers() {
            self.runtime.reset_register(NUMBERS)?;
            self.runtime.reset_counter(WRITTEN)?;
        }
        self.random = Random::new(self.config.seed);
        self.start_queues()?;
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
        let Self { program, entries, runtime, config, .. } = self;
        let done = match op {
            TableOp::SetServer(..) | TableOp::SetRing(..) | TableOp::SetCopies(..)
                if !program.has_servers() =>
            {
                None
            }
            TableOp::SetType(of, slice) => entries.set_type(runtime, of, slice)?,
            TableOp::SetSlice(slice, row) => entries.set_slice(runtime, slice, row)?,
            TableOp::SetWorker(worker, row) => {
                let change = entries.set_worker(runtime, worker, row)?;
                if let Some(change) = change {
                    if let Some((seat, last)) = change.left {
                        self.move_load(seat, last)?;
                    }
                    change.taken.map_or(Ok(()), |seat| self.set_load(seat, 0))?;
                }
                change.map(|_| ())
            }
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
                entries.generations[usize::from(worker.0)] = generation;
                if *program == P4Program::Rain {
                    runtime.fill(&of("tokens", "gen_out"), worker.0.into(), 1, generation.0.into())?;
                }
                self.end_grants(worker)?;
                Some(())
            }
            TableOp::ResetCounters(worker, start) => {
                self.reset_counters(worker, start)?;
                self.end_grants(worker)?;
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
        let (at, told) = (usize::from(worker.0), self.program.numbers());
        let mut read = |part, name| self.words(part, name).map(|words| words[at]);
        let (seen, sent) = (read("sources", "seen")?, read(told, "sent")?);
        let generation_out = if self.program == P4Program::Rain {
            Generation(self.words("tokens", "gen_out")?[at])
        } else {
            self.entries.generations[at]
        };
        Ok(TableAnswer::Worker(WorkerState {
            row: self.entries.workers[at],
            generation_out,
            seen: Serial(seen),
            sent: Serial(sent),
        }))
    }

    fn read_slice(&mut self, slice: SliceId) -> Result<TableAnswer, Bmv2Error> {
        let row = self.entries.slices[usize::from(slice.0)];
        Ok(TableAnswer::Slice(SliceState { row, ..self.queue_state(slice)? }))
    }

    /// The worker of a slice's last seat takes another seat, and its load comes along.
    fn move_load(&mut self, seat: SeatPlace, from: SeatPlace) -> Result<(), Bmv2Error> {
        if self.program != P4Program::RackSched {
            return Ok(());
        }
        let from = usize::from(self.entries.seats.index(from));
        let load = self.words(OWN, "loads_0")?[from];
        self.set_load(seat, load)
    }

    /// Sets what RackSched knows of a worker's queue.
    fn set_load(&mut self, seat: SeatPlace, load: u32) -> Result<(), Bmv2Error> {
        if self.program != P4Program::RackSched {
            return Ok(());
        }
        let at = self.entries.seats.index(seat).into();
        ["loads_0", "loads_1"]
            .iter()
            .try_for_each(|name| self.runtime.fill(&of(OWN, name), at, 1, load.into()))
    }

    /// All that was granted to a worker until now is void.
    fn end_grants(&mut self, worker: WorkerId) -> Result<(), Bmv2Error> {
        self.entries.seats.seat(worker).map_or(Ok(()), |seat| self.set_load(seat, 0))
    }

    fn reset_counters(&mut self, worker: WorkerId, start: Serial) -> Result<(), Bmv2Error> {
        let told = self.program.numbers();
        for (part, name) in [("sources", "seen"), (told, "seen_out"), (told, "sent")] {
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
        let draws = self.draws(frame);
        self.frames.send(&held(now.0, is_control, false, draws.numbers, frame))?;
        let (mut left, mut before) = (Vec::new(), None);
        for _ in 0..QUESTIONS_MAX {
            self.frames.send(&held(QUESTION, false, true, [0; 2], &[0; 60]))?;
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
                let is_dispatch = |frame: &Vec<u8>| packet_in(frame).get(1) == Some(&(Kind::Dispatch as u8));
                if left.iter().any(is_dispatch) {
                    self.random = draws.after;
                }
                return Ok(left);
            }
            before = Some(rounds);
        }
        Err(Bmv2Error::Gone("lost a packet that recirculates".to_owned()))
    }

    /// What the random unit gives to this frame, if it holds a task.
    fn draws(&self, frame: &[u8]) -> Draws {
        let task_type = packet_in(frame).get(12..14).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let slice = task_type.and_then(|of| self.entries.slice_of(TaskType(of)));
        let workers = slice.map_or(0, |slice| self.entries.seats.of(slice).len() as u16);
        Draws::of(self.random, workers, draw_bits(&self.config))
    }

    /// How many packets recirculated, and how many of them came back.
    fn rounds(&mut self) -> Result<(u64, u64), Bmv2Error> {
        let mut rounds = (0, 0);
        for kind in [Kind::Submit, Kind::Token, Kind::Sweep] {
            rounds.0 += self.runtime.count(&of("end", "rounds_begun"), kind as usize)?;
            rounds.1 += self.runtime.count(&of("begin", "rounds_ended"), kind as usize)?;
        }
        Ok(rounds)
    }

    /// The counters, by the UDP switch's names.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, Bmv2Error> {
        let kinds = [
            ("submits", "begin", "came", Kind::Submit),
            ("tokens", "begin", "came", Kind::Token),
            ("dispatched", "end", "left", Kind::Dispatch),
            ("rejected", "end", "left", Kind::Reject),
        ];
        let mut counts = Vec::new();
        for (name, part, counter, kind) in kinds {
            counts.push((name, self.runtime.count(&of(part, counter), kind as usize)?));
        }
        let mut recirculated = 0;
        for kind in [Kind::Submit, Kind::Token] {
            recirculated += self.runtime.count(&of("end", "rounds_begun"), kind as usize)?;
        }
        counts.push(("recirculated", recirculated));
        let (mut written, servers) = (0, if self.program.has_servers() { self.config.servers } else { 0 });
        for server in 0..servers {
            written += self.runtime.count(WRITTEN, server.into())?;
        }
        counts.push(("written_ahead", written));
        for refusal in Refusal::ALL {
            counts.push((refusal.name(), self.runtime.count(&of("end", "refused"), refusal as usize)?));
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
        if !self.program.has_servers() {
            return Ok(Vec::new());
        }
        let words = self.runtime.words(NUMBERS)?;
        Ok(words.into_iter().map(|word| Psn::new(word as u32)).collect())
    }

    pub(crate) fn words(&mut self, part: &str, name: &str) -> Result<Vec<u32>, Bmv2Error> {
        Ok(self.runtime.words(&of(part, name))?.into_iter().map(|word| word as u32).collect())
    }
}

impl fmt::Debug for Bmv2Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bmv2Switch")
            .field("program", &self.program)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn compile(compiler: &Path, program: &Path, config: &Config, to: &Path) -> Result<(), Bmv2Error> {
    let mut command = Command::new(compiler);
    command.args(["--std", "p4-16", "-DHELD_TO_VECTORS"]);
    command.args(definitions(config).map(|(name, size)| format!("-D{name}={size}")));
    let ran = command.arg("-o").arg(to).arg(program).output();
    let ran = ran.map_err(Bmv2Error::system("run p4c-bm2-ss"))?;
    if ran.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&ran.stderr).into_owned();
    Err(Bmv2Error::Compile { program: program.to_owned(), why })
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

fn held(now: u64, is_control: bool, is_question: bool, draws: [u16; 2], frame: &[u8]) -> Vec<u8> {
    let mut held = [0; HELD_BYTES];
    held[..8].copy_from_slice(&now.to_be_bytes());
    (held[8], held[9]) = (u8::from(is_control), u8::from(is_question));
    held[10..12].copy_from_slice(&draws[0].to_be_bytes());
    held[12..14].copy_from_slice(&draws[1].to_be_bytes());
    [&held, frame].concat()
}
