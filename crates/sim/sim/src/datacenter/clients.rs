//! A pool's clients: for each of its spines a machine of its own, registered there. What happens to them is
//! in `side`.
//!
//! A request goes to the next client in turn, and to a spine drawn by its weight (Horus §3.2). A retry goes
//! to the spine of the first try, so that what spine and leaf let in once is let in once.

mod side;

use std::collections::VecDeque;

use sluice_host::client::{Client, Submission};
use sluice_wire::{Incarnation, Nanos, Payload};

use super::control::START;
use super::places::CLIENTS;
use crate::dice::Dice;
use crate::events::{Address, ClockId};
use crate::nodes::{Node, TaskTag};
use crate::workload::{Request, Requests};

/// A client's machine for one spine.
#[derive(Debug)]
pub(super) struct Submitter {
    pub(super) node: Node<Client>,
    /// Its name for itself.
    pub(super) incarnation: Incarnation,
    pub(super) pool: usize,
    /// Where its tasks go.
    pub(super) front: Address,
    /// Requests that are held back.
    backlog: VecDeque<Request>,
}

/// Below this stands the number of a task's machine in its client's name for itself.
const MACHINE_BITS: u32 = 16;

impl Submitter {
    /// One that is not registered. Its incarnation tells its number, so that what comes to its client's
    /// address finds it.
    pub(super) fn new(dice: &mut Dice, machine: usize, pool: usize, client: u16, front: Address) -> Self {
        assert!(machine < 1 << MACHINE_BITS, "as many clients' machines as fit their names");
        let incarnation = Incarnation(dice.word() >> MACHINE_BITS << MACHINE_BITS | machine as u64);
        let node = Node::new(Client::new(incarnation, START), CLIENTS.at(client.into()));
        Self { node, incarnation, pool, front, backlog: VecDeque::new() }
    }
}

/// The machine that a task's client name tells.
pub(super) const fn machine_of(incarnation: Incarnation) -> usize {
    (incarnation.0 & ((1 << MACHINE_BITS) - 1)) as usize
}

impl Submitter {
    /// Whether all its tasks have ended.
    pub(super) fn is_idle(&self) -> bool {
        self.backlog.is_empty() && self.node.machine.outstanding() == 0
    }
}

/// A pool's requests, and where each goes.
#[derive(Debug)]
pub(super) struct PoolRequests {
    /// Strikes when the next request is due.
    pub(super) clock: ClockId,
    requests: Requests,
    next: Option<Request>,
    /// The first of the pool's machines; those of one client follow one another, a spine each.
    first: usize,
    clients: usize,
    turn: usize,
    /// What spines weigh, summed up; those that are out weigh nothing.
    pub(super) weights: Vec<u64>,
    dice: Dice,
    /// How many bytes a large task of each class carries.
    bytes: Vec<u16>,
    /// The pool's number of the first type.
    first_type: u16,
}

impl PoolRequests {
    /// Whether more requests will be due.
    pub(super) const fn has_more(&self) -> bool {
        self.next.is_some()
    }

    pub(super) fn new(
        clock: ClockId,
        requests: Requests,
        machines: (usize, usize),
        weights: Vec<u64>,
        dice: Dice,
        tasks: (Vec<u16>, u16),
    ) -> Self {
        let ((first, clients), (bytes, first_type)) = (machines, tasks);
        Self { clock, requests, next: None, first, clients, turn: 0, weights, dice, bytes, first_type }
    }

    /// The machine whose turn it is: the client's turn, the spine's luck.
    fn machine(&mut self) -> usize {
        let spine = self.spine();
        let client = self.turn;
        self.turn = if client + 1 == self.clients { 0 } else { client + 1 };
        self.first + client * self.weights.len() + spine
    }

    fn spine(&mut self) -> usize {
        match self.weights[..] {
            [_] => 0,
            [.., all] if all > 0 => {
                let drawn = self.dice.below(all);
                self.weights.partition_point(|up_to| *up_to <= drawn)
            }
            _ => 0,
        }
    }

    fn submission(&self, request: &Request, deadline: Nanos, retry: bool) -> Submission {
        Submission {
            task_type: sluice_wire::TaskType(self.first_type + request.task_type.0),
            payload: Payload {
                len: if request.large { self.bytes[usize::from(request.class)] } else { 8 },
                inline: request.service.0.to_le_bytes(),
                ..Payload::EMPTY
            },
            deadline: request.at + deadline,
            retry,
            tag: TaskTag { class: request.class, intended: request.at }.pack(),
            ..Submission::default()
        }
    }
}
