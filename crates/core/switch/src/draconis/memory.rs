//! Draconis' queues in memory: adds, retrieves, and the correction of pointers that advanced too far.

use sluice_wire::tables::KINDS_MAX;
use sluice_wire::{Nanos, RejectReason, Serial, SliceId, Submit};

use super::asked::{Settings, Swapping};
use super::rounds::{CARRIED_SLICES, Carrier, QueueId, SelfNote, TaskNote};
use crate::config::Config;
use crate::entry::{Kept, WaitingTask, cell};
use crate::front::{BackStages, Entering, Front, Granted, Queued, Scheduler};
use crate::pipeline::{Column, Layout, Pass, Register, Ring};
use crate::program::{Cargo, Circulating, Verdict};
use crate::refusal::Refusal;
use crate::settings::ProgramSettings;

/// A flag that is not set.
pub(super) const CLEAR: u64 = 0;
/// A flag that is set; the lower 32 bits hold the ticket to which the pointer belongs.
pub(super) const SET: u64 = 1 << 32;
/// How far a retrieve pointer may run ahead of an empty queue. The poll that finds it further ahead puts it
/// back. Adds compare tickets as serial numbers, which holds up to 2^31 only, and a memo holds distances up
/// to 2^19.
pub(super) const AHEAD_MAX: i32 = 1 << 16;

pub(super) const COLUMNS: [Column; 15] = [
    Column { name: "ticket", stage: 6, bits: 32 },
    Column { name: "payload 0", stage: 6, bits: 8 },
    Column { name: "client, attempt", stage: 6, bits: 32 },
    Column { name: "payload 1", stage: 7, bits: 8 },
    Column { name: "incarnation", stage: 7, bits: 64 },
    Column { name: "payload 2", stage: 8, bits: 8 },
    Column { name: "type, length", stage: 8, bits: 32 },
    Column { name: "sequence", stage: 8, bits: 32 },
    Column { name: "payload 3", stage: 9, bits: 8 },
    Column { name: "arrived, age", stage: 9, bits: 64 },
    Column { name: "payload 4", stage: 10, bits: 8 },
    Column { name: "priority, constraints, budget", stage: 10, bits: 16 + 16 },
    Column { name: "payload 5", stage: 10, bits: 8 },
    Column { name: "payload 6", stage: 11, bits: 8 },
    Column { name: "payload 7", stage: 11, bits: 8 },
];

/// Draconis' program and memory.
#[derive(Debug)]
pub struct Draconis {
    pub(super) front: Front,
    pub(super) settings: Settings,
    /// The ticket of the next retrieve of each queue.
    pub(super) retrieve: Register<u32>,
    /// The ticket of the next add.
    pub(super) add: Register<u32>,
    /// Whether a fix of the add pointer is on its way, and to which ticket.
    pub(super) add_fix: Register<u64>,
    /// Whether a fix of the retrieve pointer is on its way, and to which ticket.
    pub(super) retrieve_fix: Register<u64>,
    pub(super) entries: Ring<Entry>,
    /// Where the next sweep of each slice continues; all sweeps of a slice share this cursor. The cursor is
    /// a ticket if tasks are swapped, and a class if there are several. `None` with one queue, whose first
    /// task is taken.
    pub(super) sweep: Option<Register<u32>>,
    pub(super) cells: u32,
    /// The state of task swapping, if workers serve some tasks only.
    pub(super) swaps: Option<Swaps>,
}

/// A place in the ring: the task of this ticket, unless the place was never written for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) ticket: u32,
    /// The class by what the task needs, if workers differ.
    pub(super) class: u8,
    pub(super) task: WaitingTask,
}

/// The result of a retrieve.
pub(super) enum Retrieval {
    Task(Retrieved),
    Nothing,
    /// No task, and the pointer ran too far ahead: it must be put back to this ticket.
    RunsAway(u32),
}

/// A task that a retrieve found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retrieved {
    pub(super) entry: Entry,
    /// How many tasks remain behind the retrieved one.
    pub(super) left: u32,
}

impl Draconis {
    /// Makes empty queues.
    ///
    /// # Panics
    /// If there are more slices than a memo can name. No plan gets here with so many: a rack's plan is
    /// refused above 64 slices, and a study's workload above 256 classes, each slice having at least one.
    pub(super) fn new(settings: Settings, config: Config) -> Self {
        let (columns, sent): (&[Column], u8) =
            if settings.labels { (&SWAPPED_COLUMNS, 10) } else { (&COLUMNS, 7) };
        let back = BackStages { gen_out: 2, sent };
        let mut front = Front::new(Self::NAME, settings.traits().feed, config, back);
        (front.classes, front.kinds, front.jobs) =
            (settings.traits().classes, settings.traits().kinds, settings.traits().jobs);
        let layout = &mut front.layout;
        assert!(config.slices <= CARRIED_SLICES, "draconis: a memo names one of {CARRIED_SLICES} slices");
        let (slices, start) = (config.slices as usize, config.counters_start.0);
        let queues = slices * usize::from(settings.classes);
        // With swapping, all classes share one ring.
        let cells =
            if settings.labels { config.tasks_per_slice * KINDS_MAX as u32 } else { config.tasks_per_slice };
        let rows = queues * cells as usize;
        layout.queue(rows as u32);
        // No place holds its first ticket yet.
        let never = Entry { ticket: start.wrapping_sub(1), ..Entry::default() };
        let swaps = settings.labels.then(|| Swaps::new(layout, &config, settings.swapping));
        let sweep = match (settings.labels, settings.classes) {
            (true, _) => Some(Register::new(layout, "sweep", 5, 32, slices, start)),
            (false, 1) => None,
            (false, _) => Some(Register::new(layout, "sweep", 1, 32, slices, 0)),
        };
        let ahead = start.wrapping_add(config.polls_ahead);
        let retrieve = Register::new(layout, "retrieve pointer", 2, 32, queues, ahead);
        let add = Register::new(layout, "add pointer", 3, 32, queues, start);
        let add_fix = Register::new(layout, "add flag", 4, 64, queues, CLEAR);
        let retrieve_fix = Register::new(layout, "retrieve flag", 5, 64, queues, CLEAR);
        let entries = Ring::new(layout, "entries", columns, rows, never);
        Self { front, settings, retrieve, add, add_fix, retrieve_fix, entries, sweep, cells, swaps }
    }

    /// The index of a queue in the arrays that hold one cell per queue of all slices.
    pub(super) const fn index(&self, queue: QueueId) -> usize {
        queue.slice.0 as usize * self.settings.classes as usize + queue.class as usize
    }

    /// The queue of a task. A priority beyond the last class counts as the last class.
    pub(super) fn queue_of(&self, slice: SliceId, submit: &Submit) -> QueueId {
        QueueId { slice, class: submit.priority.min(self.settings.classes - 1) }
    }

    /// A granted token looks for a task in this queue.
    #[expect(clippy::inline_always, reason = "a call that stays one hands the task on through memory")]
    #[inline(always)]
    pub(super) fn poll(&mut self, pass: &mut Pass, now: Nanos, queue: QueueId, granted: Granted) -> Verdict {
        let found = match self.take(pass, queue) {
            Retrieval::Task(found) => found,
            Retrieval::Nothing => return self.found_nothing(pass, queue, granted),
            Retrieval::RunsAway(ticket) => return self.turn_back(pass, queue, granted, ticket),
        };
        if !self.suits(now, queue.slice, granted, &found.entry) {
            return self.carry(pass, now, queue.slice, granted, &found.entry);
        }
        self.give(pass, now, queue, granted, &found)
    }

    #[expect(clippy::inline_always, reason = "a call that stays one hands the task on through memory")]
    #[inline(always)]
    pub(super) fn give(
        &mut self,
        pass: &mut Pass,
        now: Nanos,
        queue: QueueId,
        granted: Granted,
        found: &Retrieved,
    ) -> Verdict {
        let Retrieved { entry: Entry { ticket, class, task }, left } = *found;
        let queued = Queued { wait: task.waited(now), occupancy: left };
        let place = task.place(queue.slice, ticket);
        let verdict = self.front.dispatch_waiting(pass, &task, place, granted, queued);
        self.count_left(pass, queue.slice, class);
        verdict
    }

    /// This class holds no task: the poll recirculates to look at the next class. After the last class the
    /// worker gets EMPTY.
    pub(super) fn found_nothing(&mut self, pass: &mut Pass, queue: QueueId, granted: Granted) -> Verdict {
        let Granted { worker, generation, .. } = granted;
        let class = queue.class + 1;
        if class == self.settings.classes {
            return self.front.send_empty(pass, granted);
        }
        self.front.note_granted(pass, granted);
        SelfNote::Poll { worker, generation, class }.go()
    }

    /// Recirculates the poll, to put the queue's retrieve pointer back to this ticket before the poll goes
    /// on.
    #[cold]
    fn turn_back(&mut self, pass: &mut Pass, queue: QueueId, granted: Granted, ticket: u32) -> Verdict {
        self.front.note_granted(pass, granted);
        let carrier = Carrier::new(queue.slice, granted.worker, granted.generation);
        SelfNote::FixAndEmpty(carrier.with(queue.class, ticket)).go()
    }

    /// Takes the next task of a queue, if there is one, and returns how many are left behind it.
    #[expect(clippy::inline_always, reason = "a call that stays one hands the task on through memory")]
    #[inline(always)]
    pub(super) fn take(&mut self, pass: &mut Pass, queue: QueueId) -> Retrieval {
        let s = self.index(queue);
        let ticket = self.retrieve.update(pass, s, |ticket| ticket.wrapping_add(1));
        let added = self.add.read(pass, s);
        let runs_away = !self.settings.as_published && ahead(ticket, added) >= AHEAD_MAX;
        let starts = |flag: u64| flag == CLEAR && runs_away;
        let fixing = self.retrieve_fix.branch(pass, s, starts, |_| SET | u64::from(added), |flag| flag);
        if starts(fixing) {
            return Retrieval::RunsAway(added);
        }
        if fixing != CLEAR {
            return Retrieval::Nothing;
        }
        let entry = self.entries.read(pass, cell(s, ticket, self.cells));
        let left = ahead(added, ticket).max(1) as u32 - 1;
        let is_there = entry.ticket == ticket;
        let is_believed = self.settings.as_published && ahead(added, ticket) > 0;
        if is_there || is_believed { Retrieval::Task(Retrieved { entry, left }) } else { Retrieval::Nothing }
    }

    pub(super) fn add(
        &mut self,
        pass: &mut Pass,
        queue: QueueId,
        class: u8,
        limit: u32,
        task: Entering<'_>,
    ) -> Verdict {
        let Entering { submit, arrived, .. } = task;
        let s = self.index(queue);
        let limit = limit as i32;
        let retrieved = self.retrieve.read(pass, s);
        let ticket = self.add.update(pass, s, |ticket| ticket.wrapping_add(1));
        let is_full = ahead(ticket, retrieved) >= limit;
        let stays = |flag: u64| flag != CLEAR || !is_full;
        let failing = self.add_fix.branch(pass, s, stays, |flag| flag, |_| SET | u64::from(ticket));
        if failing != CLEAR {
            return self.full(submit);
        }
        if is_full {
            let memo = TaskNote::Fix { queue, ticket }.memo();
            return Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo });
        }
        let is_behind = ahead(retrieved, ticket) > 0;
        let starts = |flag: u64| flag == CLEAR && is_behind;
        let fixing = self.retrieve_fix.branch(pass, s, starts, |_| SET | ticket as u64, |flag| flag);
        let overruns = !self.settings.as_published && ahead(ticket, fixing as u32) >= limit;
        if fixing != CLEAR && overruns {
            return self.full(submit);
        }
        self.put(pass, s, ticket, class, submit, arrived);
        self.count_came(pass, queue.slice, class);
        if starts(fixing) {
            return SelfNote::Fix { queue, ticket }.go();
        }
        Verdict::Parked
    }

    pub(super) fn put(
        &mut self,
        pass: &mut Pass,
        s: usize,
        ticket: u32,
        class: u8,
        submit: &Submit,
        arrived: Nanos,
    ) {
        // The switch keeps no bytes: a worker fetches those that do not fit the entry from the client.
        let task = WaitingTask::of(submit, arrived, Kept::Client);
        self.entries.write(pass, cell(s, ticket, self.cells), Entry { ticket, class, task });
    }

    /// Answers a task that finds its queue full: with a REJECT, or as published with nothing.
    pub(super) fn full(&self, submit: &Submit) -> Verdict {
        if self.settings.as_published {
            return Verdict::Drop(Refusal::QueueFull);
        }
        self.front.reject(submit, RejectReason::QueueFull)
    }

    /// How many tasks wait in a queue.
    pub(super) fn waiting_in(&self, s: usize) -> u32 {
        self.tasks_in(s).count() as u32
    }

    /// The tasks that wait in a queue, the oldest first. Places that failed adds left are skipped.
    pub(super) fn tasks_in(&self, s: usize) -> impl Iterator<Item = WaitingTask> {
        let first = self.next_out(s);
        let places = ahead(settled(&self.add, &self.add_fix, s), first).clamp(0, self.cells as i32) as u32;
        let entry = move |place| {
            let ticket = first.wrapping_add(place);
            let entry = self.entries.peek(cell(s, ticket, self.cells));
            (entry.ticket == ticket).then_some(entry.task)
        };
        (0..places).filter_map(entry)
    }

    /// The ticket of the task that is retrieved next.
    pub(super) fn next_out(&self, s: usize) -> u32 {
        settled(&self.retrieve, &self.retrieve_fix, s)
    }

    /// The indices of a slice's queues.
    pub(super) fn queues(&self, slice: usize) -> core::ops::Range<usize> {
        let classes = usize::from(self.settings.classes);
        slice * classes..(slice + 1) * classes
    }
}

/// The value of a pointer, or the value to which the fix on its way will set it.
fn settled(pointer: &Register<u32>, fix: &Register<u64>, s: usize) -> u32 {
    let fixing = fix.peek(s);
    if fixing == CLEAR { pointer.peek(s) } else { fixing as u32 }
}

/// How far one ticket is past another; negative when it is behind.
pub(super) const fn ahead(ticket: u32, of: u32) -> i32 {
    Serial(ticket).since(Serial(of))
}

/// The columns of an entry with swapping. The class comes in an early stage, and the time of arrival too,
/// because both decide whether the worker gets the task.
pub(super) const SWAPPED_COLUMNS: [Column; 16] = [
    Column { name: "class", stage: 6, bits: 8 },
    Column { name: "payload 0", stage: 6, bits: 8 },
    Column { name: "incarnation", stage: 6, bits: 64 },
    Column { name: "ticket", stage: 7, bits: 32 },
    Column { name: "payload 1", stage: 7, bits: 8 },
    Column { name: "client, attempt", stage: 7, bits: 32 },
    Column { name: "arrived, age", stage: 8, bits: 64 },
    Column { name: "payload 2", stage: 8, bits: 8 },
    Column { name: "type, length", stage: 9, bits: 32 },
    Column { name: "sequence", stage: 9, bits: 32 },
    Column { name: "payload 3", stage: 9, bits: 8 },
    Column { name: "priority, constraints, budget", stage: 10, bits: 16 + 16 },
    Column { name: "payload 4", stage: 10, bits: 8 },
    Column { name: "payload 5", stage: 11, bits: 8 },
    Column { name: "payload 6", stage: 11, bits: 8 },
    Column { name: "payload 7", stage: 11, bits: 8 },
];

/// The state of task swapping beside the queue.
#[derive(Debug)]
pub(super) struct Swaps {
    pub(super) swapping: Swapping,
    /// How many tasks of each class entered each slice, and how many left it.
    pub(super) counts: Register<QueueCounts>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueCounts {
    pub(super) came: u32,
    pub(super) left: u32,
}

impl Swaps {
    pub(super) fn new(layout: &mut Layout, config: &Config, swapping: Swapping) -> Self {
        let slices = config.slices as usize;
        layout.table("needs of types", 0, 16 + 8, config.types.into());
        layout.table("classes of needs", 0, 16 + 8 + 2, slices << 8);
        layout.table(
            "classes that kinds serve, by how much they meet",
            0,
            16 + 2 + 3 * 4,
            slices * KINDS_MAX,
        );
        let counts = Register::new(layout, "came, left", 11, 64, slices * KINDS_MAX, QueueCounts::default());
        Self { swapping, counts }
    }

    pub(super) fn index(slice: SliceId, class: u8) -> usize {
        slice.0 as usize * KINDS_MAX + usize::from(class)
    }
}
