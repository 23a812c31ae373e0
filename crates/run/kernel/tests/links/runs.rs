//! The program on links, and what happens to it when its process ends.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use aya::maps::xdp::DevMapHash;
use aya::maps::{Map, MapData};
use sluice_kernel::xdp::{AttachMode, detach};
use sluice_switchd::switch::Count;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Serial, SliceId, Sweep, SweepOf, WorkerId};

use crate::rig::{EPOCH, Hosts, Rig};

/// How often the switch's process is restarted while tasks pass.
const RESTARTS: u32 = 5;

/// How often the map of links is written while tasks pass. With one entry per link, some of these writes
/// lost a task.
const CHANGES: u32 = 200_000;

#[test]
fn a_task_goes_from_one_link_to_the_worker_on_another_whoever_of_both_came_first() {
    for family in [0, 1] {
        let Some(mut rig) = Rig::new(family) else { return };
        assert_eq!(rig.start().expect("root may"), (EPOCH, vec![AttachMode::Native; 2]));
        let mut hosts = rig.admit();
        hosts.token();
        hosts.task();
        assert_eq!(hosts.dispatched().task.sequence, Serial(0));
        hosts.task();
        hosts.token();
        assert_eq!(hosts.dispatched().task.sequence, Serial(1));
        rig.end();
    }
}

#[test]
fn where_the_driver_cannot_the_kernel_s_stack_carries_it() {
    let Some(mut rig) = Rig::alone() else { return };
    assert_eq!(rig.start().expect("root may"), (EPOCH, vec![AttachMode::Generic]));
    let mut hosts = rig.admit();
    hosts.task();
    hosts.token();
    assert_eq!(hosts.dispatched().task.sequence, Serial(0));
    hosts.token();
    hosts.task();
    assert_eq!(hosts.dispatched().task.sequence, Serial(1));
}

#[test]
fn its_counts_are_shown_as_those_of_the_other_switch() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    let mut hosts = rig.admit();
    hosts.task();
    hosts.token();
    hosts.dispatched();
    let handle = rig.handle().clone();
    // The thread publishes its counters at its end, at the latest.
    rig.end();
    let counts = [Count::Submits, Count::Tokens, Count::Dispatched, Count::OffLink];
    assert_eq!(counts.map(|count| handle.counters().of(count)), [1, 1, 1, 0]);
}

#[test]
fn what_a_sweep_makes_is_sent_and_a_drain_ends() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    let mut hosts = rig.admit();
    hosts.token();
    hosts.task();
    hosts.dispatched();
    hosts.token();
    let state =
        |rig: &Rig| rig.handle().tables().call(vec![TableOp::ReadSlice(SliceId(0))]).expect("it runs");
    while !matches!(state(&rig)[0], TableAnswer::Slice(slice) if slice.balance == 1) {
        thread::yield_now();
    }
    let sweep = Sweep { epoch: EPOCH, slice: SliceId(0), of: SweepOf::Tokens, left: 1, carried: None };
    let steps = vec![TableOp::Drain, TableOp::Inject(sweep), TableOp::Drain];
    assert_eq!(rig.handle().tables().call(steps).expect("it runs"), [TableAnswer::Done; 3]);
    hosts.task();
    assert_eq!(hosts.dispatched().task.sequence, Serial(1), "the token was parked again");
}

#[test]
fn a_process_that_dies_under_load_loses_nothing_and_the_next_keeps_the_epoch() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    let load = Load::start(rig.admit());
    for _ in 0..RESTARTS {
        rig.end();
        assert_eq!(rig.start().expect("the pins are there"), (EPOCH, vec![AttachMode::Kept; 2]));
    }
    let tasks = load.end();
    let counters = rig.handle().counters().all().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
    let tasks = tasks.unwrap_or_else(|_| panic!("a task was not dispatched: {counters:?}"));
    let worker = rig.handle().tables().call(vec![TableOp::ReadWorker(WorkerId(0))]).expect("it runs");
    let [TableAnswer::Worker(worker)] = worker.as_slice() else { panic!("{worker:?}") };
    assert_eq!((worker.seen, worker.sent), (tasks, tasks));
    assert!(tasks.0 > RESTARTS, "{tasks} tasks are no load");
}

/// Tasks that pass in the background.
struct Load {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Serial>,
}

impl Load {
    fn start(hosts: Hosts) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let over = Arc::clone(&over);
            move || pump(hosts, &over)
        });
        Self { over, thread }
    }

    /// Stops the load. Returns how many tasks passed, and fails if one was lost.
    fn end(self) -> thread::Result<Serial> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join()
    }
}

/// Sends tasks and tokens in turn, each dispatched before the next. Returns how many tasks passed.
fn pump(mut hosts: Hosts, over: &AtomicBool) -> Serial {
    let mut sent = Serial(0);
    while !over.load(Ordering::Relaxed) {
        if sent.0.is_multiple_of(2) {
            hosts.token();
            hosts.task();
        } else {
            hosts.task();
            hosts.token();
        }
        let dispatch = hosts.dispatched();
        assert_eq!((dispatch.task.sequence, dispatch.sent), (sent, sent.plus(1)));
        sent = sent.plus(1);
    }
    sent
}

/// To replace an entry of a map of links, the kernel removes it first; a starting switch replaces all
/// entries.
#[test]
fn a_frame_finds_its_link_while_the_entry_is_being_replaced() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    let mut hosts = rig.admit();
    let link = rig.spaces.hosts()[0].at_switch.index;
    let (mut links, mut entries) = links(&rig);
    entries.retain(|(_, leads)| *leads == link);
    for (key, _) in &entries {
        links.remove(*key).expect("it is there");
        assert!(hosts.is_heard(), "without {key:#x} of {entries:x?}");
        let put_back = rig.spaces.switch().within(|| links.insert(*key, link, None, 0));
        put_back.expect("root may move").expect("there is room");
    }
    for (key, _) in &entries {
        links.remove(*key).expect("it is there");
    }
    assert!(hosts.is_silent(), "frames leave by what is not in the map");
    assert!(rig.handle().counters().of(Count::SendFailed) > 0, "a frame that finds no link is counted");
}

/// Repeats the replacement until a frame comes in between.
#[test]
fn no_task_is_lost_while_the_entries_of_the_links_are_written_again_and_again() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    let (mut links, entries) = links(&rig);
    let load = Load::start(rig.admit());
    let written = rig.spaces.switch().within(|| {
        let mut changes = (0..CHANGES).flat_map(|_| &entries);
        changes.try_for_each(|(key, link)| links.insert(*key, *link, None, 0))
    });
    written.expect("root may move").expect("there is room");
    assert!(load.end().expect("no task is lost").0 > 0);
}

/// The map of links of a running switch, and its entries as sorted pairs of key and link.
fn links(rig: &Rig) -> (DevMapHash<MapData>, Vec<(u32, u32)>) {
    let pinned = MapData::from_pin(rig.options().pins.join("links")).expect("it is pinned");
    let links = DevMapHash::try_from(Map::DevMapHash(pinned)).expect("of its type");
    let keys: BTreeSet<u32> = links.keys().flatten().collect();
    let leads = |key| (key, links.get(key, 0).expect("it was listed").if_index);
    let entries = keys.into_iter().map(leads).collect();
    (links, entries)
}

#[test]
fn a_detached_switch_is_gone_with_its_pins_and_the_links_are_free_for_another() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    let mut hosts = rig.admit();
    assert!(hosts.is_heard());
    rig.end();
    assert!(hosts.is_heard(), "the program does not need its process");
    assert!(detach(&rig.options().pins).expect("nobody drives it"));
    assert!(hosts.is_silent(), "the program is still on its links");
    assert!(!rig.options().pins.exists() && !rig.options().pins.with_file_name("").exists());
    assert!(!detach(&rig.options().pins).expect("nothing is there"));
    rig.start().expect("the links are free");
}

#[test]
fn what_a_process_left_half_made_is_taken_away_and_made_anew() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    rig.end();
    std::fs::remove_file(rig.options().pins.join("layout")).expect("it was pinned");
    rig.start().expect("the links are free again");
    let mut hosts = rig.admit();
    assert!(hosts.is_heard());
}

#[test]
fn an_interface_that_is_no_longer_named_is_free() {
    let Some(mut rig) = Rig::new(0) else { return };
    rig.start().expect("root may");
    let links = |rig: &Rig| rig.pins().iter().filter(|name| name.starts_with("link-")).count();
    assert_eq!(links(&rig), 2);
    rig.end();
    let mut options = rig.options();
    options.interfaces.pop();
    let start = || sluice_kernel::xdp::XdpDriver::new(&options, || panic!("an epoch is kept"));
    drop(rig.spaces.switch().within(start).expect("it is there").expect("the pins are there"));
    assert_eq!(links(&rig), 1);
}
