//! Draconis: one circular queue per slice, polled by idle workers (Rain §2.3.1, §5; Draconis' slides).
//!
//! A pass can change a pointer, but it cannot look at the queue first. So the add pointer and the retrieve
//! pointer advance before the program knows whether the queue is full or empty. A pointer that advanced too
//! far is put right afterwards by a *fix packet*, which recirculates; a flag prevents a second one. A
//! retrieve from an empty queue leaves the retrieve pointer ahead. The next add notices that and sends the
//! fix, and retrieves fail until the fix lands. An add to a full queue sends a fix for the add pointer, and
//! adds fail meanwhile.
//!
//! Idle workers poll: each TOKEN is answered at once, with a task or with EMPTY. A worker fetches the bytes
//! of a task that do not fit the entry from its client. These are the published costs of the design, and
//! the program keeps them.
//!
//! Each priority class has a queue of its own. A pass sees one queue, and a poll recirculates to look at
//! the next. If workers differ, tasks are swapped (module `swaps`).
//!
//! Several tasks may come in one submission: a pass adds the first, and the others recirculate (module
//! `jobs`).
//!
//! Ours, beyond the publication: an entry holds the number of its ticket, so that a retrieve can tell a
//! task from a place that a failed add left. A flag holds the value to which its pointer belongs, so that
//! adds cannot overrun the ring while a fix is on its way. A task that finds the queue full gets a REJECT.
//! The shared front handles loss and registration. `as-published` leaves out all of these but the front.
//!
//! The stages, behind the front's 0 and 1: retrieve pointer (2), add pointer (3), flag of the add pointer
//! (4), flag of the retrieve pointer (5), entries (6 to 11), `sent` and `seen_out` (7; 10 with labels).
//!
//! Left out: the variants that run in a server.

mod asked;
mod jobs;
mod memory;
mod rounds;
mod settings;
mod swaps;

use sluice_wire::tables::{RingCounts, SliceRow, SliceState};
use sluice_wire::{Nanos, Rank, RejectReason, Serial, SliceId, Submit, Sweep, SweepOf};

use crate::front::{Entering, EnteringJob, Front, Granted, Scheduler};
use crate::pipeline::Pass;
use crate::program::{Cargo, Circulating, Parked, Verdict};
use crate::refusal::Refusal;
use memory::{Entry, Retrieval, Retrieved};
use rounds::{QueueId, SelfNote, TaskNote};

pub(crate) use asked::Settings;
pub use memory::Draconis;

impl Scheduler for Draconis {
    const NAME: &'static str = "draconis";

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    /// A worker polls: the pass retrieves a task.
    fn token(&mut self, pass: &mut Pass, now: Nanos, slice: SliceId, granted: Granted, _: Rank) -> Verdict {
        self.poll(pass, now, QueueId { slice, class: 0 }, granted)
    }

    /// A new task is added. A recirculating task carries a fix of the add pointer and is rejected, or is
    /// carried past others for a swap.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        match task.memo.map(TaskNote::read) {
            Some(TaskNote::Fix { queue, ticket }) => {
                self.land_add_fix(pass, queue, ticket);
                self.full(task.submit)
            }
            Some(TaskNote::Carried(carrier)) => self.carried(pass, now, task, carrier),
            Some(TaskNote::CarriedFix(carrier)) => self.carried_fix(pass, task, carrier),
            None => self.task_comes(pass, task),
        }
    }

    /// Several tasks come in one submission: a pass adds one of them.
    fn job(&mut self, pass: &mut Pass, _: Nanos, job: EnteringJob<'_>) -> Verdict {
        self.enter(pass, job)
    }

    /// A fix of the retrieve pointer lands, or a poll looks at its next class.
    fn note(&mut self, pass: &mut Pass, now: Nanos, memo: u64) -> Verdict {
        match SelfNote::read(memo) {
            SelfNote::Fix { queue, ticket } => {
                self.land_retrieve_fix(pass, queue, ticket);
                Verdict::Drop(Refusal::FixDone)
            }
            SelfNote::Poll { worker, generation, class } => {
                let row = self.front.tables.worker(worker).map(|row| row.slice);
                match row.filter(|_| self.front.is_admitted(worker, generation)) {
                    Some(slice) => {
                        let granted = Granted { worker, generation, seen: None };
                        self.poll(pass, now, QueueId { slice, class }, granted)
                    }
                    None => Verdict::Drop(Refusal::Closed),
                }
            }
            SelfNote::FixAndEmpty(carrier) => self.fix_and_empty(pass, carrier),
            SelfNote::Empty(carrier) => match self.token_of(carrier) {
                Some(granted) => self.front.send_empty(pass, granted),
                None => Verdict::Drop(Refusal::Closed),
            },
        }
    }

    /// Sweeps the tasks of a closed slice: each pass retrieves for no worker. The sweep visits the queues
    /// of the classes in turn, from the one where the last sweep of this slice stood. A sweep of tokens
    /// ends at once, because tokens never wait here.
    fn sweep(&mut self, pass: &mut Pass, _: Nanos, sweep: Sweep, memo: u64) -> Verdict {
        if sweep.of == SweepOf::Tokens || sweep.left == 0 {
            return Verdict::Drop(Refusal::SweepDone);
        }
        if self.swaps.is_some() {
            return self.sweep_in_place(pass, sweep, memo);
        }
        if self.front.tables.slices[sweep.slice.0 as usize].open {
            return Verdict::Drop(Refusal::SweepDone);
        }
        let looked = memo as u8;
        let queue = QueueId { slice: sweep.slice, class: self.class_to_sweep(pass, sweep.slice, looked > 0) };
        match self.take(pass, queue) {
            Retrieval::Task(Retrieved { entry: Entry { task, .. }, .. }) => {
                self.front.sweep_out(&self.front.whole(&task))
            }
            Retrieval::RunsAway(ticket) => SelfNote::Fix { queue, ticket }.go(),
            Retrieval::Nothing if looked + 1 == self.settings.classes => Verdict::Drop(Refusal::SweepDone),
            Retrieval::Nothing => {
                let (cargo, memo) = (Cargo::Sweep(sweep), memo + 1);
                Verdict::Again(Circulating { cargo, arrived: Nanos::default(), memo })
            }
        }
    }

    fn slice_state(&self, slice: usize) -> SliceState {
        let queues = self.queues(slice);
        let balance = -(queues.clone().map(|s| self.waiting_in(s) as i32).sum::<i32>());
        if let Some((tasks_in, tasks_out)) = self.counted(slice) {
            return SliceState { balance, tasks_in, tasks_out, ..SliceState::default() };
        }
        let (mut tasks_in, mut tasks_out) = (RingCounts::default(), RingCounts::default());
        for (class, s) in queues.enumerate() {
            let out = Serial(self.next_out(s));
            (tasks_in.0[class], tasks_out.0[class]) = (out.plus(self.waiting_in(s)), out);
        }
        SliceState { balance, tasks_in, tasks_out, ..SliceState::default() }
    }

    fn waiting(&self) -> u32 {
        (0..self.queues(self.front.config.slices.into()).start).map(|s| self.waiting_in(s)).sum()
    }

    /// Tokens never wait.
    fn parked(&self, slice: SliceId) -> Parked {
        let tasks = self.queues(slice.0.into()).flat_map(|s| self.tasks_in(s));
        Parked { tasks: tasks.map(|task| self.front.whole(&task)).collect(), ..Parked::default() }
    }
}

impl Draconis {
    /// A task that comes for the first time is added.
    fn task_comes(&mut self, pass: &mut Pass, task: Entering<'_>) -> Verdict {
        match self.place_of(task.submit) {
            Ok((queue, class, limit)) => self.add(pass, queue, class, limit, task),
            Err(reason) => self.front.reject(task.submit, reason),
        }
    }

    /// The class that a sweep looks at in this pass. With `goes_on` the sweep moves to the next class
    /// first.
    fn class_to_sweep(&mut self, pass: &mut Pass, slice: SliceId, goes_on: bool) -> u8 {
        let classes = u32::from(self.settings.classes);
        let next = |class: u32| if goes_on { (class + 1) % classes } else { class };
        self.sweep.as_mut().map_or(0, |sweep| next(sweep.update(pass, slice.0.into(), next)) as u8)
    }

    /// The queue of a task, its class by what it needs, and the most tasks that may wait in that queue; or
    /// the reason for a REJECT.
    fn place_of(&self, submit: &Submit) -> Result<(QueueId, u8, u32), RejectReason> {
        let (slice, SliceRow { limit, .. }) = self.front.open_slice(submit)?;
        let class = self.class_by_need(submit)?;
        Ok((self.queue_of(slice, submit), class, *limit))
    }
}
