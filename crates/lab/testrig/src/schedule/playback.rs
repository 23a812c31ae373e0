//! A schedule that another thread asked for: the thread gets the outcomes of all tasks once they have
//! ended.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::vec;

use sluice_host::client::{Outcome, RefusedWhy, UnknownWhy};
use sluice_wire::{INLINE_BYTES, Nanos, TaskType};

use super::{DueTask, NextStep, Planned, Schedule};
use crate::TestrigError;

/// How long after its receipt a schedule begins, so that all of it can be looked at first.
const BEGINS_AFTER: Nanos = Nanos::from_millis(20);

/// The outcome of one task of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayedTask {
    /// When the sender noticed that the task was due, from the start of the schedule; the difference is the
    /// sender's lateness.
    pub seen: Nanos,
    /// When the task left; later if it was pushed back before.
    pub sent: Nanos,
    /// When the task ended. For a reply, the kernel's timestamp of its arrival.
    pub ended: Nanos,
    /// How many attempts were sent.
    pub attempts: u16,
    pub outcome: Outcome,
}

/// A schedule that is being sent.
pub struct Playing(Receiver<Vec<PlayedTask>>);

impl Playing {
    /// The outcomes of the tasks, in order; `None` if some have not ended within `longest`.
    ///
    /// # Errors
    /// [`TestrigError::HostsStopped`] if the sender is gone.
    pub fn wait(&self, longest: Duration) -> Result<Option<Vec<PlayedTask>>, TestrigError> {
        match self.0.recv_timeout(longest) {
            Ok(played) => Ok(Some(played)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(TestrigError::HostsStopped),
        }
    }
}

/// A schedule, and the channel for its outcomes.
pub(crate) struct PlayCommand {
    start: Nanos,
    tasks: Vec<Planned>,
    deadline: Nanos,
    answer: Sender<Vec<PlayedTask>>,
}

/// A schedule that is being sent.
pub(crate) struct Playback {
    start: Nanos,
    schedule: Schedule<TaskType, [u8; INLINE_BYTES], vec::IntoIter<Planned>>,
    played: Vec<PlayedTask>,
    answer: Sender<Vec<PlayedTask>>,
}

impl PlayCommand {
    /// A schedule that begins at `start` of the machine's clock, or as soon as all of it was looked at.
    pub(crate) fn new(start: Nanos, tasks: Vec<Planned>, deadline: Nanos) -> (Self, Playing) {
        let (answer, played) = channel();
        (Self { start, tasks, deadline, answer }, Playing(played))
    }

    /// Starts the schedule. A task that has not ended `drain` after its deadline ends then, with an unknown
    /// outcome.
    pub(crate) fn begin(self, now: Nanos, drain: Nanos) -> Playback {
        let Self { start, tasks, deadline, answer } = self;
        let unanswered = |task: &Planned| PlayedTask {
            seen: Nanos(0),
            sent: Nanos(0),
            ended: task.due + deadline,
            attempts: 0,
            outcome: Outcome::Unknown(UnknownWhy::Deadline),
        };
        let played = tasks.iter().map(unanswered).collect();
        let schedule = Schedule::new(tasks.into_iter(), deadline, drain);
        Playback { start: start.max(now + BEGINS_AFTER), schedule, played, answer }
    }
}

impl Playback {
    /// The time at which the playback begins.
    pub(crate) const fn start(&self) -> Nanos {
        self.start
    }

    /// The next task to send, and the time by which it must have ended.
    pub(crate) fn next(&mut self, now: Nanos) -> Option<(DueTask, Nanos)> {
        if now < self.start {
            return None;
        }
        let since = now.since(self.start);
        while let Some(seen) = self.schedule.poll_due(since) {
            self.played[seen.number as usize].seen = since;
        }
        loop {
            match self.schedule.next(since)? {
                NextStep::Send(task) => {
                    let played = &mut self.played[task.number as usize];
                    (played.sent, played.attempts) = (since, 1);
                    return Some((task, self.start + self.schedule.until(&task.task)));
                }
                NextStep::NeverSent(task) => {
                    let played = &mut self.played[task.number as usize];
                    let outcome = Outcome::Refused(RefusedWhy::NeverSent);
                    *played = PlayedTask { ended: since, attempts: 0, outcome, ..*played };
                }
            }
        }
    }

    /// Takes a task back that found no room.
    pub(crate) fn push_back(&mut self, now: Nanos, task: DueTask) {
        self.schedule.push_back(now.since(self.start), task);
    }

    /// Notes the end of a sent task; only its first end counts.
    pub(crate) fn ended(&mut self, number: u64, at: Nanos, attempts: u16, outcome: Outcome) {
        let played = usize::try_from(number).ok().and_then(|number| self.played.get_mut(number));
        let is_out =
            |played: &&mut PlayedTask| played.attempts > 0 && matches!(played.outcome, Outcome::Unknown(_));
        if let Some(played) = played.filter(is_out) {
            *played = PlayedTask { ended: at.since(self.start), attempts, outcome, ..*played };
            self.schedule.ended();
        }
    }

    /// The time of the driver's next action if no task ends before it.
    pub(crate) fn next_due(&self) -> Nanos {
        self.start + self.schedule.next_due()
    }

    /// Whether all tasks have ended or were given up.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.schedule.is_over(now.since(self.start))
    }

    /// Sends the outcomes to the thread that asked for them.
    pub(crate) fn hand_over(self) {
        // The thread that asked may be gone.
        self.answer.send(self.played).ok();
    }
}
