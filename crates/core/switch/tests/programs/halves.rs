//! A waiting task keeps the lower half of its incarnation; the upper half is that of its client's row when the
//! task leaves.

use sluice_switch::Verdict;
use sluice_wire::tables::{ClientRow, SliceRow, TableOp};
use sluice_wire::{Incarnation, Key, Nanos, Packet, Submit, Sweep, SweepOf, TaskId};

use crate::rack::{CLIENT, EPOCH, Rack, SLICE, START, at, dispatched, submit};

const FIRST: Incarnation = Incarnation::of(5, 99);
const LATER: Incarnation = Incarnation::of(6, 100);

fn rack(program: &str) -> Rack {
    let mut rack = Rack::of(program, 2, 16);
    set_row(&mut rack, Some(FIRST));
    rack
}

fn set_row(rack: &mut Rack, incarnation: Option<Incarnation>) {
    let row = incarnation.map(|incarnation| {
        let row = ClientRow { key: Key(22), at: at(200), incarnation };
        (row, START)
    });
    rack.program.table(TableOp::SetClient(CLIENT, row));
}

/// The task of this number, of the client's first start, arrives.
fn task(rack: &mut Rack, number: u32) -> Verdict {
    let task = TaskId { incarnation: FIRST, sequence: START.plus(number) };
    rack.wire(at(200), Packet::Submit(Submit { task, ..submit(START) }))
}

fn leaves(rack: &mut Rack) -> Incarnation {
    let verdict = rack.token(0);
    dispatched(rack.go_round(verdict)).task.incarnation
}

#[test]
fn a_task_that_waited_leaves_with_the_upper_half_of_its_clients_row() {
    for program in
        ["rain:1", "rain:1,ranked", "rain:2,classes=2", "rain:1,target=50us", "draconis", "server:1"]
    {
        let mut rack = rack(program);
        (0..3).for_each(|number| assert_eq!(task(&mut rack, number), Verdict::Parked, "{program}"));
        let waits = |rack: &Rack| rack.program.parked(SLICE).tasks.iter().map(|of| of.task.incarnation).max();
        assert_eq!((waits(&rack), leaves(&mut rack)), (Some(FIRST), FIRST), "{program}");
        set_row(&mut rack, None);
        let nobodys = Incarnation::of(0, FIRST.low());
        assert_eq!((waits(&rack), leaves(&mut rack)), (Some(nobodys), nobodys), "{program}");
        set_row(&mut rack, Some(LATER));
        let others = Incarnation::of(LATER.high(), FIRST.low());
        assert_eq!((waits(&rack), leaves(&mut rack)), (Some(others), others), "{program}");
    }
}

#[test]
fn a_task_that_is_swept_leaves_with_the_upper_half_of_its_clients_row() {
    for program in ["rain:1", "draconis", "server:1"] {
        let mut rack = rack(program);
        task(&mut rack, 0);
        set_row(&mut rack, Some(LATER));
        let closed = SliceRow { open: false, limit: 16, retry_after: Nanos(500), ..SliceRow::default() };
        rack.set_slice(closed);
        let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tasks, left: 1, carried: None };
        let verdict = rack.control(sweep);
        let Verdict::Swept { packet: Packet::Reject(reject), .. } = rack.go_round(verdict) else {
            panic!("{program}: not swept")
        };
        assert_eq!(reject.task.incarnation, Incarnation::of(LATER.high(), FIRST.low()), "{program}");
    }
}

#[test]
fn a_task_that_meets_a_token_at_once_leaves_as_it_came() {
    for program in ["rain:1", "rain:2,labels", "server:1"] {
        let mut rack = rack(program);
        set_row(&mut rack, Some(LATER));
        let verdict = rack.token(0);
        rack.go_round(verdict);
        assert_eq!(dispatched(task(&mut rack, 0)).task.incarnation, FIRST, "{program}");
    }
}
