//! Passes vectors through the program.

use sluice_conformance::explore::{SERVERS_SHAPE, SHAPE, explore, explore_servers, explore_targets};
use sluice_conformance::{Shape, Vector, play};

use crate::plane::Xdp;

/// `XDP_SEEDS` and `XDP_STEPS` set a longer run.
#[test]
fn what_the_model_does_on_random_walks_the_program_does_too() {
    let Some(mut xdp) = Xdp::new(SHAPE) else { return };
    for seed in 0..asked("XDP_SEEDS", 40) {
        xdp.switch.clear().expect("root");
        if let Err(differs) = play(&explore(seed, asked("XDP_STEPS", 300) as usize), &mut xdp) {
            panic!("{differs}");
        }
    }
}

#[test]
fn what_the_model_writes_ahead_on_random_walks_the_program_writes_too() {
    let Some(mut xdp) = Xdp::new(SERVERS_SHAPE) else { return };
    let (seeds, steps) = (asked("XDP_SEEDS", 40), asked("XDP_STEPS", 300));
    let mut copies = 0;
    for seed in 0..seeds {
        xdp.switch.clear().expect("root");
        let walk = explore_servers(seed, steps as usize);
        if let Err(differs) = play(&walk, &mut xdp) {
            panic!("{differs}");
        }
        copies += walk.after.counts.get("written_ahead").copied().unwrap_or_default();
    }
    assert!(copies > seeds * steps / 100, "the walks have tasks that are written ahead: {copies} copies");
}

#[test]
fn what_the_model_measures_for_targets_on_random_walks_the_program_measures_too() {
    let (Some(plain), Some(with_servers)) = (Xdp::new(SHAPE), Xdp::new(SERVERS_SHAPE)) else { return };
    let (mut planes, mut counted) = ([plain, with_servers], (0, 0));
    let seeds = asked("XDP_SEEDS", 40);
    for seed in 0..seeds {
        let xdp = &mut planes[(seed % 2) as usize];
        xdp.switch.clear().expect("root");
        let walk = explore_targets(seed, asked("XDP_STEPS", 300) as usize);
        if let Err(differs) = play(&walk, xdp) {
            panic!("{differs}");
        }
        let count = |name: &str| walk.after.counts.get(name).copied().unwrap_or_default();
        counted = (counted.0 + count("limit_measured"), counted.1 + count("rejected"));
    }
    assert!(counted.0 > seeds / 4 && counted.1 > seeds, "the walks measure and refuse: {counted:?}");
}

fn asked(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn the_program_does_what_the_vectors_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../targets/vectors");
    let files = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    // Sorted: the names of vectors of one shape begin alike, so the program is loaded once for each shape.
    let files: std::collections::BTreeSet<_> = files.collect();
    let mut loaded: Option<(Shape, Xdp)> = None;
    for path in files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "json"))
    {
        let text = std::fs::read_to_string(&path).expect("a text");
        let vector = Vector::parse(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        if loaded.as_ref().is_none_or(|(shape, _)| *shape != vector.shape) {
            let Some(xdp) = Xdp::new(vector.shape) else { return };
            loaded = Some((vector.shape, xdp));
        }
        let (_, xdp) = loaded.as_mut().expect("just loaded");
        xdp.switch.clear().expect("root");
        play(&vector, xdp).unwrap_or_else(|why| panic!("{why}"));
    }
}
