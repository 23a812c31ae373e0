//! The rules of the pipeline model: it catches what a program may not do, and counts what a program takes.

use sluice_switch::pipeline::{Column, Layout, Pass, Register};
use sluice_switch::rain::Rain;
use sluice_switch::{Config, Program};
use sluice_wire::Epoch;

fn two_arrays() -> (Register<u32>, Register<u32>) {
    let mut layout = Layout::new("sample");
    let early = Register::new(&mut layout, "early", 1, 32, 4, 0);
    (early, Register::new(&mut layout, "late", 2, 32, 4, 0))
}

#[test]
#[should_panic(expected = "sample: touches early twice in one pass")]
fn a_second_access_to_an_array_is_caught() {
    let (mut early, _) = two_arrays();
    let pass = &mut Pass::begin("sample");
    early.write(pass, 0, 1);
    early.read(pass, 1);
}

#[test]
#[should_panic(expected = "sample: touches late twice in one pass")]
fn a_second_access_to_a_later_array_is_caught() {
    let (_, mut late) = two_arrays();
    let pass = &mut Pass::begin("sample");
    late.write(pass, 0, 1);
    late.read(pass, 1);
}

#[test]
#[should_panic(expected = "sample: goes back from stage 2 to early in stage 1")]
fn an_access_to_an_earlier_stage_is_caught() {
    let (mut early, mut late) = two_arrays();
    let pass = &mut Pass::begin("sample");
    late.read(pass, 0);
    early.read(pass, 0);
}

#[test]
#[should_panic(expected = "stage 1 has no stateful unit left for fifth")]
fn a_fifth_array_in_a_stage_does_not_fit() {
    let mut layout = Layout::new("sample");
    for name in ["first", "second", "third", "fourth", "fifth"] {
        let _: Register<u8> = Register::new(&mut layout, name, 1, 8, 4, 0);
    }
}

#[test]
#[should_panic(expected = "stage 1 has no SRAM left for huge")]
fn an_array_beyond_a_stages_sram_does_not_fit() {
    let _: Register<u64> = Register::new(&mut Layout::new("sample"), "huge", 1, 64, 170_000, 0);
}

#[test]
#[should_panic(expected = "stage 1 has no map RAM left for wide")]
fn an_array_takes_map_ram_for_its_words_and_a_spare_block() {
    let array = |cells| Register::new(&mut Layout::new("sample"), "wide", 1, 32, cells, 0_u32);
    array(47 * 4_096);
    array(47 * 4_096 + 1);
}

#[test]
#[should_panic(expected = "sample: odd has 48 bits, which no word has")]
fn a_word_of_48_bits_does_not_exist() {
    let _: Register<u64> = Register::new(&mut Layout::new("sample"), "odd", 1, 48, 4, 0);
}

#[test]
fn a_split_word_takes_an_array_of_each_of_its_stages() {
    let columns = [(0, 32), (1, 16)].map(|(stage, bits)| Column { name: "part", stage, bits });
    let mut layout = Layout::new("sample");
    let _: Register<u64> = Register::split(&mut layout, "split", &columns, 131_072, 0);
    let takes = |stage: usize| (layout.stages()[stage].map_ram, layout.stages()[stage].units);
    assert_eq!((takes(0), takes(1), takes(2)), ((33, 1), (17, 1), (0, 0)));
}

#[test]
#[should_panic(expected = "sample: goes back from stage 1 to seen in stage 0")]
fn a_split_word_is_known_behind_its_last_array() {
    let columns = [0, 1].map(|stage| Column { name: "part", stage, bits: 32 });
    let mut layout = Layout::new("sample");
    let mut split: Register<u64> = Register::split(&mut layout, "split", &columns, 4, 0);
    let mut seen = Register::new(&mut layout, "seen", 0, 32, 4, 0_u32);
    let pass = &mut Pass::begin("sample");
    split.read(pass, 0);
    seen.read(pass, 0);
}

#[test]
fn a_branch_writes_one_of_two_words_and_returns_the_old_one() {
    let (mut register, _) = two_arrays();
    let step = |register: &mut Register<u32>| {
        register.branch(&mut Pass::begin("sample"), 3, |word| word < 2, |word| word + 1, |_| 0)
    };
    assert_eq!([0; 4].map(|_| step(&mut register)), [0, 1, 2, 0]);
}

#[test]
fn rain_at_the_papers_size_fits_the_chip() {
    let config = Config { servers: 64, ..Config::full(Epoch(1)) };
    let totals = Rain::new(config).layout().totals();
    assert_eq!(totals.stages, 12);
    assert!(totals.sram < 0.5, "{totals:?}");
    assert!(totals.units <= 48 && totals.map_ram <= 576, "{totals:?}");
}
