//! Which tasks a leaf lets in, and what it tells its spine.

use sluice_switch::horus::{Average, IDLE_SELECTED, LoadsTold};
use sluice_wire::{Epoch, RejectReason};

use super::*;

/// Sends `count` tasks to leaf 0, chosen while its rack was idle; they stay on their way.
fn sent(fabric: &mut Fabric, count: u32) -> Vec<Dispatch> {
    (0..count).map(|_| fabric.chosen()).collect()
}

#[test]
fn a_task_comes_to_an_idle_worker_over_two_hops_and_the_last_one_makes_the_rack_busy() {
    let mut fabric = Fabric::new(&[3]);
    let (leaf, first) = fabric.task();
    assert_eq!((leaf, first.worker.0, first.client_at), (0, 2, at(200)));
    assert_eq!(fabric.task().1.worker.0, 1);
    assert_eq!(fabric.news(), [], "there is another idle worker");
    assert_eq!(fabric.task().1.worker.0, 0);
    assert_eq!(fabric.news(), [(0, RackNews::Busy)]);
    fabric.deliver();
    fabric.reply(0, 1, 0);
    assert_eq!(fabric.news(), [(0, RackNews::Idle)]);
    fabric.reply(0, 0, 0);
    assert_eq!(fabric.news(), [(0, RackNews::Idle)], "the rack was idle already");
}

/// A rack that gets no tasks sends no replies, so a lost UPDATE would never be made good.
#[test]
fn a_rack_whose_workers_are_all_idle_says_so_again_unless_it_is_as_published() {
    for (as_published, words) in [(false, 3), (true, 1)] {
        let mut fabric = Fabric::of(FabricReading { as_published, ..FabricReading::default() }, &[3]);
        fabric.deliver();
        for _ in 0..3 {
            fabric.task();
        }
        fabric.deliver();
        (0..4).for_each(|worker| fabric.reply(0, worker.min(2), 0));
        assert_eq!(fabric.news(), vec![(0, RackNews::Idle); words], "as published: {as_published}");
    }
}

#[test]
fn each_number_of_a_spine_is_let_in_once_in_any_order() {
    let mut fabric = Fabric::new(&[4]);
    let tasks = sent(&mut fabric, 3);
    for task in [tasks[2], tasks[0], tasks[1]] {
        dispatched(fabric.hand_down(0, task));
    }
    for task in &tasks {
        assert_eq!(refused(fabric.hand_down(0, *task)), Refusal::Replayed);
    }
    let late = Dispatch { sent: tasks[0].sent.plus(1_024), ..tasks[0] };
    dispatched(fabric.hand_down(0, late));
    assert_eq!(refused(fabric.hand_down(0, tasks[0])), Refusal::Replayed, "1,024 numbers behind");
}

#[test]
fn a_number_before_those_that_a_spine_has_begun_with_is_not_let_in() {
    let mut fabric = Fabric::new(&[4]);
    let [task] = sent(&mut fabric, 1)[..] else { panic!("one task") };
    let begun = fabric.leaves[0].set_spine(SPINE, Some((link(0), task.sent)));
    assert_eq!(begun, Ok(()));
    assert_eq!(refused(fabric.hand_down(0, task)), Refusal::Replayed);
    dispatched(fabric.hand_down(0, Dispatch { sent: task.sent.plus(1), ..task }));
}

#[test]
fn tasks_come_from_spines_that_the_leaf_knows_in_the_life_and_generation_that_it_knows() {
    let mut fabric = Fabric::new(&[4]);
    let [task] = sent(&mut fabric, 1)[..] else { panic!("one task") };
    let mut refused = |task| refused(fabric.hand_down(0, task));
    assert_eq!(refused(Dispatch { epoch: Epoch(6), ..task }), Refusal::WrongEpoch);
    assert_eq!(refused(Dispatch { generation: Generation(2), ..task }), Refusal::WrongGeneration);
    assert_eq!(refused(Dispatch { worker: WorkerId(1), ..task }), Refusal::WrongAddress);
    let (program, packet) = (&mut fabric.leaves[0], Packet::Dispatch(task));
    let from = at(302);
    let strange = program.pass(Nanos(0), Arrival::Wire { from, packet, room: true });
    assert_eq!(strange, Verdict::Drop(Refusal::UnknownSource));
    let packet = Packet::Submit(submit(START.plus(9)));
    let direct = program.pass(Nanos(0), Arrival::Wire { from: at(200), packet, room: true });
    assert_eq!(direct, Verdict::Drop(Refusal::Unexpected), "clients submit to spines");
    program.set_spine(SPINE, None).expect("a spine");
    assert_eq!(super::refused(fabric.hand_down(0, task)), Refusal::UnknownSource);
}

#[test]
fn a_task_whose_bytes_the_leaf_has_no_room_for_is_turned_away() {
    let mut fabric = Fabric::new(&[4]);
    let (task, program) = (fabric.chosen(), &mut fabric.leaves[0]);
    let packet = Packet::Dispatch(task);
    let verdict = program.pass(Nanos(0), Arrival::Wire { from: spine_at(), packet, room: false });
    let Verdict::Send { packet: Packet::Reject(reject), .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!((reject.task, reject.reason), (task.task, RejectReason::NoRoom));
}

#[test]
fn what_a_task_says_of_the_rack_is_put_right_if_the_word_was_lost() {
    let mut fabric = Fabric::new(&[2]);
    fabric.task();
    fabric.task();
    assert_eq!(fabric.news(), [(0, RackNews::Busy)]);
    fabric.told.clear();
    let (_, task) = fabric.task();
    assert_eq!(task.occupancy, 1, "it was sent to a rack that is idle no longer");
    assert_eq!(fabric.news(), [(0, RackNews::Busy)], "told again");
    fabric.deliver();
    fabric.reply(0, 0, 0);
    assert_eq!(fabric.news(), [(0, RackNews::Idle)]);
    fabric.told.clear();
    fabric.reply(0, 1, 0);
    assert_eq!(fabric.news(), [(0, RackNews::Idle)], "it was told, and all are idle now");
    fabric.told.clear();
    let task = fabric.chosen();
    assert_ne!(task.occupancy, IDLE_SELECTED);
    dispatched(fabric.hand_down(0, task));
    assert_eq!(fabric.news(), [(0, RackNews::Idle)], "there is still one");
}

#[test]
fn another_spines_task_does_not_say_what_the_linked_one_thinks() {
    let mut fabric = Fabric::new(&[2]);
    let task = Dispatch { occupancy: 5, ..fabric.chosen() };
    let (program, packet) = (&mut fabric.leaves[0], Packet::Dispatch(task));
    dispatched(program.pass(Nanos(0), Arrival::Wire { from: other().at, packet, room: true }));
    assert_eq!(program.mirrored(), None, "still idle, and told so");
    dispatched(program.pass(
        Nanos(0),
        Arrival::Wire {
            from: other().at,
            packet: Packet::Dispatch(Dispatch { sent: task.sent.plus(1), ..task }),
            room: true,
        },
    ));
    let told = program.mirrored().map(|mirror| (mirror.to, mirror.update.news));
    assert_eq!(told, Some((spine_at(), RackNews::Busy)));
}

#[test]
fn a_load_is_told_with_a_reply_when_the_mean_moved_by_one() {
    let mut fabric = Fabric::busy(FabricReading::default(), &[(4, 1)]);
    let before = fabric.leaves[0].average(SLICE);
    assert_eq!(before, Some(Average::ONE));
    (0..3).for_each(|_| fabric.forced(0));
    fabric.reply(0, 0, 1);
    fabric.told.clear();
    let told = fabric.spine.known_load(SLICE, WorkerId(0));
    (0..4).for_each(|_| fabric.forced(0));
    assert_eq!(fabric.news(), [], "only replies carry it");
    (0..4).for_each(|worker| fabric.reply(0, worker, 9));
    let news = fabric.news();
    assert!(!news.is_empty() && news.len() < 4 * 8, "{news:?}, {told} before");
    for pair in news.windows(2) {
        let [(_, RackNews::Load(first)), (_, RackNews::Load(second))] = pair else { panic!("{pair:?}") };
        let [first, second] = [first, second].map(|mean| Average::from_bits(mean.0));
        assert!(first.apart(second) >= Average::ONE, "{first} then {second}");
    }
}

#[test]
fn a_load_is_told_after_as_many_replies_as_workers_where_the_authors_switch_is_read() {
    let reading = FabricReading { told: LoadsTold::ByReplies, ..FabricReading::default() };
    let mut fabric = Fabric::busy(reading, &[(4, 3)]);
    let told: Vec<bool> = (0..8)
        .map(|turn| {
            fabric.reply(0, turn % 4, 3);
            std::mem::take(&mut fabric.told).len() == 1
        })
        .collect();
    assert_eq!(told.iter().filter(|told| **told).count(), 2, "{told:?}");
    assert_eq!(told[..4], told[4..], "every fourth");
}

#[test]
fn a_rack_is_idle_from_two_idle_workers_on_where_the_authors_code_is_read() {
    let reading = FabricReading { idle_from: 2, ..FabricReading::default() };
    let mut fabric = Fabric::of(reading, &[3]);
    fabric.deliver();
    fabric.task();
    assert_eq!(fabric.news(), []);
    fabric.task();
    assert_eq!(fabric.news(), [(0, RackNews::Busy)], "one is left");
    fabric.deliver();
    fabric.reply(0, 2, 0);
    assert_eq!(fabric.news(), [(0, RackNews::Idle)]);
}

#[test]
fn a_worker_that_says_it_holds_more_than_can_be_told_is_not_believed_and_its_reply_goes_on() {
    let mut fabric = Fabric::busy(FabricReading::default(), &[(2, 1)]);
    let before = fabric.leaves[0].average(SLICE);
    fabric.reply(0, 0, 65_536);
    assert_eq!(fabric.leaves[0].average(SLICE), before);
    assert_eq!(fabric.leaves[0].refusals().of(Refusal::ImpossibleLoad), 1);
    fabric.reply(0, 0, 65_535);
    assert_eq!(fabric.leaves[0].average(SLICE).map(Average::bits), Some(0x8000_0000));
}

/// One task at a time, which ends before the next comes. What the spine counts for these tasks must not add
/// up.
#[test]
fn what_a_spine_counts_for_tasks_of_an_idle_rack_is_taken_back_and_stays_as_printed() {
    for (as_published, workers, most) in [(false, 6, 2.0), (false, 2, 2.0), (false, 1, 2.0), (true, 6, 999.0)]
    {
        let mut fabric = Fabric::of(FabricReading { as_published, ..FabricReading::default() }, &[workers]);
        fabric.deliver();
        let mut highest: f64 = 0.0;
        for _ in 0..600 {
            let (_, task) = fabric.task();
            fabric.deliver();
            fabric.reply(0, task.worker.0, 0);
            fabric.deliver();
            highest = highest.max(fabric.spine.known_load(SLICE, WorkerId(0)).to_f64());
        }
        assert!(highest <= most, "{highest} tasks before each of {workers} that have one together");
        assert_eq!(highest > 90.0, as_published, "{highest}");
    }
}

/// The workers are never all idle, and others are busy meanwhile.
#[test]
fn a_spine_knows_the_mean_of_a_rack_that_has_always_somebody_idle() {
    let mut fabric = Fabric::new(&[6]);
    let mut held: std::collections::VecDeque<u16> = (0..3).map(|_| fabric.task().1.worker.0).collect();
    fabric.deliver();
    for _ in 0..600 {
        held.push_back(fabric.task().1.worker.0);
        fabric.deliver();
        let ends = held.pop_front().expect("three run");
        fabric.reply(0, ends, 0);
        fabric.deliver();
        let known = fabric.spine.known_load(SLICE, WorkerId(0));
        let is = fabric.leaves[0].average(SLICE).expect("a leaf of a fabric");
        assert!(known.apart(is) < Average::from_bits(0x1_8000), "{known} known, {is} there");
    }
}

/// A spine that learns of a rack for the first time knows no mean. The leaf tells its mean once the mean is
/// at least 1.
#[test]
fn a_leaf_that_goes_below_another_spine_tells_its_mean_from_none_on() {
    let mut fabric = Fabric::busy(FabricReading::default(), &[(2, 9)]);
    let link = SpineLink { at: at(302), ..link(0) };
    fabric.leaves[0].set_spine(3, Some((link, START))).expect("room for it");
    fabric.leaves[0].link(SLICE, Some(3)).expect("a spine that it knows");
    fabric.told.clear();
    fabric.reply(0, 0, 9);
    let told: Vec<_> = fabric.told.iter().map(|told| (told.to, told.update.news)).collect();
    assert_eq!(told, [(at(302), RackNews::Load(sluice_wire::MeanQueue(9 << 16)))]);
}
