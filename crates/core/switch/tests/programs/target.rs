//! Tests of Rain with a target: who is refused, and how long the others wait.

use sluice_switch::Verdict;
use sluice_wire::{Nanos, Packet, RejectReason};

use crate::rack::{Rack, dispatched, rejected};

/// Ten tokens come within it, if three passes make a cycle.
const TARGET: Nanos = Nanos::from_micros(48);

struct Load {
    rack: Rack,
    waits: Vec<Nanos>,
    refused: Vec<RejectReason>,
}

impl Load {
    fn new() -> Self {
        let rack = Rack::of("rain:1,target=48us", 1, 16);
        Self { rack, waits: Vec::new(), refused: Vec::new() }
    }

    /// So many cycles: a token takes a task, then `tasks` tasks come.
    fn run(&mut self, cycles: u32, tasks: u32) {
        (self.waits, self.refused) = (Vec::new(), Vec::new());
        for _ in 0..cycles {
            let verdict = self.rack.token(0);
            if verdict != Verdict::Parked {
                self.waits.push(Nanos(u64::from(dispatched(verdict).wait_ns)));
            }
            for _ in 0..tasks {
                let verdict = self.rack.task();
                match self.rack.go_round(verdict) {
                    verdict @ Verdict::Send { packet: Packet::Reject(_), .. } => {
                        self.refused.push(rejected(verdict));
                    }
                    Verdict::Send { .. } | Verdict::Parked | Verdict::Drop(_) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
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
