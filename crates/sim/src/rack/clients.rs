//! The clients: the real state machine, and an application that offers each request when it is due.
//!
//! What a client's share does not admit waits in its backlog, in order and by slice; times count from when a
//! request was due. A client's own work takes no time.

use std::collections::VecDeque;

use sluice_control::ClientGrant;
use sluice_host::client::{Action, Client, ClientSettings, Outcome, Submission, Urgency};
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{Nanos, Packet, Payload, Serial, Submit};

use super::books::Place;
use super::guess::Guesses;
use super::setup::{ClassNeeds, Plan};
use super::stage::{Cue, Stage};
use crate::stats::{self, Observer, Replied};
use crate::workload::{Request, Requests};
use crate::world::{Address, ClockId, Mail};

/// Requests that a client holds back in each slice; what is more, it gives up.
const BACKLOG_MAX: usize = 1 << 20;

/// All clients, a place each, and the requests that go to them in turn.
#[derive(Debug)]
pub(super) struct Clients {
    at: Address,
    /// Where tasks go.
    front: Address,
    /// Strikes when the next request is due.
    pub(super) clock: ClockId,
    requests: Requests,
    next: Option<Request>,
    asked: ClassNeeds,
    /// What is said of tasks' sizes, if anybody asks.
    sizes: Option<Guesses>,
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
    /// The clients of a rack; the clock is the next request's.
    pub(super) fn new(
        plan: &Plan,
        clock: ClockId,
        requests: Requests,
        grants: Vec<ClientGrant>,
        settings: ClientSettings,
        retries: bool,
    ) -> Self {
        let registered = |(index, grant): (usize, ClientGrant)| {
            let mut machine = plan.client(index as u16);
            machine.grant(Nanos(0), &settings, grant.registration, &mut Vec::new());
            machine
        };
        let node = |machine| ClientNode {
            machine,
            backlogs: (0..plan.slices()).map(|_| VecDeque::new()).collect(),
            held_back: 0,
            armed: Nanos(u64::MAX),
        };
        Self {
            at: plan.places.clients,
            front: plan.places.front,
            clock,
            requests,
            next: None,
            asked: plan.asked.clone(),
            sizes: plan.sizes(),
            nodes: grants.into_iter().enumerate().map(registered).map(node).collect(),
            deadline: settings.deadline_default,
            settings,
            retries,
            turn: 0,
            actions: Vec::new(),
        }
    }

    /// A client learns of its registration, as it is now.
    pub(super) fn grant<O: Observer>(&mut self, stage: &mut Stage<O>, grant: ClientRegistration) {
        let client = usize::from(grant.client.0);
        self.nodes[client].machine.grant(stage.now(), &self.settings, grant, &mut self.actions);
        self.act(stage, client);
        self.send_held_back(stage, client);
    }

    /// A client's oldest task that has not ended.
    pub(super) fn floor(&self, client: u16) -> Serial {
        self.nodes[usize::from(client)].machine.floor()
    }

    /// Tasks that clients have sent and that have not ended.
    pub(super) fn outstanding(&self) -> u64 {
        self.nodes.iter().map(|node| node.machine.outstanding() as u64).sum()
    }

    /// Requests that clients hold back.
    pub(super) fn held_back(&self) -> u64 {
        self.nodes.iter().map(|node| node.held_back).sum()
    }

    /// Whether more requests will be due.
    pub(super) const fn has_more(&self) -> bool {
        self.next.is_some()
    }

    /// The next request is drawn.
    #[inline]
    pub(super) fn draw<O: Observer>(&mut self, stage: &mut Stage<O>) {
        self.next = self.requests.next();
        stage.world.engine.set(self.clock, self.next.map_or(Nanos(u64::MAX), |request| request.at));
    }

    /// The request that is due is offered, and the next one drawn.
    #[inline]
    pub(super) fn request<O: Observer>(&mut self, stage: &mut Stage<O>) {
        let due = self.next;
        self.draw(stage);
        if let Some(request) = due {
            self.offer(stage, request);
        }
    }

    /// A request goes to the next client in turn.
    #[inline]
    fn offer<O: Observer>(&mut self, stage: &mut Stage<O>, request: Request) {
        stage.meter.sent(stage.world.now);
        stage.books.offered();
        let client = self.turn;
        self.turn = if client + 1 == self.nodes.len() { 0 } else { client + 1 };
        let slice = self.asked.slice[usize::from(request.class)];
        if self.nodes[client].backlogs[slice].is_empty() && self.submit(stage, client, &request) {
            return;
        }
        self.hold_back(stage, client, slice, request);
    }

    /// A packet comes to a client.
    #[inline]
    pub(super) fn mail<O: Observer>(&mut self, stage: &mut Stage<O>, client: u32, mail: Mail) {
        let Mail::Packet { packet: id, .. } = mail else { return };
        let (client, now) = (client as usize, stage.now());
        let packet = stage.world.engine.packets.get(id);
        self.nodes[client].machine.packet(now, &self.settings, packet, &mut self.actions);
        self.act(stage, client);
        self.send_held_back(stage, client);
        stage.world.engine.packets.free(id);
    }

    /// The client's machine has something to do.
    pub(super) fn tick<O: Observer>(&mut self, stage: &mut Stage<O>, client: u32) {
        let client = client as usize;
        self.nodes[client].armed = Nanos(u64::MAX);
        self.nodes[client].machine.tick(stage.now(), &self.settings, &mut self.actions);
        self.act(stage, client);
        self.send_held_back(stage, client);
    }

    /// Hands a request to the machine; says whether it was taken.
    #[inline]
    fn submit<O: Observer>(&mut self, stage: &mut Stage<O>, client: usize, request: &Request) -> bool {
        let submission = Submission {
            task_type: request.task_type,
            urgency: self.urgency(request),
            payload: Payload {
                len: if request.large { self.asked.bytes[usize::from(request.class)] } else { 8 },
                inline: request.service.0.to_le_bytes(),
                ..Payload::EMPTY
            },
            deadline: request.at + self.deadline,
            retry: self.retries,
            tag: Tag { class: request.class, intended: request.at }.pack(),
            ..Submission::default()
        };
        let machine = &mut self.nodes[client].machine;
        let taken = machine.submit(stage.now(), &self.settings, submission, &mut self.actions).is_ok();
        if taken {
            stage.books.moves(Place::Backlog, Place::ToSwitch);
        }
        self.act(stage, client);
        taken
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

    /// Does what the machine said.
    #[inline]
    fn act<O: Observer>(&mut self, stage: &mut Stage<O>, client: usize) {
        for action in &self.actions {
            match action {
                Action::ToSwitch(submit) => {
                    if submit.attempt.0 > 1 {
                        stage.meter.counts.retries += 1;
                        stage.books.moves(Place::ToClient, Place::ToSwitch);
                    }
                    let (from, now) = (self.at.at(client as u32), stage.now());
                    stage.send(from, self.front, now, |place| submit_into(place, submit));
                }
                Action::Done { tag, outcome, .. } => ended(stage, Tag::unpack(*tag), outcome),
                // Nothing has bytes beyond the packet, and no controller is there to be asked.
                Action::Parts { .. }
                | Action::Gone { .. }
                | Action::Need { .. }
                | Action::Begin { .. }
                | Action::Place { .. }
                | Action::Check { .. }
                | Action::Forget(_)
                | Action::Release(_)
                | Action::Renew => {}
            }
        }
        self.actions.clear();
        if self.retries {
            self.arm(stage, client);
        }
    }

    #[cold]
    fn hold_back<O: Observer>(
        &mut self,
        stage: &mut Stage<O>,
        client: usize,
        slice: usize,
        request: Request,
    ) {
        let node = &mut self.nodes[client];
        if node.backlogs[slice].len() < BACKLOG_MAX {
            node.backlogs[slice].push_back(request);
            node.held_back += 1;
            return;
        }
        stage.books.moves(Place::Backlog, Place::PushedBack);
        stage.meter.failed(request.at, stats::Outcome::PushedBack);
    }

    /// Sends what was held back, as far as there is room now.
    #[inline]
    fn send_held_back<O: Observer>(&mut self, stage: &mut Stage<O>, client: usize) {
        if self.nodes[client].held_back > 0 {
            self.try_held_back(stage, client);
        }
    }

    #[cold]
    fn try_held_back<O: Observer>(&mut self, stage: &mut Stage<O>, client: usize) {
        for slice in 0..self.nodes[client].backlogs.len() {
            while let Some(request) = self.nodes[client].backlogs[slice].pop_front() {
                self.nodes[client].held_back -= 1;
                if !self.submit(stage, client, &request) {
                    self.nodes[client].held_back += 1;
                    self.nodes[client].backlogs[slice].push_front(request);
                    break;
                }
            }
        }
    }

    fn arm<O: Observer>(&mut self, stage: &mut Stage<O>, client: usize) {
        let node = &mut self.nodes[client];
        if let Some(due) = node.machine.deadline().filter(|due| *due < node.armed) {
            node.armed = due.max(stage.now());
            stage.cue(node.armed, self.at.at(client as u32), Cue::Tick);
        }
    }
}

/// In two steps, so that the task is copied to where it belongs as it was written.
#[inline]
fn submit_into(place: &mut Packet, submit: &Submit) {
    *place = Packet::Submit(Submit::default());
    if let Packet::Submit(place) = place {
        *place = *submit;
    }
}

/// A task has ended, as its client says.
#[inline]
fn ended<O: Observer>(stage: &mut Stage<O>, tag: Tag, outcome: &Outcome) {
    let Tag { class, intended } = tag;
    match outcome {
        Outcome::Reply(reply) => {
            stage.books.moves(Place::ToClient, Place::Done);
            let service = Nanos(u64::from_le_bytes(reply.payload.inline));
            stage.meter.counts.queued += u64::from(reply.switch_wait_ns > 0);
            let waited = Nanos(u64::from(reply.switch_wait_ns) + u64::from(reply.worker_wait_ns));
            let served = Nanos(reply.service_ns.into());
            let at = stage.world.now;
            stage.meter.observer.done(&Replied { class, intended, at, service, served, waited });
        }
        Outcome::Refused(_) => {
            stage.books.moves(Place::ToClient, Place::Refused);
            stage.meter.failed(intended, stats::Outcome::Refused);
        }
        Outcome::Unknown(_) => {
            stage.books.moves(Place::ToClient, Place::Unknown);
            stage.meter.failed(intended, stats::Outcome::Unknown);
        }
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
