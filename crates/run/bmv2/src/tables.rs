//! A program as a controller sees it: its tables, registers and counters in a running switch.

use std::net::SocketAddr;

use sluice_switch::{Config, Refusal};
use sluice_wire::tables::{ClientRow, SliceState, TableAnswer, TableOp, WorkerRow, WorkerState};
use sluice_wire::{ClientId, Endpoint, Generation, Kind, ParseError, Serial, SliceId, WorkerId};

use crate::entries::{Entries, Ways};
use crate::error::Bmv2Error;
use crate::program::{OWN, P4Program};
use crate::registers::{COUNTERS, MALFORMED, NUMBERS, WRITTEN, of, registers};
use crate::runtime::Runtime;
use crate::seats::SeatPlace;

/// Kinds of packets are below this.
const KINDS: usize = Kind::Job as usize + 1;

/// Cells of counters: the counter's name and the index.
type CounterCells = Vec<(String, usize)>;

/// A program's tables and registers in a running switch.
pub(crate) struct P4Tables {
    pub(crate) program: P4Program,
    pub(crate) config: Config,
    pub(crate) entries: Entries,
    pub(crate) runtime: Runtime,
}

impl P4Tables {
    /// Those of a switch that has just started; `ways` tells where hosts are.
    pub(crate) fn new(
        program: P4Program,
        config: Config,
        runtime: Runtime,
        ways: impl Ways + 'static,
    ) -> Self {
        Self { program, config, entries: Entries::new(program, config, Box::new(ways)), runtime }
    }

    /// Writes what stays: the epoch, the switch's addresses, and a multicast group for each slice.
    pub(crate) fn begin(&mut self, own: &[SocketAddr]) -> Result<(), Bmv2Error> {
        let own: Vec<Endpoint> = own.iter().copied().map(Endpoint::from).collect();
        self.entries.begin(&mut self.runtime, &own)?;
        self.clear()
    }

    /// Empties all tables and registers.
    pub(crate) fn clear(&mut self) -> Result<(), Bmv2Error> {
        self.entries.clear(&mut self.runtime)?;
        registers(self.program).try_for_each(|(part, name)| self.runtime.reset_register(&of(part, name)))?;
        COUNTERS.iter().try_for_each(|(part, name)| self.runtime.reset_counter(&of(part, name)))?;
        self.runtime.reset_counter(MALFORMED)?;
        if self.program.has_servers() {
            self.runtime.reset_register(NUMBERS)?;
            self.runtime.reset_counter(WRITTEN)?;
        }
        self.start_queues()?;
        self.runtime.settle()?;
        self.start_counters(0, self.config.workers.into(), self.config.counters_start)
    }

    /// Carries out one of the controller's steps. An error for a step of which the program knows nothing.
    pub(crate) fn table(&mut self, op: TableOp) -> Result<TableAnswer, Bmv2Error> {
        Ok(self.step(op)?.unwrap_or(TableAnswer::OutOfRange))
    }

    /// Carries out one step; `None` if an index or value lies outside the program's size.
    fn step(&mut self, op: TableOp) -> Result<Option<TableAnswer>, Bmv2Error> {
        let Self { program, entries, runtime, config } = self;
        let done = match op {
            TableOp::SetServer(..) | TableOp::SetRing(..) | TableOp::SetCopies(..)
                if !program.has_servers() =>
            {
                None
            }
            TableOp::SetType(of, slice) => entries.set_type(runtime, of, slice)?,
            TableOp::SetSlice(slice, row) => entries.set_slice(runtime, slice, row)?,
            TableOp::SetWorker(worker, row) => self.set_worker(worker, row)?,
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
                entries.generations[usize::from(worker.0)] = generation;
                if *program == P4Program::Rain {
                    runtime.fill(&of("tokens", "gen_out"), worker.0.into(), 1, generation.0.into())?;
                }
                self.end_grants(worker)?;
                Some(())
            }
            TableOp::ResetCounters(worker, start) => {
                self.start_counters(worker.0.into(), 1, start)?;
                self.end_grants(worker)?;
                Some(())
            }
            TableOp::ReadWorker(worker) => return self.read_worker(worker).map(Some),
            TableOp::ReadSlice(slice) if slice.0 < config.slices => return self.read_slice(slice).map(Some),
            TableOp::ReadSlice(_) => None,
            _ => return Err(Bmv2Error::Unknown(format!("{op:?}"))),
        };
        self.runtime.settle()?;
        Ok(done.map(|()| TableAnswer::Done))
    }

    fn set_worker(&mut self, worker: WorkerId, row: Option<WorkerRow>) -> Result<Option<()>, Bmv2Error> {
        let change = self.entries.set_worker(&mut self.runtime, worker, row)?;
        if let Some(change) = change {
            if let Some((seat, last)) = change.left {
                self.move_load(seat, last)?;
            }
            change.taken.map_or(Ok(()), |seat| self.set_load(seat, 0))?;
        }
        Ok(change.map(|_| ()))
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
        let (at, told) = (usize::from(worker.0), self.program.numbers());
        let (seen, sent) = (self.word("sources", "seen", at)?, self.word(told, "sent", at)?);
        let generation_out = if self.program == P4Program::Rain {
            Generation(self.word("tokens", "gen_out", at)?)
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
        let load = self.word(OWN, "loads_0", from)?;
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

    /// Sets the counters of workers from this one on.
    fn start_counters(&mut self, from: usize, workers: usize, start: Serial) -> Result<(), Bmv2Error> {
        let told = self.program.numbers();
        for (part, name) in [("sources", "seen"), (told, "seen_out"), (told, "sent")] {
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
        let (names, cells): (Vec<_>, Vec<_>) = self.counted().into_iter().unzip();
        Ok(names.into_iter().zip(self.sums(&cells)?).collect())
    }

    /// The counts of a switch on links: packets in and out, then as [`P4Tables::counts`].
    pub(crate) fn totals(&mut self) -> Result<Vec<u64>, Bmv2Error> {
        let kinds = |counter: String| (0..KINDS).map(move |kind| (counter.clone(), kind));
        let malformed = ParseError::ALL.map(|why| (MALFORMED.to_owned(), why as usize));
        let came = kinds(of("begin", "came")).chain(malformed).collect();
        let left = kinds(of("end", "left")).collect();
        let counted = self.counted().into_iter().map(|(_, cells)| cells);
        let cells: Vec<CounterCells> = [came, left].into_iter().chain(counted).collect();
        self.sums(&cells)
    }

    /// Which cells of counters make each of [`P4Tables::counts`].
    fn counted(&self) -> Vec<(&'static str, CounterCells)> {
        let kinds = [
            ("submits", "begin", "came", Kind::Submit),
            ("tokens", "begin", "came", Kind::Token),
            ("dispatched", "end", "left", Kind::Dispatch),
            ("rejected", "end", "left", Kind::Reject),
        ];
        let one = |part, counter, at: usize| vec![(of(part, counter), at)];
        let mut counted: Vec<_> = kinds
            .into_iter()
            .map(|(name, part, counter, kind)| (name, one(part, counter, kind as usize)))
            .collect();
        let rounds = [Kind::Submit, Kind::Token].map(|kind| (of("end", "rounds_begun"), kind as usize));
        counted.push(("recirculated", rounds.to_vec()));
        let servers = 0..usize::from(self.entries.servers.had());
        counted.push(("written_ahead", servers.map(|server| (WRITTEN.to_owned(), server)).collect()));
        counted.extend(ParseError::ALL.map(|why| (why.name(), vec![(MALFORMED.to_owned(), why as usize)])));
        counted.extend(Refusal::ALL.map(|why| (why.name(), one("end", "refused", why as usize))));
        counted
    }

    /// Of each list of cells the sum.
    fn sums(&mut self, cells: &[CounterCells]) -> Result<Vec<u64>, Bmv2Error> {
        let mut numbers = self.runtime.counts(&cells.concat())?.into_iter();
        Ok(cells.iter().map(|cells| numbers.by_ref().take(cells.len()).sum()).collect())
    }

    /// A cell of a register array.
    pub(crate) fn word(&mut self, part: &str, name: &str, at: usize) -> Result<u32, Bmv2Error> {
        Ok(self.runtime.word(&of(part, name), at)? as u32)
    }

    pub(crate) fn words(&mut self, part: &str, name: &str) -> Result<Vec<u32>, Bmv2Error> {
        Ok(self.runtime.words(&of(part, name))?.into_iter().map(|word| word as u32).collect())
    }
}
