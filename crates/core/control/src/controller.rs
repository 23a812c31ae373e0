//! The controller: events come in, actions and the next deadline go out.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::{Epoch, Generation, Key, Nanos, Serial, SliceId, TaskType, Term};

use crate::adapt::Adapting;
use crate::client::Client;
use crate::ledger::{Expect, Ledger};
use crate::message::{Action, Answer, CallId, Event, Refusal, Waiting};
use crate::note::Note;
use crate::plan::{Plan, PlanError};
use crate::reading::ReadBack;
use crate::registration::{Holder, Registry, Wants};
use crate::server::{PairsOfGone, Server};
use crate::slice::{Slice, Watch};
use crate::turn::Turn;
use crate::worker::Worker;

/// How long after an answer that fitted no question the tables are read again.
const CONFUSED_FOR: Nanos = Nanos::from_millis(100);

/// How soon a host asks again if it waits only for a change on the switch.
pub(crate) const SOON: Nanos = Nanos::from_millis(5);

/// The controller of one rack.
///
/// Deterministic: the same plan, seed and events give the same actions.
#[derive(Debug)]
pub struct Controller {
    pub(crate) plan: Plan,
    pub(crate) link: Link,
    pub(crate) turn: Turn,
    /// Whether the map of types is this controller's own, because it was read back once.
    pub(crate) has_read: bool,
    /// The switch's shape and epoch, kept while the switch cannot be reached.
    pub(crate) shape: Option<Shape>,
    pub(crate) ledger: Ledger,
    pub(crate) workers: Registry<Worker>,
    /// The newest generation of each worker index in this epoch. It only grows.
    pub(crate) generations: Vec<Generation>,
    /// Lives of workers that left lately and their final `sent`, for hosts that did not get the answer.
    pub(crate) departed: VecDeque<(u64, Option<Serial>)>,
    pub(crate) clients: Registry<Client>,
    pub(crate) servers: Registry<Server>,
    pub(crate) pairs_of_gone: PairsOfGone,
    pub(crate) slices: Vec<Slice>,
    pub(crate) types: BTreeMap<TaskType, SliceId>,
    /// Until this time new clients wait for every slice to have a worker.
    pub(crate) gathers_until: Nanos,
    pub(crate) watch: Option<Watch>,
    pub(crate) adapting: Adapting,
    pub(crate) rng: ChaCha8Rng,
    /// No lease ends before this time.
    lease_check: Option<Nanos>,
    /// When the driver was asked to call next.
    due: Option<Nanos>,
    /// Whether the controller leads only when it is told to.
    pub(crate) waits: bool,
}

/// The state of the controller's link with its switch.
#[derive(Debug)]
pub(crate) enum Link {
    Down,
    /// An answer fitted no question: all tables are read again at this time.
    Confused(Nanos),
    /// The controller has asked the switch to obey.
    Claiming,
    Reading(ReadBack),
    Up,
    TooSmall,
    /// The switch obeys another controller, for good.
    Superseded,
    /// The controller waits for the lead. The shape is that of the switch, if it can be reached.
    Standby(Option<Shape>),
}

impl Controller {
    /// A controller that has not seen its switch yet.
    pub fn new(plan: Plan, seed: [u8; 32]) -> Result<Self, PlanError> {
        plan.check()?;
        Ok(Self::blank(plan, ChaCha8Rng::from_seed(seed)))
    }

    /// A controller of a sound plan that has not seen its switch yet.
    pub(crate) fn blank(plan: Plan, rng: ChaCha8Rng) -> Self {
        let slices: Vec<_> = plan.slices.iter().map(Slice::new).collect();
        let types = planned_types(&plan);
        Self {
            plan,
            link: Link::Down,
            turn: Turn::default(),
            has_read: false,
            shape: None,
            ledger: Ledger::default(),
            workers: Registry::new(0),
            generations: Vec::new(),
            departed: VecDeque::new(),
            clients: Registry::new(0),
            servers: Registry::new(0),
            pairs_of_gone: PairsOfGone::default(),
            slices,
            types,
            gathers_until: Nanos(0),
            watch: None,
            adapting: Adapting::default(),
            rng,
            lease_check: None,
            due: None,
            waits: false,
        }
    }

    /// Takes one event, and pushes actions to `out`.
    pub fn event(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        self.forgive_stall(now, out);
        match event {
            Event::SwitchUp(_) | Event::SwitchDown | Event::TableAnswered(_)
                if matches!(self.link, Link::Superseded) => {}
            Event::Lead(term) => self.lead(now, term, out),
            Event::StandBy => self.stand_by(out),
            Event::SwitchUp(shape) if matches!(self.link, Link::Standby(_)) => {
                self.ledger.void(true);
                self.link = Link::Standby(Some(shape));
            }
            Event::SwitchUp(shape) => {
                self.send_all_away(true, out);
                self.switch_up(now, shape, out);
            }
            Event::SwitchDown => self.switch_down(out),
            Event::TableAnswered(answer) => self.answered(now, answer, out),
            Event::WorkerHello { call, hello } => self.worker_hello(now, call, hello, out),
            Event::WorkerLeave { call, name, life } => self.worker_leave(now, call, &name, life, out),
            Event::ClientHello { call, hello } => self.client_hello(now, call, hello, out),
            Event::ClientLeave { call, name, incarnation } => {
                self.client_leave(call, &name, incarnation, out);
            }
            Event::ClientElsewhere(incarnation) => self.client_is_elsewhere(incarnation),
            Event::ServerHello { call, hello } => self.server_hello(now, call, &hello, out),
            Event::ServerLeave { call, name, life } => self.server_leave(call, &name, life, out),
            Event::MoveWorker { call, name, slice } => self.move_worker(now, call, &name, &slice, out),
            Event::SetType { call, task_type, slice } => self.set_type(now, call, task_type, slice, out),
            Event::Tallies { server, advises, tallies } => {
                self.tallied(now, server, advises, tallies, out);
            }
            Event::Watch => self.watch(now),
        }
        // Actions that were due while the switch could not be reached are late because of the switch, not
        // because the controller was stopped.
        self.due = self.deadline().map(|due| due.max(now));
    }

    /// Does what is due at `now`.
    pub fn tick(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.forgive_stall(now, out);
        match self.link {
            Link::Up => {
                self.end_leases(now, out);
                self.tick_adapting(now, out);
                self.tick_slices(now, out);
            }
            Link::Confused(until) if until <= now => {
                self.link = Link::Confused(now + CONFUSED_FOR);
                self.ledger.void(false);
                self.ledger.ask(TableOp::ReadShape, Expect::Shape, out);
            }
            _ => {}
        }
        self.due = self.deadline();
    }

    /// When [`Controller::tick`] wants to be called next; `None`: not before the next event. Right after a
    /// tick the deadline is later than `now`; otherwise a driver would call without end.
    pub fn deadline(&self) -> Option<Nanos> {
        match self.link {
            Link::Up => [self.lease_check, self.slices_due(), self.adapting.due].into_iter().flatten().min(),
            Link::Confused(until) => Some(until),
            Link::Down
            | Link::Claiming
            | Link::Reading(_)
            | Link::TooSmall
            | Link::Superseded
            | Link::Standby(_) => None,
        }
    }

    /// The term in whose name the controller's steps are taken since the switch was found; 0 before the
    /// claim.
    pub fn term(&self) -> Term {
        self.turn.term()
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.shape.map_or(Epoch(0), |shape| shape.epoch)
    }

    /// The answer to a call that needs the switch, if nothing can be written to the switch now.
    pub(crate) fn unreachable(&self) -> Option<Answer> {
        match self.link {
            Link::Up => None,
            Link::Claiming | Link::Reading(_) => Some(wait(Waiting::ReadingBack, SOON)),
            Link::Superseded => Some(wait(Waiting::Superseded, self.plan.renew_every)),
            Link::Standby(_) => Some(wait(Waiting::Standby, self.plan.renew_every)),
            Link::Down | Link::Confused(_) => Some(wait(Waiting::SwitchDown, self.plan.renew_every)),
            Link::TooSmall => {
                let (slices, types) = self.shape.map_or((0, 0), |s| (s.slices, s.types));
                Some(Answer::Refused { why: Refusal::SwitchTooSmall { slices, types } })
            }
        }
    }

    /// As [`Self::unreachable`], but only while the switch is being claimed or read, or has another
    /// controller. In these states the controller may not even confirm a registration that stands.
    pub(crate) fn unknowing(&self) -> Option<Answer> {
        let is_unknowing =
            matches!(self.link, Link::Claiming | Link::Reading(_) | Link::Superseded | Link::Standby(_));
        self.unreachable().filter(|_| is_unknowing)
    }

    /// Draws a key that is neither 0 nor `old`.
    pub(crate) fn new_key(&mut self, old: Key) -> Key {
        loop {
            let key = Key(self.rng.next_u32());
            if key != Key(0) && key != old {
                return key;
            }
        }
    }

    /// A lease starts or is renewed: checks leases when it ends, if not before.
    pub(crate) fn lease_started(&mut self, ends: Nanos) {
        self.lease_check = Some(self.lease_check.map_or(ends, |check| check.min(ends)));
    }

    /// An answer fitted no question: reads all tables again after a while.
    pub(crate) fn confused(&mut self, now: Nanos, out: &mut Vec<Action>) {
        out.push(Action::Note(Note::SwitchConfused));
        self.send_all_away(false, out);
        self.link = Link::Confused(now + CONFUSED_FOR);
    }

    fn switch_down(&mut self, out: &mut Vec<Action>) {
        if matches!(self.link, Link::Standby(_)) {
            self.ledger.void(true);
            self.link = Link::Standby(None);
            return;
        }
        if !matches!(self.link, Link::Down) {
            out.push(Action::Note(Note::SwitchDown));
        }
        self.send_all_away(true, out);
        self.link = Link::Down;
    }

    /// Answers every call that waits for the switch: the callers have to ask again.
    pub(crate) fn send_all_away(&mut self, gone: bool, out: &mut Vec<Action>) {
        let mut calls = self.ledger.void(gone);
        for (_, worker) in self.workers.iter_mut() {
            calls.extend(worker.registration_mut().take_waiters().iter().map(|w| w.call));
        }
        for (_, client) in self.clients.iter_mut() {
            calls.extend(client.registration_mut().take_waiters().iter().map(|w| w.call));
        }
        let why = match self.link {
            Link::Superseded => Waiting::Superseded,
            Link::Standby(_) => Waiting::Standby,
            _ => Waiting::SwitchDown,
        };
        for call in calls {
            out.push(Action::Answer { call, answer: wait(why, self.plan.renew_every) });
        }
    }

    fn answered(&mut self, now: Nanos, answer: TableAnswer, out: &mut Vec<Action>) {
        if matches!(self.link, Link::Down) {
            return;
        }
        match (self.ledger.next(), answer) {
            (Some(Expect::Claim), TableAnswer::Superseded(by)) => self.claim_refused(now, by, out),
            (Some(_), TableAnswer::Superseded(by)) => self.superseded(by, out),
            (Some(Expect::Claim), TableAnswer::Done) => {
                self.turn.claimed(self.epoch());
                if self.waits {
                    out.push(Action::Note(Note::Leads));
                }
                self.begin_reading(now, out);
            }
            (Some(Expect::Ignored), _) | (Some(Expect::Done), TableAnswer::Done) => {}
            (Some(Expect::Shape), TableAnswer::Shape(shape)) => self.switch_up(now, shape, out),
            (Some(Expect::ReadBack), answer) => self.read_back_answered(now, answer, out),
            (Some(Expect::Step(worker)), TableAnswer::Done) => self.step_done(now, worker, out),
            (Some(Expect::Counters(worker)), TableAnswer::Worker(state)) => {
                self.counters_read(now, worker, state, out);
            }
            (Some(Expect::Mark(worker)), TableAnswer::Slice(state)) => {
                self.ring_read(now, worker, state, out);
            }
            (Some(Expect::Client(client)), TableAnswer::Done) => self.client_written(client, out),
            (Some(Expect::Slice(slice)), TableAnswer::Slice(state)) => {
                self.slice_read(now, slice, state, out);
            }
            (Some(Expect::Type(call)), TableAnswer::Done) => {
                out.push(Action::Answer { call, answer: Answer::Done });
            }
            (Some(Expect::Type(call)), _) => {
                let answer = wait(Waiting::SwitchDown, CONFUSED_FOR);
                out.push(Action::Answer { call, answer });
                self.confused(now, out);
            }
            _ => self.confused(now, out),
        }
    }

    fn end_leases(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if self.lease_check.is_none_or(|check| check > now) {
            return;
        }
        let workers = self.end_worker_leases(now, out);
        let clients = self.end_client_leases(now, out);
        let servers = self.end_server_leases(now, out);
        self.lease_check = [workers, clients, servers].into_iter().flatten().min();
    }

    /// A controller that was not run could not hear renewals, so its leases prove nothing: extends all of
    /// them.
    fn forgive_stall(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let Some(due) = self.due else { return };
        let late = now.since(due);
        if late <= self.plan.renew_every {
            return;
        }
        self.due = None;
        out.push(Action::Note(Note::Stalled { late_ms: late.0 / 1_000_000 }));
        let heard = now - (self.plan.lease - self.plan.renew_every.times(2));
        let workers = self.workers.iter_mut().map(|(_, w)| w.registration_mut());
        let clients = self.clients.iter_mut().map(|(_, c)| c.registration_mut());
        let servers = self.servers.iter_mut().map(|(_, s)| s.registration_mut());
        for registration in workers.chain(clients).chain(servers) {
            registration.renewed = registration.renewed.max(heard);
        }
    }
}

/// The map from types to slices as the plan has it.
pub(crate) fn planned_types(plan: &Plan) -> BTreeMap<TaskType, SliceId> {
    let of = |(i, slice): (usize, &crate::plan::SlicePlan)| {
        let id = SliceId(i as u16);
        slice.types.iter().map(move |t| (*t, id)).collect::<Vec<_>>()
    };
    plan.slices.iter().enumerate().flat_map(of).collect()
}

pub(crate) fn wait(why: Waiting, retry_after: Nanos) -> Answer {
    Answer::Wait { why, retry_after }
}

/// The answer to a call that made room for a newer call of the same name.
pub(crate) fn too_many(call: CallId) -> Action {
    Action::Answer { call, answer: wait(Waiting::TooManyCalls, SOON) }
}

impl Wants {
    /// The answer to a waiting call when its host is registered and its change is done, if the call waited
    /// for that.
    pub(crate) fn settled(self, grant: impl FnOnce() -> Answer) -> Answer {
        match self {
            Self::Grant => grant(),
            Self::Moved => Answer::Done,
            Self::Left => wait(Waiting::Leaving, SOON),
        }
    }
}
