//! What stands in front of every program: who may send what, what comes twice, and what each worker was
//! granted and sent.
//!
//! Published schedulers leave this open; here they all share it, so that they differ in scheduling only.
//! Sources are known by key and address, a packet of another life or generation is answered with how things
//! stand, each try of a task enters once, each token is granted once, and DISPATCHes are numbered.
//!
//! The stages: source tables, types and slices in 0, `seen` and the replay cells in 1, `gen_out`, then `sent`
//! and `seen_out`, where the program has room for them behind its queue.
#![expect(clippy::inline_always, reason = "a packet is copied at each call that stays one")]

mod control;
mod egress;
mod memory;
mod program;
mod scheduler;
mod sources;
mod sweeps;

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
    pub(crate) tables: Tables,
    memory: FrontMemory,
    sweeps: SweepsUnderWay,
    pub(crate) rounds: Rounds,
    feed: Feed,
    /// Of tasks; the controller is told.
    pub(crate) classes: u8,
    pub(crate) kinds: u8,
    /// Servers whose rows it keeps.
    pub(crate) servers: u16,
    /// The most tasks that it takes in one submission.
    pub(crate) jobs: u8,
    /// The largest quota: how far a TOKEN's count may run ahead of what the switch has granted.
    pub(crate) quota_max: u8,
    /// Whether tasks come from spines: what is refused then names the life of the spine that it went to.
    pub(crate) below_spines: bool,
    term: Term,
}

/// A token that the switch has granted; `seen` is the worker's new count, unless it was granted in an earlier
/// pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) worker: WorkerId,
    pub(crate) generation: Generation,
    pub(crate) seen: Option<u32>,
}

/// In-band telemetry: what the queue was like for the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) wait: Nanos,
    pub(crate) occupancy: u32,
}

impl Front {
    /// An empty switch: no sources, no slices open.
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

    /// The slice of a task's type and its row, if it takes tasks.
    #[inline(always)]
    pub(crate) fn open_slice(&self, submit: &Submit) -> Result<(SliceId, &SliceRow), RejectReason> {
        let (slice, row) = self.tables.slice_of(submit).ok_or(RejectReason::UnknownType)?;
        if row.open { Ok((slice, row)) } else { Err(RejectReason::NoWorkers) }
    }

    /// Whether the worker of an earlier granted token is there, and the token of its present generation.
    #[inline(always)]
    pub(crate) fn is_live(&mut self, pass: &mut Pass, worker: WorkerId, generation: Generation) -> bool {
        self.memory.gen_out.read(pass, worker.0 as usize) == generation.0
            && self.tables.worker(worker).is_some()
    }

    /// Whether tokens of a worker's generation are still let in.
    pub(crate) fn is_admitted(&self, worker: WorkerId, generation: Generation) -> bool {
        self.tables.worker(worker).is_some_and(|row| row.open && row.generation == generation)
    }

    /// Where a REPLY goes, if it comes from the worker that it names.
    #[inline]
    pub(crate) fn admit_reply(&self, from: Endpoint, reply: &Reply) -> Result<&Endpoint, Refusal> {
        let row = self.tables.worker(reply.worker).ok_or(Refusal::UnknownSource)?;
        if row.at != from {
            return Err(Refusal::WrongAddress);
        }
        let spine = || self.tables.above(row.slice);
        self.tables.towards(reply.client, spine).ok_or(Refusal::UnknownSource)
    }

    /// Whether a leaf's word counts: it comes from the leaf that it names, in its present generation.
    pub(crate) fn admit_update(&self, from: Endpoint, update: &Update) -> Result<(), Refusal> {
        let row = self.tables.worker(update.leaf).ok_or(Refusal::UnknownSource)?;
        if row.at != from {
            return Err(Refusal::WrongAddress);
        }
        out_of_date(self.config.epoch, row, update.epoch, update.generation).map_or(Ok(()), Err)
    }

    /// A token was parked: what it said has to reach the worker with a later DISPATCH.
    #[inline]
    pub(crate) fn note_granted(&mut self, pass: &mut Pass, granted: Granted) {
        if let Some(seen) = granted.seen {
            self.memory.seen_out.write(pass, granted.worker.0 as usize, seen);
        }
    }

    /// A worker is ready for one more task: grants one token, or says why not.
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
        // One token a packet, however many were lost before it: the worker repeats until all are granted.
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

    /// A client's task comes for the first time: lets it in once, or says why not.
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

    /// The driver cannot keep its bytes, or too much goes round.
    #[cold]
    pub(crate) fn no_room(&mut self, submit: &Submit) -> Verdict {
        if !self.rounds.have_room() {
            self.refusals.add(Refusal::RoundsFull);
        }
        self.reject(submit, RejectReason::NoRoom)
    }

    /// Whether a task's client is who it says, and knows this life of the switch.
    #[inline(always)]
    fn admit_sender(&mut self, from: Endpoint, submit: &Submit) -> Result<(), Verdict> {
        self.tables.admit_client(from, submit.client, submit.key).map_err(Verdict::Drop)?;
        if submit.epoch != self.config.epoch {
            self.refusals.add(Refusal::WrongEpoch);
            return Err(Verdict::Send { to: from, packet: Packet::Notice(self.notice(submit)) });
        }
        Ok(())
    }

    /// Whether this try of a task comes for the first time; from now on it has come.
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

    /// Whether the client of a task that goes round is still registered as it was.
    pub(crate) fn knows_sender(&self, submit: &Submit) -> bool {
        let row = self.tables.clients.get(submit.client.0 as usize).and_then(Option::as_ref);
        row.is_some_and(|row| row.key == submit.key)
    }

    /// A worker asks how its counters stand.
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

/// Why a worker's packet is answered with where its counters stand instead of being taken.
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
