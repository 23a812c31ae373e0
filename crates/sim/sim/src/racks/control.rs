//! The datacenter's controller (Horus §3.2, A.3). It numbers leaves, spines and clients, tells spines which
//! racks are below them with how many workers, links each rack's pool with a spine, and handles failures.
//!
//! It stands above the racks' own controllers. These are not simulated here: a rack's workers are there
//! from the beginning, and return with their leaf. The steps of this controller take no time; the run
//! decides when it learns of a failure. Fault runs have the controllers that run live instead
//! (`faults/controller_above.rs` and `faults/racks.rs`).

use sluice_events::dice::Dice;
use sluice_switch::horus::SpineLink;
use sluice_switch::{Config, KnownClients, Mirror};
use sluice_testbed::{SwitchTimes, Testbed};
use sluice_wire::registrations::{ClientRegistration, WorkerRegistration};
use sluice_wire::sizes::{QUOTA_MAX, replay_cells, share, token_cells};
use sluice_wire::tables::{ClientRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    ClientId, Epoch, Generation, Incarnation, Key, Nanos, Serial, SliceId, TaskType, Term, WorkerId,
};

use super::downtime::{OutageStep, outage_steps};
use super::placement::Placement;
use super::places::{CLIENTS, LEAVES, SPINES, WORKERS};
use super::switch::{SwitchNode, SwitchProgram};
use crate::system::System;

pub(super) const START: Serial = Serial(0);
/// Sets of clients that a leaf knows where controllers run live: more than there are clients.
const CLIENT_SETS: usize = 16;
/// The retry hint of a REJECT.
const RETRY_AFTER: Nanos = Nanos::from_micros(100);

/// The place of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkerPosition {
    pub(super) leaf: u32,
    pub(super) pool: u16,
    /// The worker's number at its leaf.
    pub(super) number: WorkerId,
}

/// The plan of a datacenter, and the state of its switches as the controller knows it.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) system: System,
    pub(super) pools: Vec<Placement>,
    /// The seat of each worker, pool by pool and rack by rack.
    pub(super) seats: Vec<WorkerPosition>,
    pub(super) spines: u32,
    pub(super) leaves: u32,
    /// Clients of each pool.
    clients: u16,
    /// Task types of each pool.
    types: u16,
    queue: u32,
    retry_for: Nanos,
    seeds: [Vec<u64>; 2],
    /// The generation of each leaf's workers.
    generations: Vec<Generation>,
    /// The generation of each leaf at its spines: a new one each time it goes below a spine.
    uplinks: Vec<Generation>,
    /// How often queues are looked at, and how long intervals are; zero: never.
    pub(super) watch: Nanos,
    pub(super) interval: Nanos,
    /// The failures and returns of switches, and how many of them are done.
    pub(super) outages: Vec<(Nanos, OutageStep)>,
    pub(super) passed: usize,
    /// Whether the controllers that run live write the tables instead.
    pub(super) is_replaced: bool,
}

impl Control {
    pub(super) fn new(
        system: System,
        pools: Vec<Placement>,
        testbed: &Testbed,
        types: u16,
        of: (u64, u32),
    ) -> Self {
        let leaves = last(pools.iter().flat_map(|pool| pool.racks.iter().map(|rack| rack.leaf)));
        let spines = last(pools.iter().flat_map(|pool| pool.spines.iter().copied()));
        let seeds = ["spines", "switch"].map(|name| {
            let mut dice = Dice::named(of.0, name, of.1);
            (0..leaves.max(spines)).map(|_| dice.word()).collect()
        });
        let seats = seats(&pools, leaves);
        Self {
            system,
            pools,
            seats,
            spines,
            leaves,
            clients: testbed.clients,
            types,
            queue: testbed.queue,
            retry_for: testbed.retries.deadline,
            seeds,
            generations: vec![Generation(1); leaves as usize],
            uplinks: vec![Generation(1); leaves as usize],
            watch: testbed.racks.watch,
            interval: testbed.racks.interval,
            outages: outage_steps(&testbed.racks),
            passed: 0,
            is_replaced: false,
        }
    }

    /// From now on the controllers that run live write the tables, which hold no host yet.
    pub(super) const fn is_replaced_by_real_ones(&mut self) {
        self.is_replaced = true;
    }

    /// How many tasks a worker takes at once, as it registers. Workers that are pushed tasks have no
    /// tokens, and register with one task.
    pub(super) fn quota_of_workers(&self) -> u8 {
        self.system.tokens().max(1)
    }

    /// How many tasks may wait at a switch and be on their way below it.
    pub(super) const fn queue(&self) -> u32 {
        self.queue
    }

    /// How long clients may send a task again.
    pub(super) const fn retry_for(&self) -> Nanos {
        self.retry_for
    }

    /// How many tasks may wait in a leaf.
    pub(super) fn limit(&self) -> u32 {
        if let System::Rain { .. } = self.system { self.queue } else { 1 }
    }

    /// The types of the first pool's tasks.
    pub(super) fn types(&self) -> impl Iterator<Item = TaskType> + '_ {
        (0..self.types).map(|of| self.task_type(0, TaskType(of)))
    }

    /// The indices of all clients; those of a pool follow one another.
    pub(super) fn client_ids(&self) -> u16 {
        self.clients * self.pools.len() as u16
    }

    pub(super) const fn clients(&self) -> u16 {
        self.clients
    }

    pub(super) fn task_type(&self, pool: usize, of: TaskType) -> TaskType {
        TaskType(pool as u16 * self.types + of.0)
    }

    /// A spine in a new life, with all its tables; no leaf is below it yet.
    pub(super) fn spine(&self, spine: u32, epoch: Epoch, times: &SwitchTimes) -> SwitchNode {
        let below = self.pools.iter().filter_map(|pool| {
            let at = pool.spines.iter().position(|other| *other == spine);
            at.map(|_| pool.workers())
        });
        let config = Config {
            workers: self.leaves as u16,
            replay_cells: self.replay_cells(below.max().unwrap_or(0)),
            seed: self.seeds[0][spine as usize],
            ..self.config(epoch)
        };
        let config = if self.is_replaced { self.roomy(config, self.leaves) } else { config };
        let scheduler =
            SwitchProgram::spine(self.system, config).expect("a testbed has no more leaves than fit");
        let mut node = SwitchNode::new(scheduler, epoch, times);
        if !self.is_replaced {
            self.open(&mut node, 1);
        }
        node
    }

    /// Makes room for hosts that register anew while their last rows are not cleared yet, and for all of
    /// them at one switch. A controller admits workers by the ring of their tokens, even if the program
    /// does not use it.
    fn roomy(&self, config: Config, workers: u32) -> Config {
        let rows = 2 * workers.max(1);
        Config {
            workers: rows as u16,
            clients: 2 * self.client_ids() * self.spines as u16,
            tasks_per_slice: self.queue.next_power_of_two(),
            tokens_per_slice: token_cells(rows, 2 * u32::from(QUOTA_MAX)),
            ..config
        }
    }

    /// A leaf in a new life, with its workers, and without spines.
    pub(super) fn leaf(&self, leaf: u32, epoch: Epoch, times: &SwitchTimes) -> SwitchNode {
        let mut here = self.seats.iter().filter(|seat| seat.leaf == leaf);
        let workers = here.clone().count() as u32;
        let seed = self.seeds[1][leaf as usize];
        let config = Config { workers: workers.max(1) as u16, seed, ..self.config(epoch) };
        let limit = self.queue + workers * u32::from(self.quota_of_workers());
        let queues = Config {
            tasks_per_slice: limit.next_power_of_two(),
            tokens_per_slice: token_cells(workers, 2 * u32::from(QUOTA_MAX)),
            ..config
        };
        let spines = self.spines as u16;
        let config = match self.system {
            _ if self.is_replaced => self.roomy(queues, workers),
            System::Rain { .. } => queues,
            _ => config,
        };
        let scheduler = SwitchProgram::leaf(self.system, config, spines);
        let mut node = SwitchNode::new(scheduler, epoch, times);
        if self.is_replaced {
            node.clients = Some(KnownClients::in_sets(CLIENT_SETS));
            return node;
        }
        self.open(&mut node, self.limit());
        let first = self.seats.iter().position(|seat| seat.leaf == leaf);
        debug_assert_eq!(first.is_some(), here.next().is_some());
        for (worker, seat) in self.seats.iter().enumerate().filter(|(_, seat)| seat.leaf == leaf) {
            let row = WorkerRow {
                at: WORKERS.at(worker as u32).endpoint(),
                slice: SliceId(seat.pool),
                generation: self.generations[leaf as usize],
                open: true,
                life: worker as u64 + 1,
                ..WorkerRow::default()
            };
            node.table(TableOp::RaiseGeneration(seat.number, row.generation));
            node.table(TableOp::ResetCounters(seat.number, START));
            node.table(TableOp::SetWorker(seat.number, Some(row)));
        }
        node
    }

    pub(super) fn worker_registration(&self, worker: usize, leaf: &SwitchNode) -> WorkerRegistration {
        let WorkerPosition { leaf: at, pool, number } = self.seats[worker];
        WorkerRegistration {
            worker: number,
            epoch: leaf.epoch,
            generation: self.generations[at as usize],
            slice: SliceId(pool),
            quota: self.quota_of_workers(),
            feed: self.system.feed(),
            start: START,
            switch: LEAVES.at(at).endpoint(),
            below_spines: true,
            ..WorkerRegistration::default()
        }
    }

    /// The registration of a pool's client with one of its spines.
    pub(super) fn client_registration(
        &self,
        pool: usize,
        client: u16,
        spine: usize,
        epoch: Epoch,
    ) -> ClientRegistration {
        let layout = &self.pools[pool];
        let switch = SPINES.at(layout.spines[spine]);
        let outstanding = self.outstanding(layout.workers());
        let slice = SliceId(pool as u16);
        ClientRegistration {
            client: self.client_id(pool, client),
            key: Key(0),
            epoch,
            switch: switch.endpoint(),
            replay_cells: self.replay_cells(layout.workers()),
            slices: (0..self.types).map(|of| (self.task_type(pool, TaskType(of)), slice)).collect(),
            shares: vec![(slice, share(outstanding, self.clients.into()))],
            classes: 1,
            jobs: 1,
            sizes: Vec::new(),
            retry_for: self.retry_for,
        }
    }

    pub(super) const fn client_id(&self, pool: usize, client: u16) -> ClientId {
        ClientId(pool as u16 * self.clients + client)
    }

    /// Puts a pool's rack below a spine: each switch gets a row for the other. Returns the first UPDATE to
    /// the spine, if the policy has one.
    pub(super) fn link(
        &self,
        (pool, rack): (usize, usize),
        spine: (u32, &mut SwitchNode),
        leaf: &mut SwitchNode,
    ) -> Option<Mirror> {
        let placed = self.pools[pool].racks[rack];
        let (number, generation) = (WorkerId(placed.leaf as u16), self.uplinks[placed.leaf as usize]);
        let (spine, node) = spine;
        let (slice, at) = (SliceId(pool as u16), LEAVES.at(placed.leaf).endpoint());
        let row = WorkerRow { at, slice, generation, open: true, ..WorkerRow::default() };
        node.table(TableOp::ResetCounters(number, START));
        node.table(TableOp::SetWorker(number, Some(row)));
        let sized = node.scheduler.set_workers(slice, (number, generation), placed.workers);
        let link = SpineLink { at: SPINES.at(spine).endpoint(), epoch: node.epoch, leaf: number, generation };
        let known = leaf.scheduler.set_spine(spine as u16, Some((link, START)));
        let told = leaf.scheduler.link(slice, spine as u16);
        sized.and(known).and(told).expect("the testbed's check refuses what a program would")
    }

    /// Removes a leaf from this spine.
    pub(super) fn forget(leaf: u32, spine: &mut SwitchNode) {
        spine.table(TableOp::SetWorker(WorkerId(leaf as u16), None));
    }

    /// Before a leaf goes below a spine that it may have been below: its numbers there begin anew, in a
    /// generation that neither has seen.
    pub(super) fn raise_uplink(&mut self, leaf: u32) {
        let uplink = &mut self.uplinks[leaf as usize];
        *uplink = Generation(uplink.0 + 1);
    }

    /// A leaf returns: its workers get another generation.
    pub(super) fn raise(&mut self, leaf: u32) {
        let generation = &mut self.generations[leaf as usize];
        *generation = Generation(generation.0 + 1);
    }

    /// How many tasks the pool's clients may have outstanding at one switch.
    fn outstanding(&self, workers: u32) -> u32 {
        self.queue + workers * u32::from(self.quota_of_workers())
    }

    fn replay_cells(&self, workers: u32) -> u32 {
        replay_cells(share(self.outstanding(workers), self.clients.into()))
    }

    fn config(&self, epoch: Epoch) -> Config {
        Config {
            epoch,
            term: Term(0),
            workers: 1,
            clients: self.client_ids(),
            slices: self.pools.len() as u16,
            types: self.pools.len() as u16 * self.types,
            tasks_per_slice: 1,
            tokens_per_slice: 1,
            replay_cells: 1,
            servers: 0,
            counters_start: START,
            polls_ahead: 0,
            seed: 0,
        }
    }

    /// Opens the pools of a switch, with their types and clients.
    fn open(&self, node: &mut SwitchNode, limit: u32) {
        for pool in 0..self.pools.len() {
            let slice = SliceId(pool as u16);
            let row = SliceRow { open: true, limit, retry_after: RETRY_AFTER, ..SliceRow::default() };
            node.table(TableOp::SetSlice(slice, row));
            for of in 0..self.types {
                node.table(TableOp::SetType(self.task_type(pool, TaskType(of)), Some(slice)));
            }
        }
        self.know_clients(node);
    }

    /// Registers the clients at a leaf, whose replies go to them past the spines.
    pub(super) fn know_clients(&self, node: &mut SwitchNode) {
        for client in (0..self.client_ids()).map(ClientId) {
            let at = CLIENTS.at(client.0.into()).endpoint();
            let row = ClientRow { key: Key(0), at, incarnation: Incarnation(0) };
            node.table(TableOp::SetClient(client, Some((row, START))));
        }
    }
}

fn last(numbers: impl Iterator<Item = u32>) -> u32 {
    numbers.max().map_or(0, |last| last + 1)
}

fn seats(pools: &[Placement], leaves: u32) -> Vec<WorkerPosition> {
    let mut taken = vec![0; leaves as usize];
    let racks = pools.iter().enumerate().flat_map(|(pool, of)| of.racks.iter().map(move |rack| (pool, rack)));
    let places = racks.flat_map(|(pool, rack)| (0..rack.workers).map(move |_| (pool as u16, rack.leaf)));
    let seat = |(pool, leaf): (u16, u32)| {
        let number = &mut taken[leaf as usize];
        *number += 1;
        WorkerPosition { leaf, pool, number: WorkerId(*number - 1) }
    };
    places.map(seat).collect()
}
