//! The controller's knowledge as plain data for people: `sluice status` and the live view.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use sluice_wire::{ClientId, Endpoint, Epoch, Generation, Nanos, ServerId, SliceId, TaskType, WorkerId};

use crate::controller::{Controller, Link};
use crate::recent::RecentWork;
use crate::registration::{Fate, Holder};
use crate::rings::RingOffer;
use crate::server::Server;
use crate::worker::Worker;

/// The controller's knowledge at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The switch's epoch, as last known; 0 before the first.
    pub epoch: Epoch,
    /// The state of the link with the switch.
    pub link: LinkState,
    /// The slices, by index.
    pub slices: Vec<SliceView>,
    /// The workers, by index.
    pub workers: Vec<WorkerView>,
    /// The clients, by index.
    pub clients: Vec<ClientView>,
    /// The servers, by index.
    pub servers: Vec<ServerView>,
    /// Names of types, as far as the plan gives any.
    pub type_names: Vec<(TaskType, String)>,
    /// Those of the named types that no slice of the plan is for, no slice takes now and no worker serves.
    pub unused_types: Vec<TaskType>,
}

/// The state of a controller's link with its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkState {
    /// The switch cannot be reached.
    Down,
    /// The switch's tables are being read.
    Reading,
    Up,
    /// The switch is too small for the plan.
    TooSmall,
    /// The switch obeys another controller.
    Superseded,
    /// The controller waits for the lead.
    Standby,
}

/// One slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceView {
    pub slice: SliceId,
    pub name: String,
    /// The types that are mapped to the slice.
    pub types: Vec<TaskType>,
    /// Whether the slice takes tasks.
    pub open: bool,
    /// How many tasks may wait (C).
    pub limit: u32,
    /// Workers that serve the slice now.
    pub workers: u32,
    /// Their quotas together (ΣN).
    pub quotas: u32,
    /// Parked tokens if positive, waiting tasks if negative; `None` until it was read.
    pub balance: Option<i32>,
    /// How old `balance` is.
    pub balance_age: Nanos,
    /// How many tokens in the slice's ring are stale and not swept yet, at most.
    pub stale_tokens: u32,
    /// The classes of the slice's tasks by the labels that they need; empty if any worker serves any task.
    pub classes: Vec<ClassView>,
    /// Whether the slice's tasks only wish for their labels.
    pub wished: bool,
    /// The longest wait in the switch that is worth having; zero if any is.
    pub target: Nanos,
    /// How many tasks may wait by what was measured for the target; `None` while nothing was.
    pub measured_limit: Option<u32>,
    /// How many tasks were refused because they would have waited for longer than the target.
    pub refused_busy: u64,
    /// How many tasks the switch refused because their budget was spent, when they came or when a token took
    /// them.
    pub late_in_switch: u64,
    /// How many tasks the slice's workers refused because their budget was spent.
    pub late_at_worker: u64,
}

/// Tasks of a slice that need the same labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassView {
    /// The labels; empty if any worker will do.
    pub needs: Vec<String>,
    /// The types whose tasks need these labels without naming any themselves.
    pub types: Vec<TaskType>,
    /// How many workers have all these labels now.
    pub workers: u32,
    /// Whether the class's tasks are refused, because no worker serves them.
    pub refused: bool,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    pub worker: WorkerId,
    /// The worker's name; empty between a read-back and its next renewal.
    pub name: String,
    pub slice: SliceId,
    pub generation: Generation,
    /// The worker's labels; empty between a read-back and its next renewal.
    pub labels: Vec<String>,
    /// The phase of the worker's registration.
    pub phase: WorkerPhase,
    pub quota: u8,
    /// Tasks per second as the worker reports them; 0 while unknown.
    pub capacity: u32,
    /// What the worker did over the last seconds.
    pub recent: RecentWork,
    pub at: Endpoint,
    /// If the worker is a leaf: how many workers it stands for.
    pub workers: u16,
    /// Time since the worker's last renewal.
    pub renewed_ago: Nanos,
}

/// The phase of a worker's registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkerPhase {
    /// The worker's first generation is being opened.
    Joining,
    /// The worker takes tasks.
    Open,
    /// The worker's generation or its row is being changed.
    Changing,
    /// The worker said that it leaves.
    Leaving,
    Dying,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientView {
    pub client: ClientId,
    /// The client's name; empty between a read-back and its next renewal.
    pub name: String,
    pub at: Endpoint,
    /// Time since the client's last renewal.
    pub renewed_ago: Nanos,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerView {
    pub server: ServerId,
    /// The server's name; empty between a read-back and its next renewal.
    pub name: String,
    pub at: Endpoint,
    /// The most bytes of one WRITE; 0 while unknown.
    pub mtu: u32,
    /// Whether the server's queue pair is reliable, and whether the iCRC is computed for it; `None` before
    /// it has rings.
    pub pair: Option<(bool, bool)>,
    /// The server's rings, as the switch has them.
    pub rings: Vec<RingOffer>,
    /// Time since the server's last renewal.
    pub renewed_ago: Nanos,
}

impl Controller {
    /// The state of the controller's link with its switch.
    pub const fn link_state(&self) -> LinkState {
        match self.link {
            Link::Down | Link::Confused(_) => LinkState::Down,
            Link::Claiming | Link::Reading(_) => LinkState::Reading,
            Link::Superseded => LinkState::Superseded,
            Link::Standby(_) => LinkState::Standby,
            Link::Up => LinkState::Up,
            Link::TooSmall => LinkState::TooSmall,
        }
    }

    /// The same as others see it: a standby that cannot reach its switch says so.
    const fn link_seen(&self) -> LinkState {
        match self.link {
            Link::Standby(None) => LinkState::Down,
            _ => self.link_state(),
        }
    }

    /// The controller's knowledge at `now`. Send [`Event::Watch`](crate::Event::Watch) while looking, to
    /// keep balances fresh.
    pub fn view(&self, now: Nanos) -> View {
        View {
            epoch: self.epoch(),
            link: self.link_seen(),
            slices: (0..self.slices.len()).map(|i| self.slice_view(SliceId(i as u16), now)).collect(),
            workers: (self.workers.iter())
                .map(|(i, w)| WorkerView {
                    labels: self.names_of(w.labels),
                    ..worker_view(WorkerId(i), w, now)
                })
                .collect(),
            clients: (self.clients.iter())
                .map(|(i, client)| ClientView {
                    client: ClientId(i),
                    name: client.registration().shown(),
                    at: client.at,
                    renewed_ago: now.since(client.registration().renewed),
                })
                .collect(),
            servers: self.servers.iter().map(|(i, s)| server_view(ServerId(i), s, now)).collect(),
            type_names: self.plan.type_names.clone(),
            unused_types: self.unused_types(),
        }
    }

    fn unused_types(&self) -> Vec<TaskType> {
        let mapped = (0..self.slices.len()).flat_map(|i| self.types_of(SliceId(i as u16)));
        let planned = self.plan.slices.iter().flat_map(|slice| slice.types.iter().copied());
        let served = self.workers.iter().flat_map(|(_, worker)| worker.types.iter().copied());
        let used: BTreeSet<TaskType> = mapped.chain(planned).chain(served).collect();
        let named = self.plan.type_names.iter().map(|(of, _)| *of);
        named.filter(|of| !used.contains(of)).collect()
    }

    fn slice_view(&self, id: SliceId, now: Nanos) -> SliceView {
        let slice = &self.slices[usize::from(id.0)];
        SliceView {
            slice: id,
            name: slice.name.clone(),
            types: self.types_of(id),
            open: slice.row.open,
            limit: slice.row.limit,
            workers: slice.serving,
            quotas: slice.quotas,
            balance: slice.state.map(|(state, _)| state.balance),
            balance_age: slice.state.map_or(Nanos(0), |(_, read)| now.since(read)),
            stale_tokens: slice.stale_tokens(),
            classes: self.classes_in(id),
            wished: slice.row.serving.is_wished(),
            target: slice.row.target,
            measured_limit: slice.state.and_then(|(state, _)| state.measured_limit),
            refused_busy: slice.state.map_or(0, |(state, _)| state.refused_busy),
            late_in_switch: slice.state.map_or(0, |(state, _)| state.refused_late),
            late_at_worker: slice.late_at_worker,
        }
    }
}

fn server_view(id: ServerId, server: &Server, now: Nanos) -> ServerView {
    let rows = server.written.as_ref();
    ServerView {
        server: id,
        name: server.registration().shown(),
        at: server.at,
        mtu: server.mtu,
        pair: rows.map(|rows| (rows.row.reliable, rows.row.icrc)),
        rings: rows.map_or_else(Vec::new, |rows| rows.rings.clone()),
        renewed_ago: now.since(server.registration().renewed),
    }
}

fn worker_view(id: WorkerId, worker: &Worker, now: Nanos) -> WorkerView {
    WorkerView {
        worker: id,
        name: worker.registration().shown(),
        slice: worker.row.slice,
        generation: worker.row.generation,
        labels: Vec::new(),
        phase: match worker.fate {
            Fate::Leaves => WorkerPhase::Leaving,
            Fate::Dies => WorkerPhase::Dying,
            Fate::Stays if !worker.in_switch => WorkerPhase::Joining,
            Fate::Stays if worker.is_settled() => WorkerPhase::Open,
            Fate::Stays => WorkerPhase::Changing,
        },
        quota: worker.quota,
        capacity: worker.capacity,
        recent: worker.recent,
        at: worker.at,
        workers: worker.workers,
        renewed_ago: now.since(worker.registration().renewed),
    }
}
