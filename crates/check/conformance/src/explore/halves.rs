//! Tasks whose client's row changes while they wait: an entry keeps the lower half of an incarnation, and the
//! row says the upper half.

use sluice_wire::{
    Attempt, ClientId, Epoch, Generation, Incarnation, Nonce, Packet, Payload, Rank, Serial, Submit, TaskId,
    Token, WorkerId,
};

use super::{Rack, SHAPE, client_at, client_key, incarnation, worker_at, worker_key};
use crate::vector::{Step, Vector};

/// The client whose row changes, and one whose row stays.
const CLIENT: u16 = 0;
const OTHER: u16 = 1;
/// A worker of the slice in which the tasks wait.
const WORKER: u16 = 0;
/// Another start of a client, under the same index.
const LATER: Incarnation = Incarnation(0x1234_5678_0000_0abc);

/// A vector in which tasks wait while their client's row is removed, written anew and given to another start
/// of a client, and leave for a worker or by a SWEEP.
pub fn halves() -> Vector {
    let mut rack = Rack::new(0, SHAPE);
    rack.vector.name = String::from("halves");
    rack.vector.about = String::from("a waiting task's client leaves, returns, or gives its row to another");
    rack.set_up();
    let (first, other) = (incarnation(CLIENT), incarnation(OTHER));
    (0..8).for_each(|_| rack.task_of(CLIENT, first));
    rack.task_of(OTHER, other);
    rack.next_token();
    rack.take(Step::ClearClient { client: CLIENT });
    rack.next_token();
    rack.row_of(CLIENT, first);
    rack.next_token();
    rack.row_of(CLIENT, LATER);
    rack.next_token();
    rack.task_of(CLIENT, LATER);
    rack.set_slice(0, false, 16);
    rack.sweep_task();
    rack.take(Step::ClearClient { client: CLIENT });
    rack.sweep_task();
    rack.row_of(CLIENT, first);
    rack.sweep_task();
    rack.set_slice(0, true, 16);
    (0..3).for_each(|_| rack.next_token());
    // A token is parked: a task that meets one at once leaves as it came, whatever its row says.
    rack.next_token();
    rack.task_of(CLIENT, LATER);
    // These wait at the end, and one of them has no row any more.
    rack.task_of(CLIENT, LATER);
    rack.task_of(OTHER, other);
    rack.take(Step::ClearClient { client: OTHER });
    rack.end()
}

impl Rack {
    /// Sends a client's next task, in this incarnation.
    fn task_of(&mut self, client: u16, incarnation: Incarnation) {
        self.now_ns += 1_000;
        let next = &mut self.clients[usize::from(client)];
        let sequence = Serial(*next);
        *next = next.wrapping_add(1);
        let submit = Submit {
            epoch: Epoch(SHAPE.epoch),
            key: client_key(client),
            client: ClientId(client),
            task: TaskId { incarnation, sequence },
            attempt: Attempt(1),
            payload: Payload::EMPTY,
            ..Submit::default()
        };
        self.packet(client_at(client), &Packet::Submit(submit), &[]);
    }

    /// Sends the worker's next TOKEN.
    fn next_token(&mut self) {
        self.now_ns += 1_000;
        let host = &mut self.workers[usize::from(WORKER)];
        host.issued = host.issued.wrapping_add(1);
        let token = Token {
            epoch: Epoch(SHAPE.epoch),
            key: worker_key(WORKER),
            worker: WorkerId(WORKER),
            generation: Generation(host.generation),
            nonce: Nonce(0),
            issued: Serial(host.issued),
            rank: Rank::default(),
        };
        self.packet(worker_at(WORKER), &Packet::Token(token), &[]);
    }

    /// Writes the row of a client in this incarnation.
    pub(super) fn row_of(&mut self, client: u16, incarnation: Incarnation) {
        let (key, at) = (client_key(client).0, client_at(client));
        let start = self.clients[usize::from(client)];
        self.take(Step::SetClient { client, key, at, incarnation: incarnation.0, start });
    }

    fn sweep_task(&mut self) {
        self.now_ns += 1_000;
        self.take(Step::Sweep { at_ns: self.now_ns, slice: 0, tasks: true, left: 1, out: None, rounds: 0 });
    }
}
