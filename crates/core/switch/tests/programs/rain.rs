//! Rain's queue: which tasks meet which tokens, in which order, and what is refused.

use crate::rack::{
    CLIENT, EPOCH, GET, Rack, SLICE, START, at, dispatched, probe, rejected, row, submit, token,
};
use sluice_switch::{Arrival, Refusal, Verdict};
use sluice_wire::tables::{SliceRow, TableAnswer, TableOp};
use sluice_wire::{
    Age, Attempt, Counters, Endpoint, Epoch, Generation, Key, Nanos, Packet, RejectReason, Serial, SliceId,
    Submit, Sweep, SweepOf, TaskType, Token, WorkerId,
};

fn answered(verdict: Verdict) -> Option<Counters> {
    match verdict {
        Verdict::Send { packet: Packet::Answer(answer), .. } => answer.counters,
        other => panic!("not answered: {other:?}"),
    }
}

#[test]
fn a_task_goes_to_the_token_that_parked_first() {
    let mut rack = Rack::new(2, 16);
    assert_eq!(rack.token(1), Verdict::Parked);
    assert_eq!(rack.token(0), Verdict::Parked);
    assert_eq!(rack.state().balance, 2);
    let first = dispatched(rack.task());
    assert_eq!((first.worker, first.wait_ns, first.occupancy), (WorkerId(1), 0, 0));
    assert_eq!((first.sent, first.seen), (START.plus(1), START.plus(1)));
    assert_eq!(dispatched(rack.task()).worker, WorkerId(0));
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn a_waiting_task_goes_to_the_next_token_and_tells_how_it_waited() {
    let mut rack = Rack::new(1, 16);
    assert_eq!(rack.task(), Verdict::Parked);
    assert_eq!(rack.task(), Verdict::Parked);
    assert_eq!(rack.state().balance, -2);
    let dispatch = dispatched(rack.token(0));
    assert_eq!(dispatch.task.sequence, START);
    assert_eq!((dispatch.wait_ns, dispatch.occupancy), (3_200, 1));
    assert_eq!(dispatch.client_at, at(200));
    assert_eq!(dispatch.payload.inline, [1, 2, 3, 4, 0, 0, 0, 0]);
}

#[test]
fn tasks_keep_their_order_over_many_laps_of_the_ring_and_the_wrap_of_its_counters() {
    let mut rack = Rack::new(1, 16);
    for lap in 0..50 {
        (0..7).for_each(|_| assert_eq!(rack.task(), Verdict::Parked));
        for step in 0..7 {
            assert_eq!(dispatched(rack.token(0)).task.sequence, START.plus(lap * 7 + step));
        }
    }
}

#[test]
fn a_tasks_age_grows_by_its_time_in_the_switch_and_both_stay_true_for_days() {
    for waits_ms in [0, 3, 100_000, 4 * 3_600_000, 5 * 3_600_000, 19 * 3_600_000, 30 * 24 * 3_600_000] {
        let mut rack = Rack::new(1, 16);
        let age = Age::of(Nanos::from_millis(50));
        rack.wire(at(200), Packet::Submit(Submit { age, ..submit(START) }));
        let arrived = rack.now;
        rack.now = rack.now + Nanos::from_millis(waits_ms);
        let dispatch = dispatched(rack.token(0));
        let waited = rack.now - arrived;
        assert_eq!((dispatch.wait_ns, dispatch.age), (waited.saturated(), age.plus(waited)));
    }
    let mut rack = Rack::new(1, 16);
    let long = Age::of(Nanos::from_millis(300_000));
    rack.wire(at(200), Packet::Submit(Submit { age: long, ..submit(START) }));
    assert_eq!(dispatched(rack.token(0)).age, Age::MAX, "older than an entry can say");
}

#[test]
fn a_full_queue_rejects_aloud_and_stays_as_it_was() {
    let mut rack = Rack::new(1, 3);
    (0..3).for_each(|_| assert_eq!(rack.task(), Verdict::Parked));
    assert_eq!(rejected(rack.task()), RejectReason::QueueFull);
    assert_eq!(rack.state().balance, -3);
    dispatched(rack.token(0));
    assert_eq!(rack.task(), Verdict::Parked);
}

#[test]
fn a_try_enters_once_and_an_older_one_never_after_it() {
    let mut rack = Rack::new(1, 16);
    let first = submit(START);
    let second = Submit { attempt: Attempt(2), ..first };
    assert_eq!(rack.wire(at(200), Packet::Submit(first)), Verdict::Parked);
    assert_eq!(rack.wire(at(200), Packet::Submit(first)), Verdict::Drop(Refusal::Replayed));
    assert_eq!(rack.wire(at(200), Packet::Submit(second)), Verdict::Parked);
    assert_eq!(rack.wire(at(200), Packet::Submit(first)), Verdict::Drop(Refusal::Replayed));
    assert_eq!(rack.state().balance, -2);
}

#[test]
fn a_sequence_number_before_the_registration_does_not_enter() {
    let mut rack = Rack::new(1, 16);
    let early = submit(Serial(START.0 - 1));
    assert_eq!(rack.wire(at(200), Packet::Submit(early)), Verdict::Drop(Refusal::Replayed));
}

#[test]
fn a_repeated_token_is_answered_and_grants_nothing() {
    let mut rack = Rack::new(1, 16);
    assert_eq!(rack.token(0), Verdict::Parked);
    let again = rack.wire(at(100), Packet::Token(token(0, START.plus(1))));
    assert_eq!(answered(again), Some(Counters { seen: START.plus(1), sent: START }));
    assert_eq!(rack.state().balance, 1);
    assert_eq!(rack.program.refusals().of(Refusal::RepeatedToken), 1);
}

#[test]
fn a_token_that_counts_ahead_grants_one_at_a_time_and_beyond_eight_none() {
    let mut rack = Rack::new(1, 16);
    let ahead = Packet::Token(token(0, START.plus(8)));
    for granted in 1..=8 {
        assert_eq!(rack.wire(at(100), ahead), Verdict::Parked);
        assert_eq!(rack.state().balance, granted);
    }
    answered(rack.wire(at(100), ahead));
    let beyond = Packet::Token(token(0, START.plus(17)));
    answered(rack.wire(at(100), beyond));
    assert_eq!(rack.program.refusals().of(Refusal::ImpossibleCounter), 1);
    assert_eq!(rack.state().balance, 8);
}

#[test]
fn strangers_and_wrong_keys_change_nothing() {
    let mut rack = Rack::new(1, 16);
    let good = token(0, START.plus(1));
    let cases = [
        (at(100), Token { worker: WorkerId(5), ..good }, Refusal::UnknownSource),
        (at(100), Token { worker: WorkerId(500), ..good }, Refusal::UnknownSource),
        (at(100), Token { key: Key(1), ..good }, Refusal::WrongKey),
        (at(101), good, Refusal::WrongAddress),
    ];
    for (from, token, refusal) in cases {
        assert_eq!(rack.wire(from, Packet::Token(token)), Verdict::Drop(refusal));
    }
    let wrong = Submit { key: Key(1), ..submit(START) };
    assert_eq!(rack.wire(at(200), Packet::Submit(wrong)), Verdict::Drop(Refusal::WrongKey));
    let sweep = Packet::Sweep(Sweep { epoch: EPOCH, slice: SLICE, left: 9, ..Sweep::default() });
    assert_eq!(rack.wire(at(100), sweep), Verdict::Drop(Refusal::Unexpected));
    assert_eq!((rack.state().balance, rack.worker(0).seen), (0, START));
}

#[test]
fn another_epoch_is_answered_with_the_right_one() {
    let mut rack = Rack::new(1, 16);
    let old = Packet::Token(Token { epoch: Epoch(6), ..token(0, START.plus(1)) });
    assert_eq!(answered(rack.wire(at(100), old)), Some(Counters { seen: START, sent: START }));
    let old = Packet::Submit(Submit { epoch: Epoch(6), ..submit(START) });
    let Verdict::Send { to, packet: Packet::Notice(notice) } = rack.wire(at(200), old) else {
        panic!("no notice")
    };
    assert_eq!((to, notice.epoch, notice.task.sequence), (at(200), EPOCH, START));
    assert_eq!(rack.task(), Verdict::Parked, "the notice left the replay cell as it was");
}

#[test]
fn a_closed_worker_is_answered_without_counters() {
    let mut rack = Rack::new(1, 16);
    rack.program.table(TableOp::SetWorker(WorkerId(0), Some(row(0, 1, false))));
    assert_eq!(answered(rack.token(0)), None);
    assert_eq!(answered(rack.wire(at(100), Packet::Probe(probe(0)))), None);
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn a_probe_is_answered_with_the_counters() {
    let mut rack = Rack::new(1, 16);
    rack.token(0);
    rack.task();
    let answer = answered(rack.wire(at(100), Packet::Probe(probe(0))));
    assert_eq!(answer, Some(Counters { seen: START.plus(1), sent: START.plus(1) }));
}

#[test]
fn a_task_that_meets_stale_tokens_goes_round_to_a_live_one() {
    let mut rack = Rack::new(2, 16);
    rack.token(0);
    rack.token(0);
    rack.token(1);
    rack.admit(0, 2);
    let mut verdict = rack.task();
    let mut rounds = 0;
    while let Verdict::Again(circulating) = verdict {
        rounds += 1;
        verdict = rack.program.pass(rack.now, Arrival::Round(circulating));
    }
    assert_eq!((rounds, dispatched(verdict).worker), (2, WorkerId(1)));
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn a_task_that_has_gone_round_sixteen_times_is_rejected() {
    let mut rack = Rack::new(5, 16);
    for worker in 0..4 {
        (0..8).for_each(|_| assert_eq!(rack.token(worker), Verdict::Parked));
        rack.admit(worker, 2);
    }
    let mut verdict = rack.task();
    let mut rounds = 0;
    while let Verdict::Again(circulating) = verdict {
        rounds += 1;
        verdict = rack.program.pass(rack.now, Arrival::Round(circulating));
    }
    assert_eq!(rejected(verdict), RejectReason::StaleTokens);
    assert_eq!((rounds, rack.state().balance), (17, 32 - 17), "a stale token for each pass but the last");
}

#[test]
fn a_task_that_waited_is_dispatched_as_it_was_submitted() {
    let mut rack = Rack::new(1, 16);
    let submit = Submit { attempt: Attempt(3), priority: 7, constraints: 9, ..submit(rack.next()) };
    assert_eq!(rack.wire(at(200), Packet::Submit(submit)), Verdict::Parked);
    let dispatch = dispatched(rack.token(0));
    assert_eq!((dispatch.attempt, dispatch.task_type), (Attempt(3), GET));
    assert_eq!((dispatch.priority, dispatch.constraints), (7, 9));
    assert_eq!((dispatch.task, dispatch.payload), (submit.task, submit.payload));
}

#[test]
fn two_slices_keep_their_tasks_apart() {
    let mut rack = Rack::new(1, 16);
    let (other, put) = (SliceId(0), TaskType(2));
    rack.open(other);
    rack.program.table(TableOp::SetType(put, Some(other)));
    let first = rack.next();
    for turn in 0..16 {
        rack.task();
        let submit = Submit { task_type: put, ..submit(first.plus(32 + turn)) };
        assert_eq!(rack.wire(at(200), Packet::Submit(submit)), Verdict::Parked);
    }
    let waiting = |rack: &Rack, slice| {
        let tasks = rack.program.parked(slice).tasks;
        tasks.iter().map(|task| task.task.sequence.since(first)).collect::<Vec<_>>()
    };
    assert_eq!(waiting(&rack, SLICE), (0..16).collect::<Vec<_>>());
    assert_eq!(waiting(&rack, other), (32..48).collect::<Vec<_>>());
}

fn run_sweep(rack: &mut Rack, of: SweepOf, left: u16) -> Vec<Verdict> {
    let sweep = Sweep { epoch: EPOCH, slice: SLICE, of, left, carried: None };
    let mut verdicts = vec![rack.program.pass(rack.now, Arrival::Control(sweep))];
    while let Some(&Verdict::Again(circulating)) = verdicts.last() {
        verdicts.push(rack.program.pass(rack.now, Arrival::Round(circulating)));
    }
    verdicts
}

#[test]
fn a_sweep_drops_stale_tokens_and_parks_live_ones_again() {
    let mut rack = Rack::new(3, 16);
    (0..3).for_each(|worker| assert_eq!(rack.token(worker), Verdict::Parked));
    rack.admit(1, 2);
    let before = rack.state();
    run_sweep(&mut rack, SweepOf::Tokens, 3);
    let after = rack.state();
    assert_eq!(after.balance, 2);
    assert!(after.tokens_out.behind(before.tokens_in) == 0, "all tokens of before have been visited");
    assert_eq!([0, 2].map(|_| dispatched(rack.task()).worker), [WorkerId(0), WorkerId(2)]);
}

#[test]
fn a_sweep_with_a_live_token_in_hand_serves_a_task_that_came_meanwhile() {
    let mut rack = Rack::new(1, 16);
    rack.token(0);
    let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tokens, left: 5, carried: None };
    let Verdict::Again(circulating) = rack.program.pass(rack.now, Arrival::Control(sweep)) else {
        panic!("no token")
    };
    assert_eq!(rack.task(), Verdict::Parked);
    let verdict = rack.program.pass(rack.now, Arrival::Round(circulating));
    assert_eq!(dispatched(verdict).worker, WorkerId(0));
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn a_token_in_a_sweeps_hand_is_dropped_if_its_worker_closed_meanwhile() {
    let mut rack = Rack::new(1, 16);
    rack.token(0);
    let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tokens, left: 5, carried: None };
    let Verdict::Again(circulating) = rack.program.pass(rack.now, Arrival::Control(sweep)) else {
        panic!("no token")
    };
    rack.program.table(TableOp::SetWorker(WorkerId(0), Some(row(0, 1, false))));
    let verdict = rack.program.pass(rack.now, Arrival::Round(circulating));
    assert_eq!(verdict, Verdict::Drop(Refusal::SweepDone));
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn tasks_of_a_closed_slice_are_swept_to_rejects_and_new_ones_refused() {
    let mut rack = Rack::new(0, 16);
    rack.task();
    rack.task();
    assert_eq!(
        run_sweep(&mut rack, SweepOf::Tasks, 9),
        [Verdict::Drop(Refusal::SweepDone)],
        "open: not swept"
    );
    rack.program.table(TableOp::SetSlice(
        SLICE,
        SliceRow { open: false, limit: 16, retry_after: Nanos(500), ..SliceRow::default() },
    ));
    assert_eq!(rejected(rack.task()), RejectReason::NoWorkers);
    for _ in 0..2 {
        let verdicts = run_sweep(&mut rack, SweepOf::Tasks, 9);
        assert_eq!(rejected(verdicts[0]), RejectReason::NoWorkers);
    }
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn a_swept_task_of_a_client_that_left_still_gives_its_payload_back() {
    let mut rack = Rack::new(0, 16);
    let payload = sluice_wire::Payload { len: 640, inline: [0; 8], handle: sluice_wire::Handle(5) };
    rack.wire(at(200), Packet::Submit(Submit { payload, ..submit(START) }));
    rack.program.table(TableOp::SetClient(CLIENT, None));
    rack.program.table(TableOp::SetSlice(
        SLICE,
        SliceRow { open: false, limit: 16, retry_after: Nanos(500), ..SliceRow::default() },
    ));
    let verdict = run_sweep(&mut rack, SweepOf::Tasks, 9)[0];
    let Verdict::Swept { to, payload, .. } = verdict else { panic!("not swept: {verdict:?}") };
    assert_eq!((to, payload), (Endpoint::default(), sluice_wire::Handle(5)));
}

#[test]
fn a_type_without_a_slice_and_a_payload_without_room_are_rejected() {
    let mut rack = Rack::new(1, 16);
    let unknown = Submit { task_type: TaskType(3), ..submit(START) };
    assert_eq!(rejected(rack.wire(at(200), Packet::Submit(unknown))), RejectReason::UnknownType);
    let packet = Packet::Submit(submit(START.plus(1)));
    let verdict = rack.program.pass(rack.now, Arrival::Wire { from: at(200), packet, room: false });
    assert_eq!(rejected(verdict), RejectReason::NoRoom);
    assert_eq!(
        rack.wire(at(200), packet),
        Verdict::Drop(Refusal::Replayed),
        "a rejected try never runs later"
    );
}

#[test]
fn a_task_of_a_client_that_left_still_spends_its_token() {
    let mut rack = Rack::new(1, 16);
    rack.task();
    rack.program.table(TableOp::SetClient(CLIENT, None));
    assert_eq!(dispatched(rack.token(0)).client_at, Endpoint::default());
}

#[test]
fn indices_outside_the_shape_are_refused_to_the_controller() {
    let mut rack = Rack::new(1, 16);
    let ops = [
        TableOp::SetType(TaskType(4), None),
        TableOp::SetType(GET, Some(SliceId(2))),
        TableOp::SetSlice(
            SLICE,
            SliceRow { open: true, limit: 17, retry_after: Nanos(0), ..SliceRow::default() },
        ),
        TableOp::ReadSlice(SliceId(2)),
        TableOp::SetWorker(WorkerId(8), None),
        TableOp::SetWorker(
            WorkerId(0),
            Some(sluice_wire::tables::WorkerRow { slice: SliceId(2), ..row(0, 1, true) }),
        ),
        TableOp::RaiseGeneration(WorkerId(8), Generation(1)),
        TableOp::SetClient(sluice_wire::ClientId(4), None),
    ];
    for op in ops {
        assert_eq!(rack.program.table(op), TableAnswer::OutOfRange, "{op:?}");
    }
}
