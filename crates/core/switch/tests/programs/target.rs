//! Tests of Rain with a target: who is refused, and how long the others wait.

use sluice_switch::{Refusal, Verdict};
use sluice_wire::tables::SliceRow;
use sluice_wire::{Nanos, Packet, RejectReason};

use crate::rack::{Rack, dispatched, rejected};

/// Ten tokens come within it, if three passes make a cycle.
const TARGET: Nanos = Nanos::from_micros(48);

/// A rack whose token comes every third pass, as long as two tasks come for each.
struct Load {
    rack: Rack,
    waits: Vec<Nanos>,
    refused: Vec<RejectReason>,
}

impl Load {
    fn new() -> Self {
        Self::of("rain:1,target=48us", Nanos(0))
    }

    /// Under this program; the slice has this target.
    fn of(program: &str, target: Nanos) -> Self {
        let mut load = Self { rack: Rack::of(program, 1, 16), waits: Vec::new(), refused: Vec::new() };
        load.set_target(target);
        load
    }

    fn set_target(&mut self, target: Nanos) {
        let row = self.rack.state().row;
        self.rack.set_slice(SliceRow { target, ..row });
    }

    /// So many cycles: a token takes a task, then `tasks` tasks come.
    fn run(&mut self, cycles: u32, tasks: u32) {
        (self.waits, self.refused) = (Vec::new(), Vec::new());
        for _ in 0..cycles {
            self.token();
            for _ in 0..tasks {
                self.task();
            }
        }
    }

    /// A token comes. Returns whether it takes a task.
    fn token(&mut self) -> bool {
        let verdict = self.rack.token(0);
        let takes = verdict != Verdict::Parked;
        if takes {
            self.waits.push(Nanos(u64::from(dispatched(verdict).wait_ns)));
        }
        takes
    }

    /// A task comes. Returns whether it takes a token.
    fn task(&mut self) -> bool {
        let verdict = self.rack.task();
        match self.rack.go_round(verdict) {
            verdict @ Verdict::Send { packet: Packet::Reject(_), .. } => {
                self.refused.push(rejected(verdict));
                false
            }
            Verdict::Send { .. } => true,
            Verdict::Parked | Verdict::Drop(_) => false,
            other => panic!("{other:?}"),
        }
    }

    /// So many bursts of five tasks, and then five times that a token comes if a task took one.
    /// Returns how many tasks are refused.
    fn bursts(&mut self, bursts: u32) -> usize {
        self.refused = Vec::new();
        let mut busy = 0;
        for _ in 0..bursts {
            busy += (0..5).filter(|_| self.task()).count();
            for _ in 0..5 {
                if busy > 0 && !self.token() {
                    busy -= 1;
                }
            }
        }
        self.refused.len()
    }

    fn longest(&self) -> Nanos {
        self.waits.iter().copied().max().expect("tasks waited")
    }
}

#[test]
fn a_task_that_would_wait_for_longer_than_the_target_is_refused() {
    let mut load = Load::new();
    load.run(200, 2);
    load.run(200, 2);
    assert_eq!(load.refused, vec![RejectReason::Busy; 200], "one refusal a refused task, and no more");
    let read = load.rack.state();
    assert!(read.refused_busy >= 200 && read.measured_limit.is_some_and(|limit| limit > 1), "{read:?}");
    let refusals = load.rack.program.refusals();
    assert!(refusals.of(Refusal::LimitMeasured) > 0 && refusals.of(Refusal::FixDone) == 0);
    assert!(load.longest() <= TARGET, "{:?}", load.longest());
    assert!(load.longest().times(3) > TARGET, "and no fewer wait than may: {:?}", load.longest());
    let half = load.longest();
    load.run(100, 5);
    load.run(100, 5);
    assert!(load.longest() <= TARGET, "a service that takes twice as long: {:?}", load.longest());
    load.run(200, 2);
    load.run(200, 2);
    assert!(load.longest().0.abs_diff(half.0) < TARGET.0 / 8, "and its former pace: {:?}", load.longest());
}

#[test]
fn none_is_refused_while_a_token_is_parked_or_before_anything_was_measured() {
    let mut load = Load::new();
    load.run(50, 1);
    assert_eq!(load.refused, []);
    load.run(8, 2);
    assert_eq!(load.refused, [], "no window was full yet");
}

#[test]
fn a_slices_own_target_holds_instead_of_the_programs() {
    let mut longest = Vec::new();
    for program in ["rain:1,target", "rain:1,target=48us"] {
        for target in [Nanos(TARGET.0 / 2), TARGET] {
            let mut load = Load::of(program, target);
            load.run(200, 2);
            load.run(200, 2);
            assert!(load.longest() <= target, "{program}, {target:?}: {:?}", load.longest());
            longest.push(load.longest());
        }
    }
    assert_eq!(longest[..2], longest[2..], "whatever the program's is");
    assert!(longest[0] < longest[1]);
}

#[test]
fn until_a_limit_was_measured_it_is_what_the_controller_expects() {
    let mut load = Load::new();
    let row = load.rack.state().row;
    load.rack.set_slice(SliceRow { expected: 4, ..row });
    load.run(1, 6);
    assert_eq!(load.refused, [RejectReason::Busy], "the token took one, and four wait");
    load.rack.set_slice(SliceRow { expected: 6, ..row });
    load.run(1, 2);
    assert_eq!(load.refused, [], "the expectation changed");
    load.run(200, 2);
    let measured = load.rack.state().measured_limit;
    load.rack.set_slice(SliceRow { expected: 9, ..row });
    assert_eq!(load.rack.state().measured_limit, measured, "a limit that was measured stays");
}

#[test]
fn a_slice_without_a_target_refuses_nothing_but_what_its_row_does() {
    let mut load = Load::of("rain:1,target", Nanos(0));
    load.run(200, 2);
    assert!(load.longest() > TARGET);
    assert!(load.refused.iter().all(|reason| *reason == RejectReason::QueueFull), "{:?}", load.refused);
}

#[test]
fn what_was_measured_with_another_target_is_no_limit() {
    let mut load = Load::new();
    load.run(200, 2);
    load.set_target(TARGET);
    load.run(20, 2);
    assert!(!load.refused.is_empty(), "the same target");
    load.set_target(Nanos(TARGET.0 / 4));
    load.run(1, 2);
    assert_eq!(load.refused, [], "another target");
}

#[test]
fn a_limit_that_slow_services_left_behind_rises_again_although_tokens_park() {
    let mut load = Load::new();
    load.run(30, 20);
    assert!(!load.refused.is_empty(), "services are seven times slower for a while");
    while load.token() {}
    load.token();
    // The former pace. Both tokens park after each burst, so no window is without a parked token.
    assert!(load.bursts(40) > 0, "the limit is still that of slow services");
    assert_eq!(load.bursts(40), 0, "the limit is that of services as they are now");
}

#[test]
fn the_last_class_is_refused_first() {
    let mut rack = Rack::of("rain:1,classes=4,target=48us", 1, 16);
    let row = rack.state().row;
    rack.set_slice(SliceRow { expected: 8, ..row });
    for (class, lets_in) in [(9, 1), (3, 0), (2, 1), (1, 2), (0, 4)] {
        let verdicts: Vec<Verdict> = (0..6).map(|_| rack.task_of(class)).collect();
        let waits = verdicts.iter().filter(|verdict| **verdict == Verdict::Parked).count();
        assert_eq!(waits, lets_in, "class {class}");
        for verdict in verdicts.into_iter().filter(|verdict| *verdict != Verdict::Parked) {
            let Verdict::Send { packet: Packet::Reject(reject), .. } = verdict else { panic!("{verdict:?}") };
            assert_eq!((reject.reason, reject.load.room), (RejectReason::Busy, 8), "what all classes share");
        }
    }
    assert_eq!((rack.state().balance, rack.state().refused_busy), (-8, 5 * 6 - 8));
}
