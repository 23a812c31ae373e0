//! A fabric whose switches learn everything from their tables. The spine's row of a leaf holds its weight,
//! and a row at the leaf names its spine. Leaves know no clients; packets for clients go up through the
//! spine.

use sluice_switch::horus::{Average, FabricReading, Horus, RackSize, Spine};
use sluice_switch::{Arrival, Config, Program, Refusal, Verdict};
use sluice_wire::tables::{SliceRow, SpineRow, TableAnswer, TableOp, WorkerRow};
use sluice_wire::{
    ClientId, Dispatch, Endpoint, Generation, Nanos, Packet, RackNews, RejectReason, Reply, Serial, SliceId,
    TaskType, Update, WorkerId,
};

use super::{config, go_round, leaf_at, open, refused, spine_at, update_from, worker_at};
use crate::rack::{CLIENT, EPOCH, GET, SLICE, START, at, dispatched, submit};

const OTHER_SLICE: SliceId = SliceId(0);
const OTHER_TYPE: TaskType = TaskType(2);
/// The leaf's numbers at the spine, one for each pool.
const FIRST: WorkerId = WorkerId(0);
const SECOND: WorkerId = WorkerId(1);

struct Pair {
    spine: Spine,
    leaf: Horus,
    next: Serial,
}

impl Pair {
    /// Two workers in each of two pools; the leaf has told nothing yet.
    fn new() -> Self {
        let spine = Spine::new(FabricReading::default(), config()).expect("few leaves");
        let leaf = Horus::in_fabric(FabricReading::default(), Config { clients: 1, ..config() }, 2);
        let mut pair = Self { spine, leaf, next: START };
        open(&mut pair.spine);
        for program in [&mut pair.spine as &mut dyn Program, &mut pair.leaf] {
            for (slice, task_type) in [(SLICE, GET), (OTHER_SLICE, OTHER_TYPE)] {
                let row = SliceRow { open: true, limit: 16, ..SliceRow::default() };
                done(program, TableOp::SetSlice(slice, row));
                done(program, TableOp::SetType(task_type, Some(slice)));
            }
        }
        for worker in 0..4 {
            let slice = [SLICE, OTHER_SLICE][usize::from(worker / 2)];
            let row = WorkerRow { at: worker_at(0, worker), slice, ..crate::rack::row(worker, 1, true) };
            done(&mut pair.leaf, TableOp::SetWorker(WorkerId(worker), Some(row)));
        }
        for (leaf, slice) in [(FIRST, SLICE), (SECOND, OTHER_SLICE)] {
            pair.weighs(leaf, slice, 2);
        }
        pair
    }

    /// Writes the spine's row of the leaf in this pool.
    fn weighs(&mut self, leaf: WorkerId, slice: SliceId, workers: u16) {
        let row = WorkerRow { at: leaf_at(0), slice, open: true, workers, ..WorkerRow::default() };
        done(&mut self.spine, TableOp::SetWorker(leaf, Some(row)));
    }

    /// Tells the leaf its spine; returns the UPDATE that the leaf sends to the spine.
    fn learns(&mut self, pool: SliceId, leaf: WorkerId) -> Update {
        done(&mut self.leaf, TableOp::SetSpine(pool, row_of(leaf)));
        let told = self.leaf.mirrored().expect("the spine is told how the rack stands");
        assert_eq!(told.to, spine_at());
        told.update
    }

    fn both_learn(&mut self) {
        for (pool, leaf) in [(SLICE, FIRST), (OTHER_SLICE, SECOND)] {
            let told = self.learns(pool, leaf);
            assert_eq!(self.spine.pass(Nanos(0), update_from(leaf_at(0), told)), Verdict::Parked);
        }
    }

    /// The spine's verdict on the client's next task.
    fn chosen(&mut self, task_type: TaskType) -> Verdict {
        let packet = Packet::Submit(sluice_wire::Submit { task_type, ..submit(self.next) });
        self.next = self.next.plus(1);
        let verdict = self.spine.pass(Nanos(0), Arrival::Wire { from: at(200), packet, room: true });
        go_round(&mut self.spine, verdict)
    }

    fn hand_down(&mut self, task: Dispatch) -> Verdict {
        let packet = Packet::Dispatch(task);
        let verdict = self.leaf.pass(Nanos(0), Arrival::Wire { from: spine_at(), packet, room: true });
        go_round(&mut self.leaf, verdict)
    }

    /// The spine's pass of a packet that the leaf sent to it.
    fn goes_up(&mut self, verdict: Verdict) -> Verdict {
        let Verdict::Send { to, packet } = verdict else { panic!("it leaves: {verdict:?}") };
        assert_eq!(to, spine_at());
        self.spine.pass(Nanos(0), Arrival::Wire { from: leaf_at(0), packet, room: true })
    }
}

fn row_of(leaf: WorkerId) -> SpineRow {
    SpineRow { at: spine_at(), epoch: EPOCH, leaf, generation: Generation(0), start: START }
}

fn done(program: &mut dyn Program, op: TableOp) {
    assert_eq!(program.table(op), TableAnswer::Done, "{op:?}");
}

fn reply_of(task: &Dispatch) -> Arrival {
    let reply =
        Reply { epoch: EPOCH, worker: task.worker, client: task.client, task: task.task, ..Reply::default() };
    Arrival::Wire { from: worker_at(0, task.worker.0), packet: Packet::Reply(reply), room: true }
}

#[test]
fn a_task_goes_down_by_its_pools_number_and_its_reply_up_through_the_spine() {
    let mut pair = Pair::new();
    pair.both_learn();
    for (task_type, leaf, workers) in [(GET, FIRST, 0..2), (OTHER_TYPE, SECOND, 2..4)] {
        let task = dispatched(pair.chosen(task_type));
        assert_eq!((task.worker, task.client_at), (leaf, at(200)));
        let served = dispatched(pair.hand_down(task));
        assert!(workers.contains(&served.worker.0), "{served:?}");
        let reply = pair.leaf.pass(Nanos(0), reply_of(&served));
        let Verdict::Send { to, packet: Packet::Reply(reply) } = pair.goes_up(reply) else {
            panic!("a reply reaches its client");
        };
        assert_eq!((to, reply.task, reply.epoch), (at(200), task.task, EPOCH));
    }
}

#[test]
fn a_rack_without_workers_refuses_through_its_spine() {
    let mut pair = Pair::new();
    pair.both_learn();
    let task = dispatched(pair.chosen(GET));
    done(&mut pair.leaf, TableOp::SetSlice(SLICE, SliceRow::default()));
    let unknown = Dispatch { task_type: TaskType(3), sent: task.sent.plus(1), ..task };
    for (task, why) in [(task, RejectReason::NoWorkers), (unknown, RejectReason::UnknownType)] {
        let refused = pair.hand_down(task);
        let Verdict::Send { to, packet: Packet::Reject(reject) } = pair.goes_up(refused) else {
            panic!("a refusal reaches its client");
        };
        assert_eq!((to, reject.reason, reject.epoch), (at(200), why, EPOCH));
    }
}

#[test]
fn the_same_row_again_tells_how_the_rack_stands_and_numbers_go_on() {
    let mut pair = Pair::new();
    assert_eq!(pair.learns(SLICE, FIRST).news, RackNews::Idle);
    assert_eq!(pair.learns(SLICE, FIRST).news, RackNews::Load(sluice_wire::MeanQueue(0)), "in turns");
    let told = pair.learns(SLICE, FIRST);
    assert_eq!(told.news, RackNews::Idle);
    pair.spine.pass(Nanos(0), update_from(leaf_at(0), told));
    let tasks = [(); 3].map(|()| dispatched(pair.chosen(GET)));
    for task in tasks {
        dispatched(pair.hand_down(task));
    }
    let RackNews::Load(mean) = pair.learns(SLICE, FIRST).news else { panic!("nobody is idle") };
    assert_eq!(Average::from_bits(mean.0), Average::of(3, Average::share(size(2))).expect("it fits"));
    assert_eq!(refused(pair.hand_down(tasks[0])), Refusal::Replayed);
    done(&mut pair.leaf, TableOp::SetSpine(SLICE, SpineRow { generation: Generation(1), ..row_of(FIRST) }));
    assert_eq!(refused(pair.hand_down(tasks[0])), Refusal::WrongGeneration);
    dispatched(pair.hand_down(Dispatch { generation: Generation(1), ..tasks[0] }));
}

#[test]
fn a_rows_weight_is_one_pools_and_changes_with_the_row() {
    let mut pair = Pair::new();
    pair.weighs(FIRST, SLICE, 8);
    dispatched(pair.chosen(GET));
    assert_eq!(pair.spine.known_load(SLICE, FIRST), Average::share(size(8)));
    pair.weighs(FIRST, OTHER_SLICE, 8);
    assert!(matches!(pair.chosen(GET), Verdict::Send { packet: Packet::Reject(_), .. }), "no rack is left");
}

#[test]
fn what_no_leaf_sends_and_whose_client_nobody_knows_reaches_no_client() {
    let mut pair = Pair::new();
    pair.both_learn();
    let task = dispatched(pair.chosen(GET));
    let served = dispatched(pair.hand_down(task));
    let Verdict::Send { packet: Packet::Reply(reply), .. } = pair.leaf.pass(Nanos(0), reply_of(&served))
    else {
        panic!("it goes up");
    };
    for (from, client) in [(at(999), CLIENT), (leaf_at(0), ClientId(3)), (leaf_at(0), ClientId(u16::MAX))] {
        let packet = Packet::Reply(Reply { client, ..reply });
        let verdict = pair.spine.pass(Nanos(0), Arrival::Wire { from, packet, room: true });
        assert_eq!(refused(verdict), Refusal::UnknownSource);
    }
    let strange = Dispatch { client: ClientId(u16::MAX), sent: task.sent.plus(1), ..task };
    assert_eq!(dispatched(pair.hand_down(strange)).client_at, Endpoint::default(), "it may know no client");
}

#[test]
fn no_other_program_takes_a_spine_and_no_leaf_one_for_a_pool_that_it_has_not() {
    let mut pair = Pair::new();
    assert_eq!(pair.spine.table(TableOp::SetSpine(SLICE, row_of(FIRST))), TableAnswer::OutOfRange);
    assert_eq!(pair.leaf.table(TableOp::SetSpine(SliceId(2), row_of(FIRST))), TableAnswer::OutOfRange);
}

fn size(workers: u32) -> RackSize {
    RackSize::new(workers).expect("a size")
}
