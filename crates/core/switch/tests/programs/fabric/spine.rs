//! Which rack a spine chooses, and whose UPDATEs count.

use std::collections::BTreeSet;

use sluice_switch::horus::{Average, HorusError, IDLE_SELECTED, IdleRack};
use sluice_wire::{Attempt, Epoch, MeanQueue, Reject, RejectReason, SliceLoad};

use super::*;
use crate::rack::{circulating, rejected};

/// A spine whose racks are all busy and told these averages, in eighths of a task.
fn told(sizes: &[u32], eighths: &[u32]) -> Fabric {
    let mut fabric = Fabric::of(FabricReading::default(), sizes);
    for (leaf, eighths) in (0..).zip(eighths) {
        fabric.says(leaf, RackNews::Load(MeanQueue(eighths * 0x2000)));
    }
    fabric
}

/// These leaves tell that they are idle, in this order.
fn idle(fabric: &mut Fabric, leaves: &[u16]) {
    for leaf in leaves {
        fabric.says(*leaf, RackNews::Idle);
    }
}

fn leaves(fabric: &mut Fabric, tasks: u32) -> Vec<u16> {
    (0..tasks).map(|_| fabric.chosen().worker.0).collect()
}

#[test]
fn the_rack_that_became_idle_last_gets_all_tasks_until_its_leaf_says_that_it_is_busy() {
    let mut fabric = Fabric::of(FabricReading::default(), &[2, 2, 2]);
    idle(&mut fabric, &[0, 2, 1]);
    let task = fabric.chosen();
    assert_eq!((task.worker.0, task.occupancy), (1, IDLE_SELECTED));
    assert_eq!(leaves(&mut fabric, 5), [1; 5]);
    fabric.says(1, RackNews::Busy);
    assert_eq!(leaves(&mut fabric, 3), [2; 3]);
    fabric.says(0, RackNews::Busy);
    assert_eq!(leaves(&mut fabric, 2), [2; 2], "another one's word");
    fabric.says(2, RackNews::Busy);
    assert_ne!(fabric.chosen().occupancy, IDLE_SELECTED, "nobody is idle");
}

#[test]
fn any_idle_rack_is_taken_where_the_authors_simulator_is_read() {
    let reading = FabricReading { idle_rack: IdleRack::Random, ..FabricReading::default() };
    let mut fabric = Fabric::of(reading, &[2, 2, 2]);
    idle(&mut fabric, &[0, 2]);
    assert_eq!(BTreeSet::from_iter(leaves(&mut fabric, 50)), BTreeSet::from([0, 2]));
}

#[test]
fn without_idle_racks_the_lesser_mean_gets_it_and_a_task_adds_one_workers_share() {
    // A task adds an eighth to the mean of rack 0 and half a task to that of rack 1.
    let mut fabric = told(&[8, 2], &[4, 8]);
    let queues: Vec<u16> = (0..4).map(|_| fabric.chosen().occupancy).collect();
    assert_eq!(queues, [0x80, 0xa0, 0xc0, 0xe0]);
    assert_eq!(fabric.chosen().occupancy, 0x100, "as far as the other's: still sure");
    let task = circulating(fabric.first_pass());
    let task = dispatched(go_round(&mut fabric.spine, Verdict::Again(task)));
    assert_eq!((task.worker.0, task.occupancy), (1, 0x100), "9/8 against 1");
    assert_eq!(fabric.spine.known_load(SLICE, WorkerId(1)).bits(), 0x1_8000);
    assert_eq!(fabric.spine.known_load(SLICE, WorkerId(0)).bits(), 0x1_2000);
}

#[test]
fn what_a_leaf_tells_takes_the_place_of_what_was_counted() {
    let mut fabric = told(&[8, 8], &[4, 80]);
    assert_eq!(leaves(&mut fabric, 4), [0; 4]);
    assert_eq!(fabric.spine.known_load(SLICE, WorkerId(0)).bits(), 0x1_0000);
    fabric.says(0, RackNews::Load(MeanQueue(3)));
    assert_eq!(fabric.spine.known_load(SLICE, WorkerId(0)).bits(), 3);
}

#[test]
fn a_task_that_goes_round_to_a_rack_that_left_meanwhile_chooses_anew() {
    let mut fabric = told(&[8, 2], &[4, 8]);
    leaves(&mut fabric, 5);
    let task = circulating(fabric.first_pass());
    fabric.row(1, GENERATION, false);
    assert_eq!(dispatched(go_round(&mut fabric.spine, Verdict::Again(task))).worker.0, 0);
    fabric.row(0, GENERATION, false);
    assert_eq!(rejected(fabric.first_pass()), RejectReason::NoWorkers);
}

#[test]
fn tasks_are_numbered_for_each_leaf_and_carry_their_client() {
    let mut fabric = told(&[8, 8], &[0, 800]);
    let tasks: Vec<Dispatch> = (0..3).map(|_| fabric.chosen()).collect();
    assert!((1..).zip(&tasks).all(|(n, task)| task.sent == START.plus(n)), "{tasks:?}");
    let [first, ..] = tasks[..] else { panic!("three tasks") };
    assert_eq!((first.generation, first.client, first.client_at), (GENERATION, CLIENT, at(200)));
}

#[test]
fn a_leafs_word_counts_if_it_is_of_this_life_and_generation_and_comes_from_there() {
    let mut fabric = Fabric::new(&[2, 2]);
    let news = RackNews::Load(MeanQueue(Average::ONE.bits()));
    let told = Update { epoch: EPOCH, leaf: WorkerId(1), generation: GENERATION, pool: SLICE, news };
    let mut refused = |from, update| refused(fabric.tell(from, update));
    let (here, elsewhere) = (leaf_at(1), leaf_at(0));
    assert_eq!(refused(elsewhere, told), Refusal::WrongAddress);
    assert_eq!(refused(here, Update { leaf: WorkerId(9), ..told }), Refusal::UnknownSource);
    assert_eq!(refused(here, Update { leaf: WorkerId(999), ..told }), Refusal::UnknownSource);
    assert_eq!(refused(here, Update { epoch: Epoch(6), ..told }), Refusal::WrongEpoch);
    assert_eq!(refused(here, Update { generation: Generation(2), ..told }), Refusal::WrongGeneration);
    assert_eq!(refused(here, Update { pool: NO_POOL, ..told }), Refusal::UnknownSource);
    assert_eq!(refused(here, Update { pool: SliceId(0), ..told }), Refusal::UnknownSource);
    fabric.row(1, GENERATION, false);
    assert_eq!(self::refused(fabric.tell(here, told)), Refusal::Closed);
}

#[test]
fn what_nobody_below_the_spine_sent_reaches_no_client() {
    let mut fabric = Fabric::new(&[2, 2]);
    let reply = Packet::Reply(Reply { client: CLIENT, ..Reply::default() });
    let task = submit(START).task;
    let reject = Packet::Reject(Reject {
        epoch: EPOCH,
        client: CLIENT,
        task,
        attempt: Attempt(1),
        task_type: GET,
        reason: RejectReason::NoWorkers,
        behind: 0,
        retry_after_ns: 0,
        load: SliceLoad::default(),
    });
    for packet in [reply, reject] {
        let mut pass = |from| fabric.spine.pass(Nanos(0), Arrival::Wire { from, packet, room: true });
        assert_eq!(refused(pass(at(999))), Refusal::UnknownSource);
        assert!(matches!(pass(leaf_at(1)), Verdict::Send { to, .. } if to == at(200)));
    }
}

#[test]
fn a_leaf_that_comes_in_anew_is_neither_idle_nor_loaded_until_it_says_so() {
    let mut fabric = told(&[2, 2], &[8, 80]);
    fabric.says(1, RackNews::Idle);
    fabric.row(1, Generation(4), true);
    assert_eq!(fabric.spine.idle_racks(SLICE), 0);
    assert_eq!(fabric.spine.known_load(SLICE, WorkerId(1)), Average::default());
    assert_eq!(fabric.chosen().generation, Generation(4), "its numbers are of its new generation");
}

#[test]
fn what_the_control_software_may_not_ask_is_refused_by_name() {
    let mut fabric = Fabric::new(&[2]);
    let spine = &mut fabric.spine;
    let two = RackSize::new(2).ok();
    let leaf = WorkerId(0);
    let said = Generation(2);
    let stale = HorusError::StaleLeaf { leaf, said, is: GENERATION };
    assert_eq!(spine.set_workers(SLICE, (leaf, said), two), Err(stale));
    assert!(stale.to_string().contains("leaf 0 is of generation 3 here, not 2"));
    let unknown = HorusError::UnknownLeaf { leaf: WorkerId(7) };
    assert_eq!(spine.set_workers(SLICE, (WorkerId(7), GENERATION), two), Err(unknown));
    let unknown = HorusError::UnknownPool { pool: NO_POOL, pools: 2 };
    assert_eq!(spine.set_workers(NO_POOL, (leaf, GENERATION), two), Err(unknown));
    let large = Config { workers: 4_096, ..config() };
    let too_large = Spine::new(FabricReading::default(), large).map(|_| ()).unwrap_err();
    assert_eq!(too_large, HorusError::TooManyLeaves { leaves: 4_096, most: 4_095 });
    let program = &mut fabric.leaves[0];
    let unknown = HorusError::UnknownSpine { spine: 4, spines: 4 };
    assert_eq!(program.set_spine(4, None), Err(unknown));
    assert_eq!(program.link(SLICE, Some(4)), Err(unknown));
    assert_eq!(program.link(NO_POOL, None), Err(HorusError::UnknownPool { pool: NO_POOL, pools: 2 }));
}

/// A removal comes while another one is between its passes, as printed and healed.
#[test]
fn a_removal_without_the_lock_is_dropped_as_printed_and_its_rack_is_out_all_the_same_healed() {
    for (as_published, left) in [(true, [Some(1), Some(1)]), (false, [None, None])] {
        let mut fabric = Fabric::of(FabricReading { as_published, ..FabricReading::default() }, &[2, 2, 2]);
        idle(&mut fabric, &[0, 1]);
        let busy = |leaf| Update {
            epoch: EPOCH,
            leaf: WorkerId(leaf),
            generation: GENERATION,
            pool: SLICE,
            news: RackNews::Busy,
        };
        let first = fabric.spine.pass(Nanos(0), update_from(leaf_at(0), busy(0)));
        assert!(matches!(first, Verdict::Again(_)));
        let second = fabric.spine.pass(Nanos(0), update_from(leaf_at(1), busy(1)));
        assert_eq!(matches!(second, Verdict::Again(_)), !as_published, "it waits for the lock");
        go_round(&mut fabric.spine, first);
        go_round(&mut fabric.spine, second);
        let tasks = [fabric.chosen(), fabric.chosen()];
        let found = tasks.map(|task| (task.occupancy == IDLE_SELECTED).then_some(task.worker.0));
        assert_eq!(found, left, "as published: {as_published}");
        assert_eq!(fabric.spine.idle_racks(SLICE), u16::from(as_published));
    }
}

const READINGS: [IdleRack; 2] = [IdleRack::Newest, IdleRack::Random];

/// A rack tells that it is idle with each renewal, and with each reply that leaves all of its workers idle.
#[test]
fn words_that_say_nothing_new_fill_no_list_and_send_no_task_round() {
    for (idle_rack, count) in READINGS.into_iter().flat_map(|rack| [(rack, 2), (rack, 16)]) {
        let mut fabric = Fabric::of(FabricReading { idle_rack, ..FabricReading::default() }, &vec![2; count]);
        let racks: Vec<u16> = (0..count as u16).collect();
        for _renewal in 0..300 {
            idle(&mut fabric, &racks);
        }
        assert_eq!(usize::from(fabric.spine.idle_racks(SLICE)), count);
        for _ in 0..50 {
            dispatched(fabric.first_pass());
        }
        for leaf in &racks {
            fabric.says(*leaf, RackNews::Busy);
        }
        assert_eq!(fabric.spine.idle_racks(SLICE), 0);
        assert_ne!(fabric.chosen().occupancy, IDLE_SELECTED, "nobody is idle any more");
    }
}

#[test]
fn a_rack_that_becomes_idle_is_listed_though_others_have_said_so_again_and_again() {
    for idle_rack in READINGS {
        let mut fabric = Fabric::of(FabricReading { idle_rack, ..FabricReading::default() }, &[2; 4]);
        (0..40).for_each(|_| idle(&mut fabric, &[0]));
        idle(&mut fabric, &[1]);
        let mut to = BTreeSet::new();
        for _ in 0..200 {
            to.insert(fabric.chosen().worker.0);
            idle(&mut fabric, &[0]);
        }
        assert!(to.contains(&1), "{idle_rack:?}: rack 1 is idle, and tasks went to {to:?}");
    }
}

/// A leaf whose pool is taken out, or whose row is closed, is no idle rack, in both ways of choosing.
#[test]
fn a_rack_that_has_no_workers_of_a_pool_any_more_is_not_idle_there() {
    let two = RackSize::new(2).ok();
    let mut fabric = Fabric::of(FabricReading::default(), &[2, 2, 2]);
    idle(&mut fabric, &[0, 1, 2]);
    fabric.spine.set_workers(SLICE, (WorkerId(1), GENERATION), None).expect("a rack");
    assert_eq!(fabric.spine.idle_racks(SLICE), 2);
    fabric.spine.set_workers(SLICE, (WorkerId(1), GENERATION), two).expect("a rack");
    assert_eq!(fabric.spine.idle_racks(SLICE), 2, "it has to say so anew");
    fabric.row(2, GENERATION, false);
    assert_eq!(fabric.spine.idle_racks(SLICE), 1);
    assert_eq!(leaves(&mut fabric, 3), [0; 3]);
}

/// A removal that recirculates while its rack is taken out changes nothing more.
#[test]
fn a_removal_that_goes_round_while_its_rack_is_taken_out_takes_nobody_with_it() {
    let mut fabric = Fabric::of(FabricReading::default(), &[2, 2, 2]);
    idle(&mut fabric, &[0, 1, 2]);
    let told = |news| Update { epoch: EPOCH, leaf: WorkerId(0), generation: GENERATION, pool: SLICE, news };
    let going = fabric.spine.pass(Nanos(0), update_from(leaf_at(0), told(RackNews::Busy)));
    assert!(matches!(going, Verdict::Again(_)), "rack 2 is carried round");
    fabric.row(1, GENERATION, false);
    go_round(&mut fabric.spine, going);
    assert_eq!(fabric.spine.idle_racks(SLICE), 1);
    assert_eq!(leaves(&mut fabric, 3), [2; 3]);
    fabric.says(2, RackNews::Busy);
    assert_eq!(fabric.spine.idle_racks(SLICE), 0);
}
