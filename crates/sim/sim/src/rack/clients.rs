//! The clients of a curve, and the requests that go to them in turn. What happens to them is in `side`.

mod side;

use std::collections::VecDeque;

use sluice_control::ClientGrant;
use sluice_host::client::{Action, Client, ClientSettings, Submission, Urgency};
use sluice_wire::{Nanos, Payload, Serial};

use super::guess::Guesses;
use super::setup::{ClassNeeds, RackSetup};
use crate::events::ClockId;
use crate::nodes::{Node, TaskTag};
use crate::workload::{Request, Requests};

/// All clients, a place each, and the requests that go to them in turn.
#[derive(Debug)]
pub(super) struct Clients {
    /// Strikes when the next request is due.
    pub(super) clock: ClockId,
    requests: Requests,
    next: Option<Request>,
    asked: ClassNeeds,
    /// What is said of tasks' sizes, if anybody asks.
    sizes: Option<Guesses>,
    all: Vec<Submitter>,
    settings: ClientSettings,
    /// Whether a task may be tried again.
    retries: bool,
    turn: usize,
    actions: Vec<Action>,
}

#[derive(Debug)]
struct Submitter {
    node: Node<Client>,
    /// Requests that are held back, by slice.
    backlogs: Vec<VecDeque<Request>>,
    held_back: u64,
}

impl Clients {
    /// The clients of a rack; the clock is the next request's.
    pub(super) fn new(
        plan: &RackSetup,
        clock: ClockId,
        requests: Requests,
        grants: Vec<ClientGrant>,
        settings: ClientSettings,
        retries: bool,
    ) -> Self {
        let registered = |(index, grant): (usize, ClientGrant)| {
            let mut machine = plan.client(index as u16);
            machine.grant(Nanos(0), &settings, grant.registration, &mut Vec::new());
            Node::new(machine, plan.places.clients.at(index as u32))
        };
        let submitter = |node| Submitter {
            node,
            backlogs: (0..plan.slices()).map(|_| VecDeque::new()).collect(),
            held_back: 0,
        };
        Self {
            clock,
            requests,
            next: None,
            asked: plan.asked.clone(),
            sizes: plan.sizes(),
            all: grants.into_iter().enumerate().map(registered).map(submitter).collect(),
            settings,
            retries,
            turn: 0,
            actions: Vec::new(),
        }
    }

    /// A client's oldest task that has not ended.
    pub(super) fn floor(&self, client: u16) -> Serial {
        self.all[usize::from(client)].node.machine.floor()
    }

    /// Tasks that clients have sent and that have not ended.
    pub(super) fn outstanding(&self) -> u64 {
        self.all.iter().map(|one| one.node.machine.outstanding() as u64).sum()
    }

    /// Requests that clients hold back.
    pub(super) fn held_back(&self) -> u64 {
        self.all.iter().map(|one| one.held_back).sum()
    }

    /// Whether more requests will be due.
    pub(super) const fn has_more(&self) -> bool {
        self.next.is_some()
    }

    /// Whether no request is due any more and all tasks have ended.
    #[inline]
    pub(super) fn have_ended(&self) -> bool {
        self.next.is_none() && self.outstanding() == 0 && self.held_back() == 0
    }

    /// The client whose turn it is.
    fn next_in_turn(&mut self) -> usize {
        let client = self.turn;
        self.turn = if client + 1 == self.all.len() { 0 } else { client + 1 };
        client
    }

    fn submission(&mut self, request: &Request) -> Submission {
        Submission {
            task_type: request.task_type,
            urgency: self.urgency(request),
            payload: Payload {
                len: if request.large { self.asked.bytes[usize::from(request.class)] } else { 8 },
                inline: request.service.0.to_le_bytes(),
                ..Payload::EMPTY
            },
            deadline: request.at + self.settings.deadline_default,
            retry: self.retries,
            tag: TaskTag { class: request.class, intended: request.at }.pack(),
            ..Submission::default()
        }
    }

    /// What a client says of a request: how urgent it is, or else its size, if anybody asks.
    #[inline]
    fn urgency(&mut self, request: &Request) -> Urgency {
        if let Some(priority) = self.asked.priority[usize::from(request.class)] {
            return Urgency::Priority(priority);
        }
        let sizes = self.sizes.as_mut();
        sizes.map_or(Urgency::Unstated, |sizes| Urgency::Work(sizes.of(request.service)))
    }
}
