//! Draconis' policies: a queue for each priority class, and tasks swapped for others that suit the worker.

use std::collections::VecDeque;

use proptest::prelude::*;
use sluice_switch::registry::Choice;
use sluice_switch::{Cargo, Circulating, Refusal, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::SliceRow;
use sluice_wire::{Nanos, Packet, RejectReason, Serial, Submit, Sweep, SweepOf, WorkerId};

use crate::rack::{EPOCH, Rack, SLICE, START, at, circulating, dispatched, rejected, submit};

const ANY: Labels = Labels::NONE;
const GPU: Labels = Labels(1);
const NODE: Labels = Labels(3);
const SWEEP: Sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tasks, left: 1, carried: None };

/// A rack whose tasks need one of `needs` and whose workers have one of `has`.
fn swapping(program: &str, needs: &[Labels], has: &[Labels], wished: bool) -> Rack {
    let serving = Serving::of(needs, has).unwrap();
    let serving = if wished { serving.wished() } else { serving };
    let kinds: Vec<u8> = has.iter().map(|has| serving.kind_of(*has).unwrap()).collect();
    Rack::of_kinds_under(program, serving, &kinds, 16)
}

fn of_class(rack: &mut Rack, sequence: u32, priority: u8) -> Verdict {
    let task = Submit { priority, ..submit(START.plus(sequence)) };
    rack.wire(at(200), Packet::Submit(task))
}

/// The last verdict of a poll, and how often it recirculated.
fn polled(rack: &mut Rack, worker: u16) -> (Verdict, u32) {
    let (mut verdict, mut rounds) = (rack.token(worker), 0);
    while let Verdict::Again(round) = verdict {
        (verdict, rounds) = (rack.once_more(round), rounds + 1);
        assert!(rounds < 100, "it goes round for ever");
    }
    (verdict, rounds)
}

fn taken(rack: &mut Rack, worker: u16) -> u32 {
    dispatched(polled(rack, worker).0).task.sequence.since(START) as u32
}

const fn is_empty(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Send { packet: Packet::Empty(_), .. })
}

#[test]
fn the_first_class_goes_first_and_each_further_one_costs_a_round() {
    let mut rack = Rack::of("draconis:classes=4", 4, 16);
    for (sequence, priority) in [(0, 3), (1, 1), (2, 9), (3, 0)] {
        assert_eq!(of_class(&mut rack, sequence, priority), Verdict::Parked);
    }
    for (task, rounds) in [(3, 0), (1, 1)] {
        let (verdict, went) = polled(&mut rack, 0);
        assert_eq!((dispatched(verdict).task.sequence, went), (START.plus(task), rounds));
    }
    // The last class takes all priorities beyond it, in the order of arrival.
    assert_eq!([0, 1].map(|worker| taken(&mut rack, worker)), [0, 2]);
    let (verdict, rounds) = polled(&mut rack, 2);
    assert!(is_empty(&verdict) && rounds == 3, "{verdict:?} after {rounds}");
}

/// A poll's recirculations bound how long a worker waits between two tasks, and a plan of its load has to
/// count them.
#[test]
fn a_poll_goes_round_as_often_as_its_settings_say_and_no_longer() {
    for asked in ["draconis", "draconis:classes=2", "draconis:classes=4"] {
        let queues = Choice::parse(asked).unwrap().traits().queues_per_poll;
        let mut rack = Rack::of(asked, 4, 16);
        assert_eq!(of_class(&mut rack, 0, queues - 1), Verdict::Parked);
        let (verdict, rounds) = polled(&mut rack, 0);
        assert_eq!((dispatched(verdict).task.sequence, rounds), (START, u32::from(queues) - 1), "{asked}");
        let (verdict, rounds) = polled(&mut rack, 1);
        assert!(is_empty(&verdict) && rounds == u32::from(queues) - 1, "{asked}: {verdict:?} {rounds}");
    }
}

/// Submits the next tasks of a rack, as many as a job holds. They have the four classes by turns, and every
/// fourth needs a GPU.
fn come(rack: &mut Rack, turn: u32, jobs: u8) {
    let constraints = if turn.is_multiple_of(4) { GPU.0 } else { ANY.0 };
    let task = Submit { priority: (turn % 4) as u8, constraints, ..submit(START.plus(turn)) };
    let verdict = if jobs > 1 { rack.job(jobs) } else { rack.wire(at(200), Packet::Submit(task)) };
    let ends = rack.go_round(verdict);
    assert!(matches!(ends, Verdict::Parked | Verdict::Drop(Refusal::FixDone)), "{ends:?}");
}

#[test]
fn a_task_and_the_poll_that_takes_it_take_as_many_passes_as_the_table_of_costs_says() {
    for (asked, passes_of_four) in [
        ("draconis", 8),
        ("draconis:classes=2", 12),
        ("draconis:classes=4", 17),
        ("draconis:labels", 9),
        ("draconis:jobs=5", 8),
        ("draconis:as-published", 8),
    ] {
        let choice = Choice::parse(asked).unwrap();
        let (jobs, every) = (choice.traits().jobs, usize::from(choice.traits().jobs));
        let mut rack = if choice.traits().kinds > 1 {
            swapping(asked, &[ANY, GPU], &[ANY, GPU, ANY, GPU], false)
        } else {
            Rack::of(asked, 4, 16)
        };
        (0..10).step_by(every).for_each(|turn| come(&mut rack, turn, jobs));
        let mut before = 0;
        for turn in (10..90_u32).step_by(every) {
            if turn == 50 {
                before = rack.passes;
            }
            come(&mut rack, turn, jobs);
            for poll in turn..turn + u32::from(jobs) {
                dispatched(polled(&mut rack, ((poll - 10) % 4) as u16).0);
            }
        }
        assert_eq!(rack.passes - before, 10 * passes_of_four, "{asked}");
    }
}

#[test]
fn without_classes_all_tasks_wait_in_one_queue() {
    let mut rack = Rack::of("draconis", 4, 16);
    for (sequence, priority) in [(0, 3), (1, 0)] {
        of_class(&mut rack, sequence, priority);
    }
    assert_eq!([0, 1].map(|worker| taken(&mut rack, worker)), [0, 1]);
}

#[test]
fn each_class_has_pointers_of_its_own_and_a_state_that_counts_it() {
    let mut rack = Rack::of("draconis:classes=2", 4, 16);
    // The retrieve pointers of both queues run ahead, and only one of them is put right.
    assert!(is_empty(&polled(&mut rack, 0).0));
    let fix = circulating(of_class(&mut rack, 0, 1));
    assert_eq!(fix.cargo, Cargo::Note);
    assert_eq!(rack.once_more(fix), Verdict::Drop(Refusal::FixDone));
    assert_eq!(rack.state().tasks_in.0[1], START.plus(1));
    assert_eq!(taken(&mut rack, 1), 0);
    let state = rack.state();
    assert_eq!((state.balance, state.tasks_out.0[1]), (0, START.plus(1)));
}

#[test]
fn a_poll_whose_worker_left_meanwhile_takes_nothing_from_the_next_class() {
    let mut rack = Rack::of("draconis:classes=2", 4, 16);
    of_class(&mut rack, 0, 1);
    let round = circulating(rack.token(0));
    rack.admit(0, 2);
    assert_eq!(rack.once_more(round), Verdict::Drop(Refusal::Closed));
    assert_eq!(taken(&mut rack, 1), 0);
}

#[test]
fn all_classes_of_a_closed_slice_are_swept() {
    let mut rack = Rack::of("draconis:classes=4", 4, 16);
    for priority in 0..4 {
        of_class(&mut rack, priority.into(), priority);
    }
    let row = rack.state().row;
    rack.set_slice(SliceRow { open: false, ..row });
    for _ in 0..4 {
        let verdict = rack.control(SWEEP);
        assert!(matches!(rack.go_round(verdict), Verdict::Swept { .. }));
    }
    let verdict = rack.control(SWEEP);
    assert_eq!(rack.go_round(verdict), Verdict::Drop(Refusal::SweepDone));
}

/// A sweep that meets a place which a failed add left goes on to the next class, and takes the task that it
/// finds there. The tasks behind the empty place are left to the next sweep.
#[test]
fn what_lies_behind_a_hole_in_a_closed_slice_is_left_to_the_next_sweep() {
    let mut rack = Rack::of("draconis:classes=2", 4, 2);
    (0..2).for_each(|worker| assert!(is_empty(&polled(&mut rack, worker).0)));
    let fix = circulating(of_class(&mut rack, 0, 0));
    assert_eq!(of_class(&mut rack, 1, 0), Verdict::Parked);
    assert_eq!(rejected(of_class(&mut rack, 2, 0)), RejectReason::QueueFull, "it leaves a hole");
    assert_eq!(rack.once_more(fix), Verdict::Drop(Refusal::FixDone));
    assert_eq!([0, 1].map(|worker| taken(&mut rack, worker)), [0, 1]);
    assert_eq!(of_class(&mut rack, 3, 0), Verdict::Parked);
    let fix = circulating(of_class(&mut rack, 4, 1));
    assert_eq!(rack.once_more(fix), Verdict::Drop(Refusal::FixDone));
    let row = rack.state().row;
    rack.set_slice(SliceRow { open: false, ..row });
    let swept = [(); 2].map(|()| {
        let verdict = rack.control(SWEEP);
        match rack.go_round(verdict) {
            Verdict::Swept { packet: Packet::Reject(reject), .. } => reject.task.sequence.since(START),
            other => panic!("not swept: {other:?}"),
        }
    });
    assert_eq!((swept, rack.state().balance, rack.program.waiting()), ([4, 3], 0, 0));
}

#[test]
fn a_worker_gets_the_first_task_that_suits_it_and_the_others_keep_their_order() {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU, ANY], false);
    let needs = [GPU, GPU, ANY, GPU, ANY];
    for needs in needs {
        assert_eq!(rack.task_with(needs), Verdict::Parked);
    }
    let (verdict, rounds) = polled(&mut rack, 0);
    assert_eq!((dispatched(verdict).task.sequence, rounds), (START.plus(2), 2));
    // The tasks that were passed over leave first, then those behind them.
    assert_eq!([1, 1, 1, 1].map(|worker| taken(&mut rack, worker)), [0, 1, 3, 4]);
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn what_nobody_here_suits_waits_in_its_order_and_the_poll_is_answered() {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
    for needs in [GPU, GPU, GPU] {
        rack.task_with(needs);
    }
    for _ in 0..5 {
        let (verdict, rounds) = polled(&mut rack, 0);
        assert!(is_empty(&verdict) && rounds == 3, "{verdict:?} after {rounds}");
        assert_eq!(rack.state().balance, -3);
    }
    assert_eq!([1, 1, 1].map(|worker| taken(&mut rack, worker)), [0, 1, 2]);
}

#[test]
fn swaps_are_bounded_and_what_is_carried_then_goes_to_the_end() {
    let mut rack = swapping("draconis:labels,swaps=2", &[ANY, GPU], &[ANY, GPU], false);
    for needs in [GPU, GPU, GPU, GPU, ANY] {
        rack.task_with(needs);
    }
    let (verdict, rounds) = polled(&mut rack, 0);
    assert!(is_empty(&verdict) && rounds == 3, "{verdict:?} after {rounds}");
    assert_eq!([1, 1, 1, 1, 1].map(|worker| taken(&mut rack, worker)), [0, 1, 3, 4, 2]);
}

#[test]
fn a_carried_task_goes_on_at_the_retrieve_pointer_when_that_has_passed_it() {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
    for needs in [GPU, GPU, GPU, ANY] {
        rack.task_with(needs);
    }
    let carrier = circulating(rack.token(0));
    // Two tasks leave meanwhile, and the carrier's next place is behind the retrieve pointer then.
    assert_eq!([1, 1].map(|worker| taken(&mut rack, worker)), [1, 2]);
    let verdict = rack.once_more(carrier);
    assert_eq!(dispatched(verdict).task.sequence, START.plus(3));
    assert_eq!(taken(&mut rack, 1), 0, "it is not lost");
}

#[test]
fn a_carried_task_that_finds_the_queue_empty_is_added_with_a_fix_and_the_poll_answered_then() {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
    rack.task_with(GPU);
    let carrier = circulating(rack.token(0));
    assert!(is_empty(&rack.token(1)), "the pointer runs ahead");
    let fix = circulating(rack.once_more(carrier));
    assert_eq!(fix.cargo, Cargo::Note);
    assert!(is_empty(&rack.token(1)), "until the fix lands");
    assert!(is_empty(&rack.once_more(fix)));
    assert_eq!(taken(&mut rack, 1), 0);
}

#[test]
fn a_carried_task_whose_worker_left_is_added_again_and_nobody_is_answered() {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
    for needs in [GPU, ANY] {
        rack.task_with(needs);
    }
    let carrier = circulating(rack.token(0));
    rack.admit(0, 2);
    assert_eq!(rack.once_more(carrier), Verdict::Parked);
    assert_eq!([1, 1].map(|worker| taken(&mut rack, worker)), [1, 0]);
}

/// Polls of workers that the task does not suit take it out of the queue before each sweep, and the last
/// worker that it suited is gone.
#[test]
fn a_carried_task_that_nobody_serves_any_more_is_refused_instead_of_added_again() {
    let class_closes = |row: SliceRow| SliceRow { closed: 1 << row.serving.class_of(GPU).unwrap(), ..row };
    let slice_closes = |row: SliceRow| SliceRow { open: false, ..row };
    let closings: [&dyn Fn(SliceRow) -> SliceRow; 2] = [&class_closes, &slice_closes];
    for closes in closings {
        let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
        rack.task_with(GPU);
        let carrier = circulating(rack.token(0));
        let row = rack.state().row;
        rack.set_slice(closes(row));
        assert_eq!(rack.control(SWEEP), Verdict::Drop(Refusal::SweepDone), "the queue is empty meanwhile");
        let Verdict::Swept { packet: Packet::Reject(reject), .. } = rack.once_more(carrier) else {
            panic!("the task is carried on")
        };
        assert_eq!((reject.task.sequence, reject.reason), (START, RejectReason::NoWorkers));
        let state = rack.state();
        assert_eq!((state.balance, state.tasks_out), (0, state.tasks_in));
        // The poll's number is spent, so that its worker misses it and polls again.
        let worker = rack.worker(0);
        assert_eq!(worker.sent, worker.seen);
        rack.set_slice(row);
        rack.task_with(ANY);
        assert_eq!(taken(&mut rack, 0), 1);
    }
}

/// A round takes three times as long as the pause between two polls. Worker 0 carries the task of worker 1,
/// and worker 1 that of worker 0, until both have waited for long.
#[test]
fn two_workers_do_not_carry_each_others_tasks_for_ever() {
    const ROUND: u32 = 70;
    const PAUSE: u32 = 24;
    const SSD: Labels = Labels(2);
    let mut rack = swapping("draconis:labels", &[GPU, SSD], &[SSD, GPU], false);
    let mut rounds: Vec<(u32, u16, Circulating)> = Vec::new();
    let mut polls = vec![(0, 0), (40, 1)];
    let mut served = Vec::new();
    rack.task_with(GPU);
    for now in 0..2_000 {
        if now == 10 {
            rack.task_with(SSD);
            rack.now = rack.now + Nanos::from_millis(20);
        }
        let back: Vec<_> = rounds.extract_if(.., |(at, ..)| *at == now).collect();
        let asks: Vec<_> = polls.extract_if(.., |(at, _)| *at == now).collect();
        let back = back.into_iter().map(|(_, worker, round)| (worker, rack.once_more(round)));
        let mut verdicts: Vec<(u16, Verdict)> = back.collect();
        verdicts.extend(asks.into_iter().map(|(_, worker)| (worker, rack.token(worker))));
        for (worker, verdict) in verdicts {
            match verdict {
                Verdict::Again(round) => rounds.push((now + ROUND, worker, round)),
                Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => served.push(dispatch.worker.0),
                empty => {
                    assert!(is_empty(&empty), "{empty:?}");
                    polls.push((now + PAUSE, worker));
                }
            }
        }
    }
    served.sort_unstable();
    assert_eq!(served, [0, 1], "both tasks wait, and both workers poll");
}

#[test]
fn what_nobody_serves_is_refused_at_once_and_swept_out_of_the_middle() {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
    for needs in [ANY, GPU, ANY, GPU] {
        rack.task_with(needs);
    }
    let row = rack.state().row;
    let gpu = row.serving.class_of(GPU).unwrap();
    rack.set_slice(SliceRow { closed: 1 << gpu, ..row });
    assert_eq!(rejected(rack.task_with(GPU)), RejectReason::NoWorkers);
    assert_eq!(rejected(rack.task_with(Labels(4))), RejectReason::Unserved);
    let mut sweep = || {
        let verdict = rack.control(SWEEP);
        rack.go_round(verdict)
    };
    assert!(matches!(sweep(), Verdict::Swept { .. }) && matches!(sweep(), Verdict::Swept { .. }));
    assert_eq!(sweep(), Verdict::Drop(Refusal::SweepDone));
    let state = rack.state();
    let gpu = usize::from(gpu);
    assert_eq!((state.balance, state.tasks_out.0[gpu]), (-2, state.tasks_in.0[gpu]));
    assert_eq!(taken(&mut rack, 0), 0);
    assert!(is_empty(&polled(&mut rack, 0).0), "the place of one that was swept");
    assert_eq!(taken(&mut rack, 0), 2);
}

/// A rack with so many tasks; every `nth` has a class that is closed afterwards.
fn closed_class(tasks: u32, nth: u32) -> Rack {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
    for task in 0..tasks {
        assert_eq!(rack.task_with(if task % nth == 0 { GPU } else { ANY }), Verdict::Parked);
    }
    let row = rack.state().row;
    let gpu = row.serving.class_of(GPU).unwrap();
    rack.set_slice(SliceRow { closed: 1 << gpu, ..row });
    rack
}

#[test]
fn one_sweep_goes_round_a_slice_and_others_that_come_meanwhile_look_at_a_place_each() {
    // The tasks at places 0, 4, 8 and 12 are to be swept.
    let mut rack = closed_class(16, 4);
    assert!(matches!(rack.control(SWEEP), Verdict::Swept { .. }), "place 0");
    let about = circulating(rack.control(SWEEP));
    // Places 2 and 3 hold tasks of open classes, so place 4 is the next. A sweep looks at no place at which
    // another has looked.
    assert_eq!(rack.control(SWEEP), Verdict::Drop(Refusal::SweepUnderWay));
    assert_eq!(rack.control(SWEEP), Verdict::Drop(Refusal::SweepUnderWay));
    assert!(matches!(rack.control(SWEEP), Verdict::Swept { .. }), "place 4");
    let about = circulating(rack.once_more(about));
    assert_eq!(
        rack.control(SWEEP),
        Verdict::Drop(Refusal::SweepUnderWay),
        "one is about after each of its passes"
    );
    let tokens = Sweep { of: SweepOf::Tokens, ..SWEEP };
    assert_eq!(rack.control(tokens), Verdict::Drop(Refusal::SweepDone), "sweeps for tokens are others");
    let mut passes = 0;
    let mut verdict = Verdict::Again(about);
    while let Verdict::Again(round) = verdict {
        (verdict, passes) = (rack.once_more(round), passes + 1);
    }
    assert!(matches!(verdict, Verdict::Swept { .. }) && passes == 2, "place 8 after {passes}");
    // No sweep is under way any more.
    circulating(rack.control(SWEEP));
}

#[test]
fn a_queue_is_swept_in_as_many_passes_as_it_has_places_and_sweeps_come() {
    let mut rack = closed_class(16, 2);
    let before = rack.passes;
    let mut swept = 0;
    for _ in 0..9 {
        let verdict = rack.control(SWEEP);
        swept += u32::from(matches!(rack.go_round(verdict), Verdict::Swept { .. }));
    }
    assert_eq!(swept, 8);
    assert_eq!(rack.passes - before, 8, "a round for each place that holds another, and for the end");
    assert_eq!(rack.state().balance, -8);
}

#[test]
fn a_sweep_waits_while_a_fix_of_the_retrieve_pointer_goes_round_and_passes_no_task() {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
    (0..3).for_each(|_| assert!(is_empty(&rack.token(0))));
    let fix = circulating(rack.task_with(GPU));
    assert_eq!(rack.task_with(GPU), Verdict::Parked);
    let row = rack.state().row;
    let gpu = row.serving.class_of(GPU).unwrap();
    rack.set_slice(SliceRow { closed: 1 << gpu, ..row });
    let mut sweep = circulating(rack.control(SWEEP));
    for _ in 0..3 {
        sweep = circulating(rack.once_more(sweep));
    }
    assert_eq!(rack.once_more(fix), Verdict::Drop(Refusal::FixDone));
    for task in 0..2 {
        let verdict = if task == 0 { rack.once_more(sweep) } else { rack.control(SWEEP) };
        let Verdict::Swept { packet: Packet::Reject(reject), .. } = rack.go_round(verdict) else {
            panic!("task {task} was passed: {verdict:?}");
        };
        assert_eq!(reject.task.sequence, START.plus(task));
    }
    assert_eq!(rack.program.waiting(), 0);
}

#[test]
fn where_a_sweeps_way_ends_the_next_one_begins_at_the_first_place() {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
    assert_eq!([rack.task_with(GPU), rack.task_with(ANY)], [Verdict::Parked, Verdict::Parked]);
    let row = rack.state().row;
    let closed = |class| SliceRow { closed: 1 << row.serving.class_of(class).unwrap(), ..row };
    rack.set_slice(closed(ANY));
    for ends in [false, true] {
        let verdict = rack.control(SWEEP);
        assert_eq!(rack.go_round(verdict) == Verdict::Drop(Refusal::SweepDone), ends);
    }
    rack.set_slice(closed(GPU));
    assert!(matches!(rack.control(SWEEP), Verdict::Swept { .. }), "at its first look");
}

#[test]
fn a_sweep_leaves_alone_what_lies_beyond_an_add_pointer_that_is_taken_back() {
    let mut rack = swapping("draconis:labels", &[ANY, GPU], &[ANY, GPU], false);
    (0..16).for_each(|_| assert_eq!(rack.task_with(ANY), Verdict::Parked));
    let back = circulating(rack.task_with(ANY));
    let row = rack.state().row;
    rack.set_slice(SliceRow { closed: 1 << row.serving.class_of(GPU).unwrap(), ..row });
    let mut verdict = rack.control(SWEEP);
    let mut looks = 0;
    while let Verdict::Again(round) = verdict {
        (verdict, looks) = (rack.once_more(round), looks + 1);
    }
    assert_eq!((verdict, looks), (Verdict::Drop(Refusal::SweepDone), 16));
    assert_eq!(rejected(rack.once_more(back)), RejectReason::QueueFull);
}

#[test]
fn sweeps_of_a_closed_slice_go_on_in_the_class_where_the_last_one_stood() {
    let mut rack = Rack::of("draconis:classes=4", 4, 16);
    (0..8).for_each(|task| assert_eq!(of_class(&mut rack, task, 3), Verdict::Parked));
    let row = rack.state().row;
    rack.set_slice(SliceRow { open: false, ..row });
    let mut about = circulating(rack.control(SWEEP));
    assert_eq!(rack.control(SWEEP), Verdict::Drop(Refusal::SweepUnderWay), "one is about");
    (0..2).for_each(|_| about = circulating(rack.once_more(about)));
    assert!(matches!(rack.once_more(about), Verdict::Swept { .. }));
    for _ in 0..7 {
        assert!(matches!(rack.control(SWEEP), Verdict::Swept { .. }), "in one pass");
    }
    let verdict = rack.control(SWEEP);
    assert_eq!(rack.go_round(verdict), Verdict::Drop(Refusal::SweepDone));
}

#[test]
fn a_task_waits_for_its_node_then_for_its_rack_and_then_for_nobody() {
    let wait = |rack: &mut Rack, span: Nanos| rack.now = rack.now + span;
    // Worker 0 is the task's node, worker 1 is in its rack, worker 2 is elsewhere.
    for (after_us, gets) in [
        (0, [true, false, false]),
        // Both waits count: with the default of 10 or 20 µs in place of either, the wait would be over
        // earlier.
        (40, [true, false, false]),
        (60, [true, true, false]),
        (140, [true, true, false]),
        (160, [true, true, true]),
    ] {
        for worker in 0..3_u16 {
            let mut rack =
                swapping("draconis:labels,node=50us,rack=100us", &[NODE, ANY], &[NODE, GPU, ANY], true);
            rack.task_with(NODE);
            wait(&mut rack, Nanos::from_micros(after_us));
            let (verdict, _) = polled(&mut rack, worker);
            let got = matches!(verdict, Verdict::Send { packet: Packet::Dispatch(_), .. });
            assert_eq!(got, gets[usize::from(worker)], "worker {worker} after {after_us} us");
        }
    }
}

#[test]
fn as_published_a_full_queue_says_nothing_and_adds_overrun_the_ring_while_a_fix_is_on_its_way() {
    let mut rack = Rack::of("draconis:as-published", 4, 2);
    (0..2).for_each(|_| assert_eq!(rack.task(), Verdict::Parked));
    let back = circulating(rack.task());
    assert_eq!(rack.task(), Verdict::Drop(Refusal::QueueFull));
    assert_eq!(rack.once_more(back), Verdict::Drop(Refusal::QueueFull));
    // Polls run the pointer ahead; then more adds than there is room for find it ahead.
    (0..4).for_each(|_| _ = rack.token(0));
    let fixes = (0..4).filter(|_| matches!(rack.task(), Verdict::Again(_))).count();
    assert_eq!(fixes, 1);
    assert!(rack.state().balance < -2, "{:?}", rack.state());
}

#[test]
fn as_published_a_place_that_a_failed_add_left_is_taken_for_a_task() {
    let healed = |program: &str| {
        let mut rack = Rack::of(program, 4, 2);
        (0..2).for_each(|_| _ = rack.task());
        let back = circulating(rack.task());
        let polls: Vec<bool> = (0..3).map(|_| is_empty(&rack.token(0))).collect();
        rack.once_more(back);
        polls
    };
    assert_eq!(healed("draconis"), [false, false, true]);
    assert_eq!(healed("draconis:as-published"), [false, false, false]);
}

/// The steps of the property test.
#[derive(Clone, Copy, Debug)]
enum Step {
    Task { gpu: bool },
    Poll(u16),
    Round(usize),
    Leave(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<bool>().prop_map(|gpu| Step::Task { gpu }),
        4 => (0..4_u16).prop_map(Step::Poll),
        6 => any::<usize>().prop_map(Step::Round),
        1 => (0..4_u16).prop_map(Step::Leave),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Recirculating packets may overtake each other in any way: each task leaves once, for a worker that
    /// it suits, and no other task is dispatched.
    #[test]
    fn swapping_loses_no_task_and_gives_none_twice(steps in steps(), swaps in 1..8_u8) {
        let program = format!("draconis:labels,swaps={swaps}");
        let mut rack = swapping(&program, &[ANY, GPU], &[ANY, GPU, ANY, GPU], false);
        let mut book = Book { waiting: Vec::new(), rounds: VecDeque::new(), generation: [1; 4] };
        for step in steps {
            book.step(&mut rack, step);
        }
        book.empty(&mut rack);
    }
}

struct Book {
    /// Tasks that were accepted and have not left, and whether they need a GPU.
    waiting: Vec<(Serial, bool)>,
    rounds: VecDeque<Circulating>,
    generation: [u32; 4],
}

impl Book {
    fn step(&mut self, rack: &mut Rack, step: Step) {
        match step {
            Step::Task { gpu } => {
                let sequence = rack.next();
                let verdict = rack.task_with(if gpu { GPU } else { ANY });
                if !matches!(verdict, Verdict::Send { packet: Packet::Reject(_), .. }) {
                    self.waiting.push((sequence, gpu));
                }
                self.settle(verdict);
            }
            Step::Poll(worker) => self.settle(rack.token(worker)),
            Step::Round(which) => {
                if !self.rounds.is_empty() {
                    let round = self.rounds.remove(which % self.rounds.len()).unwrap();
                    self.settle(rack.once_more(round));
                }
            }
            Step::Leave(worker) => {
                self.generation[usize::from(worker)] += 1;
                rack.admit(worker, self.generation[usize::from(worker)]);
            }
        }
    }

    fn settle(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => {
                let place = self.waiting.iter().position(|(task, _)| *task == dispatch.task.sequence);
                let (_, gpu) = self.waiting.remove(place.expect("it waited"));
                assert!(!gpu || dispatch.worker.0 % 2 == 1, "it suits its worker");
            }
            // A task learns that its queue is full after a recirculation.
            Verdict::Send { packet: Packet::Reject(reject), .. } => {
                self.waiting.retain(|(task, _)| *task != reject.task.sequence);
            }
            Verdict::Again(round) => self.rounds.push_back(round),
            _ => {}
        }
    }

    /// With workers that have a GPU, all waiting tasks leave.
    fn empty(&mut self, rack: &mut Rack) {
        for _ in 0..200 {
            self.settle(rack.token(WorkerId(1).0));
            while let Some(round) = self.rounds.pop_front() {
                self.settle(rack.once_more(round));
            }
        }
        assert_eq!(self.waiting, [], "they were lost");
        assert_eq!(rack.state().balance, 0);
    }
}
