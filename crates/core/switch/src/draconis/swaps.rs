//! Task swapping: a worker that the first task does not suit gets a later one (Draconis' slides: resources
//! and locality).
//!
//! The task that a poll took recirculates together with the poll, and is compared with the entry of the
//! next place. One access writes the carried task there and takes out the entry that was there. If that
//! entry suits the worker, it is dispatched. Otherwise it is carried on in its turn, so that the tasks
//! which were passed over keep their order. Behind the last task, or after the most swaps, the carried task
//! is added again, and the poll is answered with EMPTY. If no worker serves that task any more, it is
//! refused instead: polls would carry it about for ever, and no sweep would find it in the queue.
//!
//! If a round takes longer than the time between two polls, two workers can carry each other's task: each
//! task is away whenever the other one's carrier looks. So a task that has waited for long and comes back
//! to an empty queue is there for at least a round before its poll is answered.
//!
//! No task is lost behind the retrieve pointer. If that pointer has moved past the carrier's place, the
//! carrier goes on at the pointer. No pass swaps beyond an add pointer that a fix is about to set back. A
//! carried task that is added again meets what any add meets, so it may have to send a fix; then the answer
//! to the poll waits for the fix.
//!
//! With wishes (locality) a task waits for a worker that meets all its labels (its node), later for a
//! worker that meets any of them (its rack), and later any worker takes it. Nothing happens at the end of a
//! wait: idle workers poll, and one of them finds the task.

use sluice_wire::serving::Labels;
use sluice_wire::tables::{KINDS_MAX, RingCounts, SliceRow};
use sluice_wire::{Generation, Nanos, RejectReason, Serial, SliceId, Submit, Sweep};

use super::asked::Swapping;
use super::memory::{CLEAR, Draconis, Entry, QueueCounts, Retrieved, SET, Swaps, ahead};
use super::rounds::{Carrier, QueueId, SelfNote, TaskNote};
use crate::entry::{Kept, WaitingTask, cell};
use crate::front::{Entering, Granted};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Verdict};
use crate::refusal::Refusal;

/// No task should wait for so long: a slice has room for what workers serve in this time, by default.
const LONG_WAIT: Nanos = Nanos::from_millis(20);

impl Draconis {
    /// The class of a task by what it needs; class 0 if workers do not differ. An error if no worker that
    /// serves it is there.
    pub(super) fn class_by_need(&self, submit: &Submit) -> Result<u8, RejectReason> {
        if self.swaps.is_none() {
            return Ok(0);
        }
        let (_, row) = self.front.open_slice(submit)?;
        let class = row.serving.class_of(self.front.tables.needs_of(submit));
        let class = class.ok_or(RejectReason::Unserved)?;
        if row.closed >> class & 1 == 0 { Ok(class) } else { Err(RejectReason::NoWorkers) }
    }

    pub(super) fn count_came(&mut self, pass: &mut Pass, slice: SliceId, class: u8) {
        if let Some(Swaps { counts, .. }) = &mut self.swaps {
            let one_more = |of: QueueCounts| QueueCounts { came: of.came.wrapping_add(1), ..of };
            counts.update(pass, Swaps::index(slice, class), one_more);
        }
    }

    pub(super) fn count_left(&mut self, pass: &mut Pass, slice: SliceId, class: u8) {
        if let Some(Swaps { counts, .. }) = &mut self.swaps {
            let one_more = |of: QueueCounts| QueueCounts { left: of.left.wrapping_add(1), ..of };
            counts.update(pass, Swaps::index(slice, class), one_more);
        }
    }

    /// How many tasks of each class entered a slice and left it; `None` without swapping.
    pub(super) fn counted(&self, slice: usize) -> Option<(RingCounts, RingCounts)> {
        let Swaps { counts, .. } = self.swaps.as_ref()?;
        let mut all = (RingCounts::default(), RingCounts::default());
        for class in 0..KINDS_MAX {
            let QueueCounts { came, left } = counts.peek(slice * KINDS_MAX + class);
            (all.0.0[class], all.1.0[class]) = (Serial(came), Serial(left));
        }
        Some(all)
    }

    /// Whether this worker may get the task now.
    pub(super) fn suits(&self, now: Nanos, slice: SliceId, granted: Granted, entry: &Entry) -> bool {
        let Some(Swaps { swapping: Swapping { node, rack, .. }, .. }) = &self.swaps else { return true };
        let Some(worker) = self.front.tables.worker(granted.worker) else { return false };
        let serving = &self.front.tables.slices[slice.0 as usize].serving;
        let is_among = |classes: u8| classes >> entry.class & 1 == 1;
        if !serving.is_wished() {
            return is_among(serving.serves(worker.kind));
        }
        let waited = entry.task.waited(now);
        let needs = serving.classes().get(usize::from(entry.class));
        let has = serving.kinds().get(usize::from(worker.kind));
        is_among(serving.meets(worker.kind))
            || waited >= *node && needs.zip(has).is_some_and(|(needs, has)| share(*needs, *has))
            || waited >= *node + *rack
    }

    /// The task does not suit the worker that polled: both recirculate together.
    pub(super) fn carry(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        slice: SliceId,
        granted: Granted,
        entry: &Entry,
    ) -> Verdict {
        self.front.note_granted(pass, granted);
        let carrier = Carrier::new(slice, granted.worker, granted.generation);
        self.carried_on(now, carrier.with(entry.class, entry.ticket.wrapping_add(1)), &entry.task)
    }

    /// A carried task comes to its next place.
    pub(super) fn carried(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        task: Entering<'_>,
        carrier: Carrier,
    ) -> Verdict {
        let queue = QueueId { slice: carrier.slice, class: 0 };
        let (s, cells) = (self.index(queue), self.cells as i32);
        let granted = self.token_of(carrier);
        let retrieved = self.retrieve.read(pass, s);
        let at = later(carrier.ticket(retrieved), retrieved);
        let ends = granted.is_none() || carrier.swaps >= self.swaps_most();
        let is_last = |added: u32| ends || ahead(at, added) >= 0;
        let is_closed = self.is_closed(carrier);
        let adds = |added: u32| is_last(added) && !is_closed;
        let added = self.add.branch(pass, s, adds, |added| added.wrapping_add(1), |added| added);
        let returns = is_last(added);
        if returns && is_closed {
            return self.refuse_carried(pass, &task, carrier, granted);
        }
        let is_full = returns && ahead(added, retrieved) >= cells;
        let stays = |flag: u64| flag != CLEAR || !is_full;
        let failing = self.add_fix.branch(pass, s, stays, |flag| flag, |_| SET | u64::from(added));
        if failing != CLEAR && (returns || ahead(at, failing as u32) >= 0) {
            return again(task, TaskNote::Carried(carrier.at(at)));
        }
        if is_full {
            return again(task, TaskNote::CarriedFix(carrier.at(added)));
        }
        match granted {
            Some(granted) if !returns => {
                let left = ahead(added, at).max(1) as u32 - 1;
                self.swap(pass, now, task, carrier.at(at), (at, left), granted)
            }
            _ => {
                let waited = now.since(task.arrived);
                self.returns(pass, task, carrier, (added, retrieved), (granted, waited))
            }
        }
    }

    /// Refuses a carried task that no worker serves any more. If it were added again, the next poll would
    /// take it before a sweep could. The pass sends the REJECT, so the poll gets no answer: its worker
    /// misses a number, and polls again.
    #[cold]
    fn refuse_carried(
        &mut self,
        pass: &mut Pass,
        task: &Entering<'_>,
        carrier: Carrier,
        granted: Option<Granted>,
    ) -> Verdict {
        if let Some(granted) = granted {
            self.front.leave_unanswered(pass, granted);
        }
        self.count_left(pass, carrier.slice, carrier.class);
        self.front.sweep_out(task.submit)
    }

    /// Adds the carried task again, behind all others, and answers the poll.
    fn returns(
        &mut self,
        pass: &mut Pass,
        task: Entering<'_>,
        carrier: Carrier,
        (ticket, retrieved): (u32, u32),
        (granted, waited): (Option<Granted>, Nanos),
    ) -> Verdict {
        let queue = QueueId { slice: carrier.slice, class: 0 };
        let s = self.index(queue);
        let is_behind = ahead(retrieved, ticket) > 0;
        let starts = |flag: u64| flag == CLEAR && is_behind;
        let fixing = self.retrieve_fix.branch(pass, s, starts, |_| SET | ticket as u64, |flag| flag);
        if fixing != CLEAR && ahead(ticket, fixing as u32) >= self.cells as i32 {
            return again(task, TaskNote::Carried(carrier.at(ticket)));
        }
        self.put(pass, s, ticket, carrier.class, task.submit, task.arrived);
        match granted {
            Some(_) if starts(fixing) => SelfNote::FixAndEmpty(carrier.at(ticket)).go(),
            Some(_) if retrieved == ticket && waited >= LONG_WAIT => SelfNote::Empty(carrier).go(),
            Some(granted) => self.front.send_empty(pass, granted),
            None if starts(fixing) => SelfNote::Fix { queue, ticket }.go(),
            None => Verdict::Parked,
        }
    }

    /// Writes the carried task at this place, and takes out the entry that was there.
    fn swap(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        task: Entering<'_>,
        carrier: Carrier,
        (at, left): (u32, u32),
        granted: Granted,
    ) -> Verdict {
        let queue = QueueId { slice: carrier.slice, class: 0 };
        let s = self.index(queue);
        let waits = WaitingTask::of(task.submit, task.arrived, Kept::Client);
        let entry = Entry { ticket: at, class: carrier.class, task: waits };
        let old = self.entries.branch(pass, cell(s, at, self.cells), |_| true, |_| entry);
        if old.ticket != at {
            // This place was empty, because an add had failed. The carried task now waits here, and the poll
            // is answered with EMPTY.
            return self.front.send_empty(pass, granted);
        }
        if self.suits(now, queue.slice, granted, &old) {
            return self.give(pass, now, queue, granted, &Retrieved { entry: old, left });
        }
        self.carried_on(now, carrier.swapped().with(old.class, at.wrapping_add(1)), &old.task)
    }

    /// Sets the add pointer back to its ticket; then the carried task recirculates.
    pub(super) fn carried_fix(&mut self, pass: &mut Pass, task: Entering<'_>, carrier: Carrier) -> Verdict {
        let s = self.index(QueueId { slice: carrier.slice, class: 0 });
        let ticket = self.add.update(pass, s, |added| carrier.ticket(added));
        self.add_fix.write(pass, s, CLEAR);
        again(task, TaskNote::Carried(carrier.at(carrier.ticket(ticket))))
    }

    /// Sets the retrieve pointer; then the poll that found nothing looks at its next class or is answered.
    pub(super) fn fix_and_empty(&mut self, pass: &mut Pass, carrier: Carrier) -> Verdict {
        // With swapping all classes share one queue.
        let class = if self.swaps.is_some() { 0 } else { carrier.class };
        let queue = QueueId { slice: carrier.slice, class };
        let s = self.index(queue);
        let granted = self.token_of(carrier);
        self.retrieve.update(pass, s, |retrieved| carrier.ticket(retrieved));
        self.retrieve_fix.write(pass, s, CLEAR);
        match granted {
            Some(granted) => self.found_nothing(pass, queue, granted),
            None => Verdict::Drop(Refusal::FixDone),
        }
    }

    /// A sweep looks at one place after the other, and takes out the first task that no worker serves any
    /// more. All sweeps of a slice share one cursor: the next sweep continues where the last one ended.
    /// While a fix of the retrieve pointer recirculates, the start of the queue is unknown, so the sweep
    /// waits.
    pub(super) fn sweep_in_place(&mut self, pass: &mut Pass, sweep: Sweep, memo: u64) -> Verdict {
        let s = self.index(QueueId { slice: sweep.slice, class: 0 });
        let SliceRow { open, closed, .. } = self.front.tables.slices[sweep.slice.0 as usize];
        let classes = if open { closed } else { u8::MAX };
        let Some(place) = self.sweep.as_mut().filter(|_| classes != 0) else {
            return Verdict::Drop(Refusal::SweepDone);
        };
        let goes_on = memo == SET;
        let first = self.retrieve.read(pass, s);
        let added = self.add.read(pass, s);
        let failing = self.add_fix.read(pass, s);
        let fixing = self.retrieve_fix.read(pass, s);
        let end = if failing == CLEAR { added } else { failing as u32 };
        let waits = |at: u32| ahead(at, first) >= 0 && ahead(at, end) < 0;
        // Beyond the last place the sweep ends, and the next one begins at the first place.
        let anew = first.wrapping_add(u32::from(!goes_on));
        let stood = place.branch(pass, sweep.slice.0.into(), waits, |at| at.wrapping_add(1), |_| anew);
        let again = |memo| {
            Verdict::Again(Circulating { cargo: Cargo::Sweep(sweep), arrived: Nanos::default(), memo })
        };
        if fixing != CLEAR {
            return again(CLEAR);
        }
        let at = if waits(stood) { stood } else { first };
        if !waits(at) || goes_on && at != stood {
            return Verdict::Drop(Refusal::SweepDone);
        }
        let leaves = |entry: Entry| entry.ticket == at && classes >> entry.class & 1 == 1;
        // The ticket before this one belongs to another cell, so no entry here will ever have it.
        let hole = |entry: Entry| Entry { ticket: at.wrapping_sub(1), ..entry };
        let entry = self.entries.branch(pass, cell(s, at, self.cells), leaves, hole);
        if leaves(entry) {
            self.count_left(pass, sweep.slice, entry.class);
            return self.front.sweep_out(&self.front.whole(&entry.task));
        }
        again(SET)
    }

    /// The token that a carried task belongs to, if its worker is still there.
    pub(super) fn token_of(&self, carrier: Carrier) -> Option<Granted> {
        let row = self.front.tables.worker(carrier.worker)?;
        let generation: Generation = carrier.generation(row.generation);
        let is_there = row.slice == carrier.slice && self.front.is_admitted(carrier.worker, generation);
        is_there.then_some(Granted { worker: carrier.worker, generation, seen: None })
    }

    /// Whether no worker of the slice serves the class of the carried task any more.
    fn is_closed(&self, carrier: Carrier) -> bool {
        let SliceRow { open, closed, .. } = &self.front.tables.slices[usize::from(carrier.slice.0)];
        !open || closed >> carrier.class & 1 == 1
    }

    fn swaps_most(&self) -> u8 {
        self.swaps.as_ref().map_or(0, |swaps| swaps.swapping.most)
    }

    /// Recirculates a task, taken from the queue, in its carrier.
    fn carried_on(&self, now: Nanos, carrier: Carrier, task: &WaitingTask) -> Verdict {
        let arrived = now.since(task.waited(now));
        let memo = TaskNote::Carried(carrier).memo();
        Verdict::Again(Circulating { cargo: Cargo::Task(self.front.whole(task)), arrived, memo })
    }
}

/// Recirculates a carried task once more.
fn again(task: Entering<'_>, note: TaskNote) -> Verdict {
    let Entering { submit, arrived, .. } = task;
    Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo: note.memo() })
}

/// The later of two tickets.
const fn later(one: u32, other: u32) -> u32 {
    if ahead(one, other) > 0 { one } else { other }
}

/// Whether a worker has any of the labels that a task wishes for.
const fn share(wishes: Labels, has: Labels) -> bool {
    wishes.0 & has.0 != 0
}
