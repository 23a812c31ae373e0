//! Programs that are wrong on purpose: the checks that Rain passes must find them.

use std::sync::atomic::AtomicBool;

use sluice_stats::{Distribution, Measured, Recorder, Warmup, summarize};
use sluice_switch::pipeline::Layout;
use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Config, Program, Refusals, Verdict};
use sluice_testbed::Testbed;
use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::{Nanos, Packet};
use sluice_workload::Workload;

use super::EVENTS_A_LOOK;
use super::world::SimulatedRacks;
use crate::point::Point;
use crate::policy::Policy;

/// Rain, with one mistake.
#[derive(Debug)]
struct MistakenRain {
    rain: Box<dyn Program>,
    how: Mistake,
    seen: u32,
    /// Parked tokens, and the tasks that wait here instead of in Rain.
    tokens: u32,
    waiting: Vec<Arrival>,
}

#[derive(Clone, Copy, Debug)]
enum Mistake {
    /// No mistake.
    Right,
    /// The newest task is served first.
    LastFirst,
    /// One token in so many is dropped.
    LosesTokens(u32),
    /// One task in so many counts as waiting, and is lost.
    LosesTasks(u32),
}

impl Program for MistakenRain {
    fn pass(&mut self, now: Nanos, arrival: Arrival) -> Verdict {
        let Arrival::Wire { packet, .. } = arrival else { return self.rain.pass(now, arrival) };
        self.seen += 1;
        match (self.how, packet) {
            (Mistake::LastFirst, Packet::Submit(_)) if self.tokens == 0 => {
                self.waiting.push(arrival);
                Verdict::Parked
            }
            (Mistake::LastFirst, Packet::Submit(_)) => {
                self.tokens -= 1;
                self.rain.pass(now, arrival)
            }
            (Mistake::LastFirst, Packet::Token(_)) => {
                let parked = self.rain.pass(now, arrival);
                let task = self.waiting.pop();
                self.tokens += u32::from(task.is_none());
                task.map_or(parked, |task| self.rain.pass(now, task))
            }
            (Mistake::LosesTokens(one_in), Packet::Token(_)) if self.seen.is_multiple_of(one_in) => {
                Verdict::Parked
            }
            (Mistake::LosesTasks(one_in), Packet::Submit(_)) if self.seen.is_multiple_of(one_in) => {
                Verdict::Parked
            }
            _ => self.rain.pass(now, arrival),
        }
    }

    fn table(&mut self, op: TableOp) -> TableAnswer {
        self.rain.table(op)
    }

    fn shape(&self) -> Shape {
        self.rain.shape()
    }

    fn layout(&self) -> &Layout {
        self.rain.layout()
    }

    fn refusals(&self) -> &Refusals {
        self.rain.refusals()
    }

    fn waiting(&self) -> u32 {
        self.rain.waiting() + self.waiting.len() as u32
    }
}

fn point(policy: &str) -> Point {
    Point {
        tasks: 20_000,
        warmup: Warmup::Tasks(100),
        ..Point::new(
            Policy::parse(policy).unwrap(),
            Testbed::ideal(),
            Workload::parse("exp:10us").unwrap(),
            2.4e6,
        )
    }
}

fn run(how: Mistake) -> Measured {
    let point = point("rain:1");
    let choice = Choice::parse("rain:1").unwrap();
    let wrong = |config: Config| -> Box<dyn Program> {
        let rain = choice.build(config);
        Box::new(MistakenRain { rain, how, seen: 0, tokens: 0, waiting: Vec::new() })
    };
    let recorder = Recorder::new(point.recording());
    let mut rack = SimulatedRacks::with_program(&point, &choice, (0, recorder), wrong);
    for _ in 0..100 {
        if rack.run(EVENTS_A_LOOK).unwrap() {
            break;
        }
    }
    let ran = rack.finish().swap_remove(0);
    ran.observer.finish(ran.counts, ran.gauges)
}

fn central() -> Distribution {
    let measured = point("central").replicate(0, &AtomicBool::new(false)).unwrap();
    measured.classes[0].latency.clone()
}

#[test]
fn the_wrapping_alone_changes_nothing() {
    assert_eq!(run(Mistake::Right).classes[0].latency, central());
}

#[test]
fn last_come_first_served_is_not_the_central_queue() {
    assert_ne!(run(Mistake::LastFirst).classes[0].latency, central());
}

#[test]
fn lost_tokens_are_missed_within_a_short_run() {
    let measured = run(Mistake::LosesTokens(2_000));
    assert_ne!(measured.classes[0].latency, central());
    assert!(!summarize(&[measured]).sustained.holds, "workers idle for ever, and tasks pile up");
}

#[test]
#[should_panic(expected = "wait")]
fn a_lost_task_is_noticed_at_once() {
    run(Mistake::LosesTasks(5_000));
}
