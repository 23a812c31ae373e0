//! Rain with classes of tasks: a token takes a task of the first class that waits, and each has its turn.

use std::collections::VecDeque;

use proptest::prelude::*;
use sluice_switch::{Refusal, Verdict};
use sluice_wire::tables::{RingCounts, SliceRow, TableAnswer, TableOp};
use sluice_wire::{Nanos, Packet, RejectReason, Serial, Sweep, SweepOf};

use crate::rack::{EPOCH, Rack, SLICE, dispatched, rejected};
use crate::ranked::{Step, any_step, play};

/// One of so many tokens wishes for a class other than the first.
const TURN: usize = 16;
const PROGRAMS: [&str; 3] = ["rain:2,classes=2", "rain:2,classes=4", "rain:4,ranked,classes=4"];

/// The class of the task that the worker's next token gets.
fn taken(rack: &mut Rack, worker: u16) -> u8 {
    dispatched(rack.token(worker)).priority
}

#[test]
fn a_token_takes_the_first_class_and_of_it_the_oldest_task() {
    for program in PROGRAMS {
        let mut rack = Rack::of(program, 8, 16);
        let first = rack.next();
        for class in [3, 1, 0, 1, 0, 255] {
            assert_eq!(rack.task_of(class), Verdict::Parked);
        }
        // With two classes, all classes beyond the first are one class.
        let order = if program == PROGRAMS[0] { [2, 4, 0, 1, 3, 5] } else { [2, 4, 1, 3, 0, 5] };
        let order = order.map(|place| first.plus(place));
        let waiting: Vec<Serial> =
            rack.program.parked(SLICE).tasks.iter().map(|task| task.task.sequence).collect();
        assert_eq!(waiting, order, "{program}");
        let left: Vec<Serial> = (0..6).map(|worker| dispatched(rack.token(worker)).task.sequence).collect();
        assert_eq!(left, order, "{program}");
    }
}

#[test]
fn without_classes_the_oldest_task_goes_first_whatever_its_priority() {
    let mut rack = Rack::new(3, 16);
    for class in [3, 0, 1] {
        rack.task_of(class);
    }
    assert_eq!([0, 1, 2].map(|worker| taken(&mut rack, worker)), [3, 0, 1]);
}

#[test]
fn each_class_has_a_turn_however_many_tasks_of_the_first_wait() {
    let mut rack = Rack::of("rain:2,classes=4", 1, 16);
    for class in 0..4 {
        rack.task_of(class);
    }
    let took: Vec<u8> = (0..3 * TURN)
        .map(|_| {
            rack.task_of(0);
            taken(&mut rack, 0)
        })
        .collect();
    let others: Vec<(usize, u8)> = took.into_iter().enumerate().filter(|(_, class)| *class > 0).collect();
    assert_eq!(others, [(TURN - 1, 1), (2 * TURN - 1, 2), (3 * TURN - 1, 3)]);
}

#[test]
fn a_turn_of_a_class_without_a_task_is_the_first_ones() {
    let mut rack = Rack::of("rain:2,classes=4", 1, 16);
    rack.task_of(0);
    for _ in 0..3 * TURN {
        rack.task_of(0);
        assert_eq!(taken(&mut rack, 0), 0);
    }
}

#[test]
fn all_classes_together_wait_up_to_the_slices_limit() {
    for program in PROGRAMS {
        let mut rack = Rack::of(program, 1, 4);
        for class in 0..4 {
            assert_eq!(rack.task_of(class), Verdict::Parked);
        }
        assert_eq!(rejected(rack.task_of(0)), RejectReason::QueueFull, "{program}");
    }
}

#[test]
fn one_class_may_have_all_the_room() {
    for (program, class) in [(PROGRAMS[0], 1), (PROGRAMS[1], 2), (PROGRAMS[2], 3)] {
        let mut rack = Rack::of(program, 1, 16);
        let first = rack.next();
        for _ in 0..16 {
            assert_eq!(rack.task_of(class), Verdict::Parked);
        }
        for place in 0..16 {
            assert_eq!(dispatched(rack.token(0)).task.sequence, first.plus(place), "{program}");
        }
    }
}

#[test]
fn a_closed_slice_is_swept_of_every_class() {
    for program in PROGRAMS {
        let mut rack = Rack::of(program, 1, 16);
        for class in [2, 0, 3, 1] {
            rack.task_of(class);
        }
        let row = SliceRow { open: false, limit: 16, retry_after: Nanos(500), ..SliceRow::default() };
        rack.program.table(TableOp::SetSlice(SLICE, row));
        let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tasks, left: 9, carried: None };
        for _ in 0..4 {
            assert_eq!(rejected(rack.control(sweep)), RejectReason::NoWorkers, "{program}");
        }
        assert_eq!(rack.control(sweep), Verdict::Drop(Refusal::SweepDone));
        assert_eq!(rack.state().balance, 0);
    }
}

#[test]
fn the_controller_sees_how_many_of_each_class_came_and_left() {
    let mut rack = Rack::of("rain:2,classes=4", 1, 16);
    let before = rack.state();
    assert_eq!(before.tasks_in, before.tasks_out);
    for class in [0, 1, 1, 3, 3, 3] {
        rack.task_of(class);
    }
    let counts = |state: RingCounts, of: RingCounts| {
        let since = |(own, before): (&Serial, &Serial)| own.since(*before);
        state.0.iter().zip(&of.0).map(since).collect::<Vec<_>>()
    };
    let _ = (taken(&mut rack, 0), taken(&mut rack, 0));
    let after = rack.state();
    assert_eq!(counts(after.tasks_in, before.tasks_in), [1, 2, 0, 3]);
    assert_eq!(counts(after.tasks_out, before.tasks_out), [1, 1, 0, 0]);
    let TableAnswer::Shape(shape) = rack.program.table(TableOp::ReadShape) else { panic!("it has a shape") };
    assert_eq!(shape.classes, 4);
}

/// Plays every order of a few steps.
#[test]
fn whatever_meets_no_task_of_any_class_is_lost() {
    const STEPS: [Step; 5] = [Step::Token(0, 0), Step::Task(0), Step::Task(3), Step::SweepPass, Step::Round];
    const LENGTH: u32 = 7;
    for number in 0..5_usize.pow(LENGTH) {
        let digit = |place| STEPS[number / 5_usize.pow(place) % 5];
        play("rain:4,ranked,classes=4", &(0..LENGTH).map(digit).collect::<Vec<_>>());
    }
}

/// A model of classes without counts and trees.
#[derive(Default)]
struct Model {
    queues: [VecDeque<Serial>; 4],
    tokens: usize,
}

impl Model {
    fn token(&mut self) -> Option<Serial> {
        let turn = self.tokens;
        self.tokens += 1;
        let wish = if turn % TURN == TURN - 1 { 1 + turn / TURN % 3 } else { 0 };
        // The wished class, else the other class of its half, else the first of the other half with a task.
        let order = [wish, wish ^ 1, 2 - (wish & 2), 3 - (wish & 2)];
        order.into_iter().find_map(|class| self.queues[class].pop_front())
    }
}

proptest! {
    #[test]
    fn tokens_and_tasks_meet_once_whatever_happens(
        program in prop::sample::select(&PROGRAMS[..]),
        steps in prop::collection::vec(any_step(), 1..24),
    ) {
        play(program, &steps);
    }

    #[test]
    fn tasks_leave_as_the_model_says(steps in prop::collection::vec(prop::option::of(0..4_u8), 1..200)) {
        let mut rack = Rack::of("rain:2,classes=4", 1, 16);
        let mut model = Model::default();
        for step in steps {
            let waiting = -rack.state().balance;
            match step {
                Some(class) if waiting < 16 => {
                    model.queues[usize::from(class)].push_back(rack.next());
                    prop_assert_eq!(rack.task_of(class), Verdict::Parked);
                }
                None if waiting > 0 => {
                    let Verdict::Send { packet: Packet::Dispatch(dispatch), .. } = rack.token(0) else {
                        panic!("a task waits");
                    };
                    prop_assert_eq!(Some(dispatch.task.sequence), model.token());
                }
                _ => {}
            }
        }
    }
}
