//! What programs take of the chip, and the stages of their arrays.

use sluice_switch::horus::{FabricReading, Horus, Spine};
use sluice_switch::rain::{Kinds, Rain, RainLeaf};
use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};
use sluice_wire::{Epoch, Nanos};

fn full(program: &str) -> Box<dyn Program> {
    let choice = Choice::parse(program).unwrap();
    choice.build(Config {
        servers: 64,
        ..Config::full_of(Epoch(1), choice.traits().classes, choice.traits().kinds)
    })
}

/// The stage of the array or table with this name.
fn stage(program: &dyn Program, name: &str) -> usize {
    let stages = program.layout().stages();
    stages.iter().position(|stage| stage.names.contains(&name)).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn programs_take_so_many_stages_blocks_and_units() {
    for (program, stages, blocks, units) in [
        ("rain:2", 12, 427, 27),
        ("rain:2,target=50us", 12, 430, 29),
        ("rain:2,classes=4,target=50us", 12, 433, 27),
        ("rain:2,queue=160", 12, 427, 27),
        ("rain:2,ranked", 11, 452, 24),
        ("rain:4,ranked", 12, 501, 25),
        ("rain:2,adaptive,ranked", 12, 501, 25),
        ("rain:2,classes=2", 11, 429, 24),
        ("rain:2,classes=4", 12, 430, 25),
        ("rain:4,ranked,classes=4", 12, 504, 28),
        ("rain:2,labels", 12, 459, 28),
        ("r2p2:2", 8, 82, 11),
        ("racksched:2", 5, 84, 7),
        ("draconis", 12, 429, 24),
        ("draconis:classes=4", 12, 430, 25),
        ("draconis:labels", 12, 442, 27),
        ("pallas", 5, 76, 6),
        ("pallas:weights=16", 5, 106, 6),
        ("horus", 9, 109, 15),
        ("horus:affinity=100ms", 9, 141, 16),
    ] {
        let totals = full(program).layout().totals();
        assert_eq!((totals.stages, totals.blocks, totals.units), (stages, blocks, units), "{program}");
    }
}

/// 24 spines above a leaf, 64 leaves below a spine with 1,024 pools. An affinity table adds one array.
#[test]
fn the_switches_of_a_fabric_fit_the_chip() {
    let keeps = Some(Nanos::from_millis(100));
    for (affinity, expected) in
        [(None, [(10, 120, 19), (9, 194, 14)]), (keeps, [(10, 152, 20), (10, 226, 15)])]
    {
        let reading = FabricReading { affinity, ..FabricReading::default() };
        let leaf = Horus::in_fabric(reading, Config::full(Epoch(1)), 24);
        let config = Config { workers: 64, slices: 1_024, types: 1_024, ..Config::full(Epoch(1)) };
        let spine = Spine::new(reading, config).unwrap();
        let takes = [leaf.layout(), spine.layout()].map(|layout| {
            let totals = layout.totals();
            (totals.stages, totals.blocks, totals.units)
        });
        assert_eq!(takes, expected, "{affinity:?}");
    }
}

#[test]
fn a_rack_of_rain_below_24_spines_fits_the_chip_with_what_it_told_behind_its_queue() {
    for (depth, expected) in [(1, (12, 433, 24)), (2, (12, 458, 27))] {
        let leaf = RainLeaf::in_fabric(depth, FabricReading::default(), Config::full(Epoch(1)), 24);
        let totals = leaf.layout().totals();
        assert_eq!((totals.stages, totals.blocks, totals.units), expected, "{depth} tokens");
        assert_eq!(stage(&leaf, "told"), 11);
    }
}

#[test]
fn so_many_tasks_can_wait_in_a_programs_memory() {
    for (program, entries) in [
        ("rain:2", 131_072),
        ("rain:2,classes=4", 131_072),
        ("draconis", 131_072),
        ("draconis:classes=4", 131_072),
        ("draconis:labels", 131_072),
        ("r2p2", 0),
    ] {
        let empty = full(program);
        assert_eq!((empty.layout().entries(), empty.waiting()), (entries, 0), "{program}");
    }
}

#[test]
fn what_is_told_apart_moves_what_lies_behind_it() {
    for (program, heads, sent, rdma) in [
        ("rain:2", 3, 7, 7),
        ("rain:2,ranked", 4, 8, 8),
        ("rain:2,classes=2", 4, 8, 8),
        ("rain:4,ranked", 5, 9, 9),
        ("rain:2,classes=4", 5, 9, 9),
        ("rain:4,ranked,classes=2", 5, 9, 9),
        ("rain:2,labels", 6, 10, 10),
    ] {
        let built = full(program);
        let at = ["task head", "sent", "rdma: servers"].map(|name| stage(&*built, name));
        assert_eq!(at, [heads, sent, rdma], "{program}");
        assert_eq!(stage(&*built, "gen_out"), heads + 2, "{program}");
    }
}

#[test]
fn what_a_program_feeds_and_keeps_servers_for_is_in_its_shape() {
    for program in [
        "rain:2",
        "rain:2,ranked",
        "rain:2,classes=2",
        "rain:2,labels",
        "r2p2:2",
        "draconis",
        "draconis:labels",
        "draconis:jobs=4",
        "pallas",
    ] {
        let (choice, shape) = (Choice::parse(program).unwrap(), full(program).shape());
        assert_eq!(shape.feed, choice.traits().feed, "{program}");
        assert_eq!(
            (shape.classes, shape.kinds),
            (choice.traits().classes, choice.traits().kinds),
            "{program}"
        );
        assert_eq!(shape.jobs, choice.traits().jobs, "{program}");
        assert_eq!(shape.servers, if choice.traits().writes_ahead { 64 } else { 0 }, "{program}");
    }
}

#[test]
#[should_panic(expected = "1, 2 or 4 ranks and classes, not 3")]
fn three_classes_cannot_be_counted() {
    Rain::of_kinds(Config::full(Epoch(1)), Kinds { ranks: 1, classes: 3 });
}

#[test]
#[should_panic(expected = "1, 2 or 4 ranks and classes, not 8")]
fn eight_ranks_cannot_be_counted() {
    Rain::of_kinds(Config::full(Epoch(1)), Kinds { ranks: 8, classes: 1 });
}
