//! The switch's process: its program, its epoch, and the bytes that it keeps.

use sluice_control::{Arbiter, LeadAnswer, LeadCall};
use sluice_switch::registry::Choice;
use sluice_switch::{Config, Parked, Program};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Epoch, Handle, Nanos, TaskId, Term};

use super::bytes::Bytes;
use super::event::Event;
use super::gate::Gate;
use super::labels::Fairness;
use super::limits::{LEASE, SLICES, START, TYPES};
use super::order::Precedence;
use super::reckoning::SwitchLife;
use super::replay_log::Party;
use super::scenario::Scenario;
use super::servers::Servers;

/// A switch that may be down.
#[derive(Debug)]
pub(super) struct SwitchNode {
    pub(super) program: Option<Box<dyn Program>>,
    pub(super) life: u32,
    /// Whether new tasks are taken; they are not while the switch drains.
    pub(super) takes_tasks: bool,
    /// Until this time the switch's thread stands still.
    pub(super) stalled_until: Nanos,
    /// The most tasks that each slice's row has ever allowed to wait.
    pub(super) limits: [u32; SLICES],
    /// Which workers' tokens may be admitted.
    pub(super) gate: Gate,
    /// The tasks and tokens in the queues after the last pass; `None` if the queues may have changed since.
    pub(super) queues: Option<Vec<Parked>>,
    /// Whether something has reached the switch since its last check.
    pub(super) is_unseen: bool,
    /// The check of the order of tasks and tokens.
    pub(super) order: Precedence,
    /// The same check for programs with labels.
    pub(super) fairness: Fairness,
    /// The counts of arrivals and of recirculating packets.
    pub(super) reckoning: SwitchLife,
    /// Packets that arrived while the switch stood still, with their times.
    pub(super) unread: Vec<(Nanos, Event)>,
    /// The large payloads in the switch's slab.
    pub(super) slab: Bytes,
    /// Who leads, if the rack has standbys.
    arbiter: Option<Arbiter>,
    has_standbys: bool,
    choice: Choice,
    config: Config,
}

impl SwitchNode {
    pub(super) fn new(scenario: &Scenario, has_standbys: bool) -> Self {
        let config = config(scenario);
        Self {
            program: Some(in_life(1, &scenario.program, config)),
            life: 1,
            takes_tasks: true,
            stalled_until: Nanos(0),
            limits: [0; SLICES],
            gate: Gate::default(),
            queues: None,
            is_unseen: true,
            order: Precedence::default(),
            fairness: Fairness::default(),
            reckoning: SwitchLife::default(),
            unread: Vec::new(),
            slab: Bytes::default(),
            arbiter: has_standbys.then(|| Arbiter::new(Nanos(0), Term(0))),
            has_standbys,
            choice: scenario.program,
            config,
        }
    }

    pub(super) fn stop(&mut self) {
        self.program = None;
        self.takes_tasks = true;
        self.stalled_until = Nanos(0);
        self.unread.clear();
    }

    pub(super) fn start(&mut self, now: Nanos) {
        self.arbiter = self.has_standbys.then(|| Arbiter::new(now, self.config.term));
        self.slab = Bytes::default();
        self.gate = Gate::default();
        (self.queues, self.is_unseen) = (None, true);
        self.order = Precedence::default();
        self.fairness = Fairness::default();
        self.reckoning = SwitchLife::default();
        self.life += 1;
        self.program = Some(in_life(self.life, &self.choice, self.config));
    }

    pub(super) const fn epoch(&self) -> Epoch {
        Epoch(self.life)
    }

    /// Carries out an operation of the controller of this term, unless the switch obeys another controller;
    /// `None` if it is down.
    pub(super) fn operate(&mut self, now: Nanos, by: Term, op: TableOp) -> Option<TableAnswer> {
        let program = self.program.as_mut()?;
        let obeyed = program.shape().term;
        let is_let = |arbiter: &Arbiter| arbiter.lets_claim(now, by, LEASE);
        let may_claim = !matches!(op, TableOp::Claim(_)) || self.arbiter.as_ref().is_none_or(is_let);
        if !may_claim || !obeyed.obeys(by, &op) {
            return Some(TableAnswer::Superseded(obeyed));
        }
        if let TableOp::SetSlice(slice, row) = op {
            let limit = &mut self.limits[usize::from(slice.0)];
            *limit = row.limit.max(*limit);
        }
        let answer = program.table(op);
        (self.queues, self.is_unseen) = (None, true);
        self.gate.written(&op);
        // The switch stores the term in its state folder.
        self.config.term = program.shape().term;
        if let Some(arbiter) = &mut self.arbiter {
            arbiter.heard(now, by);
            arbiter.obeys(now, self.config.term);
        }
        Some(answer)
    }

    /// Takes a controller's call about the lead; `None` if the switch is down.
    pub(super) fn lead(&mut self, now: Nanos, call: &LeadCall) -> Option<LeadAnswer> {
        self.program.as_ref()?;
        Some(self.arbiter.as_mut()?.call(now, call))
    }
}

fn config(scenario: &Scenario) -> Config {
    Config {
        epoch: Epoch(0),
        term: Term(0),
        workers: scenario.worker_rows,
        clients: scenario.client_rows,
        slices: SLICES as u16,
        types: TYPES,
        tasks_per_slice: 32,
        tokens_per_slice: scenario.token_cells,
        replay_cells: scenario.replay_cells,
        servers: Servers::count(scenario),
        counters_start: START,
        polls_ahead: scenario.long.polls_ahead,
        seed: 0,
    }
}

fn in_life(life: u32, choice: &Choice, config: Config) -> Box<dyn Program> {
    choice.build(Config { epoch: Epoch(life), ..config })
}

/// The context of an arrival: its bytes, and for the replay its sender and its task.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalContext {
    pub(super) bytes: Handle,
    pub(super) from: Option<Party>,
    pub(super) task: Option<TaskId>,
}

impl ArrivalContext {
    /// No bytes, no sender, no task.
    pub(super) const NOTHING: Self = Self { bytes: Handle::NONE, from: None, task: None };
}
