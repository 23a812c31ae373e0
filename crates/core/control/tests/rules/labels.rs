//! Workers that serve only some tasks of their slice.

use crate::rack::switch::{Switch, config};
use crate::rack::{GPU, LEASE, RENEW, Rack, TRAIN, with_gpus, worker};
use sluice_control::{Answer, Event, LinkState, Note, Plan, Refusal, WorkerHello};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::TableOp;
use sluice_wire::{Nanos, SliceId, TaskType};

const ANY: Labels = Labels::NONE;
const GET: TaskType = TaskType(1);

fn with(name: &str, life: u64, labels: &[&str]) -> WorkerHello {
    WorkerHello { labels: labels.iter().map(|label| (*label).to_owned()).collect(), ..worker(name, life) }
}

fn refused(answer: Answer) -> String {
    match answer {
        Answer::Refused { why } => why.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn the_switch_hears_what_types_need_who_serves_whom_and_of_which_kind_each_worker_is() {
    let mut rack = Rack::up_with(with_gpus());
    assert!(rack.switch.written.contains(&TableOp::SetNeeds(TRAIN, GPU)));
    assert_eq!(rack.switch.slice(SliceId(0)).row.serving, rack.plan.slices[0].serving);
    let (plain, fast) = (rack.join(&with("plain", 1, &[])), rack.join(&with("fast", 2, &["ssd", "gpu"])));
    assert_eq!([plain.worker, fast.worker].map(|worker| rack.row(worker).kind), [0, 1]);
}

#[test]
fn a_class_without_workers_is_closed_and_its_tasks_are_swept_out() {
    let mut rack = Rack::up_with(with_gpus());
    let (plain, fast) = (with("plain", 1, &[]), with("fast", 2, &["gpu"]));
    rack.join(&plain);
    let needs = "gpu".to_owned();
    let closed = Note::ClassClosed { slice: "get".to_owned(), needs: needs.clone() };
    assert_eq!(rack.switch.slice(SliceId(0)).row.closed, 1);
    assert!(rack.notes.contains(&closed));
    rack.join(&fast);
    assert_eq!(rack.switch.slice(SliceId(0)).row.closed, 0);
    assert!(rack.notes.contains(&Note::ClassOpened { slice: "get".to_owned(), needs }));
    for _ in 0..20 {
        rack.switch.submit(GET);
        rack.switch.submit(TRAIN);
    }
    rack.notes.clear();
    rack.leave(&fast);
    rack.renew_for(Nanos::from_millis(100), &[&plain]);
    assert_eq!(rack.notes.iter().filter(|note| **note == closed).count(), 1);
    assert_eq!(rack.switch.tasks(SliceId(0)), [GET; 20]);
    assert!(
        rack.controller.deadline().is_some_and(|due| due > rack.now + Nanos::from_millis(10)),
        "it rests"
    );
}

#[test]
fn a_worker_need_not_serve_types_whose_labels_it_lacks() {
    let mut rack = Rack::up_with(with_gpus());
    let knows_get =
        |name, life, labels: &[&str]| WorkerHello { types: vec![GET], ..with(name, life, labels) };
    rack.join(&knows_get("plain", 1, &[]));
    let why = refused(rack.ask(&knows_get("fast", 2, &["gpu"])));
    assert_eq!(why, "slice `get` takes types 1, 3, worker `fast` serves 1; it has to serve all of them");
}

#[test]
fn labels_that_nobody_knows_or_of_no_kind_are_refused_with_those_that_are_known() {
    let mut plan = with_gpus();
    plan.slices[0].serving = Serving::of(&[GPU], &[GPU]).unwrap();
    let mut rack = Rack::up_with(plan);
    let why = refused(rack.ask(&with("w", 1, &["gpo"])));
    assert_eq!(why, "the plan names no label `gpo`; known: gpu, ssd");
    let why = refused(rack.ask(&with("w", 1, &["ssd"])));
    assert_eq!(why, "worker `w` has ssd, and slice `get` knows these kinds: gpu; give it the labels of one");
    rack.join(&WorkerHello { slice: "scan".to_owned(), ..with("w", 2, &["ssd"]) });
    rack.join(&with("x", 3, &["gpu"]));
    let moved = rack.move_to("w", "get");
    rack.flush();
    assert!(matches!(&rack.answers[&moved], Answer::Refused { why: Refusal::NoKind { .. } }));
}

#[test]
fn a_worker_whose_labels_change_comes_in_anew_as_another_kind() {
    let mut rack = Rack::up_with(with_gpus());
    rack.join(&with("other", 1, &["gpu"]));
    let before = rack.join(&with("w", 2, &["gpu"]));
    let same = rack.join(&with("w", 2, &["ssd", "gpu"]));
    assert_eq!(same.generation, before.generation, "it is of the same kind");
    let after = rack.join(&with("w", 2, &[]));
    assert!(after.generation > before.generation);
    assert_eq!(rack.row(after.worker).kind, 0);
    let why = refused(rack.ask(&with("w", 2, &["gpo"])));
    assert_eq!(why, "the plan names no label `gpo`; known: gpu, ssd");
}

#[test]
fn a_controller_that_starts_finds_kinds_as_they_are() {
    let mut rack = Rack::up_with(with_gpus());
    let hellos = [with("plain", 1, &[]), with("fast", 2, &["gpu"])];
    let before = hellos.clone().map(|hello| rack.join(&hello));
    rack.restart_controller(1_000);
    rack.run(Nanos::from_millis(10));
    let after = hellos.map(|hello| rack.join(&hello));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((before.generation, before.worker), (after.generation, after.worker));
    }
    assert_eq!(rack.switch.slice(SliceId(0)).row.closed, 0);
}

#[test]
fn another_plan_holds_once_the_slice_is_empty_and_everyone_has_come_anew() {
    let mut rack = Rack::up_with(with_gpus());
    let hellos = [with("plain", 1, &[]), with("fast", 2, &["gpu"])];
    let before = hellos.clone().map(|hello| rack.join(&hello));
    for task_type in [GET, TRAIN] {
        rack.switch.submit(task_type);
    }
    rack.plan.slices[0].serving = Serving::of(&[GPU], &[ANY, GPU]).unwrap();
    rack.restart_controller(1_000);
    for _ in 0..20 {
        for hello in &hellos {
            rack.ask(hello);
        }
        rack.run(Nanos::from_millis(5));
    }
    let after = hellos.map(|hello| rack.join(&hello));
    for (before, after) in before.iter().zip(&after) {
        assert!(after.generation > before.generation);
    }
    assert!(rack.switch.tasks(SliceId(0)).is_empty(), "what waited under the old plan was swept");
    assert_eq!(rack.switch.slice(SliceId(0)).row.serving, rack.plan.slices[0].serving);
    assert_eq!(rack.switch.slice(SliceId(0)).row.closed, 0);
}

#[test]
fn a_type_is_not_mapped_to_a_slice_that_knows_nobody_who_serves_it() {
    let mut rack = Rack::up_with(with_gpus());
    rack.join(&with("w", 1, &["gpu"]));
    let slice = Some("scan".to_owned());
    let call = rack.call(|call| Event::SetType { call, task_type: TRAIN, slice });
    let why = refused(rack.answers[&call].clone());
    let expected =
        "no kind of workers of slice `scan` has all labels that task type 3 needs: map it to another";
    assert_eq!(why, expected);
}

#[test]
fn a_switch_that_tells_no_kinds_apart_is_too_small_for_a_plan_with_labels() {
    let mut rack = Rack::up_with(with_gpus());
    rack.disconnect(0);
    rack.switch = Switch::new("rain", config(4, 64));
    rack.connect();
    assert_eq!(rack.controller.view(rack.now).link, LinkState::TooSmall);
    assert!(refused(rack.ask(&with("w", 1, &[]))).contains("labels"));
}

#[test]
fn wishes_are_left_aside_by_a_switch_that_tells_no_kinds_apart() {
    let mut plan = with_gpus();
    plan.slices[0].serving = plan.slices[0].serving.wished();
    let mut rack = Rack::up_with(plan);
    rack.disconnect(0);
    rack.switch = Switch::new("rain", config(4, 64));
    rack.connect();
    rack.run(Nanos::from_millis(10));
    rack.join(&with("fast", 1, &["gpu"]));
    assert!(rack.switch.slice(SliceId(0)).row.open);
}

#[test]
fn a_plan_whose_labels_make_no_sense_is_refused() {
    let wrong = |change: fn(&mut Plan)| {
        let mut plan = with_gpus();
        change(&mut plan);
        plan.check().unwrap_err().to_string()
    };
    assert_eq!(
        wrong(|plan| plan.labels.push("gpu".to_owned())),
        "label `gpu` stands there twice: leave it out once"
    );
    assert!(wrong(|plan| plan.labels[0].clear()).starts_with("a label:"));
    let many = wrong(|plan| plan.labels = (0..9).map(|label| label.to_string()).collect());
    assert!(many.contains("9 labels, and 8 are the most"), "{many}");
    let unserved = wrong(|plan| plan.needs[0].1 = Labels(2));
    assert_eq!(
        unserved,
        "no kind of workers of slice `get` has all labels that task type 3 needs: give them to some"
    );
}

#[test]
fn a_dead_workers_class_closes_with_its_lease() {
    let mut rack = Rack::up_with(with_gpus());
    let plain = with("plain", 1, &[]);
    rack.join(&plain);
    rack.join(&with("fast", 2, &["gpu"]));
    rack.renew_for(LEASE + RENEW, &[&plain]);
    assert_eq!(rack.switch.slice(SliceId(0)).row.closed, 1);
    assert!(rack.switch.slice(SliceId(0)).row.open);
}

#[test]
fn a_controller_that_starts_sweeps_what_waits_in_a_closed_class() {
    let mut rack = Rack::up_with(with_gpus());
    let (plain, fast) = (with("plain", 1, &[]), with("fast", 2, &["gpu"]));
    rack.join(&plain);
    let gone = rack.join(&fast).worker;
    (0..20).for_each(|_| rack.switch.submit(TRAIN));
    rack.leave(&fast);
    // The class is closed and its worker has left, and nothing was swept yet.
    while rack.switch.worker(gone).row.is_some() {
        assert!(rack.execute_one() || rack.deliver_one());
    }
    assert_eq!((rack.switch.slice(SliceId(0)).row.closed, rack.switch.tasks(SliceId(0)).len()), (1, 20));
    rack.restart_controller(0);
    rack.renew_for(Nanos::from_millis(100), &[&plain]);
    assert!(rack.switch.tasks(SliceId(0)).is_empty());
}
