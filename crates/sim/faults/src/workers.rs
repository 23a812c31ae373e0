//! The workers' processes: a node as in curves (`nodes::worker`), the bytes that it keeps, and its end.

use sluice_control::RingPlace;
use sluice_host::worker::{Worker, WorkerSettings};
use sluice_nodes::names;
use sluice_nodes::{Core, Node};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{Nanos, TaskId};

use super::budgets::BeginUntil;
use super::bytes::Bytes;
use super::controller::{TRANSIT, retry_horizon};
use super::early::EarlyToken;
use super::hosts::{ControllerSession, SWITCH, worker_at};
use super::limits::PROBE_LONGEST;
use super::oracle::Life;
use super::pieces::Pieces;
use super::scenario::Scenario;

/// A worker's process; it may be down.
#[derive(Debug, Default)]
pub(super) struct WorkerProcess {
    pub(super) node: Option<Node<Worker>>,
    pub(super) life: Life,
    pub(super) leaving: bool,
    index: u16,
    starts: u16,
    pub(super) grant: Option<WorkerRegistration>,
    /// Where its server keeps the tasks that were written ahead for its slice, as the controller last said.
    pub(super) ring: Option<RingPlace>,
    /// The highest quota that this life was granted.
    pub(super) quota_highest: u8,
    pub(super) session: ControllerSession,
    /// The bytes of the tasks that it holds, and of the replies that it keeps.
    pub(super) tasks: Bytes,
    pub(super) replies: Bytes,
    /// The pieces of each task.
    pub(super) pieces: Pieces,
    /// Tasks that it holds and that arrived after it had written them off.
    pub(super) late_in_hand: Vec<TaskId>,
    /// Until when the tasks with budgets that came may begin.
    pub(super) begin_until: BeginUntil,
    pub(super) core: Core,
    pub(super) early: EarlyToken,
    /// How many tasks the worker held at its last check; `None` if something has reached it since.
    pub(super) held_when_seen: Option<u32>,
    /// How often its server's queue pair failed.
    pub(super) rejoins: u32,
}

impl WorkerProcess {
    pub(super) fn new(index: usize) -> Self {
        Self { index: index as u16, ..Self::default() }
    }

    /// A new life of the process, which began as the worker `first`.
    pub(super) fn start(&mut self, first: usize, life: Life) {
        let (index, starts) = (self.index.into(), self.starts + 1);
        let node = Some(Node::new(Worker::new(), worker_at(first as u16, starts), SWITCH));
        *self = Self { node, life, starts, ..Self::new(index) };
    }

    /// Ends the process, which loses its memory.
    pub(super) fn stop(&mut self) {
        self.node = None;
        self.held_when_seen = None;
        self.life = 0;
        self.core = Core::default();
    }

    /// The process, which began as the worker `first`, gets another address.
    pub(super) fn change_address(&mut self, first: usize) {
        self.starts += 1;
        if let Some(node) = &mut self.node {
            node.at = worker_at(first as u16, self.starts);
        }
    }

    pub(super) const fn lives(&self) -> bool {
        self.node.is_some()
    }

    pub(super) fn machine(&self) -> Option<&Worker> {
        self.node.as_ref().map(|node| &node.machine)
    }

    pub(super) fn late(&self) -> u64 {
        self.machine().map_or(0, |machine| machine.stats().late)
    }

    pub(super) fn name(&self) -> String {
        names::worker(self.index.into())
    }
}

pub(super) fn worker_settings(scenario: &Scenario) -> WorkerSettings {
    WorkerSettings {
        first_rtt: Nanos::from_micros(20),
        probe_longest: PROBE_LONGEST,
        probe_max_busy: Nanos::from_millis(1),
        retry_horizon: retry_horizon(scenario),
        transit: TRANSIT,
        held_max: scenario.held_max,
        replies_max: scenario.replies_max,
        reply_bytes_max: 5_000 * scenario.replies_max.max(10),
        early: scenario.early.map(|early| early.settings),
        patience: scenario.program.traits().patience,
        at_once: if scenario.cores.is_some() { scenario.held_max } else { 1 },
        ..WorkerSettings::default()
    }
}
