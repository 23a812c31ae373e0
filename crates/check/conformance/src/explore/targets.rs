//! A rack whose slices have targets, for tasks that would wait too long.

use super::servers::SERVERS_SHAPE;
use super::{Rack, SHAPE};
use crate::vector::Vector;

/// A vector in which slices have targets, and tasks come faster than they leave.
pub fn explore_targets(seed: u64, steps: usize) -> Vector {
    let shape = if seed.is_multiple_of(2) { SHAPE } else { SERVERS_SHAPE };
    let mut rack = Rack::new(seed, shape);
    rack.vector.name = format!("targets-{seed}");
    rack.has_targets = true;
    rack.set_up();
    if shape.servers > 0 {
        rack.set_servers_up();
    }
    (0..steps).for_each(|_| rack.step());
    rack.end()
}
