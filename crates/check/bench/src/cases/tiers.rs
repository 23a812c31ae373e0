//! Passes of Horus' switches in two tiers: a spine above racks, and the switch of such a rack.

use sluice_switch::horus::{Average, FabricReading, Horus, RackSize, Spine, SpineLink};
use sluice_switch::{Arrival, Config, Program as _, Verdict};
use sluice_wire::tables::Feed;
use sluice_wire::{MeanQueue, Nanos, Packet, RackNews, Serial, SliceId, Update, WorkerId};

use super::policies::{CountedProgram, EACH, RECEIVERS, SENDERS, register};
use crate::hosts::{EPOCH, GENERATION, WORKERS, dispatch, submit};

/// How many workers a rack below the spine has.
const IN_A_RACK: u32 = 24;

pub(super) fn spine_idle(times: u32) {
    spine(RackNews::Idle).tasks(times);
}

/// Each rack reports its mean queue after as many tasks as it has workers.
pub(super) fn spine_busy(times: u32) {
    let mut bench = spine(busy());
    let mut untold = [0; WORKERS as usize];
    for turn in 0..times {
        let rack = bench.task(turn).worker;
        untold[usize::from(rack.0)] += 1;
        if untold[usize::from(rack.0)] == IN_A_RACK {
            untold[usize::from(rack.0)] = 0;
            assert_eq!(bench.pass(turn, told(rack, busy())), Verdict::Parked);
        }
    }
}

pub(super) fn leaf_idle(times: u32) {
    leaf().tasks(times);
}

pub(super) fn leaf_busy(times: u32) {
    leaf().tasks_behind(times, EACH);
}

/// The report of a rack whose workers have [`EACH`] tasks each.
fn busy() -> RackNews {
    let mean = Average::of(IN_A_RACK * EACH as u32, Average::share(rack_size()));
    RackNews::Load(MeanQueue(mean.expect("it fits").bits()))
}

fn rack_size() -> RackSize {
    RackSize::new(IN_A_RACK).expect("a size")
}

fn told(leaf: WorkerId, news: RackNews) -> Arrival {
    let update = Update { epoch: EPOCH, leaf, generation: GENERATION, pool: SliceId(0), news };
    Arrival::Wire { from: RECEIVERS, packet: Packet::Update(update), room: true }
}

fn config() -> Config {
    Config { workers: WORKERS, ..Config::full(EPOCH) }
}

/// A spine above as many racks as there are workers in the other cases; each rack has made this report.
fn spine(news: RackNews) -> CountedProgram {
    let mut spine = Box::new(Spine::new(FabricReading::default(), config()).expect("few leaves"));
    register(&mut *spine, &config());
    for rack in (0..WORKERS).map(WorkerId) {
        let size = Some(rack_size());
        spine.set_workers(SliceId(0), (rack, GENERATION), size).expect("its row is there");
        assert_eq!(spine.pass(Nanos(0), told(rack, news)), Verdict::Parked);
    }
    CountedProgram::of(spine, Feed::Pushed { reports: false }, |turn| Packet::Submit(submit(0, turn)))
}

fn leaf() -> CountedProgram {
    let mut leaf = Box::new(Horus::in_fabric(FabricReading::default(), config(), 1));
    register(&mut *leaf, &config());
    let link = SpineLink { at: SENDERS, epoch: EPOCH, generation: GENERATION, ..SpineLink::default() };
    leaf.set_spine(0, Some((link, Serial(0)))).expect("room for it");
    leaf.link(SliceId(0), Some(0)).expect("a spine that it knows");
    CountedProgram::of(leaf, Feed::Pushed { reports: true }, |turn| Packet::Dispatch(dispatch(0, turn + 1)))
}
