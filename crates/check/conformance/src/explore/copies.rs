//! Large tasks of a slice whose servers take turns, which the walks that are kept do not show.

use super::{Rack, SERVERS_SHAPE};
use crate::vector::{Step, Vector};

/// The client that sends the tasks, the worker that takes them, and the slice of both.
const CLIENT: u16 = 0;
const WORKER: u16 = 0;
const SLICE: u16 = 0;
/// A length that a slot of the rings holds.
const LENGTH: usize = 301;
/// So many tasks wait at once: more than there are servers.
const TASKS: usize = 5;

/// A vector in which each task gets one copy, two, three, and as many as there are servers.
pub fn copies() -> Vector {
    let mut rack = Rack::new(0, SERVERS_SHAPE);
    rack.vector.name = String::from("copies");
    rack.vector.about = String::from("large tasks with fewer copies than there are servers, by turns");
    rack.set_up();
    rack.set_servers_up();
    rack.set_last_server_up();
    for copies in [1, 2, 3, 0] {
        rack.take(Step::SetCopies { slice: SLICE, copies });
        (0..TASKS).for_each(|_| rack.send_right(CLIENT, LENGTH));
        (0..TASKS).for_each(|_| rack.grant(WORKER));
    }
    rack.end()
}
