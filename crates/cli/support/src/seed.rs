//! Random numbers that no one can predict.

use std::fs::File;
use std::io::Read;

use crate::fail::{Failure, Outcome};

/// Random bits for a controller's keys.
pub fn random_seed() -> Outcome<[u8; 32]> {
    let mut seed = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut kernel| kernel.read_exact(&mut seed));
    read.map(|()| seed).map_err(|why| Failure::broken(format!("the kernel gave no random bits: {why}")))
}

/// 64 random bits, for a life that no other start shares.
pub fn random_bits() -> Outcome<u64> {
    let seed = random_seed()?;
    let (bits, _) = seed.split_first_chunk().expect("a seed is longer");
    Ok(u64::from_le_bytes(*bits))
}
