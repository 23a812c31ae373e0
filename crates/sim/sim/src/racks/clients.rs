//! The clients of all pools, and the requests that go to them in turn. What happens to them is in
//! `effects`.
//!
//! Where there are spines, a client has a machine for each of them, registered there. A request goes to the
//! next client in turn, and to a spine drawn by its weight (Horus §3.2). A retry goes to the spine of the
//! first try, so that what spine and leaf let in once is let in once.

use std::collections::VecDeque;

use sluice_control::ClientGrant;
use sluice_events::dice::Dice;
use sluice_events::{Address, ClockId};
use sluice_host::client::{Action, Client, ClientSettings, Submission, Urgency};
use sluice_nodes::{Node, TaskTag};
use sluice_wire::{Incarnation, Nanos, Payload, Serial, TaskType};
use sluice_workload::{Class, Request, Requests};

use super::control::START;
use super::guess::Guesses;
use super::places::{CLIENTS, LEAVES};
use super::setup::{ClassNeeds, RackSetup};

/// All clients' machines.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) all: Vec<Submitter>,
    pub(super) settings: ClientSettings,
    /// Whether a task may be tried again.
    pub(super) retries: bool,
    pub(super) actions: Vec<Action>,
}

/// A client's machine for one switch.
#[derive(Debug)]
pub(super) struct Submitter {
    pub(super) node: Node<Client>,
    /// Its name for itself.
    pub(super) incarnation: Incarnation,
    /// Requests that are held back, by slice.
    pub(super) backlogs: Vec<VecDeque<Request>>,
    pub(super) held_back: u64,
}

/// Below this stands the number of a task's machine in its client's name for itself, where there are spines.
const MACHINE_BITS: u32 = 16;

impl Submitter {
    /// A pool's at this place, which is not registered with its spine yet. Its incarnation tells its number,
    /// so that what comes to its client's address finds it.
    pub(super) fn at_spine(
        dice: &mut Dice,
        machine: usize,
        (pool, place): (usize, u16),
        spine: Address,
    ) -> Self {
        assert!(machine < 1 << MACHINE_BITS, "as many clients' machines as fit their names");
        let incarnation = Incarnation(dice.word() >> MACHINE_BITS << MACHINE_BITS | machine as u64);
        let node = Node::new(Client::new(incarnation, START), CLIENTS.at(place.into()), spine);
        Self::new(Node { pool: pool as u16, ..node }, incarnation, 1)
    }

    fn new(node: Node<Client>, incarnation: Incarnation, slices: usize) -> Self {
        Self { node, incarnation, backlogs: (0..slices).map(|_| VecDeque::new()).collect(), held_back: 0 }
    }
}

/// The machine that a task's client name tells.
pub(super) const fn machine_of(incarnation: Incarnation) -> usize {
    (incarnation.0 & ((1 << MACHINE_BITS) - 1)) as usize
}

impl Clients {
    pub(super) const fn new(all: Vec<Submitter>, settings: ClientSettings, retries: bool) -> Self {
        Self { all, settings, retries, actions: Vec::new() }
    }

    /// The clients of a rack that is alone.
    pub(super) fn of_rack(
        plan: &RackSetup,
        grants: Vec<ClientGrant>,
        settings: ClientSettings,
        retries: bool,
    ) -> Self {
        let registered = |(index, grant): (usize, ClientGrant)| {
            let incarnation = plan.incarnation(index as u16);
            let mut machine = Client::new(incarnation, START);
            machine.grant(Nanos(0), &settings, grant.registration, &mut Vec::new());
            Submitter::new(Node::new(machine, CLIENTS.at(index as u32), LEAVES), incarnation, plan.slices())
        };
        Self::new(grants.into_iter().enumerate().map(registered).collect(), settings, retries)
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

    /// Whether all their tasks have ended.
    pub(super) fn are_idle(&self) -> bool {
        self.all.iter().all(|one| one.held_back == 0 && one.node.machine.outstanding() == 0)
    }

    /// Whether a client's machine is there: a spine may take another client for the one that is meant.
    pub(super) fn is_at(&self, machine: usize, at: Address) -> bool {
        self.all.get(machine).is_some_and(|machine| machine.node.at == at)
    }
}

/// A pool's requests, and where each goes.
#[derive(Debug)]
pub(super) struct PoolRequests {
    /// Strikes when the next request is due.
    pub(super) clock: ClockId,
    pub(super) requests: Requests,
    pub(super) next: Option<Request>,
    /// The first of the pool's machines; those of one client follow one another, a spine each.
    first: usize,
    clients: usize,
    turn: usize,
    /// How much each client sends, summed up, and where clients come from; `None` if all send in turn.
    by_weight: Option<(Vec<u64>, Dice)>,
    /// What spines weigh, summed up; those that are out weigh nothing.
    pub(super) weights: Vec<u64>,
    /// Where spines come from; none where a rack is alone.
    dice: Option<Dice>,
    pub(super) asked: ClassNeeds,
    /// What is said of tasks' sizes, if anybody asks.
    sizes: Option<Guesses>,
    /// The pool's number of the first type.
    first_type: u16,
}

impl PoolRequests {
    /// Of a rack that is alone.
    pub(super) fn of_rack(
        clock: ClockId,
        requests: Requests,
        clients: usize,
        asked: ClassNeeds,
        sizes: Option<Guesses>,
    ) -> Self {
        let (next, weights) = (None, vec![1]);
        Self {
            clock,
            requests,
            next,
            first: 0,
            clients,
            turn: 0,
            by_weight: None,
            weights,
            dice: None,
            asked,
            sizes,
            first_type: 0,
        }
    }

    /// These requests, drawn for clients by their weights.
    pub(super) fn weighted(mut self, weights: &[u32], dice: Dice) -> Self {
        let mut sum = 0;
        let summed = weights.iter().map(|weight| {
            sum += u64::from(*weight);
            sum
        });
        self.by_weight = (!weights.is_empty()).then(|| (summed.collect(), dice));
        self
    }

    /// Of a pool of racks below spines.
    pub(super) fn below_spines(
        clock: ClockId,
        requests: Requests,
        (first, clients): (usize, usize),
        (weights, dice): (Vec<u64>, Dice),
        (classes, first_type): (&[Class], u16),
    ) -> Self {
        let alone = Self::of_rack(clock, requests, clients, ClassNeeds::of_pool(classes), None);
        Self { first, weights, dice: Some(dice), first_type, ..alone }
    }

    /// Whether more requests will be due.
    #[inline]
    pub(super) const fn has_more(&self) -> bool {
        self.next.is_some()
    }

    /// The machine whose turn it is: the client's turn or weight, the spine's luck.
    #[inline]
    pub(super) fn machine(&mut self) -> usize {
        let spine = self.spine();
        let client = self.client();
        self.first + client * self.weights.len() + spine
    }

    #[inline]
    fn client(&mut self) -> usize {
        if let Some((weights, dice)) = &mut self.by_weight {
            let drawn = dice.below(weights[weights.len() - 1]);
            return weights.partition_point(|up_to| *up_to <= drawn);
        }
        let client = self.turn;
        self.turn = if client + 1 == self.clients { 0 } else { client + 1 };
        client
    }

    #[inline]
    fn spine(&mut self) -> usize {
        match (&self.weights[..], &mut self.dice) {
            ([_, .., all], Some(dice)) if *all > 0 => {
                let drawn = dice.below(*all);
                self.weights.partition_point(|up_to| *up_to <= drawn)
            }
            _ => 0,
        }
    }

    pub(super) fn submission(
        &mut self,
        request: &Request,
        settings: &ClientSettings,
        retry: bool,
    ) -> Submission {
        Submission {
            task_type: TaskType(self.first_type + request.task_type.0),
            urgency: self.urgency(request),
            payload: Payload {
                len: if request.large { self.asked.bytes[usize::from(request.class)] } else { 8 },
                inline: request.service.0.to_le_bytes(),
                ..Payload::EMPTY
            },
            deadline: request.at + settings.deadline_default,
            begin_by: self.asked.budget[usize::from(request.class)].map(|budget| request.at + budget),
            retry,
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
