//! The faults of a plan, in the order of their times, each done once.

use std::collections::VecDeque;
use std::time::Duration;

use sluice_ground::load::{Timeline, nanos};
use sluice_ground::plan::{Event, Target};
use sluice_outcome::run::{EventResult, Felt};
use sluice_wire::Nanos;

/// Something that is to be done to the rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Kill it with -9.
    Kill(Target),
    /// Start it again.
    Start(Target),
}

/// A plan's faults.
pub(super) struct Script {
    /// What is still to be done, and when.
    left: VecDeque<(Duration, usize, Step)>,
    done: Vec<Done>,
}

#[derive(Clone, Debug, Default)]
struct Done {
    what: String,
    killed: Option<Duration>,
    started: Option<Duration>,
}

impl Script {
    /// The script of these events.
    pub(super) fn new(events: &[Event]) -> Self {
        let mut left = Vec::new();
        for (i, event) in events.iter().enumerate() {
            left.push((event.at, i, Step::Kill(event.kill.clone())));
            if let Some(after) = event.return_after {
                left.push((event.at + after, i, Step::Start(event.kill.clone())));
            }
        }
        left.sort_by_key(|(at, ..)| *at);
        let done =
            events.iter().map(|event| Done { what: format!("kill -9 {}", event.kill), ..Done::default() });
        Self { left: left.into(), done: done.collect() }
    }

    /// The next step that is due at `now`.
    pub(super) fn next(&mut self, now: Duration) -> Option<(usize, Step)> {
        let (_, event, step) = self.left.pop_front_if(|(at, ..)| *at <= now)?;
        Some((event, step))
    }

    /// Step `step` of event `event` was done at `now`.
    pub(super) fn did(&mut self, event: usize, step: &Step, now: Duration) {
        match step {
            Step::Kill(_) => self.done[event].killed = Some(now),
            Step::Start(_) => self.done[event].started = Some(now),
        }
    }

    /// What was done, and how long it was felt by a load that ended at `end`.
    pub(super) fn results(&self, timeline: &Timeline, end: Nanos) -> Vec<EventResult> {
        let done = self.done.iter().filter_map(|done| done.killed.map(|killed| (done, killed)));
        done.map(|(done, killed)| {
            let felt: Option<Felt> = timeline.felt(nanos(killed), end);
            EventResult {
                at_s: killed.as_secs_f64(),
                what: done.what.clone(),
                returned_at_s: done.started.map(|started| started.as_secs_f64()),
                felt,
            }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_when_they_are_due_and_once() {
        let switch = Event {
            at: Duration::from_secs(5),
            kill: Target::Switch,
            return_after: Some(Duration::from_secs(1)),
        };
        let worker = Event {
            at: Duration::from_secs(2),
            kill: Target::Worker("a".to_owned()),
            return_after: Some(Duration::from_secs(9)),
        };
        let mut script = Script::new(&[switch, worker]);
        assert_eq!(script.next(Duration::from_secs(1)), None);
        let late = Duration::from_secs(20);
        let order: Vec<usize> = std::iter::from_fn(|| script.next(late)).map(|(event, _)| event).collect();
        assert_eq!(order, [1, 0, 0, 1]);
    }
}
