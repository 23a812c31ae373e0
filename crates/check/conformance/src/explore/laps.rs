//! Tries that are whole laps of replay cells apart, which a random walk seldom sends.

use sluice_wire::{Attempt, ClientId, Epoch, Packet, Serial, Submit, TaskId};

use super::{Rack, SHAPE, client_at, client_key, incarnation};
use crate::vector::Vector;

/// The client that sends them.
const CLIENT: u16 = 0;

/// A vector in which a client sends tries of tasks that share a replay cell: a task enters if it is newer
/// than the newest in its cell, and a try if it is of the newest task and later than the try before.
pub fn laps() -> Vector {
    let mut rack = Rack::new(0, SHAPE);
    rack.vector.name = String::from("laps");
    rack.vector.about = String::from("tries whole laps of replay cells older and newer than the newest");
    rack.set_up();
    let tries =
        [(0, 1), (1, 1), (0, 2), (1, 1), (1, 2), (0, 3), (3, 1), (2, 9), (1, 3), (3, 2), (3, 1), (4, 1)];
    for (laps, attempt) in tries {
        rack.now_ns += 1_000;
        let sequence = SHAPE.counters_start.wrapping_add(laps * SHAPE.replay_cells);
        let submit = Submit {
            epoch: Epoch(SHAPE.epoch),
            key: client_key(CLIENT),
            client: ClientId(CLIENT),
            task: TaskId { incarnation: incarnation(CLIENT), sequence: Serial(sequence) },
            attempt: Attempt(attempt),
            ..Submit::default()
        };
        rack.packet(client_at(CLIENT), &Packet::Submit(submit), &[]);
    }
    rack.end()
}
