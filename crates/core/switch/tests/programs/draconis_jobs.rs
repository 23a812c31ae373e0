//! Draconis: several tasks in one submission; one enters per pass, and each enters once.

use sluice_switch::{Cargo, Circulating, Refusal, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{ClientRow, SliceRow, TableOp};
use sluice_wire::{
    Attempt, ClientId, Epoch, Incarnation, Key, Packet, Reject, RejectReason, Submit, TaskJob,
};

use crate::rack::{CLIENT, Rack, START, at, circulating, dispatched, job, submit};

const LABELS: Labels = Labels(1);

fn rack(limit: u32) -> Rack {
    Rack::of("draconis:jobs=5", 4, limit)
}

/// The rest of a job after a pass.
fn rest(verdict: Verdict) -> (Circulating, u8) {
    let round = circulating(verdict);
    let Cargo::Job(job) = round.cargo else { panic!("{round:?}") };
    (round, job.tasks())
}

fn refused(verdict: Verdict) -> Reject {
    match verdict {
        Verdict::Send { packet: Packet::Reject(reject), .. } => reject,
        other => panic!("not refused: {other:?}"),
    }
}

fn served(rack: &mut Rack) -> Vec<i32> {
    let tokens = (0..20).map(|turn| rack.token(turn % 4));
    let tasks = tokens.collect::<Vec<_>>();
    let is_task = |verdict: &Verdict| matches!(verdict, Verdict::Send { packet: Packet::Dispatch(_), .. });
    tasks.into_iter().filter(is_task).map(|task| dispatched(task).task.sequence.since(START)).collect()
}

#[test]
fn a_pass_adds_one_task_and_sends_the_others_round() {
    let mut rack = rack(16);
    let mut verdict = rack.job(5);
    for left in (1..5).rev() {
        assert_eq!(rack.program.waiting(), u32::from(5 - left));
        let (round, tasks) = rest(verdict);
        assert_eq!(tasks, left);
        verdict = rack.once_more(round);
    }
    assert_eq!((verdict, rack.program.waiting()), (Verdict::Parked, 5));
    assert_eq!(served(&mut rack), [0, 1, 2, 3, 4]);
}

#[test]
fn others_tasks_and_polls_come_between_the_tasks_of_a_job() {
    let mut rack = rack(16);
    let (round, _) = rest(rack.job(3));
    assert_eq!(rack.task(), Verdict::Parked);
    assert_eq!(dispatched(rack.token(0)).task.sequence, START);
    let verdict = rack.once_more(round);
    assert_eq!(rack.go_round(verdict), Verdict::Parked);
    assert_eq!(served(&mut rack), [3, 1, 2]);
}

#[test]
fn a_tasks_wait_counts_from_when_its_job_came() {
    let mut rack = rack(16);
    let verdict = rack.job(2);
    assert_eq!(rack.go_round(verdict), Verdict::Parked);
    // One pass each for the second task and the two polls, 1,600 ns apart.
    assert_eq!([0, 1].map(|worker| dispatched(rack.token(worker)).wait_ns), [3_200, 4_800]);
}

#[test]
fn a_submission_that_comes_twice_enters_once() {
    let mut rack = rack(16);
    let verdict = rack.job(4);
    let twice = Packet::Job(job(START, 4));
    assert_eq!(rack.wire(at(200), twice), Verdict::Drop(Refusal::Replayed));
    assert_eq!(rack.go_round(verdict), Verdict::Parked);
    assert_eq!(rack.wire(at(200), twice), Verdict::Drop(Refusal::Replayed));
    assert_eq!(served(&mut rack), [0, 1, 2, 3]);
}

#[test]
fn a_task_whose_newer_try_has_come_meanwhile_is_passed_over() {
    let mut rack = rack(16);
    let (round, _) = rest(rack.job(3));
    let newer = Submit { attempt: Attempt(2), ..submit(START.plus(1)) };
    assert_eq!(rack.wire(at(200), Packet::Submit(newer)), Verdict::Parked);
    let verdict = rack.once_more(round);
    assert_eq!(rack.go_round(verdict), Verdict::Parked);
    assert_eq!(served(&mut rack), [0, 1, 2]);
    // The skipped task is the last of its job, so the job ends with it.
    let (round, _) = rest(rack.job(2));
    let newer = Submit { attempt: Attempt(2), ..submit(START.plus(4)) };
    assert_eq!(rack.wire(at(200), Packet::Submit(newer)), Verdict::Parked);
    let verdict = rack.once_more(round);
    assert_eq!(rack.go_round(verdict), Verdict::Drop(Refusal::Replayed));
}

#[test]
fn a_task_that_finds_the_retrieve_pointer_ahead_puts_it_right_before_the_next_enters() {
    let mut rack = rack(16);
    for worker in 0..3 {
        rack.token(worker);
    }
    let (round, tasks) = rest(rack.job(3));
    assert_eq!(tasks, 2);
    assert!(matches!(rack.token(3), Verdict::Send { packet: Packet::Empty(_), .. }), "until the fix lands");
    let (round, tasks) = rest(rack.once_more(round));
    assert_eq!((tasks, rack.program.waiting()), (2, 1), "the fix takes a pass of its own");
    let verdict = rack.once_more(round);
    assert_eq!(rack.go_round(verdict), Verdict::Parked);
    assert_eq!(served(&mut rack), [0, 1, 2]);
}

#[test]
fn a_full_queue_rejects_a_task_with_all_behind_it_and_none_of_them_ever_enters() {
    let mut rack = rack(2);
    let verdict = rack.job(5);
    let reject = refused(rack.go_round(verdict));
    assert_eq!((reject.task.sequence, reject.behind), (START.plus(2), 2));
    assert_eq!(reject.reason, RejectReason::QueueFull);
    let twice = rack.wire(at(200), Packet::Job(job(START, 5)));
    assert_eq!(twice, Verdict::Drop(Refusal::Replayed));
    assert_eq!(served(&mut rack), [0, 1]);
    let verdict = rack.task();
    assert_eq!(
        rack.go_round(verdict),
        Verdict::Drop(Refusal::FixDone),
        "the add pointer is where it belongs"
    );
    assert_eq!(served(&mut rack), [5]);
}

#[test]
fn while_adds_fail_a_job_is_rejected_as_one_task_is() {
    let mut rack = rack(1);
    assert_eq!(rack.task(), Verdict::Parked);
    let fix = circulating(rack.task());
    let reject = refused(rack.job(3));
    assert_eq!((reject.task.sequence, reject.behind), (START.plus(2), 2));
    refused(rack.once_more(fix));
    assert_eq!(served(&mut rack), [0]);
}

#[test]
fn a_slice_that_closes_and_labels_that_nobody_has_refuse_what_is_left_of_a_job() {
    let mut rack = rack(16);
    let (round, _) = rest(rack.job(4));
    let row = rack.state().row;
    rack.set_slice(SliceRow { open: false, ..row });
    let reject = refused(rack.once_more(round));
    assert_eq!(
        (reject.reason, reject.task.sequence, reject.behind),
        (RejectReason::NoWorkers, START.plus(1), 2)
    );

    let serving = Serving::of(&[Labels::NONE], &[Labels::NONE]).unwrap();
    let mut rack = Rack::of_kinds_under("draconis:labels,jobs=5", serving, &[0], 16);
    let needs = |at| Submit { constraints: LABELS.0, ..submit(START.plus(at)) };
    let mut job = TaskJob::of(needs(0)).unwrap();
    assert!(job.push(&needs(1)));
    let reject = refused(rack.wire(at(200), Packet::Job(job)));
    assert_eq!((reject.reason, reject.behind), (RejectReason::Unserved, 1));
}

#[test]
fn what_is_left_of_a_job_goes_with_its_clients_registration() {
    let mut rack = rack(16);
    let (round, _) = rest(rack.job(3));
    let anew = ClientRow { key: Key(23), at: at(200), incarnation: Incarnation(100) };
    rack.program.table(TableOp::SetClient(CLIENT, Some((anew, START))));
    assert_eq!(rack.once_more(round), Verdict::Drop(Refusal::UnknownSource));
    assert_eq!(served(&mut rack), [0]);
}

#[test]
fn a_job_is_let_in_as_a_task_is_and_has_no_more_tasks_than_were_said() {
    let mut rack = Rack::of("draconis:jobs=3", 4, 16);
    let with = |first: Submit| {
        let mut job = TaskJob::of(first).unwrap();
        let mut next = first;
        next.task.sequence = next.task.sequence.plus(1);
        assert!(job.push(&next));
        Packet::Job(job)
    };
    let cases = [
        (at(201), with(submit(START)), Refusal::WrongAddress),
        (at(200), with(Submit { key: Key(1), ..submit(START) }), Refusal::WrongKey),
        (at(200), with(Submit { client: ClientId(3), ..submit(START) }), Refusal::UnknownSource),
        (at(200), Packet::Job(job(START, 4)), Refusal::Unexpected),
    ];
    for (from, packet, why) in cases {
        assert_eq!(rack.wire(from, packet), Verdict::Drop(why));
    }
    let stale = rack.wire(at(200), with(Submit { epoch: Epoch(1), ..submit(START) }));
    assert!(matches!(stale, Verdict::Send { packet: Packet::Notice(_), .. }), "{stale:?}");
    let verdict = rack.job(3);
    assert_eq!(rack.go_round(verdict), Verdict::Parked);
}

#[test]
fn who_did_not_ask_for_jobs_takes_none() {
    for program in ["rain:2", "r2p2:2", "racksched:2", "draconis", "pallas", "horus", "server:1"] {
        let mut rack = Rack::of(program, 4, 16);
        assert_eq!(rack.job(2), Verdict::Drop(Refusal::Unexpected), "{program}");
    }
}

#[test]
fn as_published_a_full_queue_says_nothing_of_what_is_left_of_a_job() {
    let mut rack = Rack::of("draconis:jobs=5,as-published", 4, 2);
    let verdict = rack.job(5);
    assert_eq!(rack.go_round(verdict), Verdict::Drop(Refusal::QueueFull));
    assert_eq!(served(&mut rack), [0, 1]);
}

/// Two slices have room for 16 tasks each, and eight workers for eight tokens each: so many packets may
/// recirculate.
#[test]
fn while_as_much_goes_round_as_may_tasks_and_jobs_are_refused_and_counted() {
    let mut rack = Rack::of("draconis:classes=2,jobs=5", 4, 16);
    let polls: Vec<_> = (0..96).map(|_| circulating(rack.token(0))).collect();
    assert_eq!(refused(rack.task()).reason, RejectReason::NoRoom);
    let reject = refused(rack.job(3));
    assert_eq!((reject.reason, reject.behind), (RejectReason::NoRoom, 2));
    assert_eq!(rack.program.refusals().of(Refusal::RoundsFull), 2);
    rack.once_more(polls[0]);
    circulating(rack.task());
}
