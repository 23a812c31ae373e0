//! A rack of Rain below a spine: a parked token of an idle worker makes the rack idle, and the rack's load
//! is its backlog.

use sluice_switch::horus::{Average, IDLE_SELECTED, LoadsTold};
use sluice_switch::rain::RainLeaf;
use sluice_wire::tables::SpineRow;
use sluice_wire::{Epoch, MeanQueue, Rank, RejectReason, Sweep, SweepOf, Token};

use super::*;
use crate::rack::{rejected, token};

/// A leaf, the UPDATEs that it sent, and the counts of its workers' tokens and its spine's tasks.
struct RainRack {
    leaf: RainLeaf,
    told: Vec<RackNews>,
    issued: Vec<Serial>,
    sent: Serial,
}

impl RainRack {
    /// So many workers with so many tokens each, none of them sent yet. The spine was told that no worker
    /// is idle.
    fn of(reading: FabricReading, depth: u8, workers: u16) -> Self {
        let mut leaf = RainLeaf::in_fabric(depth, reading, config(), 4);
        open(&mut leaf);
        leaf.set_spine(SPINE, Some((link(0), START))).expect("room for it");
        for worker in 0..workers {
            let row = WorkerRow { at: worker_at(0, worker), ..crate::rack::row(worker, 1, true) };
            assert_eq!(
                leaf.table(TableOp::RaiseGeneration(WorkerId(worker), row.generation)),
                TableAnswer::Done
            );
            assert_eq!(leaf.table(TableOp::SetWorker(WorkerId(worker), Some(row))), TableAnswer::Done);
        }
        let told = leaf.link(SLICE, Some(SPINE)).expect("a spine that it knows");
        assert_eq!(told.map(|told| told.update.news), Some(RackNews::Busy));
        Self { leaf, told: Vec::new(), issued: vec![START; workers.into()], sent: START }
    }

    fn new(depth: u8, workers: u16) -> Self {
        Self::of(FabricReading::default(), depth, workers)
    }

    fn pass(&mut self, arrival: Arrival) -> Verdict {
        let verdict = self.leaf.pass(Nanos(0), arrival);
        self.told.extend(self.leaf.mirrored().map(|told| told.update.news));
        verdict
    }

    /// The worker's next token, behind so many tasks.
    fn token(&mut self, worker: u16, rank: u32) -> Verdict {
        let issued = &mut self.issued[usize::from(worker)];
        *issued = issued.plus(1);
        let packet = Packet::Token(Token { rank: Rank::behind(rank), ..token(worker, *issued) });
        self.pass(Arrival::Wire { from: worker_at(0, worker), packet, room: true })
    }

    /// The spine's next task; `idle` says whether the spine believed the rack idle.
    fn task(&mut self, idle: bool) -> Verdict {
        self.sent = self.sent.plus(1);
        let submit = submit(self.sent);
        let dispatch = Dispatch {
            epoch: EPOCH,
            generation: GENERATION,
            sent: self.sent,
            client: submit.client,
            task: submit.task,
            task_type: submit.task_type,
            payload: submit.payload,
            occupancy: if idle { IDLE_SELECTED } else { 0 },
            ..Dispatch::default()
        };
        self.forward(dispatch)
    }

    fn forward(&mut self, dispatch: Dispatch) -> Verdict {
        self.pass(Arrival::Wire { from: spine_at(), packet: Packet::Dispatch(dispatch), room: true })
    }

    fn news(&mut self) -> Vec<RackNews> {
        std::mem::take(&mut self.told)
    }
}

#[test]
fn the_first_parked_token_makes_a_rack_idle_and_the_task_that_takes_the_last_one_makes_it_busy() {
    let mut rack = RainRack::new(1, 2);
    assert_eq!(rack.token(0, 0), Verdict::Parked);
    assert_eq!(rack.news(), [RackNews::Idle]);
    assert_eq!(rack.token(1, 0), Verdict::Parked);
    assert_eq!(rack.news(), [RackNews::Idle], "all are idle: it says so again");
    assert_eq!(dispatched(rack.task(true)).worker, WorkerId(0));
    assert_eq!(rack.news(), []);
    assert_eq!(dispatched(rack.task(true)).worker, WorkerId(1));
    assert_eq!(rack.news(), [RackNews::Busy]);
}

#[test]
fn a_token_behind_a_task_serves_and_does_not_make_a_rack_idle() {
    let mut rack = RainRack::new(2, 2);
    assert_eq!(rack.token(0, 1), Verdict::Parked);
    assert_eq!(rack.news(), [], "that it is busy says as much of its load, and it is not idle");
    rack.token(1, 0);
    assert_eq!(rack.news(), [RackNews::Idle]);
    assert_eq!(dispatched(rack.task(true)).worker, WorkerId(1), "the idle one first");
    assert_eq!(rack.news(), [RackNews::Busy]);
    assert_eq!(dispatched(rack.task(false)).worker, WorkerId(0));
    assert_eq!(rack.news(), [], "it was told");
}

#[test]
fn what_a_task_says_of_the_rack_is_put_right_if_the_word_was_lost() {
    let mut rack = RainRack::new(1, 3);
    rack.token(0, 0);
    rack.token(1, 0);
    rack.news();
    rack.task(false);
    assert_eq!(rack.news(), [RackNews::Idle], "the spine took it for busy");
    rack.task(true);
    assert_eq!(rack.news(), [RackNews::Busy]);
    rack.task(true);
    assert_eq!(rack.news(), [RackNews::Busy], "the spine takes it for idle all the same");
}

#[test]
fn a_task_waits_for_the_next_token_and_the_backlog_is_what_waits_and_what_workers_hold() {
    let mut rack = RainRack::new(1, 2);
    rack.token(0, 0);
    rack.token(1, 0);
    assert_eq!(rack.leaf.backlog(SLICE), Average::default());
    for _ in 0..5 {
        rack.task(false);
    }
    assert_eq!((rack.leaf.waiting(), rack.leaf.backlog(SLICE).bits()), (3, 0x2_8000), "two and a half each");
    rack.news();
    let served = dispatched(rack.token(0, 0));
    assert_eq!(served.task.sequence, START.plus(3), "the oldest");
    assert_eq!(rack.news(), [], "half a task less than the spine has counted");
    rack.token(1, 0);
    assert_eq!(rack.news(), [RackNews::Load(MeanQueue(0x1_8000))], "a whole one");
    rack.token(0, 0);
    assert_eq!(rack.news(), []);
}

#[test]
fn a_load_is_told_after_as_many_tokens_as_workers_where_the_authors_switch_is_read() {
    let reading = FabricReading { told: LoadsTold::ByReplies, ..FabricReading::default() };
    let mut rack = RainRack::of(reading, 1, 2);
    for _ in 0..10 {
        rack.task(false);
    }
    rack.news();
    for told in [0, 1, 0, 1] {
        rack.token(0, 0);
        assert_eq!(rack.news().len(), told);
    }
}

#[test]
fn each_number_is_let_in_once_and_clients_submit_to_spines() {
    let mut rack = RainRack::new(1, 1);
    rack.token(0, 0);
    dispatched(rack.task(true));
    let submit = submit(rack.sent);
    let again = Dispatch {
        epoch: EPOCH,
        generation: GENERATION,
        sent: rack.sent,
        client: submit.client,
        ..Dispatch::default()
    };
    assert_eq!(refused(rack.forward(again)), Refusal::Replayed);
    let packet = Packet::Submit(submit);
    let direct = rack.pass(Arrival::Wire { from: at(200), packet, room: true });
    assert_eq!(refused(direct), Refusal::Unexpected);
}

#[test]
fn a_full_queue_refuses_aloud_and_still_says_how_the_rack_stands() {
    let mut rack = RainRack::new(1, 1);
    (0..16).for_each(|_| assert_eq!(rack.task(false), Verdict::Parked));
    rack.news();
    assert_eq!(rejected(rack.task(true)), RejectReason::QueueFull);
    assert_eq!(rack.news(), [RackNews::Busy]);
}

#[test]
fn a_token_of_a_worker_that_is_gone_sends_its_task_round_and_no_further() {
    let mut rack = RainRack::new(1, 2);
    rack.token(0, 0);
    rack.token(1, 0);
    let gone = TableOp::RaiseGeneration(WorkerId(0), Generation(2));
    assert_eq!(rack.leaf.table(gone), TableAnswer::Done);
    let Verdict::Again(round) = rack.task(true) else { panic!("the oldest token is stale") };
    assert_eq!(dispatched(rack.pass(Arrival::Round(round))).worker, WorkerId(1));
}

#[test]
fn a_client_that_the_leaf_does_not_know_is_told_through_the_spine_that_its_task_came_from() {
    let mut rack = RainRack::new(1, 1);
    assert_eq!(rack.leaf.table(TableOp::SetClient(CLIENT, None)), TableAnswer::Done);
    (0..16).for_each(|_| assert_eq!(rack.task(false), Verdict::Parked));
    let told = |verdict| match verdict {
        Verdict::Send { to, packet: Packet::Reject(reject) }
        | Verdict::Swept { to, packet: Packet::Reject(reject), .. } => (to, reject.epoch),
        other => panic!("the client is to be told: {other:?}"),
    };
    assert_eq!(told(rack.task(true)), (spine_at(), EPOCH));
    // From now on the pool's tasks come from another spine.
    let epoch = Epoch(EPOCH.0 + 1);
    let row = SpineRow { at: at(301), epoch, leaf: WorkerId(0), generation: GENERATION, start: START };
    assert_eq!(rack.leaf.table(TableOp::SetSpine(SLICE, row)), TableAnswer::Done);
    let news = rack.leaf.mirrored().expect("the new one is told how the rack stands");
    assert_eq!((news.to, news.update.news), (at(301), RackNews::Load(MeanQueue(0x11_0000))));
    let late = told(rack.task(true));
    assert_eq!(late, (spine_at(), EPOCH), "one that comes from the old one all the same goes back there");
    let closed = SliceRow { open: false, limit: 16, ..SliceRow::default() };
    assert_eq!(rack.leaf.table(TableOp::SetSlice(SLICE, closed)), TableAnswer::Done);
    let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tasks, left: 1, carried: None };
    let swept = told(rack.pass(Arrival::Control(sweep)));
    assert_eq!(swept, (at(301), epoch), "of one that waited no more is known");
}

/// A worker's token counts as a task at the worker until it is parked, as long as the worker is registered.
#[test]
fn a_worker_that_leaves_or_moves_takes_its_share_of_the_mean_with_it() {
    for elsewhere in [None, Some(SliceId(0))] {
        let mut rack = RainRack::new(1, 4);
        (0..6).for_each(|_| assert_eq!(rack.task(false), Verdict::Parked));
        let mean = |tasks, workers| {
            let share = Average::share(RackSize::new(workers).expect("workers"));
            Average::of(tasks, share).expect("few tasks")
        };
        assert_eq!(rack.leaf.backlog(SLICE), mean(10, 4));
        let row = elsewhere.map(|slice| WorkerRow {
            at: worker_at(0, 3),
            slice,
            generation: Generation(2),
            ..crate::rack::row(3, 1, true)
        });
        rack.leaf.table(TableOp::SetWorker(WorkerId(3), row));
        assert_eq!(rack.leaf.backlog(SLICE), mean(9, 3), "moved to {elsewhere:?}");
        rack.leaf.table(TableOp::SetWorker(WorkerId(2), None));
        assert_eq!(rack.leaf.backlog(SLICE), mean(8, 2));
        let back = WorkerRow { at: worker_at(0, 2), ..crate::rack::row(2, 1, true) };
        rack.leaf.table(TableOp::SetWorker(WorkerId(2), Some(back)));
        assert_eq!(rack.leaf.backlog(SLICE), mean(9, 3));
    }
}

/// Each task is alone, at a rack of Rain that always has idle workers.
#[test]
fn what_a_spine_counts_for_tasks_of_an_idle_rack_is_taken_back_here_too() {
    for (as_published, least, most) in [(false, 20, 40), (true, 0, 0)] {
        let mut rack = RainRack::of(FabricReading { as_published, ..FabricReading::default() }, 1, 6);
        (0..6).for_each(|worker| assert_eq!(rack.token(worker, 0), Verdict::Parked));
        rack.news();
        for _ in 0..200 {
            let worker = dispatched(rack.task(true)).worker.0;
            assert_eq!(rack.token(worker, 0), Verdict::Parked);
        }
        let loads = rack.news().into_iter().filter(|news| matches!(news, RackNews::Load(_))).count();
        assert!((least..=most).contains(&loads), "{loads} words for 200 tasks of a sixth each");
    }
}
