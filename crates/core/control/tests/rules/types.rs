//! Types and room: a task never comes to a worker that does not serve its type, however types and workers
//! move, and no token ring overflows when workers join.

use crate::rack::{Rack, client, plan, worker};
use sluice_control::{Answer, Event, Refusal, Waiting, WorkerGrant, WorkerHello};
use sluice_wire::tables::TableOp;
use sluice_wire::{Nanos, SliceId, TaskType, WorkerId};

const GET: SliceId = SliceId(0);

fn serving(name: &str, life: u64, slice: &str, types: &[u16]) -> WorkerHello {
    let types = types.iter().map(|t| TaskType(*t)).collect();
    WorkerHello { slice: slice.to_string(), types, ..worker(name, life) }
}

/// A rack whose switch knows what its workers serve.
fn rack_of(workers: &[&WorkerHello]) -> (Rack, Vec<WorkerGrant>) {
    let mut rack = Rack::up();
    let grants = workers.iter().map(|hello| join(&mut rack, hello)).collect();
    (rack, grants)
}

fn join(rack: &mut Rack, hello: &WorkerHello) -> WorkerGrant {
    rack.switch.serves.insert(hello.life, hello.types.clone());
    rack.join(hello)
}

fn map(rack: &mut Rack, task_type: u16, slice: &str) -> Answer {
    let (task_type, slice) = (TaskType(task_type), Some(slice.to_string()));
    let call = rack.call(|call| Event::SetType { call, task_type, slice });
    rack.flush();
    rack.answers[&call].clone()
}

fn waits_for(answer: &Answer) -> Option<Waiting> {
    if let Answer::Wait { why, .. } = answer { Some(*why) } else { None }
}

#[test]
fn a_type_is_not_mapped_to_a_slice_that_a_worker_is_leaving_which_does_not_serve_it() {
    let (leaver, stayer) = (serving("leaver", 1, "get", &[1, 2]), serving("stayer", 2, "get", &[1, 2, 3]));
    let (mut rack, grants) = rack_of(&[&leaver, &stayer]);
    rack.park(&grants[0], 1);
    rack.move_to("leaver", "scan");
    let call =
        rack.call(|call| Event::SetType { call, task_type: TaskType(3), slice: Some("get".to_string()) });
    assert_eq!(
        waits_for(&rack.answers[&call]),
        Some(Waiting::WorkersLeaving),
        "its token may still meet a task"
    );
    assert!(Waiting::WorkersLeaving.to_string().contains("still leaving"));
    rack.switch.submit(TaskType(3));
    rack.run(Nanos::from_millis(5));
    assert_eq!(map(&mut rack, 3, "get"), Answer::Done, "once it is in its new slice");
    rack.switch.submit(TaskType(3));
}

#[test]
fn a_type_is_not_mapped_to_a_slice_that_a_worker_is_to_leave_before_it_has_joined() {
    let mut rack = Rack::up();
    rack.hello(&serving("mover", 1, "get", &[1, 2]));
    while !rack.switch.worker(WorkerId(0)).row.is_some_and(|row| row.open) {
        assert!(rack.execute_one() || rack.deliver_one());
    }
    rack.move_to("mover", "scan");
    let slice = Some("get".to_string());
    let call = rack.call(|call| Event::SetType { call, task_type: TaskType(3), slice });
    assert_eq!(waits_for(&rack.answers[&call]), Some(Waiting::WorkersLeaving), "its tokens may be there");
}

#[test]
fn no_more_types_are_mapped_at_once_than_the_controller_keeps_questions() {
    let mut rack = Rack::up();
    for taken in 0..=4_097 {
        let call = rack.call(|call| Event::SetType { call, task_type: TaskType(3), slice: None });
        let answer = rack.answers.get(&call).and_then(waits_for);
        assert_eq!(answer, (taken == 4_097).then_some(Waiting::TooManyCalls), "{taken} are open");
    }
}

#[test]
fn a_slice_that_is_open_keeps_its_tasks_while_it_is_looked_at() {
    let (mut rack, _) = with_a_task_left_behind();
    rack.pass(Nanos::from_millis(10));
    rack.flush();
    assert!(!rack.switch.sweep_once(), "no sweep is sent for them");
}

#[test]
fn a_type_is_not_mapped_to_a_slice_whose_dying_worker_does_not_serve_it() {
    let (dying, stayer) = (serving("dying", 1, "get", &[1]), serving("stayer", 2, "get", &[1, 3]));
    let (mut rack, _) = rack_of(&[&dying, &stayer]);
    rack.leave(&dying);
    let call =
        rack.call(|call| Event::SetType { call, task_type: TaskType(3), slice: Some("get".to_string()) });
    assert_eq!(waits_for(&rack.answers[&call]), Some(Waiting::WorkersLeaving));
    rack.flush();
    assert_eq!(map(&mut rack, 3, "get"), Answer::Done);
}

/// A task of type 1 waits in "get", which takes type 3 from now on.
fn with_a_task_left_behind() -> (Rack, Vec<WorkerGrant>) {
    let (old, scanner) = (serving("old", 1, "get", &[1, 2, 3]), serving("scanner", 2, "scan", &[1, 2, 3]));
    let (mut rack, grants) = rack_of(&[&old, &scanner]);
    rack.switch.submit(TaskType(1));
    assert_eq!(map(&mut rack, 1, "scan"), Answer::Done);
    assert_eq!(map(&mut rack, 3, "get"), Answer::Done);
    (rack, grants)
}

#[test]
fn a_newcomer_waits_while_tasks_of_a_former_type_wait_that_it_does_not_serve() {
    let (mut rack, grants) = with_a_task_left_behind();
    let newcomer = serving("newcomer", 3, "get", &[3]);
    rack.switch.serves.insert(3, newcomer.types.clone());
    for _ in 0..20 {
        assert_eq!(waits_for(&rack.ask(&newcomer)), Some(Waiting::FormerTypes));
        rack.run(Nanos::from_millis(5));
    }
    rack.park(&grants[0], 1);
    assert_eq!(rack.switch.tasks(SliceId(0)).len(), 0, "who serves it has run it");
    rack.run(Nanos::from_millis(200));
    let grant = join(&mut rack, &newcomer);
    rack.park(&grant, 1);
}

/// The slice is read more and more rarely while nothing moves in it, but not while a worker waits for it.
#[test]
fn who_waits_for_former_tasks_comes_in_soon_after_they_were_run_however_long_that_took() {
    let (mut rack, grants) = with_a_task_left_behind();
    let old = serving("old", 1, "get", &[1, 2, 3]);
    rack.renew_for(Nanos::from_millis(910), &[&old, &serving("scanner", 2, "scan", &[1, 2, 3])]);
    let newcomer = serving("newcomer", 3, "get", &[3]);
    rack.switch.serves.insert(3, newcomer.types.clone());
    rack.park(&grants[0], 1);
    assert_eq!(waits_for(&rack.ask(&newcomer)), Some(Waiting::FormerTypes));
    rack.run(Nanos::from_millis(5));
    join(&mut rack, &newcomer);
}

/// A reading for a watch says nothing of when the next sweep is due, nor that the last one was lost.
#[test]
fn who_looks_at_balances_makes_sweeps_neither_rarer_nor_sweeps_more() {
    let mut plan = plan();
    plan.lease = Nanos::from_millis(4);
    plan.renew_every = Nanos::from_millis(1);
    let counted = [false, true].map(|is_watched| {
        let mut rack = Rack::up_with(plan.clone());
        let leaver = serving("leaver", 1, "get", &[1, 2]);
        let grant = join(&mut rack, &leaver);
        rack.park(&grant, 8);
        rack.leave(&leaver);
        rack.flush();
        if is_watched {
            rack.feed(Event::Watch);
        }
        let end = rack.now + Nanos::from_millis(7);
        while let Some(due) = rack.controller.deadline().filter(|due| *due <= end) {
            rack.tick(due);
            rack.flush();
        }
        rack.switch.written.iter().filter(|op| matches!(op, TableOp::Inject(_))).count()
    });
    assert_eq!(counted, [3; 2], "the first is lost, and so are those sent for it");
}

#[test]
fn one_that_serves_the_former_types_too_comes_in_at_once() {
    let (mut rack, _) = with_a_task_left_behind();
    let grant = join(&mut rack, &serving("newcomer", 3, "get", &[1, 3]));
    rack.park(&grant, 1);
    assert_eq!(rack.switch.tasks(SliceId(0)).len(), 0);
}

#[test]
fn a_queue_that_is_never_empty_keeps_newcomers_out_no_longer_than_the_former_tasks_wait() {
    let (mut rack, grants) = with_a_task_left_behind();
    let newcomer = serving("newcomer", 3, "get", &[3]);
    let mut let_in = false;
    for _ in 0..200 {
        rack.switch.submit(TaskType(3));
        rack.run(Nanos::from_millis(2));
        rack.park(&grants[0], 1);
        rack.switch.submit(TaskType(3));
        assert!(!rack.switch.tasks(SliceId(0)).is_empty());
        let_in |= matches!(rack.ask(&newcomer), Answer::Worker(_));
    }
    assert!(let_in);
}

#[test]
fn a_worker_is_not_moved_to_where_tasks_of_a_former_type_wait_that_it_does_not_serve() {
    let (mut rack, grants) = with_a_task_left_behind();
    join(&mut rack, &serving("mover", 3, "scan", &[1, 2, 3]));
    let narrow = serving("narrow", 4, "scan", &[1, 2]);
    join(&mut rack, &narrow);
    let call = rack.move_to("narrow", "get");
    assert!(matches!(rack.answers[&call], Answer::Refused { why: Refusal::TypesNotServed { .. } }));
    assert_eq!(
        map(&mut rack, 3, "scan"),
        Answer::Refused {
            why: Refusal::TypesNotServed {
                worker: "narrow".to_string(),
                slice: "scan".to_string(),
                needed: "3".to_string(),
                served: "1, 2".to_string(),
            },
        }
    );
    rack.park(&grants[0], 1);
}

#[test]
fn a_worker_that_drops_a_former_type_waits_until_its_tasks_are_gone() {
    let (mut rack, _) = with_a_task_left_behind();
    assert_eq!(waits_for(&rack.ask(&serving("old", 1, "get", &[3]))), Some(Waiting::FormerTypes));
}

#[test]
fn a_worker_that_was_there_before_a_restart_is_heard_though_it_serves_not_all_that_may_wait() {
    let narrow = serving("narrow", 1, "get", &[1]);
    let (mut rack, grants) = rack_of(&[&narrow]);
    rack.restart_controller(0);
    rack.flush();
    assert_eq!(rack.ask(&narrow), Answer::Worker(grants[0]));
}

#[test]
fn in_a_new_switch_nothing_can_wait_that_a_narrow_worker_does_not_serve() {
    let mut rack = Rack::new(4, 64);
    rack.connect();
    rack.flush();
    rack.join(&serving("narrow", 1, "get", &[1]));
}

#[test]
fn after_a_restart_nobody_knows_which_types_wait_until_they_were_run() {
    let (mut rack, grants) = with_a_task_left_behind();
    rack.restart_controller(0);
    rack.flush();
    rack.ask(&serving("old", 1, "get", &[1, 2, 3]));
    rack.ask(&serving("scanner", 2, "scan", &[1, 2, 3]));
    let newcomer = serving("newcomer", 3, "get", &[3]);
    for _ in 0..5 {
        assert_eq!(waits_for(&rack.ask(&newcomer)), Some(Waiting::FormerTypes));
        rack.run(Nanos::from_millis(5));
    }
    rack.park(&grants[0], 1);
    rack.run(Nanos::from_millis(200));
    join(&mut rack, &newcomer);
}

#[test]
fn a_type_that_was_mapped_to_nothing_stays_so_when_the_controller_restarts() {
    let (old, narrow) = (serving("old", 1, "scan", &[1, 2]), serving("narrow", 2, "scan", &[2]));
    let (mut rack, _) = rack_of(&[&old, &narrow]);
    let call = rack.call(|call| Event::SetType { call, task_type: TaskType(1), slice: None });
    rack.flush();
    assert_eq!(rack.answers[&call], Answer::Done);
    rack.run(Nanos::from_millis(10));
    rack.move_to("narrow", "get");
    rack.run(Nanos::from_millis(10));
    rack.restart_controller(0);
    rack.run(Nanos::from_millis(10));
    // The worker in the planned slice of the type does not serve the type.
    let row = rack.row(WorkerId(1));
    assert_eq!(row.slice, GET);
    rack.switch.token(WorkerId(1), row.generation, 1);
    rack.switch.submit(TaskType(1));
    assert_eq!(rack.switch.slice_of(TaskType(1)), None);
}

/// A ring with room for the tokens of so many workers, and as many workers whose tokens fill it.
fn full(workers: u16) -> (Rack, Vec<WorkerHello>, Vec<WorkerGrant>) {
    let mut rack = Rack::new(workers + 1, 8 * u32::from(workers));
    rack.connect();
    rack.run(Nanos::from_millis(10));
    let hellos: Vec<_> =
        (1..=workers).map(|n| WorkerHello { quota: 8, ..worker(&format!("w{n}"), n.into()) }).collect();
    let grants: Vec<_> = hellos.iter().map(|hello| rack.join(hello)).collect();
    for grant in &grants {
        rack.park(grant, 8);
    }
    (rack, hellos, grants)
}

#[test]
fn a_worker_that_comes_in_anew_waits_until_its_stale_tokens_are_swept() {
    for workers in [1, 2] {
        let (mut rack, mut hellos, grants) = full(workers);
        hellos[0].rejoins = 1;
        let call = rack.hello(&hellos[0]);
        rack.flush();
        assert!(!rack.answers.contains_key(&call), "the ring is full of what no longer counts");
        assert_eq!(waits_for(&rack.ask(&hellos[0])), Some(Waiting::Sweeping));
        rack.run(Nanos::from_millis(20));
        let Answer::Worker(grant) = rack.answers[&call] else { panic!("{:?}", rack.answers[&call]) };
        assert!(grant.generation > grants[0].generation);
        rack.park(&grant, 8);
        assert_eq!(rack.switch.tokens(GET).len(), 8 * usize::from(workers));
    }
}

#[test]
fn many_that_come_in_anew_together_find_room_one_after_the_other() {
    let (mut rack, mut hellos, _) = full(4);
    for hello in &mut hellos {
        hello.rejoins = 1;
        rack.hello(hello);
    }
    for _ in 0..100 {
        rack.run(Nanos::from_millis(1));
        for index in 0..4 {
            let worker = WorkerId(index);
            let row = rack.row(worker);
            (0..8).for_each(|_| rack.switch.token(worker, row.generation, 8));
        }
    }
    assert!((0..4).all(|index| rack.row(WorkerId(index)).open));
    assert_eq!(rack.switch.tokens(GET).len(), 32);
}

#[test]
fn a_worker_that_leaves_while_it_waits_for_room_is_let_go() {
    let (mut rack, mut hellos, _) = full(1);
    hellos[0].rejoins = 1;
    rack.hello(&hellos[0]);
    rack.flush();
    let call = rack.leave(&hellos[0]);
    rack.flush();
    assert!(matches!(rack.answers[&call], Answer::Left { .. }), "{:?}", rack.answers[&call]);
    assert!(rack.switch.worker(WorkerId(0)).row.is_none());
    rack.join_client(&client("c", 9));
}

#[test]
fn the_table_step_that_maps_a_type_is_taken_only_when_nobody_is_in_its_way() {
    let (leaver, stayer) = (serving("leaver", 1, "get", &[1, 2]), serving("stayer", 2, "get", &[1, 2, 3]));
    let (mut rack, _) = rack_of(&[&leaver, &stayer]);
    rack.move_to("leaver", "scan");
    rack.call(|call| Event::SetType { call, task_type: TaskType(3), slice: Some("get".to_string()) });
    assert!(!rack.inbox.iter().any(|op| matches!(op, TableOp::SetType(TaskType(3), _))));
}
