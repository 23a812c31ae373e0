//! Spans from the notes of the switch's thread: a task's stay in the switch, and in it the wait in the queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_net::clock::Clock;
use sluice_net::traces::{AttributeValue, SpanKind, TaskSpan, TraceId, Tracer, task_name};
use sluice_switch::Refusal;
use sluice_wire::{Attempt, Nanos, Serial, TaskType};

use super::notes::{NOTES_MAX, SwitchStep, TracedStep};

/// Tells a switch's spans from those of others in the same trace.
const OF_SWITCHES: u64 = 1 << 62;

/// The most tasks whose end is awaited. Beyond it the older half is given up.
const INSIDE_MAX: usize = 1 << 16;

/// Makes spans on the thread that sends them.
pub(super) struct SwitchSpans {
    handed: Arc<Mutex<Vec<TracedStep>>>,
    taken: Vec<TracedStep>,
    inside: HashMap<AttemptKey, TaskInside>,
    is_spine: bool,
}

/// An attempt of a task, by what the switch keeps of a task's id.
type AttemptKey = ((u32, Serial), Attempt);

/// A task that has not left.
#[derive(Clone, Copy)]
struct TaskInside {
    came: Nanos,
    task_type: TaskType,
    waits_since: Option<Nanos>,
    /// How many times its packet came again since, and was neither refused nor dropped.
    repeats: u32,
}

impl SwitchSpans {
    pub(super) fn new(handed: Arc<Mutex<Vec<TracedStep>>>, is_spine: bool) -> Self {
        Self { handed, taken: Vec::with_capacity(NOTES_MAX), inside: HashMap::new(), is_spine }
    }

    /// Makes the spans of all tasks that have left.
    pub(super) fn make(&mut self, tracer: &Tracer) {
        // The switch's thread leaves its notes for the next batch if it finds this locked.
        std::mem::swap(&mut *self.handed.lock().unwrap_or_else(PoisonError::into_inner), &mut self.taken);
        if self.taken.is_empty() {
            return;
        }
        let (clock, mut taken) = (Clock::start(), std::mem::take(&mut self.taken));
        for note in taken.drain(..) {
            self.follow(tracer, &clock, &note);
        }
        self.taken = taken;
    }

    fn follow(&mut self, tracer: &Tracer, clock: &Clock, note: &TracedStep) {
        let key = (note.task.kept(), note.attempt);
        match note.what {
            SwitchStep::Came(task_type) => {
                if self.inside.len() >= INSIDE_MAX {
                    tracer.lost(self.give_up_older());
                }
                let inside = TaskInside { came: note.at, task_type, waits_since: None, repeats: 0 };
                self.inside.entry(key).and_modify(|inside| inside.repeats += 1).or_insert(inside);
            }
            SwitchStep::Waits => {
                if let Some(inside) = self.inside.get_mut(&key) {
                    inside.waits_since.get_or_insert(note.at);
                }
            }
            SwitchStep::Sent(_) | SwitchStep::Refused(_) | SwitchStep::Dropped(_) => {
                let Some(inside) = self.inside.get_mut(&key) else { return };
                // What is refused of two is the one that came later, and the other may still wait.
                if inside.repeats > 0 && !matches!(note.what, SwitchStep::Sent(_)) {
                    inside.repeats -= 1;
                } else if let Some(inside) = self.inside.remove(&key) {
                    self.push(tracer, clock, &inside, note);
                }
            }
        }
    }

    fn push(&self, tracer: &Tracer, clock: &Clock, inside: &TaskInside, left: &TracedStep) {
        let trace = TraceId::of(left.task);
        let own = |part| trace.span(OF_SWITCHES | inside.came.0.wrapping_mul(4).wrapping_add(part));
        let span = |part, parent, name, from| {
            let times = (clock.to_realtime(from), clock.to_realtime(left.at));
            TaskSpan::within(trace, (own(part), parent), name, times)
        };
        if let Some(since) = inside.waits_since {
            tracer.push(span(1, own(0), "queue", since));
        }
        let mut whole = span(0, trace.root(), "switch", inside.came.min(left.at));
        whole.kind = SpanKind::Server;
        whole.attributes = vec![
            ("sluice.task.id", task_name(left.task).into()),
            ("sluice.task.type", i64::from(inside.task_type.0).into()),
            ("sluice.attempt", i64::from(left.attempt.0).into()),
        ];
        whole.failure = self.outcome(inside, left.what, &mut whole.attributes);
        tracer.push(whole);
    }

    /// Adds how the task left, and returns why that is a failure.
    fn outcome(
        &self,
        inside: &TaskInside,
        left: SwitchStep,
        attributes: &mut Vec<(&'static str, AttributeValue)>,
    ) -> Option<String> {
        let (outcome, why) = match left {
            SwitchStep::Refused(why) => ("refused", Some(why)),
            SwitchStep::Dropped(why) => ("dropped", Some(why)),
            SwitchStep::Sent(_) if inside.waits_since.is_some() => ("waited", None),
            SwitchStep::Sent(_) | SwitchStep::Came(_) | SwitchStep::Waits => ("matched", None),
        };
        attributes.push(("sluice.switch.outcome", outcome.into()));
        if let SwitchStep::Sent(to) = left {
            let whose = if self.is_spine { "sluice.rack.id" } else { "sluice.worker.id" };
            attributes.push((whose, i64::from(to.0).into()));
        }
        let why = why?;
        attributes.push(("sluice.switch.reason", why.into()));
        (!is_repeat(left)).then(|| {
            attributes.push(("error.type", outcome.into()));
            format!("the switch {outcome} the task: {why}")
        })
    }

    /// Gives up the half that came first. Returns how many tasks these are.
    fn give_up_older(&mut self) -> u64 {
        let mut times: Vec<Nanos> = self.inside.values().map(|inside| inside.came).collect();
        let middle = times.len() / 2;
        let latest = *times.select_nth_unstable(middle).1;
        let before = self.inside.len();
        self.inside.retain(|_, inside| inside.came > latest);
        (before - self.inside.len()) as u64
    }
}

/// Whether a packet is dropped since the same try came before, which harms no task.
fn is_repeat(left: SwitchStep) -> bool {
    left == SwitchStep::Dropped(Refusal::Replayed.name())
}
