//! The P4 programs on BMv2 do what the model does: packets out, then queues and counters.
//!
//! Needs p4c-bm2-ss and simple_switch (and simple_switch_grpc), on the path or in the folders of `P4_TOOLS`;
//! without them these tests print so and do nothing. `P4_SOURCES` names another folder of the programs'
//! files, and `P4_PROGRAM` the only program to test.

mod plane;

use plane::{P4, targets};
use sluice_bmv2::{P4Program, RuntimeApi};
use sluice_conformance::explore::{
    explore, explore_draconis, explore_hours, explore_idle_draconis, explore_pallas, explore_racksched,
    explore_servers,
};
use sluice_conformance::{Vector, play};

#[test]
fn the_programs_do_what_the_vectors_say() {
    play_vectors(RuntimeApi::Thrift);
}

#[test]
fn with_tables_over_p4runtime_they_do_the_same() {
    play_vectors(RuntimeApi::P4Runtime);
}

fn play_vectors(api: RuntimeApi) {
    let mut running: Option<P4> = None;
    let mut held = 0;
    for vector in sluice_conformance::all(&targets().join("vectors")).unwrap_or_else(|why| panic!("{why}")) {
        // Rain has no targets yet.
        if !is_asked(&vector) || vector.has_target() {
            continue;
        }
        if running.as_ref().is_none_or(|plane| plane.shape != vector.shape) {
            let Some(plane) = P4::new(vector.shape, api) else { return };
            running = Some(plane);
        }
        let plane = running.as_mut().expect("just started");
        plane.switch.clear().unwrap_or_else(|why| panic!("{why}"));
        play(&vector, plane).unwrap_or_else(|why| panic!("{why}"));
        held += 1;
    }
    assert!(held > 90 || std::env::var_os("P4_PROGRAM").is_some(), "{held} vectors");
}

/// `P4_SEEDS` and `P4_STEPS` set a longer run.
#[test]
fn what_the_model_does_on_random_walks_the_programs_do_too() {
    let walks: [fn(u64, usize) -> Vector; 7] = [
        explore,
        explore_servers,
        explore_hours,
        explore_draconis,
        explore_idle_draconis,
        explore_pallas,
        explore_racksched,
    ];
    for walk in walks {
        let mut running: Option<P4> = None;
        for seed in 0..asked("P4_SEEDS", 2) {
            let vector = walk(seed, asked("P4_STEPS", 200) as usize);
            if !is_asked(&vector) {
                continue;
            }
            if running.as_ref().is_none_or(|plane| plane.shape != vector.shape) {
                let Some(plane) = P4::new(vector.shape, RuntimeApi::Thrift) else { return };
                running = Some(plane);
            }
            let plane = running.as_mut().expect("just started");
            plane.switch.clear().unwrap_or_else(|why| panic!("{why}"));
            play(&vector, plane).unwrap_or_else(|why| panic!("{why}"));
        }
    }
}

fn is_asked(vector: &Vector) -> bool {
    let program = P4Program::of(vector.shape.program.policy()).map(P4Program::name);
    std::env::var("P4_PROGRAM").map_or(true, |only| program == Some(only.as_str()))
}

fn asked(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
