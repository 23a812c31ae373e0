//! The part in front of every program: it checks who sends, drops packets that come twice, and counts what
//! each worker was granted and sent.
//!
//! Published schedulers leave these questions open. Here all programs share the answers, so that they
//! differ in scheduling only. The front knows a source by its key and address. It answers a packet of
//! another epoch or generation with the present state. Each try of a task enters once, each token is
//! granted once, and DISPATCHes are numbered.
//!
//! The stages: source tables, types, slices, `seen` and the replay cells' sequence numbers in 0, their
//! attempts in 1, then `gen_out`, `sent` and `seen_out`, where the program has room for them behind its
//! queue. A source's look-up and the access that it allows are one stage: the access is the look-up's action.
#![expect(clippy::inline_always, reason = "a packet is copied at each call that stays one")]

mod control;
mod egress;
mod memory;
mod program;
mod scheduler;
mod sources;
mod sweeps;

use alloc::boxed::Box;
use alloc::vec;

use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tables::{Feed, Shape, SliceRow, WorkerRow};
use sluice_wire::{
    Counters, Endpoint, Epoch, Generation, Nanos, Nonce, Packet, Probe, RejectReason, Reply, Serial, SliceId,
    Submit, Term, Token, Update, WorkerId,
};

use crate::config::Config;
use crate::pipeline::{Layout, Pass};
use crate::program::Verdict;
use crate::refusal::{Refusal, Refusals};
use memory::{FrontMemory, replay_word};
use sources::Tables;
use sweeps::{Rounds, SweepsUnderWay};

pub(crate) use memory::BackStages;
pub(crate) use scheduler::{Entering, EnteringJob, HandedDown, Scheduler};

/// The part that all programs have.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) config: Config,
    pub(crate) layout: Layout,
    pub(crate) refusals: Refusals,
    /// How many tasks of each slice were refused because their budget was spent. Counters of the chip, which
    /// only the controller reads.
    refused_late: Box<[u64]>,
    pub(crate) tables: Tables,
    memory: FrontMemory,
    sweeps: SweepsUnderWay,
    pub(crate) rounds: Rounds,
    feed: Feed,
    /// How many classes of tasks the program has; the controller is told.
    pub(crate) classes: u8,
    pub(crate) kinds: u8,
    /// How many servers the program keeps rows for.
    pub(crate) servers: u16,
    /// The most tasks that the program takes in one submission.
    pub(crate) jobs: u8,
    /// The largest quota: how far the count in a TOKEN may run ahead of what the switch has granted.
    pub(crate) quota_max: u8,
    /// Whether tasks come from spines. A REJECT then names the epoch of the spine to which its client
    /// submitted.
    pub(crate) below_spines: bool,
    term: Term,
}

/// A token that the switch has granted. `seen` is the worker's new count, or `None` if the token was
/// granted in an earlier pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) worker: WorkerId,
    pub(crate) generation: Generation,
    pub(crate) seen: Option<u32>,
}

/// In-band telemetry: how long the task waited, and how many tasks the queue held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) wait: Nanos,
    pub(crate) occupancy: u32,
}

impl Front {
    /// A switch without sources, all slices closed.
    ///
    /// # Panics
    /// If a ring or cell count is not a power of two, or the memory does not fit the chip.
    pub(crate) fn new(program: &'static str, feed: Feed, config: Config, back: BackStages) -> Self {
        assert!(config.is_sound(), "{program}: ring and cell counts must be powers of two");
        let mut layout = Layout::new(program);
        let tables = Tables::new(&mut layout, &config);
        let memory = FrontMemory::new(&mut layout, &config, back);
        let refusals = Refusals::default();
        let (term, quota_max) = (config.term, QUOTA_MAX);
        Self {
            config,
            layout,
            refusals,
            refused_late: vec![0; config.slices.into()].into_boxed_slice(),
            tables,
            memory,
            sweeps: SweepsUnderWay::new(&config),
            rounds: Rounds::new(&config),
            feed,
            classes: 1,
            kinds: 1,
            servers: 0,
            jobs: 1,
            quota_max,
            below_spines: false,
            term,
        }
    }

    const fn shape(&self) -> Shape {
        Shape {
            epoch: self.config.epoch,
            term: self.term,
            workers: self.config.workers,
            clients: self.config.clients,
            slices: self.config.slices,
            types: self.config.types,
            tasks_per_slice: self.config.tasks_per_slice,
            tokens_per_slice: self.config.tokens_per_slice,
            replay_cells: self.config.replay_cells,
            servers: self.servers,
            feed: self.feed,
            classes: self.classes,
            kinds: self.kinds,
            jobs: self.jobs,
            plain_writes: false,
            quota_max: self.quota_max,
        }
    }

    /// The slice of a task's type, and the slice's row; an error if the slice takes no tasks.
    #[inline(always)]
    pub(crate) fn open_slice(&self, submit: &Submit) -> Result<(SliceId, &SliceRow), RejectReason> {
        let (slice, row) = self.tables.slice_of(submit).ok_or(RejectReason::UnknownType)?;
        if row.open { Ok((slice, row)) } else { Err(RejectReason::NoWorkers) }
    }

    /// Whether a token that was granted earlier still counts: its worker is there, and the token is of the
    /// worker's present generation.
    #[inline(always)]
    pub(crate) fn is_live(&mut self, pass: &mut Pass, worker: WorkerId, generation: Generation) -> bool {
        self.memory.gen_out.read(pass, worker.0 as usize) == generation.0
            && self.tables.worker(worker).is_some()
    }

    /// Whether the switch still admits tokens of this generation of a worker.
    pub(crate) fn is_admitted(&self, worker: WorkerId, generation: Generation) -> bool {
        self.tables.worker(worker).is_some_and(|row| row.open && row.generation == generation)
    }

    /// The address to which a REPLY goes; an error if it did not come from the worker that it names.
    #[inline]
    pub(crate) fn admit_reply(&self, from: Endpoint, reply: &Reply) -> Result<&Endpoint, Refusal> {
        let row = self.tables.worker(reply.worker).ok_or(Refusal::UnknownSource)?;
        if row.at != from {
            return Err(Refusal::WrongAddress);
        }
        let spine = || self.tables.above(row.slice);
        self.tables.towards(reply.client, spine).ok_or(Refusal::UnknownSource)
    }

    /// Accepts a leaf's UPDATE if it comes from the address of the leaf that it names and names the leaf's
    /// present generation.
    pub(crate) fn admit_update(&self, from: Endpoint, update: &Update) -> Result<(), Refusal> {
        let row = self.tables.worker(update.leaf).ok_or(Refusal::UnknownSource)?;
        if row.at != from {
            return Err(Refusal::WrongAddress);
        }
        out_of_date(self.config.epoch, row, update.epoch, update.generation).map_or(Ok(()), Err)
    }

    /// Notes that a token was granted and parked. A later DISPATCH then tells the worker its new count.
    #[inline]
    pub(crate) fn note_granted(&mut self, pass: &mut Pass, granted: Granted) {
        if let Some(seen) = granted.seen {
            self.memory.seen_out.write(pass, granted.worker.0 as usize, seen);
        }
    }

    /// A worker has room for one more task: grants one token, or returns the answer that says why not.
    #[inline(always)]
    fn admit_token(
        &mut self,
        pass: &mut Pass,
        from: Endpoint,
        token: &Token,
    ) -> Result<(SliceId, Granted), Verdict> {
        let row = self.tables.admit_worker(from, token.worker, token.key).map_err(Verdict::Drop)?;
        if let Some(stale) = out_of_date(self.config.epoch, row, token.epoch, token.generation) {
            self.refusals.add(stale);
            let row = *row;
            return Err(self.answer(pass, &row, token.worker, token.nonce));
        }
        // A packet grants one token, even if many before it were lost: the worker repeats until all are
        // granted.
        let ahead_max = u32::from(self.quota_max);
        let is_new = |seen: u32| token.issued.0.wrapping_sub(seen).wrapping_sub(1) < ahead_max;
        let worker = token.worker.0 as usize;
        let seen = self.memory.seen.branch(pass, worker, is_new, |seen| seen.wrapping_add(1), |seen| seen);
        if !is_new(seen) {
            let behind = token.issued.since(Serial(seen)) <= 0;
            self.refusals.add(if behind { Refusal::RepeatedToken } else { Refusal::ImpossibleCounter });
            let sent = self.memory.sent.read(pass, worker);
            let counters = Counters { seen: Serial(seen), sent: Serial(sent) };
            return Err(self.send_answer(row, token.worker, token.nonce, Some(counters)));
        }
        let granted =
            Granted { worker: token.worker, generation: token.generation, seen: Some(seen.wrapping_add(1)) };
        Ok((row.slice, granted))
    }

    /// A client's task arrives from a port: lets it in once, or returns the answer that says why not.
    #[inline(always)]
    fn admit_task(
        &mut self,
        pass: &mut Pass,
        from: Endpoint,
        submit: &Submit,
        room: bool,
    ) -> Result<(), Verdict> {
        self.admit_sender(from, submit)?;
        if !self.enters_once(pass, submit) {
            return Err(Verdict::Drop(Refusal::Replayed));
        }
        if !room || !self.rounds.have_room() {
            return Err(self.no_room(submit));
        }
        Ok(())
    }

    /// Rejects a task whose bytes the driver cannot keep, or which finds as many packets recirculating as
    /// there may be.
    #[cold]
    pub(crate) fn no_room(&mut self, submit: &Submit) -> Verdict {
        if !self.rounds.have_room() {
            self.refusals.add(Refusal::RoundsFull);
        }
        self.reject(submit, RejectReason::NoRoom)
    }

    /// Checks the key and address of a task's client, and that the client knows this epoch of the switch.
    #[inline(always)]
    fn admit_sender(&mut self, from: Endpoint, submit: &Submit) -> Result<(), Verdict> {
        self.tables.admit_client(from, submit.client, submit.key).map_err(Verdict::Drop)?;
        if submit.epoch != self.config.epoch {
            self.refusals.add(Refusal::WrongEpoch);
            return Err(Verdict::Send { to: from, packet: Packet::Notice(self.notice(submit)) });
        }
        Ok(())
    }

    /// Whether this try of a task comes for the first time; marks it as come.
    #[inline(always)]
    pub(crate) fn enters_once(&mut self, pass: &mut Pass, submit: &Submit) -> bool {
        let cells = self.config.replay_cells;
        let residue = submit.task.sequence.0 & (cells - 1);
        let cell = submit.client.0 as usize * cells as usize + residue as usize;
        let word = replay_word(submit.task.sequence, submit.attempt);
        let is_newer = |held: u64| (word.wrapping_sub(held) as i64) > 0;
        let held = self.memory.replay.branch(pass, cell, is_newer, |_| word, |held| held);
        is_newer(held)
    }

    /// Whether the client of a recirculating task is still registered under the same key.
    pub(crate) fn knows_sender(&self, submit: &Submit) -> bool {
        let row = self.tables.clients.get(submit.client.0 as usize).and_then(Option::as_ref);
        row.is_some_and(|row| row.key == submit.key)
    }

    /// Answers a worker that asks for its counters.
    fn probe(&mut self, pass: &mut Pass, from: Endpoint, probe: &Probe) -> Verdict {
        let row = match self.tables.admit_worker(from, probe.worker, probe.key) {
            Ok(row) => *row,
            Err(refusal) => return Verdict::Drop(refusal),
        };
        if let Some(stale) = out_of_date(self.config.epoch, &row, probe.epoch, probe.generation) {
            self.refusals.add(stale);
        }
        self.answer(pass, &row, probe.worker, probe.nonce)
    }

    fn answer(&mut self, pass: &mut Pass, row: &WorkerRow, worker: WorkerId, nonce: Nonce) -> Verdict {
        let seen = Serial(self.memory.seen.read(pass, worker.0 as usize));
        let sent = Serial(self.memory.sent.read(pass, worker.0 as usize));
        self.send_answer(row, worker, nonce, row.open.then_some(Counters { seen, sent }))
    }
}

/// The reason for which a worker's packet is not taken and is answered with the worker's counters; `None`
/// if the packet is up to date.
#[inline]
fn out_of_date(life: Epoch, row: &WorkerRow, epoch: Epoch, generation: Generation) -> Option<Refusal> {
    if epoch != life {
        Some(Refusal::WrongEpoch)
    } else if generation != row.generation {
        Some(Refusal::WrongGeneration)
    } else if row.open {
        None
    } else {
        Some(Refusal::Closed)
    }
}
