//! The controller's knowledge as plain data for people: `sluice status` and the live view.

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
}

/// One slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceView {
    pub slice: SliceId,
    pub name: String,
    /// The types that are mapped to it.
    pub types: Vec<TaskType>,
    /// Whether it takes tasks.
    pub open: bool,
    /// How many tasks may wait (C).
    pub limit: u32,
    /// Workers that serve it now.
    pub workers: u32,
    /// Their quotas together (ΣN).
    pub quotas: u32,
    /// Parked tokens if positive, waiting tasks if negative; `None` until it was read.
    pub balance: Option<i32>,
    /// How old `balance` is.
    pub balance_age: Nanos,
    /// How many tokens in its ring are stale and not swept yet, at most.
    pub stale_tokens: u32,
    /// The classes of its tasks by the labels that they need; empty if any worker serves any task.
    pub classes: Vec<ClassView>,
    /// Whether its tasks only wish for their labels.
    pub wished: bool,
}

/// Tasks of a slice that need the same labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassView {
    /// The labels; empty if any worker will do.
    pub needs: Vec<String>,
    /// The types whose tasks need these labels without naming any themselves.
    pub types: Vec<TaskType>,
    /// How many workers have all of them now.
    pub workers: u32,
    /// Whether its tasks are refused, because no worker serves them.
    pub refused: bool,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    pub worker: WorkerId,
    /// Its name; empty between a read-back and its next renewal.
    pub name: String,
    pub slice: SliceId,
    pub generation: Generation,
    /// Its labels; empty between a read-back and its next renewal.
    pub labels: Vec<String>,
    /// The phase of its registration.
    pub phase: WorkerPhase,
    pub quota: u8,
    /// Tasks per second as it reports them; 0 while unknown.
    pub capacity: u32,
    /// What it did over the last seconds.
    pub recent: RecentWork,
    pub at: Endpoint,
    /// How many workers it stands for, if it is a leaf.
    pub workers: u16,
    /// Time since its last renewal.
    pub renewed_ago: Nanos,
}

/// The phase of a worker's registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkerPhase {
    /// Its first generation is being opened.
    Joining,
    /// It takes tasks.
    Open,
    /// Its generation or its row is being changed.
    Changing,
    /// It said that it leaves.
    Leaving,
    Dying,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientView {
    pub client: ClientId,
    /// Its name; empty between a read-back and its next renewal.
    pub name: String,
    pub at: Endpoint,
    /// Time since its last renewal.
    pub renewed_ago: Nanos,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerView {
    pub server: ServerId,
    /// Its name; empty between a read-back and its next renewal.
    pub name: String,
    pub at: Endpoint,
    /// The most bytes of one WRITE; 0 while unknown.
    pub mtu: u32,
    /// Whether its queue pair is reliable, and whether the iCRC is computed for it; `None` before it has
    /// rings.
    pub pair: Option<(bool, bool)>,
    /// Its rings, as the switch has them.
    pub rings: Vec<RingOffer>,
    /// Time since its last renewal.
    pub renewed_ago: Nanos,
}

impl Controller {
    /// How the controller stands with its switch.
    pub const fn link_state(&self) -> LinkState {
        match self.link {
            Link::Down | Link::Confused(_) => LinkState::Down,
            Link::Claiming | Link::Reading(_) => LinkState::Reading,
            Link::Superseded => LinkState::Superseded,
            Link::Up => LinkState::Up,
            Link::TooSmall => LinkState::TooSmall,
        }
    }

    /// The controller's knowledge at `now`. Send [`Event::Watch`](crate::Event::Watch) while looking, to
    /// keep balances fresh.
    pub fn view(&self, now: Nanos) -> View {
        View {
            epoch: self.epoch(),
            link: self.link_state(),
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
        }
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
