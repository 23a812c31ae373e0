//! The part of the switch's tables that was read back so far, and the next question.

use alloc::vec::Vec;

use sluice_wire::tables::{
    ClientRow, RingRow, ServerState, Shape, SliceState, TableAnswer, TableOp, WorkerState,
};
use sluice_wire::{ClientId, ServerId, SliceId, TaskType, WorkerId};

/// The tables that were read so far.
#[derive(Debug, Default)]
pub(crate) struct ReadBack {
    pub(crate) questions: u32,
    pub(crate) asked: u32,
    pub(crate) types: Vec<Option<SliceId>>,
    pub(crate) slices: Vec<SliceState>,
    pub(crate) workers: Vec<WorkerState>,
    pub(crate) clients: Vec<Option<ClientRow>>,
    pub(crate) servers: Vec<ServerState>,
    /// For each slice a row of servers.
    pub(crate) rings: Vec<Option<RingRow>>,
}

impl ReadBack {
    pub(crate) fn answers(&self) -> usize {
        let hosts = self.workers.len() + self.clients.len() + self.servers.len();
        self.types.len() + self.slices.len() + hosts + self.rings.len()
    }

    /// The n-th question: types first, then slices, workers, clients, servers and their rings.
    pub(crate) fn question(n: u32, shape: &Shape, slices: u32) -> TableOp {
        let [types, workers, clients, servers] =
            [shape.types, shape.workers, shape.clients, shape.servers].map(u32::from);
        let before_servers = types + slices + workers + clients;
        if n < types {
            TableOp::ReadType(TaskType(n as u16))
        } else if n < types + slices {
            TableOp::ReadSlice(SliceId((n - types) as u16))
        } else if n < types + slices + workers {
            TableOp::ReadWorker(WorkerId((n - types - slices) as u16))
        } else if n < before_servers {
            TableOp::ReadClient(ClientId((n - types - slices - workers) as u16))
        } else if n < before_servers + servers {
            TableOp::ReadServer(ServerId((n - before_servers) as u16))
        } else {
            let ring = n - before_servers - servers;
            TableOp::ReadRing(SliceId((ring / servers) as u16), ServerId((ring % servers) as u16))
        }
    }

    /// Takes the answer to the oldest open question; false if it answers another one.
    pub(crate) fn take(&mut self, answer: TableAnswer, shape: &Shape, slices: u32) -> bool {
        match (Self::question(self.answers() as u32, shape, slices), answer) {
            (TableOp::ReadType(_), TableAnswer::Type(slice)) => self.types.push(slice),
            (TableOp::ReadSlice(_), TableAnswer::Slice(state)) => self.slices.push(state),
            (TableOp::ReadWorker(_), TableAnswer::Worker(state)) => self.workers.push(state),
            (TableOp::ReadClient(_), TableAnswer::Client(row)) => self.clients.push(row),
            (TableOp::ReadServer(_), TableAnswer::Server(state)) => self.servers.push(state),
            (TableOp::ReadRing(..), TableAnswer::Ring(row)) => self.rings.push(row),
            _ => return false,
        }
        true
    }
}
