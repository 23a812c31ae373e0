//! What programs take of the chip, and the stages of their arrays.

use sluice_switch::horus::{FabricReading, Horus, Spine};
use sluice_switch::rain::{Kinds, Rain, RainLeaf};
use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};
use sluice_wire::{Epoch, Nanos};

fn full(program: &str) -> Box<dyn Program> {
    Choice::parse(program).unwrap().on_a_whole_chip()
}

/// The stage of the array or table with this name.
fn stage(program: &dyn Program, name: &str) -> usize {
    let stages = program.layout().stages();
    stages.iter().position(|stage| stage.names.contains(&name)).unwrap_or_else(|| panic!("no {name}"))
}

/// What a program takes: stages, SRAM blocks, blocks of map RAM, stateful units.
type Takes = (u32, u32, u32, u32);

fn takes(program: &dyn Program) -> Takes {
    let totals = program.layout().totals();
    (totals.stages, totals.blocks, totals.map_ram, totals.units)
}

#[test]
fn programs_take_so_many_stages_blocks_and_units() {
    let expected: [(&str, Takes); 20] = [
        ("rain:2", (12, 413, 405, 34)),
        ("rain:2,target=50us", (12, 418, 409, 36)),
        ("rain:2,classes=4,target=50us", (11, 272, 263, 31)),
        ("rain:2,queue=160", (12, 413, 405, 34)),
        ("rain:2,ranked", (10, 287, 279, 27)),
        ("rain:4,ranked", (11, 289, 281, 28)),
        ("rain:2,adaptive,ranked", (11, 289, 281, 28)),
        ("rain:2,classes=2", (10, 265, 257, 28)),
        ("rain:2,classes=4", (11, 267, 259, 29)),
        ("rain:4,ranked,classes=4", (11, 295, 287, 31)),
        ("rain:2,labels", (12, 297, 285, 30)),
        ("r2p2:2", (8, 78, 70, 12)),
        ("racksched:2", (5, 76, 68, 8)),
        ("draconis", (11, 242, 237, 21)),
        ("draconis:classes=4", (11, 244, 239, 22)),
        ("draconis:labels", (12, 254, 246, 24)),
        ("pallas", (5, 67, 60, 7)),
        ("pallas:weights=16", (5, 97, 60, 7)),
        ("horus", (9, 109, 99, 16)),
        ("horus:affinity=100ms", (9, 142, 132, 17)),
    ];
    for (program, expected) in expected {
        assert_eq!(takes(&*full(program)), expected, "{program}");
    }
}

/// 24 spines above a leaf, 64 leaves below a spine with 1,024 pools. An affinity table adds one array.
#[test]
fn the_switches_of_a_fabric_fit_the_chip() {
    let keeps = Some(Nanos::from_millis(100));
    for (affinity, expected) in
        [(None, [(10, 124, 112, 20), (9, 193, 157, 15)]), (keeps, [(10, 157, 145, 21), (10, 226, 190, 16)])]
    {
        let reading = FabricReading { affinity, ..FabricReading::default() };
        let leaf = Horus::in_fabric(reading, Config::full(Epoch(1)), 24);
        let config = Config { workers: 64, slices: 1_024, types: 1_024, ..Config::full(Epoch(1)) };
        let spine = Spine::new(reading, config).unwrap();
        assert_eq!([takes(&leaf), takes(&spine)], expected, "{affinity:?}");
    }
}

#[test]
fn a_rack_of_rain_below_24_spines_fits_the_chip_with_what_it_told_behind_its_queue() {
    for (depth, expected) in [(1, (12, 286, 279, 29)), (2, (12, 312, 305, 30))] {
        let config = Config::full_below_spines(Epoch(1));
        let leaf = RainLeaf::in_fabric(depth, FabricReading::default(), config, 24);
        assert_eq!(takes(&leaf), expected, "{depth} tokens");
        assert_eq!((stage(&leaf, "told"), leaf.layout().entries()), (11, 65_536));
    }
}

#[test]
fn so_many_tasks_can_wait_in_a_programs_memory() {
    for (program, entries) in [
        ("rain:2", 131_072),
        ("rain:2,target=50us", 131_072),
        ("rain:2,ranked", 65_536),
        ("rain:2,classes=2", 65_536),
        ("rain:4,ranked,classes=4", 65_536),
        ("rain:2,labels", 65_536),
        ("draconis", 65_536),
        ("draconis:classes=4", 65_536),
        ("draconis:labels", 65_536),
        ("r2p2", 0),
    ] {
        let empty = full(program);
        assert_eq!((empty.layout().entries(), empty.waiting()), (entries, 0), "{program}");
        if entries > 0 {
            let most = Choice::parse(program).unwrap().traits().tasks_max;
            assert_eq!(most, entries, "{program}");
        }
    }
}

/// Twice as many as the chip holds.
#[test]
#[should_panic(expected = "rain: stage 4 has no map RAM left for budget")]
fn twice_as_many_tasks_do_not_fit() {
    Rain::new(Config { tasks_per_slice: 16_384, ..Config::full(Epoch(1)) });
}

#[test]
#[should_panic(expected = "rain: stage 6 has no map RAM left for arrived high")]
fn as_many_tasks_as_in_plain_rain_do_not_fit_behind_counts() {
    let config = Config { tokens_per_slice: 2_048, ..Config::full(Epoch(1)) };
    Choice::parse("rain:4,ranked").unwrap().build(config);
}

#[test]
fn what_is_told_apart_moves_what_lies_behind_it() {
    for (program, heads, sent, rdma) in [
        ("rain:2", 3, 8, 8),
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
