//! The faults of a plan, in order of time, each done once; and unplanned faults, each from its discovery
//! until its part is back.

use std::collections::VecDeque;
use std::time::Duration;

use sluice_outcome::run::{EventResult, FaultEffect};
use sluice_support::load::{Timeline, nanos};
use sluice_support::plan::{Event, Target};
use sluice_wire::Nanos;

/// An action on the rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Kill this part with SIGKILL.
    Kill(Target),
    /// Start this part again.
    Start(Target),
}

/// How long a part that died outside the plan stays away, so that whoever killed it can see the effect.
const AWAY: Duration = Duration::from_millis(500);
/// A part that dies again within this time died by itself.
const SOON: Duration = Duration::from_secs(10);
/// After so many such deaths in a row, the part is not started again.
const DEATHS_MAX: usize = 3;

/// A plan's faults, and unplanned ones.
pub(super) struct FaultSchedule {
    /// The remaining actions and their times.
    left: VecDeque<(Duration, usize, Step)>,
    done: Vec<InjectedFault>,
}

#[derive(Clone, Debug)]
struct InjectedFault {
    target: Target,
    what: String,
    planned: bool,
    killed: Option<Duration>,
    started: Option<Duration>,
}

impl FaultSchedule {
    /// The schedule of these events.
    pub(super) fn new(events: &[Event]) -> Self {
        let mut left = Vec::new();
        for (i, event) in events.iter().enumerate() {
            left.push((event.at, i, Step::Kill(event.kill.clone())));
            if let Some(after) = event.return_after {
                left.push((event.at + after, i, Step::Start(event.kill.clone())));
            }
        }
        left.sort_by_key(|(at, ..)| *at);
        let done = events.iter().map(|event| InjectedFault {
            target: event.kill.clone(),
            what: format!("kill -9 {}", event.kill),
            planned: true,
            killed: None,
            started: None,
        });
        Self { left: left.into(), done: done.collect() }
    }

    /// Notes that a part was found dead at `now` that the plan did not kill, and schedules its restart.
    /// Returns false if it keeps dying, so that restarting does not help.
    pub(super) fn on_death(&mut self, target: &Target, what: String, now: Duration) -> bool {
        let of_it = self.done.iter().filter(|done| !done.planned && done.target == *target);
        let deaths: Vec<Duration> = of_it.filter_map(|done| done.killed).chain([now]).collect();
        let soon = deaths.windows(2).rev().take_while(|two| two[1].saturating_sub(two[0]) < SOON);
        let goes_on = soon.count() < DEATHS_MAX;
        let event = self.done.len();
        let killed = Some(now);
        self.done.push(InjectedFault { target: target.clone(), what, planned: false, killed, started: None });
        if goes_on {
            let at = now + AWAY;
            let place = self.left.partition_point(|(other, ..)| *other <= at);
            self.left.insert(place, (at, event, Step::Start(target.clone())));
        }
        goes_on
    }

    /// The next action that is due at `now`.
    pub(super) fn next(&mut self, now: Duration) -> Option<(usize, Step)> {
        let (_, event, step) = self.left.pop_front_if(|(at, ..)| *at <= now)?;
        Some((event, step))
    }

    /// Notes that action `step` of event `event` was done at `now`.
    pub(super) fn on_done(&mut self, event: usize, step: &Step, now: Duration) {
        match step {
            Step::Kill(target) => {
                self.done[event].killed = Some(now);
                // From now on the plan decides when the part returns.
                let done = &self.done;
                self.left.retain(|(_, of, step)| {
                    done[*of].planned || !matches!(step, Step::Start(back) if back == target)
                });
            }
            Step::Start(_) => self.done[event].started = Some(now),
        }
    }

    /// The events, and how long each had effects on a load that ended at `end`.
    pub(super) fn results(&self, timeline: &Timeline, end: Nanos) -> Vec<EventResult> {
        let done = self.done.iter().filter_map(|done| done.killed.map(|killed| (done, killed)));
        done.map(|(done, killed)| {
            let felt: Option<FaultEffect> = timeline.effect_of(nanos(killed), end);
            EventResult {
                at_s: killed.as_secs_f64(),
                what: done.what.clone(),
                planned: done.planned,
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

    fn worker() -> Target {
        Target::Worker("a".to_owned())
    }

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn what_dies_outside_the_plan_comes_back_unless_the_plan_kills_it_meanwhile() {
        let event = Event { at: seconds(5), kill: worker(), return_after: None };
        let mut script = FaultSchedule::new(&[event]);
        assert!(script.on_death(&worker(), "by hand".to_owned(), seconds(1)));
        assert_eq!(script.next(seconds(1)), None, "it is away for a while");
        let back = script.next(seconds(2)).expect("it is due");
        assert_eq!(back, (1, Step::Start(worker())));
        script.on_done(back.0, &back.1, seconds(2));
        assert!(script.on_death(&worker(), "by hand".to_owned(), Duration::from_millis(4_900)));
        let kill = script.next(seconds(5)).expect("the plan's");
        script.on_done(kill.0, &kill.1, seconds(5));
        assert_eq!(script.next(seconds(60)), None, "the plan wants it away");
        let timeline = Timeline::new(Some(100.0));
        let found = script.results(&timeline, Nanos(0));
        let told: Vec<_> = found.iter().map(|of| (of.planned, of.what.as_str(), of.returned_at_s)).collect();
        let by_hand = (false, "by hand");
        assert_eq!(
            told,
            [
                (true, "kill -9 worker a", None),
                (by_hand.0, by_hand.1, Some(2.0)),
                (by_hand.0, by_hand.1, None)
            ]
        );
    }

    #[test]
    fn a_part_that_dies_again_and_again_is_given_up_and_one_that_lived_long_is_not() {
        let dies = |every: u64, times: u64| {
            let mut script = FaultSchedule::new(&[]);
            (1..=times).take_while(|n| script.on_death(&worker(), String::new(), seconds(n * every))).count()
        };
        assert_eq!(dies(1, 10), 3);
        assert_eq!(dies(10, 10), 10);
        let mut script = FaultSchedule::new(&[]);
        let others = ["a", "b", "c", "d", "e"].map(|name| Target::Worker(name.to_owned()));
        assert!(others.iter().all(|other| script.on_death(other, String::new(), seconds(1))));
    }

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
        let mut script = FaultSchedule::new(&[switch, worker]);
        assert_eq!(script.next(Duration::from_secs(1)), None);
        let late = Duration::from_secs(20);
        let order: Vec<usize> = std::iter::from_fn(|| script.next(late)).map(|(event, _)| event).collect();
        assert_eq!(order, [1, 0, 0, 1]);
    }
}
