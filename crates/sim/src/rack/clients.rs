//! The clients: the real state machine, and an application that offers each request when it is due.
//!
//! What a client's share does not admit waits in its backlog, in order and by slice; times count from when a request
//! was due. A client's own work takes no time.

use std::collections::VecDeque;

use sluice_host::client::{Action, Client, ClientSettings, Outcome, Submission};
use sluice_wire::{ClientId, Nanos, Packet, Payload};

use super::Rack;
use super::books::Place;
use super::links::{Due, PacketId, Source};
use crate::stats::{self, Observer};
use crate::workload::Request;

/// Requests that a client holds back in each slice; what is more, it gives up.
const BACKLOG_MAX: usize = 1 << 20;

/// All clients.
#[derive(Debug)]
pub(super) struct Clients {
    nodes: Vec<ClientNode>,
    pub(super) settings: ClientSettings,
    /// Whether a task may be tried again.
    retries: bool,
    deadline: Nanos,
    turn: usize,
    actions: Vec<Action>,
}

#[derive(Debug)]
struct ClientNode {
    machine: Client,
    /// Requests that are held back, by slice.
    backlogs: Vec<VecDeque<Request>>,
    held_back: u64,
    /// When the machine's next tick is in the agenda.
    armed: Nanos,
}

impl Clients {
    pub(super) fn new(machines: Vec<Client>, slices: usize, settings: ClientSettings, retries: bool) -> Self {
        let node = |machine| ClientNode {
            machine,
            backlogs: (0..slices).map(|_| VecDeque::new()).collect(),
            held_back: 0,
            armed: Nanos(u64::MAX),
        };
        let deadline = settings.deadline_default;
        let nodes = machines.into_iter().map(node).collect();
        Self { nodes, settings, retries, deadline, turn: 0, actions: Vec::new() }
    }

    /// Tasks that clients have sent and that have not ended.
    pub(super) fn outstanding(&self) -> u64 {
        self.nodes.iter().map(|node| node.machine.outstanding() as u64).sum()
    }

    /// Requests that clients hold back.
    pub(super) fn held_back(&self) -> u64 {
        self.nodes.iter().map(|node| node.held_back).sum()
    }
}

impl<O: Observer> Rack<'_, O> {
    /// A request is due: it goes to the next client in turn.
    #[inline]
    pub(super) fn offer(&mut self, request: Request) {
        self.meter.sent(self.now);
        self.books.offered();
        let client = self.clients.turn;
        self.clients.turn = if client + 1 == self.clients.nodes.len() { 0 } else { client + 1 };
        let slice = self.plan.slice_of(request.class);
        if self.clients.nodes[client].backlogs[slice].is_empty() && self.submit(client, &request) {
            return;
        }
        self.hold_back(client, slice, request);
    }

    /// A packet comes to a client.
    #[inline]
    pub(super) fn at_client(&mut self, packet: PacketId) {
        let packet_is = self.links.packet(packet);
        if let Some(ClientId(client)) = addressee(packet_is) {
            let client = usize::from(client);
            let actions = &mut self.clients.actions;
            self.clients.nodes[client].machine.packet(self.now, &self.clients.settings, packet_is, actions);
            self.act(client);
            self.send_held_back(client);
        }
        self.links.free(packet);
    }

    /// The client's machine has something to do.
    pub(super) fn tick_client(&mut self, client: u32) {
        let client = client as usize;
        let Clients { nodes, settings, actions, .. } = &mut self.clients;
        nodes[client].armed = Nanos(u64::MAX);
        nodes[client].machine.tick(self.now, settings, actions);
        self.act(client);
        self.send_held_back(client);
    }

    /// Hands a request to the machine; says whether it was taken.
    #[inline]
    fn submit(&mut self, client: usize, request: &Request) -> bool {
        let submission = Submission {
            task_type: request.task_type,
            payload: Payload {
                len: if request.large { self.plan.bytes_of(request.class) } else { 8 },
                inline: request.service.0.to_le_bytes(),
                ..Payload::EMPTY
            },
            deadline: request.at + self.clients.deadline,
            retry: self.clients.retries,
            tag: Tag { class: request.class, intended: request.at }.pack(),
        };
        let Clients { nodes, settings, actions, .. } = &mut self.clients;
        let taken = nodes[client].machine.submit(self.now, settings, submission, actions).is_ok();
        if taken {
            self.books.moves(Place::Backlog, Place::ToSwitch);
        }
        self.act(client);
        taken
    }

    /// Does what the machine said.
    #[inline]
    fn act(&mut self, client: usize) {
        let mut actions = std::mem::take(&mut self.clients.actions);
        for action in &actions {
            match action {
                Action::ToSwitch(submit) => {
                    self.meter.counts.retries += u64::from(submit.attempt.0 > 1);
                    let at = self.now + self.testbed.links.client;
                    self.send(Source::Submits, at, &Packet::Submit(*submit));
                }
                Action::Done { tag, outcome, .. } => self.ended(Tag::unpack(*tag), outcome),
                // Nothing has bytes beyond the packet, and no controller is there to be asked.
                Action::Parts { .. }
                | Action::Need { .. }
                | Action::Begin { .. }
                | Action::Place { .. }
                | Action::Check { .. }
                | Action::Forget(_)
                | Action::Release(_)
                | Action::Renew => {}
            }
        }
        actions.clear();
        self.clients.actions = actions;
        if self.clients.retries {
            self.arm_client(client);
        }
    }

    #[inline]
    fn ended(&mut self, tag: Tag, outcome: &Outcome) {
        let Tag { class, intended } = tag;
        match outcome {
            Outcome::Reply(reply) => {
                self.books.moves(Place::ToClient, Place::Done);
                let service = Nanos(u64::from_le_bytes(reply.payload.inline));
                self.meter.counts.queued += u64::from(reply.switch_wait_ns > 0);
                let waited = Nanos(u64::from(reply.switch_wait_ns) + u64::from(reply.worker_wait_ns));
                self.meter.observer.done(class, intended, self.now, service, waited);
            }
            Outcome::Refused(_) => {
                self.books.moves(Place::ToClient, Place::Refused);
                self.meter.failed(intended, stats::Outcome::Refused);
            }
            Outcome::Unknown(_) => {
                self.books.moves(Place::ToClient, Place::Unknown);
                self.meter.failed(intended, stats::Outcome::Unknown);
            }
        }
    }

    #[cold]
    fn hold_back(&mut self, client: usize, slice: usize, request: Request) {
        let node = &mut self.clients.nodes[client];
        if node.backlogs[slice].len() < BACKLOG_MAX {
            node.backlogs[slice].push_back(request);
            node.held_back += 1;
            return;
        }
        self.books.moves(Place::Backlog, Place::PushedBack);
        self.meter.failed(request.at, stats::Outcome::PushedBack);
    }

    /// Sends what was held back, as far as there is room now.
    #[inline]
    fn send_held_back(&mut self, client: usize) {
        if self.clients.nodes[client].held_back > 0 {
            self.try_held_back(client);
        }
    }

    #[cold]
    fn try_held_back(&mut self, client: usize) {
        for slice in 0..self.clients.nodes[client].backlogs.len() {
            while let Some(request) = self.clients.nodes[client].backlogs[slice].pop_front() {
                self.clients.nodes[client].held_back -= 1;
                if !self.submit(client, &request) {
                    self.clients.nodes[client].held_back += 1;
                    self.clients.nodes[client].backlogs[slice].push_front(request);
                    break;
                }
            }
        }
    }

    fn arm_client(&mut self, client: usize) {
        let node = &mut self.clients.nodes[client];
        if let Some(due) = node.machine.deadline().filter(|due| *due < node.armed) {
            node.armed = due.max(self.now);
            self.links.at(node.armed, Due::ClientTick(client as u32));
        }
    }
}

const fn addressee(packet: &Packet) -> Option<ClientId> {
    match packet {
        Packet::Reply(reply) => Some(reply.client),
        Packet::Reject(reject) => Some(reject.client),
        Packet::Notice(notice) => Some(notice.client),
        _ => None,
    }
}

/// What is known of a task when its outcome comes, in the number that the machine keeps for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag {
    class: u8,
    intended: Nanos,
}

impl Tag {
    const CLASS_SHIFT: u32 = 56;

    const fn pack(self) -> u64 {
        (self.class as u64) << Self::CLASS_SHIFT | self.intended.0
    }

    const fn unpack(tag: u64) -> Self {
        let intended = Nanos(tag & ((1 << Self::CLASS_SHIFT) - 1));
        Self { class: (tag >> Self::CLASS_SHIFT) as u8, intended }
    }
}
