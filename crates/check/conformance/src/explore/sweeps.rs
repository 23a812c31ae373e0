//! SWEEPs that end before their queue does, which the walks that are kept do not show.

use super::{Rack, SHAPE};
use crate::vector::{Step, Vector};

/// The slice, a worker whose tokens become stale, and one whose tokens stay live.
const SLICE: u16 = 0;
const STALE: u16 = 0;
const LIVE: u16 = 1;

/// A vector in which SWEEPs look at fewer tokens than are parked, stale ones and live ones.
pub fn sweeps() -> Vector {
    let mut rack = Rack::new(0, SHAPE);
    rack.vector.name = String::from("sweeps");
    rack.vector.about = String::from("SWEEPs for fewer tokens than are parked");
    rack.set_up();
    for _ in 0..3 {
        rack.grant(STALE);
        rack.grant(STALE);
        rack.grant(LIVE);
    }
    let generation = rack.workers[usize::from(STALE)].generation + 1;
    rack.take(Step::RaiseGeneration { worker: STALE, generation });
    for left in [1, 2, 3, 2] {
        rack.now_ns += 1_000;
        let at_ns = rack.now_ns;
        rack.take(Step::Sweep { at_ns, slice: SLICE, tasks: false, left, out: None, rounds: 0 });
    }
    rack.end()
}
