//! Slices: how many tasks may wait in each, how many each client may have outstanding, and sweeping.
//!
//! How many tasks may wait (C) stands in the plan, or is the planned longest wait times the rate at which
//! the slice's workers serve. A leaf uses its whole ring: clients are held to the pool's C above it, and
//! all their tasks may come to one rack. A slice without workers is closed, and its waiting tasks are swept
//! out: SWEEP packets (*sweeps*) go through the switch and turn tasks into REJECTs. Stale tokens are swept
//! out of their ring in the same way. Until then they take room, and their worker's index is not given
//! away. A slice that takes no types any more keeps its last worker until no task waits in it.

use alloc::vec::Vec;

use sluice_wire::sizes::{QUOTA_MAX, share};
use sluice_wire::tables::{SliceRow, SliceState, TableOp};
use sluice_wire::{Generation, Incarnation, Nanos, SliceId, Sweep, SweepOf, TaskType, WorkerId};

use crate::controller::{Controller, Link, SOON, wait};
use crate::leaf_line::PoolSize;
use crate::ledger::Expect;
use crate::message::{Action, Answer, Refusal, Waiting};
use crate::note::Note;
use crate::recent::RecentWork;
use crate::slice::{CALM_READINGS, EMPTY_FOR, Emptying, SWEEP_EVERY, Slice, Stale, WATCH_LEASES, Watch};
use crate::tier::Tier;

/// The longest interval of readings, while a sweep makes no progress.
const SWEEP_RARELY: Nanos = Nanos::from_millis(100);

/// How many sweeps for tasks are sent at once; each pass of a sweep rejects one task.
const TASK_SWEEPS_MAX: u32 = 256;

/// What follows from workers' rates is written anew when it is off by more than one part in this many.
const LIMIT_SLACK: u32 = 8;

impl Slice {
    /// How many tasks the slice's workers are expected to take within its target: by the rate that they
    /// told, else by the plan's service. One for each of their tokens at least, so that none starves.
    fn expected(&self, rate: Option<u64>) -> u32 {
        let planned = self.service.filter(|service| service.0 > 0);
        let planned = planned.map(|service| u64::from(self.serving) * 1_000_000_000 / service.0);
        let Some(rate) = rate.or(planned).filter(|_| self.target.0 > 0) else { return 0 };
        let taken = u128::from(rate) * u128::from(self.target.0) / 1_000_000_000;
        let expected = u32::try_from(taken).unwrap_or(u32::MAX).max(self.quotas);
        let is_near = expected.abs_diff(self.row.expected) <= self.row.expected / LIMIT_SLACK;
        if is_near && self.row.target == self.target { self.row.expected } else { expected }
    }
}

impl Controller {
    /// A worker is wanted in another slice. If it is the last worker of its own slice, no task may wait
    /// there any more.
    pub(crate) fn let_slice_empty(&mut self, now: Nanos, index: u16, to: SliceId) -> Result<(), Answer> {
        let leaves = self.workers.get(index).map(|worker| worker.slice).filter(|from| *from != to);
        let Some(from) = leaves.filter(|_| self.is_missed(index)) else { return Ok(()) };
        let Some(slice) = self.slices.get_mut(usize::from(from.0)) else { return Ok(()) };
        let known = slice.emptying.filter(|emptying| now.since(emptying.since) < EMPTY_FOR);
        if known.is_some_and(|emptying| emptying.left == 0) {
            return Ok(());
        }
        let left = known.map_or(CALM_READINGS, |emptying| emptying.left);
        slice.emptying = Some(Emptying { left, since: now });
        self.sweep_soon(now, from);
        Err(wait(Waiting::SliceEmptying, SOON))
    }

    /// Tasks may wait in a slice again.
    pub(crate) fn slice_used(&mut self, id: SliceId) {
        if let Some(slice) = self.slices.get_mut(usize::from(id.0)) {
            slice.emptying = None;
        }
    }

    /// A type that was mapped to a slice is mapped elsewhere now.
    pub(crate) fn type_left(&mut self, now: Nanos, id: SliceId, task_type: TaskType) {
        if let Some(slice) = self.slices.get_mut(usize::from(id.0)) {
            slice.types_left([task_type]);
        }
        self.sweep_soon(now, id);
    }

    /// Writes a slice's row if it has to change, because its workers, their quotas or their rates have
    /// changed.
    pub(crate) fn refresh_slice(&mut self, now: Nanos, id: SliceId, out: &mut Vec<Action>) {
        let (serving, quotas, rate) = self.served(id);
        let up = self.unreachable().is_none();
        let ring = self.shape.map_or(u32::MAX, |shape| shape.tasks_per_slice);
        let unmeasured = self.plan.unmeasured_limit;
        let wait_ns = u128::from(self.plan.max_wait.0);
        let retry_after = self.plan.retry_after;
        let (hands, closed) = self.serving_row(id);
        let Some(slice) = self.slices.get_mut(usize::from(id.0)) else { return };
        (slice.serving, slice.quotas) = (serving, quotas);
        if !up {
            return;
        }
        let measured = rate.map(|rate| u128::from(rate) * wait_ns / 1_000_000_000);
        let measured = measured.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
        // The queue has room for C and for the quotas. A client hears of a task's end before the switch
        // gets the worker's next token, and the task that the client then submits must not be rejected.
        let waiting = match self.plan.tier {
            Tier::Rack | Tier::Spine => slice.planned_limit.or(measured).unwrap_or(unmeasured).max(1),
            Tier::Leaf => ring,
        };
        let limit = waiting.saturating_add(quotas).min(ring.max(1));
        let keep = slice.planned_limit.is_none() && slice.row.limit > 0 && slice.row.limit <= ring;
        let close_enough = limit.abs_diff(slice.row.limit) <= slice.row.limit / LIMIT_SLACK;
        let limit = if keep && (serving == 0 || close_enough) { slice.row.limit } else { limit };
        let target = slice.target;
        let expected = slice.expected(rate);
        let row =
            SliceRow { open: serving > 0, limit, retry_after, serving: hands, closed, target, expected };
        let was = core::mem::replace(&mut slice.row, row);
        if was == row {
            return;
        }
        self.ledger.ask(TableOp::SetSlice(id, row), Expect::Done, out);
        self.slice_turned(now, id, was.open, out);
        self.classes_turned(now, id, was, out);
    }

    /// Tokens of a worker that entered the ring before this reading are stale.
    pub(crate) fn mark_stale(&mut self, now: Nanos, id: SliceId, worker: WorkerId, state: SliceState) {
        let tokens = u32::from(self.quota_max());
        let Some(slice) = self.slices.get_mut(usize::from(id.0)) else { return };
        slice.goes_stale(Stale { worker: Some(worker), tokens, until: state.tokens_in }, &state);
        slice.take(now, state);
        self.sweep_soon(now, id);
    }

    /// The largest quota of a worker that the switch accepts.
    pub(crate) fn quota_max(&self) -> u8 {
        self.shape.map_or(QUOTA_MAX, |shape| shape.quota_max)
    }

    /// Makes a slice due for a reading now, and often from now on, if sweeps or changes of it are unfinished.
    pub(crate) fn sweep_soon(&mut self, now: Nanos, id: SliceId) {
        if let Some(slice) = self.slices.get_mut(usize::from(id.0)).filter(|s| s.is_dirty()) {
            slice.pace = SWEEP_EVERY;
            slice.look = Some(slice.look.map_or(now, |look| look.min(now)));
        }
    }

    /// If a host was told to wait for swept tokens, or for tasks of a slice's former types: makes every slice
    /// that still changes due for a reading. Otherwise the host might wait for a rare reading.
    pub(crate) fn hasten_sweeps(&mut self, now: Nanos, told: &Answer) {
        let waits = |why: &Waiting| matches!(why, Waiting::Sweeping | Waiting::FormerTypes);
        if matches!(told, Answer::Wait { why, .. } if waits(why)) {
            (0..self.slices.len()).for_each(|slice| self.sweep_soon(now, SliceId(slice as u16)));
        }
    }

    /// Whether tokens of older generations of this index may lie in a ring.
    pub(crate) fn is_unswept(&self, worker: WorkerId, newest: Generation) -> bool {
        let mine = |s: &Stale| match s.worker {
            Some(w) => w == worker,
            None => newest != Generation(0),
        };
        self.slices.iter().any(|slice| slice.stale.iter().any(mine))
    }

    /// Whether a slice's ring can hold the tokens of one more worker.
    pub(crate) fn check_room(&self, id: SliceId) -> Result<(), Answer> {
        let (Some(slice), Some(shape)) = (self.slices.get(usize::from(id.0)), self.shape) else {
            return Err(wait(Waiting::SwitchDown, SOON));
        };
        let workers = self.workers.iter().filter(|(_, w)| w.needs_room_in(id)).count() as u32;
        let live = (workers + 1) * u32::from(shape.quota_max);
        let limit = shape.tokens_per_slice;
        if live > limit {
            return Err(Answer::Refused { why: Refusal::RingFull { slice: slice.name.clone(), limit } });
        }
        if live + slice.stale_tokens() > limit {
            return Err(wait(Waiting::Sweeping, SOON));
        }
        Ok(())
    }

    /// Whether a slice's ring can hold this worker's tokens, beside the tokens in it and those that other
    /// workers may still send. Stale tokens of the worker's own last generation may have to be swept first.
    pub(crate) fn has_room_to_open(&self, worker: WorkerId, id: SliceId) -> bool {
        let (Some(slice), Some(shape)) = (self.slices.get(usize::from(id.0)), self.shape) else {
            return false;
        };
        let others =
            self.workers.iter().filter(|(i, w)| *i != worker.0 && w.takes_room_in(id)).count() as u32;
        (others + 1) * u32::from(shape.quota_max) + slice.stale_tokens() <= shape.tokens_per_slice
    }

    /// How many tasks each client may have outstanding in a slice: its share of C + ΣN. All of them find
    /// room.
    pub(crate) fn share(&self, id: SliceId, clients: u32) -> u32 {
        let of = |slice: &Slice| share(slice.row.limit, clients);
        self.slices.get(usize::from(id.0)).map_or(1, of)
    }

    /// How many workers serve a slice; a leaf counts as the workers that it stands for.
    pub(crate) fn workers_of(&self, id: SliceId) -> u32 {
        let open = self.workers.iter().filter(|(_, worker)| worker.serves == Some(id));
        open.map(|(_, worker)| u32::from(worker.workers.max(1))).sum()
    }

    pub(crate) fn slice_read(&mut self, now: Nanos, id: SliceId, state: SliceState, out: &mut Vec<Action>) {
        let epoch = self.epoch();
        let Some(slice) = self.slices.get_mut(usize::from(id.0)) else { return };
        slice.asked = false;
        let planned = slice.look.map(|look| (look, slice.pace));
        let moved = slice.take(now, state);
        self.open_where_swept(now, id, out);
        let Some(slice) = self.slices.get_mut(usize::from(id.0)) else { return };
        if !slice.is_dirty() {
            slice.look = None;
            self.take_hands(now, id, out);
            return;
        }
        if let Some((look, pace)) = planned.filter(|_| !moved) {
            // This reading was for a watch: the slice's own next reading is still to come, and its sweep is
            // still under way.
            (slice.look, slice.pace) = (Some(look), pace);
            return;
        }
        slice.pace = if moved { SWEEP_EVERY } else { SWEEP_RARELY.min(slice.pace.times(2)) };
        slice.look = Some(now + slice.pace);
        let token_sweep = slice.token_sweep(state);
        let waiting = if slice.calm_left > 0 { slice.wait_in_vain(&state) } else { 0 };
        let mut inject = |of, left| {
            let sweep = Sweep { epoch, slice: id, of, left, carried: None };
            self.ledger.ask(TableOp::Inject(sweep), Expect::Done, out);
        };
        if let Some(left) = token_sweep {
            inject(SweepOf::Tokens, left);
        }
        for _ in 0..waiting.min(TASK_SWEEPS_MAX) {
            inject(SweepOf::Tasks, 1);
        }
    }

    /// An operator watches: keeps the balances fresh.
    pub(crate) fn watch(&mut self, now: Nanos) {
        let next = self.watch.map_or(now, |watch| watch.next);
        self.watch = Some(Watch { next, until: now + self.plan.lease.times(WATCH_LEASES) });
    }

    pub(crate) fn tick_slices(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let watched = self.watch.is_some_and(|watch| watch.next <= now);
        if watched {
            self.watch = self.watch.and_then(|watch| watch.read(now, self.plan.lease));
        }
        for index in 0..self.slices.len() {
            let slice = &mut self.slices[index];
            let due = slice.look.is_some_and(|look| look <= now);
            if due {
                slice.look = None;
            }
            if due || watched {
                self.ask_slice(SliceId(index as u16), out);
            }
        }
    }

    pub(crate) fn slices_due(&self) -> Option<Nanos> {
        let watch = self.watch.map(|watch| watch.next);
        self.slices.iter().map(|slice| slice.look).chain([watch]).flatten().min()
    }

    fn ask_slice(&mut self, id: SliceId, out: &mut Vec<Action>) {
        let Some(slice) = self.slices.get_mut(usize::from(id.0)).filter(|s| !s.asked) else { return };
        slice.asked = true;
        self.ledger.ask(TableOp::ReadSlice(id), Expect::Slice(id), out);
    }

    /// The open workers of a slice, their quotas, and their service rate per second, if any told one.
    /// Workers that told none are taken to be like the others.
    fn served(&self, id: SliceId) -> (u32, u32, Option<u64>) {
        let (mut serving, mut quotas, mut known, mut rate) = (0, 0, 0, 0);
        for (_, worker) in self.workers.iter().filter(|(_, w)| w.serves == Some(id)) {
            serving += 1;
            quotas += u32::from(worker.quota);
            known += u64::from(worker.capacity > 0);
            rate += u64::from(worker.capacity);
        }
        (serving, quotas, (known > 0).then(|| rate * u64::from(serving) / known))
    }

    /// What this rack has of each slice, by index, as its leaf tells the spine's controller.
    pub fn pool_sizes(&self) -> Vec<PoolSize> {
        let of = |(index, slice): (usize, &Slice)| {
            let id = SliceId(index as u16);
            let (serving, quotas, rate) = self.served(id);
            let types = self.types_of(id);
            let workers = u16::try_from(serving).unwrap_or(u16::MAX);
            let waits = workers == 0 && !slice.may_change_hands();
            let capacity = rate.map_or(0, |rate| u32::try_from(rate).unwrap_or(u32::MAX));
            let serve = self.workers.iter().filter(|(_, worker)| worker.serves == Some(id));
            let recent = serve.fold(RecentWork::default(), |all, (_, worker)| all.beside(worker.recent));
            let in_switch = slice.state.map_or(0, |(state, _)| state.refused_late);
            let refused_late = slice.late_at_worker.saturating_add(in_switch);
            PoolSize {
                name: slice.name.clone(),
                types,
                workers,
                waits,
                quotas,
                capacity,
                recent,
                refused_late,
            }
        };
        self.slices.iter().enumerate().map(of).collect()
    }

    /// Whether any worker serves here; `None` while the switch is lost, or its tables were not read.
    pub fn does_serve(&self) -> Option<bool> {
        let is_known = matches!(self.link, Link::Up | Link::TooSmall | Link::Superseded);
        is_known.then(|| self.workers.iter().any(|(_, worker)| worker.serves.is_some()))
    }

    /// The incarnations of the clients in the switch's tables.
    pub fn client_lives(&self) -> Vec<Incarnation> {
        self.clients.iter().map(|(_, client)| client.row.incarnation).collect()
    }

    /// Handles a slice that was opened or closed.
    fn slice_turned(&mut self, now: Nanos, id: SliceId, was_open: bool, out: &mut Vec<Action>) {
        let Some(slice) = self.slices.get_mut(usize::from(id.0)) else { return };
        let name = slice.name.clone();
        match (was_open, slice.row.open) {
            (false, true) => {
                slice.calm_left = 0;
                out.push(Action::Note(Note::SliceOpened { slice: name }));
            }
            (true, false) => {
                slice.calm_left = CALM_READINGS;
                out.push(Action::Note(Note::SliceClosed { slice: name }));
                self.ledger.ask(TableOp::Drain, Expect::Done, out);
                self.sweep_soon(now, id);
            }
            _ => {}
        }
    }
}
