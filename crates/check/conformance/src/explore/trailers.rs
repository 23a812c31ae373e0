//! The zeros behind a large task, which a random walk seldom gets wrong by a few bytes only.

use sluice_wire::{
    Attempt, ClientId, Epoch, Generation, HEADER_BYTES, INLINE_BYTES, Packet, Payload, Serial, Submit,
    TaskId, Token, WorkerId, large_descriptor,
};

use super::{Rack, SERVERS_SHAPE, SHAPE, client_at, client_key, encoded, incarnation, worker_at, worker_key};
use crate::vector::Vector;

/// Tasks with each length of padding.
const LENGTHS: [usize; 5] = [9, 10, 11, 12, 301];
/// A worker with an IPv4 address, and one with an IPv6 address, in one slice. So have the clients.
const HOSTS: [u16; 2] = [0, 1];

/// A vector in which tasks come without a trailer, with a part of one, with a one at each place, with a byte
/// more, and right. Of those that are right some are written ahead, and others meet a token.
pub fn trailers() -> Vector {
    let mut rack = Rack::new(0, SERVERS_SHAPE);
    rack.vector.name = String::from("trailers");
    rack.vector.about = String::from("large tasks with the zeros behind them, and with others");
    rack.set_up();
    rack.set_servers_up();
    for client in HOSTS {
        rack.send_small_with_trailer(client);
        for length in LENGTHS {
            rack.send_bent(client, length);
            for worker in HOSTS {
                rack.send_right(client, length);
                rack.grant(worker);
                rack.grant(worker);
                rack.send_right(client, length);
            }
        }
    }
    rack.end()
}

impl Rack {
    /// The bytes of a client's next task.
    fn next_task(&mut self, client: u16, length: usize) -> Vec<u8> {
        let next = &mut self.clients[usize::from(client)];
        let sequence = Serial(*next);
        *next = next.wrapping_add(1);
        let body: Vec<u8> = (0..length).map(|at| (at * 7 + 1) as u8).collect();
        let is_large = length > INLINE_BYTES;
        let inline = if is_large { large_descriptor(&body) } else { [1; INLINE_BYTES] };
        let submit = Submit {
            epoch: Epoch(SHAPE.epoch),
            key: client_key(client),
            client: ClientId(client),
            task: TaskId { incarnation: incarnation(client), sequence },
            attempt: Attempt(1),
            payload: Payload { len: length as u16, inline, ..Payload::EMPTY },
            ..Submit::default()
        };
        self.now_ns += 1_000;
        encoded(&Packet::Submit(submit), if is_large { &body } else { &[] })
    }

    pub(super) fn send_right(&mut self, client: u16, length: usize) {
        let bytes = self.next_task(client, length);
        self.datagram(client_at(client), bytes);
    }

    /// A task that fits its queue entry has no trailer.
    fn send_small_with_trailer(&mut self, client: u16) {
        let bytes = [self.next_task(client, INLINE_BYTES), vec![0; 4]].concat();
        self.datagram(client_at(client), bytes);
    }

    /// Sends a task with each trailer that is wrong by a byte.
    fn send_bent(&mut self, client: u16, length: usize) {
        let right = self.next_task(client, length);
        for at in HEADER_BYTES + length..right.len() {
            self.datagram(client_at(client), right[..at].to_vec());
            let mut bytes = right.clone();
            bytes[at] = 1;
            self.datagram(client_at(client), bytes);
        }
        self.datagram(client_at(client), [right, vec![0]].concat());
    }

    /// Sends a worker's next token.
    pub(super) fn grant(&mut self, worker: u16) {
        let host = &mut self.workers[usize::from(worker)];
        host.issued = host.issued.wrapping_add(1);
        let token = Token {
            epoch: Epoch(SHAPE.epoch),
            key: worker_key(worker),
            worker: WorkerId(worker),
            generation: Generation(host.generation),
            issued: Serial(host.issued),
            ..Token::default()
        };
        self.now_ns += 1_000;
        self.packet(worker_at(worker), &Packet::Token(token), &[]);
    }
}
