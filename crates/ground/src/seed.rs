//! Chance that nobody foresees.

use std::fs::File;
use std::io::Read;

use crate::fail::{Failure, Outcome};

/// Random bits for a controller's keys.
pub fn random_seed() -> Outcome<[u8; 32]> {
    let mut seed = [0; 32];
    let read = File::open("/dev/urandom").and_then(|mut kernel| kernel.read_exact(&mut seed));
    read.map(|()| seed).map_err(|why| Failure::broken(format!("the kernel gave no random bits: {why}")))
}
