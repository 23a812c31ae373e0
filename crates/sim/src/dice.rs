//! Seeded randomness: a named stream per use, so that one use more does not shift all the others.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sluice_wire::Nanos;

/// One stream of a seed.
#[derive(Debug)]
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Even over `0..bound`; the bias of the remainder is below 2⁻³² for the small bounds used here.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// Even over `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn span(&mut self, low: Nanos, high: Nanos) -> Nanos {
        Nanos(self.between(low.0, high.0))
    }

    /// True `per_mille` times in a thousand.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}
