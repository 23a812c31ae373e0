//! Racks whose switch runs another program than Rain.

use sluice_wire::{
    Attempt, Budget, ClientId, Endpoint, Epoch, Packet, Reply, ReplyStatus, Serial, TaskId, TaskType,
    WorkerId,
};

use super::{CLIENTS, Rack, SHAPE, WORKERS, client_at, elsewhere, incarnation, worker_at};
use crate::vector::{Shape, TestedProgram, Vector};

/// So many polls before a retrieve pointer is put back.
const POLLS_AHEAD: u32 = (1 << 16) - 2;

/// A vector of Draconis.
pub fn explore_draconis(seed: u64, steps: usize) -> Vector {
    explore_program(Shape { program: TestedProgram::Draconis, ..SHAPE }, seed, steps)
}

/// A vector of Draconis whose queues have been idle for long.
pub fn explore_idle_draconis(seed: u64, steps: usize) -> Vector {
    let shape = Shape { program: TestedProgram::Draconis, polls_ahead: POLLS_AHEAD, ..SHAPE };
    explore_program(shape, seed, steps)
}

/// A vector of Pallas.
pub fn explore_pallas(seed: u64, steps: usize) -> Vector {
    explore_program(Shape { program: TestedProgram::Pallas, ..SHAPE }, seed, steps)
}

/// A vector of RackSched.
pub fn explore_racksched(seed: u64, steps: usize) -> Vector {
    explore_program(Shape { program: TestedProgram::RackSched, ..SHAPE }, seed, steps)
}

fn explore_program(shape: Shape, seed: u64, steps: usize) -> Vector {
    let mut rack = Rack::new(seed, shape);
    rack.set_up();
    (0..steps).for_each(|_| rack.step());
    rack.end()
}

impl Rack {
    /// The budget of a task. Rain refuses late tasks, and other planes leave them to their workers.
    pub(super) fn budget(&mut self) -> Budget {
        match self.vector.shape.program {
            TestedProgram::Rain => Budget::NONE,
            _ => Budget([0, 0, 1, 2, 90, 60_000][self.below(6) as usize]),
        }
    }

    /// A worker's REPLY passes the switch, or one with an error.
    pub(super) fn reply(&mut self) {
        let (worker, client) = (self.below(WORKERS.into()) as u16, self.below(CLIENTS.into()) as u16);
        let body: Vec<u8> = if self.below(4) == 0 {
            (0..9 + self.below(300)).map(|at| at as u8).collect()
        } else {
            Vec::new()
        };
        let mut reply = Reply {
            epoch: Epoch(SHAPE.epoch),
            worker: WorkerId(worker),
            client: ClientId(client),
            task: TaskId { incarnation: incarnation(client), sequence: Serial(self.below(1 << 16)) },
            attempt: Attempt(1),
            task_type: TaskType(0),
            status: ReplyStatus::Done,
            switch_wait_ns: self.below(1_000),
            worker_wait_ns: self.below(1_000),
            service_ns: self.below(1_000),
            load: [0, 1, 1, 2, 3, 70_000, u32::MAX - 1][self.below(7) as usize],
            worker_at: Endpoint::default(),
            payload: self.payload(&body),
        };
        let mut from = worker_at(worker);
        match self.below(24) {
            0 => reply.epoch = Epoch(SHAPE.epoch - 1),
            1 => reply.worker = WorkerId(SHAPE.workers + 1),
            2 => reply.client = ClientId(SHAPE.clients),
            3 => from = elsewhere(from),
            4 => from = client_at(client),
            _ => {}
        }
        self.packet(from, &Packet::Reply(reply), &body);
    }
}
