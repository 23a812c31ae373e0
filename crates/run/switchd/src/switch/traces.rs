//! What the switch's thread notes of traced tasks: that one came, waits, left, or was refused or dropped.
//!
//! A note is a few words in memory that is there already. Once a batch the notes are handed to the thread
//! that sends spans, which makes the spans from them ([`SwitchSpans`]). The switch's thread never waits for
//! that one: notes for which there is no room are counted as dropped spans.

mod notes;
mod spans;

use std::sync::{Arc, Mutex, PoisonError};

use sluice_net::traces::Tracer;
use sluice_net::udp::BATCH;
use sluice_switch::{Cargo, Circulating, Refusal, Verdict};
use sluice_wire::{Attempt, Nanos, Packet, RejectReason, Serial, TaskId, TaskType};

use super::counters::rejected_name;
use notes::{NOTES_MAX, SwitchStep, TracedStep};
use spans::SwitchSpans;

/// How many notes of the switch's thread wait for the end of their batch at most.
const ASIDE_MAX: usize = 16 * BATCH;

/// The notes of the switch's thread.
pub(super) struct SwitchTraces {
    tracer: Tracer,
    /// Those of the batch that is under way.
    aside: Vec<TracedStep>,
    lost: u64,
    /// When the batch was asked for.
    asked: Nanos,
    handed: Arc<Mutex<Vec<TracedStep>>>,
}

/// Tasks of one packet, which follow each other.
#[derive(Clone, Copy)]
pub(super) struct EnteringTasks {
    first: TaskId,
    behind: u8,
    attempt: Attempt,
    task_type: TaskType,
}

impl SwitchTraces {
    /// `is_spine` says that tasks leave for racks.
    pub(super) fn new(tracer: Tracer, is_spine: bool) -> Self {
        let handed = Arc::new(Mutex::new(Vec::with_capacity(NOTES_MAX)));
        let mut spans = SwitchSpans::new(Arc::clone(&handed), is_spine);
        tracer.ask(move |tracer| spans.make(tracer));
        Self { tracer, aside: Vec::with_capacity(ASIDE_MAX), lost: 0, asked: Nanos(0), handed }
    }

    /// A batch begins that was asked for at this time.
    pub(super) const fn begin(&mut self, asked: Nanos) {
        self.asked = asked;
    }

    /// The tasks that a packet brings, if any of them is traced.
    #[inline(never)]
    pub(super) fn entering(&self, packet: &Packet) -> Option<EnteringTasks> {
        EnteringTasks::of(packet).filter(|entering| match entering.behind {
            0 => self.tracer.takes(entering.first),
            _ => entering.each().any(|task| self.tracer.takes(task)),
        })
    }

    /// The same of a packet that recirculated.
    pub(super) fn entering_again(&self, cargo: &Cargo) -> Option<EnteringTasks> {
        match cargo {
            Cargo::Task(submit) => self.entering(&Packet::Submit(*submit)),
            Cargo::Job(job) => self.entering(&Packet::Job(*job)),
            Cargo::Sweep(_) | Cargo::Note => None,
        }
    }

    /// A packet that came at `came` passed.
    #[inline(never)]
    pub(super) fn arrived(
        &mut self,
        came: Nanos,
        now: Nanos,
        entering: Option<EnteringTasks>,
        verdict: &Verdict,
    ) {
        if let Some(entering) = entering {
            // What came since then may have been sent since then.
            let came = if came == self.asked { now } else { came };
            self.note(entering.each(), entering.attempt, came, SwitchStep::Came(entering.task_type));
        }
        self.passed(now, entering, verdict);
    }

    /// A task did not pass.
    #[cold]
    pub(super) fn kept_out(&mut self, came: Nanos, now: Nanos, packet: &Packet, why: &'static str) {
        if let Some(entering) = EnteringTasks::of(packet) {
            self.note(entering.each(), entering.attempt, came, SwitchStep::Came(entering.task_type));
            self.note(entering.each(), entering.attempt, now, SwitchStep::Dropped(why));
        }
    }

    /// Gives the batch's notes to the other thread. If that one is just taking earlier ones, they stay here
    /// for a batch.
    pub(super) fn hand_over(&mut self) {
        if !self.aside.is_empty()
            && let Ok(mut handed) = self.handed.try_lock()
        {
            let room = NOTES_MAX.saturating_sub(handed.len());
            let fitting = room.min(self.aside.len());
            handed.extend_from_slice(&self.aside[..fitting]);
            drop(handed);
            self.lost += (self.aside.len() - fitting) as u64;
            self.aside.clear();
        }
        if self.lost > 0 {
            self.tracer.lost(std::mem::take(&mut self.lost));
        }
    }

    /// Notes what a verdict says of the tasks that entered, and of the one that left.
    pub(super) fn passed(&mut self, now: Nanos, entering: Option<EnteringTasks>, verdict: &Verdict) {
        let left = match verdict {
            Verdict::Send { packet, .. } | Verdict::Swept { packet, .. } => self.sent(now, packet),
            Verdict::Late { reject, .. } => self.sent(now, &Packet::Reject(*reject)),
            _ => None,
        };
        let Some(entering) = entering else { return };
        let step = match verdict {
            Verdict::Drop(why) => SwitchStep::Dropped(why.name()),
            // The answer to a task of another epoch.
            Verdict::Send { packet: Packet::Notice(_), .. } => {
                SwitchStep::Dropped(Refusal::WrongEpoch.name())
            }
            Verdict::Again(Circulating { cargo: Cargo::Task(_), .. }) => return,
            _ if left.is_some_and(|left| left.sequence == entering.first.sequence) => return,
            _ => SwitchStep::Waits,
        };
        self.note(entering.each(), entering.attempt, now, step);
    }

    /// Notes what a packet says that leaves. Returns whose it is.
    fn sent(&mut self, now: Nanos, packet: &Packet) -> Option<TaskId> {
        match packet {
            Packet::Dispatch(task) if !self.tracer.takes(task.task) => None,
            Packet::Dispatch(task) => {
                let step = SwitchStep::Sent(task.worker);
                self.note([task.task].into_iter(), task.attempt, now, step);
                Some(task.task)
            }
            Packet::Reject(reject) => {
                let all = EnteringTasks {
                    first: reject.task,
                    behind: reject.behind,
                    attempt: reject.attempt,
                    task_type: reject.task_type,
                };
                self.note(all.each(), all.attempt, now, SwitchStep::Refused(refused_name(reject.reason)));
                Some(reject.task)
            }
            _ => None,
        }
    }

    fn note(&mut self, tasks: impl Iterator<Item = TaskId>, attempt: Attempt, at: Nanos, what: SwitchStep) {
        for task in tasks {
            if !self.tracer.takes(task) {
                continue;
            }
            if self.aside.len() < ASIDE_MAX {
                self.aside.push(TracedStep { task, attempt, at, what });
            } else {
                self.lost += 1;
            }
        }
    }
}

impl Drop for SwitchTraces {
    /// The switch has ended: the last notes find room.
    fn drop(&mut self) {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.aside);
        self.tracer.lost(self.lost);
    }
}

impl EnteringTasks {
    /// The tasks that a packet brings to the switch.
    fn of(packet: &Packet) -> Option<Self> {
        let (first, behind, attempt, task_type) = match packet {
            Packet::Submit(submit) => (submit.task, 0, submit.attempt, submit.task_type),
            Packet::Job(job) => {
                let first = job.first();
                (first.task, job.behind(), first.attempt, first.task_type)
            }
            Packet::Dispatch(task) => (task.task, 0, task.attempt, task.task_type),
            _ => return None,
        };
        Some(Self { first, behind, attempt, task_type })
    }

    fn each(self) -> impl Iterator<Item = TaskId> {
        (0..=u32::from(self.behind)).map(move |place| {
            let sequence: Serial = self.first.sequence.plus(place);
            TaskId { sequence, ..self.first }
        })
    }
}

fn refused_name(reason: RejectReason) -> &'static str {
    rejected_name(reason).trim_start_matches("rejected_")
}
