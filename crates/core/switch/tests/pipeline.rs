//! The rules of the pipeline model: it catches what a program may not do, and counts what a program takes.

use sluice_switch::pipeline::{Layout, Pass, Register};
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
    assert!(totals.units <= 48, "{totals:?}");
}
