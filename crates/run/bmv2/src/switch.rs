//! A program on BMv2 with the time that each frame names: compiled for a size, started, given frames, and
//! read out.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use sluice_kernel::dies_with_this_thread;
use sluice_switch::{Config, Parked, Random};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Kind, Nanos, Psn, SliceId, TaskType};

use crate::entries::OneLink;
use crate::error::Bmv2Error;
use crate::frames::{Frames, packet_in};
use crate::launch::{Compiled, RuntimeApi, launch};
use crate::process::Process;
use crate::program::P4Program;
use crate::registers::{NUMBERS, of};
use crate::runtime::{ActionCall, EntryName};
use crate::seats::Draws;
use crate::sizes::{draw_bits, flags};
use crate::tables::P4Tables;
use crate::tools::tool;

/// The link's number and name.
const LINK: &str = "0";
/// The switch's number.
const DEVICE: u32 = 1;
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
    tables: P4Tables,
    frames: Frames,
    random: Random,
    /// How many packets recirculated since the counters were reset, and how many of them in the last pass.
    begun: u64,
    rounds: u32,
    _process: Process,
}

impl Bmv2Switch {
    /// Compiles a program, whose files are in the folder `sources`, for this size and starts it. It ends with
    /// the calling thread. `own` are the switch's addresses, and `api` is the server that takes its tables.
    ///
    /// # Errors
    /// [`Bmv2Error::NoTool`] without the P4 tools; otherwise why the program does not compile or start.
    pub fn start(
        sources: &Path,
        program: P4Program,
        config: Config,
        own: &[SocketAddr],
        api: RuntimeApi,
    ) -> Result<Self, Bmv2Error> {
        let (compiler, switch) = (tool("p4c-bm2-ss")?, api.switch()?);
        let folder = tempfile::tempdir().map_err(Bmv2Error::system("make a folder"))?;
        let compiled = Compiled::at(folder.path(), "program");
        let top = sources.join(format!("{}_v1model.p4", program.name()));
        let flags = flags(&config).into_iter().chain(["-DHELD_TO_VECTORS".to_owned()]);
        compiled.compile(&compiler, &top, flags)?;
        let frames = Frames::new(folder.path(), LINK)?;
        let mut command = Command::new(switch);
        command.current_dir(folder.path()).args(["--use-files", "0", "-i"]).arg(format!("0@{LINK}"));
        let (process, runtime) = launch(api, dies_with_this_thread(&mut command), DEVICE, &compiled)?;
        let mut tables = P4Tables::new(program, config, runtime, OneLink);
        tables.begin(own)?;
        let random = Random::new(config.seed);
        Ok(Self { tables, frames, random, begun: 0, rounds: 0, _process: process })
    }

    /// Empties all tables and registers.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn clear(&mut self) -> Result<(), Bmv2Error> {
        self.random = Random::new(self.tables.config.seed);
        (self.begun, self.rounds) = (0, 0);
        self.tables.clear()
    }

    /// How often what the last frame brought recirculated.
    pub const fn recirculated(&self) -> u32 {
        self.rounds
    }

    /// Carries out one of the controller's steps.
    ///
    /// # Errors
    /// What BMv2 refuses, and [`Bmv2Error::Unknown`] for a step of which the program knows nothing.
    pub fn table(&mut self, op: TableOp) -> Result<TableAnswer, Bmv2Error> {
        self.tables.table(op)
    }

    /// The counters, by the UDP switch's names.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn counts(&mut self) -> Result<Vec<(&'static str, u64)>, Bmv2Error> {
        self.tables.counts()
    }

    /// Where the switch's P4Runtime server is, and its number there, if its tables go over P4Runtime.
    pub fn p4runtime(&self) -> Option<(SocketAddr, u32)> {
        self.tables.runtime.p4runtime().map(|at| (at, DEVICE))
    }

    /// All entries that were written into its tables.
    pub fn entries(&self) -> impl Iterator<Item = (&EntryName, &ActionCall)> {
        self.tables.entries.all()
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
                self.rounds = (rounds.0 - self.begun) as u32;
                self.begun = rounds.0;
                return Ok(left);
            }
            before = Some(rounds);
        }
        Err(Bmv2Error::Gone("lost a packet that recirculates".to_owned()))
    }

    /// What the random unit gives to this frame, if it holds a task.
    fn draws(&self, frame: &[u8]) -> Draws {
        let task_type = packet_in(frame).get(12..14).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let slice = task_type.and_then(|of| self.tables.entries.slice_of(TaskType(of)));
        let workers = slice.map_or(0, |slice| self.tables.entries.seats.of(slice).len() as u16);
        Draws::of(self.random, workers, draw_bits(&self.tables.config))
    }

    /// How many packets recirculated, and how many of them came back.
    fn rounds(&mut self) -> Result<(u64, u64), Bmv2Error> {
        let mut rounds = (0, 0);
        for kind in [Kind::Submit, Kind::Token, Kind::Sweep] {
            rounds.0 += self.tables.runtime.count(&of("end", "rounds_begun"), kind as usize)?;
            rounds.1 += self.tables.runtime.count(&of("begin", "rounds_ended"), kind as usize)?;
        }
        Ok(rounds)
    }

    /// The number of the next WRITE to each server.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn numbers(&mut self) -> Result<Vec<Psn>, Bmv2Error> {
        if !self.tables.program.has_servers() {
            return Ok(Vec::new());
        }
        let words = self.tables.runtime.words(NUMBERS)?;
        Ok(words.into_iter().map(|word| Psn::new(word as u32)).collect())
    }

    /// The contents of a slice's queue, as the columns hold them.
    ///
    /// # Errors
    /// What BMv2 refuses.
    pub fn parked(&mut self, slice: SliceId) -> Result<Parked, Bmv2Error> {
        self.tables.parked(slice)
    }
}

impl fmt::Debug for Bmv2Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bmv2Switch")
            .field("program", &self.tables.program)
            .field("config", &self.tables.config)
            .finish_non_exhaustive()
    }
}

fn held(now: u64, is_control: bool, is_question: bool, draws: [u16; 2], frame: &[u8]) -> Vec<u8> {
    let mut held = [0; HELD_BYTES];
    held[..8].copy_from_slice(&now.to_be_bytes());
    (held[8], held[9]) = (u8::from(is_control), u8::from(is_question));
    held[10..12].copy_from_slice(&draws[0].to_be_bytes());
    held[12..14].copy_from_slice(&draws[1].to_be_bytes());
    [&held, frame].concat()
}
