//! An open-loop sender without I/O: each task is sent at its own time, regardless of the others.
//!
//! A task that finds no room is offered again, and delays only tasks of its own kind. A task that found no
//! room within its deadline counts as never sent. The driver asks for the next due task and hands the task
//! to a client. If the client has no room, the driver gives the task back to the schedule. The driver also
//! reports the end of each task. All times count from the schedule's start. Left out: the outcomes of tasks,
//! which each driver records in its own way.

mod playback;

use std::collections::VecDeque;

use sluice_host::client::Urgency;
use sluice_wire::{INLINE_BYTES, Nanos, TaskType};

pub(crate) use playback::{PlayCommand, Playback};
pub use playback::{PlayedTask, Playing};

/// How long a task that found no room waits until it is offered again, unless another task ends before.
const OFFER_AGAIN: Nanos = Nanos::from_micros(100);

/// A task of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned<K = TaskType, B = [u8; INLINE_BYTES]> {
    /// The scheduled time, from the start of the schedule.
    pub due: Nanos,
    pub kind: K,
    /// The task's urgency, for racks with priority classes.
    pub urgency: Urgency,
    pub bytes: B,
}

/// A task whose time has come, with its index in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueTask<K = TaskType, B = [u8; INLINE_BYTES]> {
    /// The index, from 0.
    pub number: u64,
    pub task: Planned<K, B>,
}

/// What the driver has to do about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep<K = TaskType, B = [u8; INLINE_BYTES]> {
    /// Hand the task over. It counts as sent unless it is [pushed back](Schedule::push_back).
    Send(DueTask<K, B>),
    /// The task's deadline passed before a client had room: the task has ended.
    NeverSent(DueTask<K, B>),
}

/// A schedule; `S` yields tasks in order of time.
#[derive(Debug)]
pub struct Schedule<K, B, S> {
    tasks: S,
    /// The first task whose time has not come.
    next: Option<Planned<K, B>>,
    deadline: Nanos,
    drain: Nanos,
    kinds: Vec<DueOfKind<K, B>>,
    seen: u64,
    last_due: Nanos,
    outstanding: u64,
}

/// Tasks of one kind whose time has come and that are not sent yet.
#[derive(Debug)]
struct DueOfKind<K, B> {
    kind: K,
    tasks: VecDeque<DueTask<K, B>>,
    /// The earliest time at which the first of them is offered again.
    again_at: Nanos,
}

impl<K: Copy + PartialEq, B, S: Iterator<Item = Planned<K, B>>> Schedule<K, B, S> {
    /// A schedule whose tasks end `deadline` after their time. Sent tasks without an outcome are given up
    /// `drain` later.
    pub fn new(mut tasks: S, deadline: Nanos, drain: Nanos) -> Self {
        let next = tasks.next();
        let (seen, last_due, outstanding) = (0, Nanos(0), 0);
        Self { tasks, next, deadline, drain, kinds: Vec::new(), seen, last_due, outstanding }
    }

    /// The next task whose time has come; each task is returned once. Its lateness now is the sender's
    /// lateness.
    pub fn poll_due(&mut self, now: Nanos) -> Option<&DueTask<K, B>> {
        let task = self.next.take_if(|task| task.due <= now)?;
        self.next = self.tasks.next();
        self.last_due = task.due;
        let number = self.seen;
        self.seen += 1;
        let tasks = &mut self.of_kind(task.kind).tasks;
        tasks.push_back(DueTask { number, task });
        tasks.back()
    }

    /// What to do now about the earliest task that [`Self::poll_due`] returned.
    pub fn next(&mut self, now: Nanos) -> Option<NextStep<K, B>> {
        let offered = self.kinds.iter_mut().filter(|of| of.again_at <= now && !of.tasks.is_empty());
        let first = offered.min_by_key(|of| of.tasks.front().map(|first| first.number))?;
        let first = first.tasks.pop_front()?;
        if self.until(&first.task) <= now {
            return Some(NextStep::NeverSent(first));
        }
        self.outstanding += 1;
        Some(NextStep::Send(first))
    }

    /// Takes a task back that found no room.
    pub fn push_back(&mut self, now: Nanos, task: DueTask<K, B>) {
        self.outstanding -= 1;
        let of_kind = self.of_kind(task.task.kind);
        of_kind.tasks.push_front(task);
        of_kind.again_at = now + OFFER_AGAIN;
    }

    /// Notes that a sent task ended, which may have made room for others.
    pub fn ended(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.kinds.iter_mut().for_each(|of| of.again_at = Nanos(0));
    }

    /// Ends the schedule early: no further tasks come, and tasks that were pushed back are given up.
    pub fn cancel(&mut self) -> impl Iterator<Item = DueTask<K, B>> {
        self.next = None;
        self.kinds.iter_mut().flat_map(|of| std::mem::take(&mut of.tasks))
    }

    /// The time by which a task must have ended.
    pub fn until(&self, task: &Planned<K, B>) -> Nanos {
        task.due + self.deadline
    }

    /// How many tasks wait for room.
    pub fn waiting(&self) -> usize {
        self.kinds.iter().map(|of| of.tasks.len()).sum()
    }

    /// Whether all tasks have ended or were given up.
    pub fn is_over(&self, now: Nanos) -> bool {
        let drained = self.outstanding == 0 || now >= self.drained_at();
        self.next.is_none() && self.waiting() == 0 && drained
    }

    /// When the driver has something to do next, if no task ends before.
    pub fn next_due(&self) -> Nanos {
        let next = self.next.as_ref().map(|task| task.due);
        let offers = self.kinds.iter().filter(|of| !of.tasks.is_empty()).map(|of| of.again_at);
        offers.chain(next).min().unwrap_or_else(|| self.drained_at())
    }

    fn drained_at(&self) -> Nanos {
        self.last_due + self.deadline + self.drain
    }

    fn of_kind(&mut self, kind: K) -> &mut DueOfKind<K, B> {
        let known = self.kinds.iter().position(|of| of.kind == kind).unwrap_or_else(|| {
            self.kinds.push(DueOfKind { kind, tasks: VecDeque::new(), again_at: Nanos(0) });
            self.kinds.len() - 1
        });
        &mut self.kinds[known]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    /// A task's number, the time at which it was seen, and the time of its end; `None` if it was never
    /// sent.
    type Told = (u64, Nanos, Option<Nanos>);

    /// A rack in virtual time that holds `room` tasks, serves one after the other, and loses every
    /// `loses`-th.
    struct Rack {
        room: usize,
        service: Nanos,
        loses: u64,
        held: VecDeque<(DueTask<u8, ()>, Nanos)>,
    }

    impl Rack {
        fn new(room: usize, service: Nanos) -> Self {
            Self { room, service, loses: u64::MAX, held: VecDeque::new() }
        }

        /// The results of `tasks`, each with a deadline of a second, and the time at which all was over.
        fn take(&mut self, tasks: impl IntoIterator<Item = (Nanos, u8)>) -> (Vec<Told>, Nanos) {
            let planned = tasks.into_iter().map(|(due, kind)| Planned {
                due,
                kind,
                urgency: Urgency::Unstated,
                bytes: (),
            });
            let mut schedule = Schedule::new(planned, MS.times(1_000), MS.times(2_000));
            let (mut told, mut now) = (Vec::new(), Nanos(0));
            while !schedule.is_over(now) {
                let ends = self.held.front().map_or(Nanos(u64::MAX), |(_, ends)| *ends);
                now = schedule.next_due().min(ends).max(now);
                while let Some((sent, at)) = self.held.pop_front_if(|(_, ends)| *ends <= now) {
                    schedule.ended();
                    told.push((sent.number, sent.task.due, Some(at)));
                }
                self.turn(&mut schedule, now, &mut told);
                assert!(schedule.is_over(now) || schedule.next_due() > now, "a deadline moves on");
            }
            (told, now)
        }

        fn turn<S: Iterator<Item = Planned<u8, ()>>>(
            &mut self,
            schedule: &mut Schedule<u8, (), S>,
            now: Nanos,
            told: &mut Vec<Told>,
        ) {
            while schedule.poll_due(now).is_some() {}
            while let Some(next) = schedule.next(now) {
                match next {
                    NextStep::NeverSent(task) => told.push((task.number, task.task.due, None)),
                    NextStep::Send(task) if self.held.len() == self.room && task.task.kind == 0 => {
                        schedule.push_back(now, task);
                    }
                    NextStep::Send(task) if (task.number + 1).is_multiple_of(self.loses) => {}
                    NextStep::Send(task) => {
                        let begins = self.held.back().map_or(now, |(_, ends)| *ends);
                        self.held.push_back((task, begins + self.service));
                    }
                }
            }
        }
    }

    fn every(gap: Nanos, tasks: u64) -> impl Iterator<Item = (Nanos, u8)> {
        (1..=tasks).map(move |number| (gap.times(number), 0))
    }

    #[test]
    fn each_task_leaves_at_its_time_where_there_is_room() {
        let (told, over) = Rack::new(100, MS).take(every(MS.times(10), 200));
        assert!(told.iter().all(|(_, due, ended)| *ended == Some(*due + MS)), "{told:?}");
        assert_eq!((told.len(), over), (200, MS.times(2_001)));
    }

    #[test]
    fn a_task_that_is_pushed_back_is_sent_as_soon_as_another_ends() {
        let (told, _) = Rack::new(1, MS.times(20)).take(every(MS.times(15), 60));
        let ends: Vec<_> = told.iter().map(|(_, _, ended)| ended.expect("sent")).collect();
        assert!(ends.windows(2).all(|two| two[1] == two[0] + MS.times(20)), "{ends:?}");
        assert!(told.is_sorted_by_key(|(number, ..)| *number));
    }

    #[test]
    fn a_task_without_room_until_its_deadline_was_never_sent() {
        let (told, _) = Rack::new(1, MS.times(500)).take(every(MS.times(10), 300));
        assert!(told.iter().filter(|(_, _, ended)| ended.is_none()).count() > 250);
        assert_eq!(told.len(), 300);
    }

    #[test]
    fn a_kind_without_room_holds_up_no_other() {
        let tasks = [(MS, 0), (MS.times(2), 0), (MS.times(3), 1)];
        let (told, _) = Rack::new(1, MS.times(50)).take(tasks);
        let order: Vec<u64> = told.iter().map(|(number, ..)| *number).collect();
        assert_eq!(order, [0, 2, 1]);
    }

    #[test]
    fn what_has_no_end_is_not_waited_for_for_ever() {
        let (told, over) = Rack { loses: 50, ..Rack::new(100, MS) }.take(every(MS.times(10), 200));
        assert_eq!((told.len(), over), (196, MS.times(2_000 + 1_000 + 2_000)));
    }

    #[test]
    fn a_schedule_that_is_cut_gives_up_what_waits_and_sends_nothing_more() {
        let tasks =
            every(MS, 100).map(|(due, kind)| Planned { due, kind, urgency: Urgency::Unstated, bytes: () });
        let mut schedule = Schedule::new(tasks, MS.times(1_000), MS);
        while schedule.poll_due(MS.times(3)).is_some() {}
        let Some(NextStep::Send(first)) = schedule.next(MS.times(3)) else { panic!("three are due") };
        assert_eq!(schedule.waiting(), 2);
        assert_eq!(schedule.cancel().map(|task| task.number).collect::<Vec<_>>(), [1, 2]);
        assert!(first.number == 0 && schedule.poll_due(MS.times(50)).is_none());
        assert!(!schedule.is_over(MS.times(50)));
        schedule.ended();
        assert!(schedule.is_over(MS.times(50)));
    }
}
