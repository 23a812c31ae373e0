//! Vectors through the program.

use sluice_vectors::explore::{SHAPE, explore};
use sluice_vectors::play;

use crate::plane::Xdp;

/// `XDP_SEEDS` and `XDP_STEPS` make it longer.
#[test]
fn what_the_model_does_on_random_walks_the_program_does_too() {
    let Some(mut xdp) = Xdp::new(SHAPE) else { return };
    let [seeds, steps] = [("XDP_SEEDS", 40), ("XDP_STEPS", 300)].map(|(name, default)| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    });
    for seed in 0..seeds {
        xdp.switch.clear().expect("root");
        if let Err(differs) = play(&explore(seed, steps as usize), &mut xdp) {
            panic!("{differs}");
        }
    }
}
