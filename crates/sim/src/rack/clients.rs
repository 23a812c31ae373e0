//! The clients of a curve (`nodes::client`), and an application that offers each request when it is due.
//!
//! What a client's share does not admit waits in its backlog, in order and by slice; times count from when a
//! request was due.

use std::collections::VecDeque;

use sluice_control::ClientGrant;
use sluice_host::client::{Action, Client, ClientSettings, Outcome, Submission, Urgency};
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{Nanos, Payload, Serial, Submit, TaskId};

use super::books::Place;
use super::guess::Guesses;
use super::nodes::Staged;
use super::setup::{ClassNeeds, Plan};
use super::stage::{Cue, Stage};
use crate::nodes::{ClientCall, ClientSide, Node, Try};
use crate::stats::{self, Observer, Replied};
use crate::workload::{Request, Requests};
use crate::world::{Address, ClockId, PacketId};

/// Requests that a client holds back in each slice; what is more, it gives up.
const BACKLOG_MAX: usize = 1 << 20;

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
            tag: Tag { class: request.class, intended: request.at }.pack(),
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

impl<O: Observer> Staged<'_, O> {
    /// A client learns of its registration, as it is now.
    pub(super) fn grant_client(&mut self, grant: ClientRegistration) {
        let client = usize::from(grant.client.0);
        let Ok(()) =
            self.on_client(client, |machine, now, settings, out| machine.grant(now, settings, grant, out));
        self.send_held_back(client);
    }

    /// The next request is drawn.
    #[inline]
    pub(super) fn draw(&mut self) {
        let clients = &mut self.nodes.clients;
        clients.next = clients.requests.next();
        let due = clients.next.map_or(Nanos(u64::MAX), |request| request.at);
        self.stage.world.engine.set(clients.clock, due);
    }

    /// The request that is due is offered, and the next one drawn.
    #[inline]
    pub(super) fn request(&mut self) {
        let due = self.nodes.clients.next;
        self.draw();
        if let Some(request) = due {
            self.offer(request);
        }
    }

    /// A request goes to the next client in turn.
    #[inline]
    fn offer(&mut self, request: Request) {
        self.stage.meter.sent(self.stage.world.now);
        self.stage.books.offered();
        let clients = &mut self.nodes.clients;
        let client = clients.turn;
        clients.turn = if client + 1 == clients.all.len() { 0 } else { client + 1 };
        let slice = clients.asked.slice[usize::from(request.class)];
        if clients.all[client].backlogs[slice].is_empty() && self.submit(client, &request) {
            return;
        }
        self.hold_back(client, slice, request);
    }

    /// A packet comes to a client.
    #[inline]
    pub(super) fn at_client(&mut self, client: u32, packet: PacketId) {
        let Ok(()) = self.client_hears(client as usize, packet);
        self.send_held_back(client as usize);
    }

    /// A client was to be woken now.
    pub(super) fn wake(&mut self, client: usize) {
        let Ok(_) = self.client_wakes(client);
        self.send_held_back(client);
    }

    /// Hands a request to the machine; says whether it was taken.
    #[inline]
    fn submit(&mut self, client: usize, request: &Request) -> bool {
        let submission = self.nodes.clients.submission(request);
        let ClientCall { now, node, settings, out, .. } = self.client(client);
        let taken = node.machine.submit(now, settings, submission, out).is_ok();
        if taken {
            self.stage.books.moves(Place::Backlog, Place::ToSwitch);
        }
        let Ok(()) = self.client_acts(client);
        taken
    }

    #[cold]
    fn hold_back(&mut self, client: usize, slice: usize, request: Request) {
        let submitter = &mut self.nodes.clients.all[client];
        if submitter.backlogs[slice].len() < BACKLOG_MAX {
            submitter.backlogs[slice].push_back(request);
            submitter.held_back += 1;
            return;
        }
        self.stage.books.moves(Place::Backlog, Place::PushedBack);
        self.stage.meter.failed(request.at, stats::Outcome::PushedBack);
    }

    /// Sends what was held back, as far as there is room now.
    #[inline]
    fn send_held_back(&mut self, client: usize) {
        if self.nodes.clients.all[client].held_back > 0 {
            self.try_held_back(client);
        }
    }

    #[cold]
    fn try_held_back(&mut self, client: usize) {
        for slice in 0..self.nodes.plan.slices() {
            while let Some(request) = self.nodes.clients.all[client].backlogs[slice].pop_front() {
                self.nodes.clients.all[client].held_back -= 1;
                if !self.submit(client, &request) {
                    self.nodes.clients.all[client].held_back += 1;
                    self.nodes.clients.all[client].backlogs[slice].push_front(request);
                    break;
                }
            }
        }
    }
}

impl<O: Observer> ClientSide for Staged<'_, O> {
    #[inline]
    fn client(&mut self, client: usize) -> ClientCall<'_> {
        let Clients { all, settings, actions, .. } = &mut self.nodes.clients;
        let world = &self.stage.world;
        let node = &mut all[client].node;
        ClientCall { now: world.now, node, settings, packets: &world.packets, out: actions }
    }

    fn front(&self) -> Address {
        self.nodes.plan.places.front
    }

    #[inline]
    fn tries(&mut self, submit: &Submit) -> Try<Self, Option<Payload>> {
        if submit.attempt.0 > 1 {
            self.stage.meter.counts.retries += 1;
            self.stage.books.moves(Place::ToClient, Place::ToSwitch);
        }
        Ok(None)
    }

    #[inline]
    fn ends(&mut self, _: usize, _: TaskId, tag: u64, how: &Outcome) -> Try<Self> {
        let Tag { class, intended } = Tag::unpack(tag);
        let Stage { world, meter, books } = &mut *self.stage;
        match how {
            Outcome::Reply(reply) => {
                books.moves(Place::ToClient, Place::Done);
                let service = Nanos(u64::from_le_bytes(reply.payload.inline));
                meter.counts.queued += u64::from(reply.switch_wait_ns > 0);
                let waited = Nanos(u64::from(reply.switch_wait_ns) + u64::from(reply.worker_wait_ns));
                let served = Nanos(reply.service_ns.into());
                let at = world.now;
                meter.observer.done(&Replied { class, intended, at, service, served, waited });
            }
            Outcome::Refused(_) => {
                books.moves(Place::ToClient, Place::Refused);
                meter.failed(intended, stats::Outcome::Refused);
            }
            Outcome::Unknown(_) => {
                books.moves(Place::ToClient, Place::Unknown);
                meter.failed(intended, stats::Outcome::Unknown);
            }
        }
        Ok(())
    }

    fn wake_client(&mut self, at: Nanos, client: usize) {
        self.stage.cue(at, self.nodes.plan.places.clients.at(client as u32), Cue::Tick);
    }

    fn wakes_clients(&self) -> bool {
        self.nodes.clients.retries
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
