//! Seeded randomness: each use has a named stream, so that a new use does not shift the numbers of others.
//!
//! The numbers are the same on every machine: words come from ChaCha8, and the rest is IEEE arithmetic and
//! `libm`. The platform's own mathematics library is not used, because its rounding differs between
//! platforms.
#![no_std]
#![forbid(unsafe_code)]

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sluice_wire::Nanos;

/// One stream of a seed.
#[derive(Clone, Debug)]
pub struct Dice(ChaCha8Rng);

impl Dice {
    /// The stream with this number.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// The stream called `name` of one replication. Streams of two names, or of two replications, are
    /// independent.
    pub fn named(seed: u64, name: &str, replication: u32) -> Self {
        Self::new(seed, u64::from(fingerprint(name)) << 32 | u64::from(replication))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A seed for a generator of the caller's own.
    pub fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        seed.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&self.word().to_le_bytes()));
        seed
    }

    /// Uniform over `0..bound`; the bias of the remainder is below 2⁻³² for bounds below 2³².
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// Uniform over `low..=high`.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Uniform over the nanoseconds from `low` to `high`, both included.
    pub fn span(&mut self, low: Nanos, high: Nanos) -> Nanos {
        Nanos(self.between(low.0, high.0))
    }

    /// True `per_mille` times in a thousand.
    #[inline]
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    /// One of the values, all equally likely.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Uniform over the multiples of 2⁻⁵³ above 0, up to and including 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.word() >> 11) + 1) as f64 * UNIT_STEP
    }

    /// True with this probability: never for 0, always for 1.
    #[inline]
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }

    /// Exponential with mean 1, at most [`EXPONENTIAL_MAX`]; each number takes one word.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        minus_log(self.word())
    }

    /// Normal with mean 0 and standard deviation 1 (the polar method); each number takes a few words.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }
}

/// The largest value that [`Dice::exponential`] gives: −ln 2⁻⁶⁴.
pub const EXPONENTIAL_MAX: f64 = 64.0 * core::f64::consts::LN_2;

const UNIT_STEP: f64 = 1.0 / (1u64 << 53) as f64;

/// FNV-1a hash of the name.
fn fingerprint(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// −ln(`word` / 2⁶⁴), accurate to 1e-15, in half the time that `libm::log` takes.
///
/// With word = m · 2ᵉ and 1 ≤ m < 2, ln m = ln c + ln(1 + (m − c)/c). The interval 1..2 is cut into 128
/// parts, and c is the middle of the part that holds m. So (m − c)/c is below 2⁻⁸, and five terms of the
/// series are enough. A zero word counts as 1.
#[inline]
fn minus_log(word: u64) -> f64 {
    let word = word | u64::from(word == 0);
    let zeros = word.leading_zeros();
    let fraction = word << zeros << 1 >> 12;
    let part = &PARTS[(fraction >> 45) as usize];
    let m = f64::from_bits(1023 << 52 | fraction);
    let r = (m - part.middle) * part.inverse;
    let series = r * (1.0 - r * (1.0 / 2.0 - r * (1.0 / 3.0 - r * (1.0 / 4.0 - r * (1.0 / 5.0)))));
    (f64::from(zeros + 1) * core::f64::consts::LN_2 - part.log - series).max(0.0)
}

#[derive(Clone, Copy)]
struct Part {
    middle: f64,
    inverse: f64,
    log: f64,
}

static PARTS: [Part; 128] = parts();

const fn parts() -> [Part; 128] {
    let mut parts = [Part { middle: 0.0, inverse: 0.0, log: 0.0 }; 128];
    let mut i = 0;
    while i < parts.len() {
        let middle = 1.0 + (i as f64 + 0.5) / 128.0;
        parts[i] = Part { middle, inverse: 1.0 / middle, log: log_series(middle) };
        i += 1;
    }
    parts
}

/// ln x for 1 ≤ x < 2, by the series of the inverse hyperbolic tangent. `libm` cannot run at compile time.
const fn log_series(x: f64) -> f64 {
    let z = (x - 1.0) / (x + 1.0);
    let mut sum = 0.0;
    let mut term = 20;
    while term > 0 {
        term -= 1;
        sum = sum * z * z + 2.0 / (2 * term + 1) as f64;
    }
    sum * z
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn the_quick_logarithm_is_the_exact_one() {
        let mut dice = Dice::new(1, 1);
        let drawn = (0..1_000_000).map(|_| dice.word());
        let shifted = (0..64).flat_map(|bits| [u64::MAX >> bits, 1 << bits]);
        let near_one = (0..1_000).map(|below| u64::MAX - below);
        for word in drawn.chain(shifted).chain(near_one) {
            let exact = -libm::log(word as f64 / 2f64.powi(64));
            let quick = minus_log(word);
            assert!((quick - exact).abs() < 2e-15 * exact.max(1.0), "{word}: {quick} and not {exact}");
        }
        assert_eq!(minus_log(0).to_bits(), EXPONENTIAL_MAX.to_bits());
        assert!(minus_log(u64::MAX) >= 0.0);
    }

    #[test]
    fn a_unit_is_never_zero_and_may_be_one() {
        let mut dice = Dice::new(2, 1);
        assert!((0..100_000).map(|_| dice.unit()).all(|unit| unit > 0.0 && unit <= 1.0));
        assert!((0..1_000).all(|_| dice.happens(1.0) && !dice.happens(0.0)));
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        let (mut dice, count) = (Dice::new(3, 1), 1_000_000);
        let (mut first, mut second) = ([0.0; 2], [0.0; 2]);
        for _ in 0..count {
            for (i, drawn) in [dice.exponential(), dice.normal()].into_iter().enumerate() {
                first[i] += drawn / f64::from(count);
                second[i] += drawn * drawn / f64::from(count);
            }
        }
        assert!((first[0] - 1.0).abs() < 0.004 && (second[0] - 2.0).abs() < 0.02, "{first:?} {second:?}");
        assert!(first[1].abs() < 0.004 && (second[1] - 1.0).abs() < 0.006, "{first:?} {second:?}");
    }

    #[test]
    fn streams_of_two_names_or_replications_differ() {
        let of = |name, replication| Dice::named(7, name, replication).word();
        assert_eq!(of("arrivals", 0), of("arrivals", 0));
        assert_ne!(of("arrivals", 0), of("services", 0));
        assert_ne!(of("arrivals", 0), of("arrivals", 1));
    }
}
