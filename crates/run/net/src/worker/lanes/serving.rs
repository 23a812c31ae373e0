//! A task as the packet thread and its core share it, and the service on the core.

use sluice_cores::{Handler, RequestTable, Yielding};
use sluice_wire::{Nanos, TaskId, TaskType};

use crate::clock::Clock;
use crate::service::Service;
use crate::worker::run::{Runner, ServiceEnd, ServiceObserver};

/// A task, and its answer once it has ended. Buffers keep their capacity.
#[derive(Debug, Default)]
pub(super) struct ServedTask {
    pub(super) task: TaskId,
    pub(super) task_type: TaskType,
    pub(super) bytes: Vec<u8>,
    pub(super) reply: Vec<u8>,
    pub(super) ended: Option<ServiceEnd>,
}

/// An instance of a service, in its coroutine.
pub(super) struct ServiceHandler<S> {
    runner: Runner<S>,
    clock: Clock,
}

impl<S: Service> ServiceHandler<S> {
    pub(super) fn new(service: S, reply_max: usize, packet_max: usize) -> Self {
        Self { runner: Runner::new(service, reply_max, packet_max), clock: Clock::start() }
    }
}

impl<S: Service + 'static> Handler<ServedTask> for ServiceHandler<S> {
    fn handle(&mut self, table: &RequestTable<ServedTask>, place: u32, yielding: &Yielding<'_>) -> Nanos {
        let (task, task_type, bytes) = {
            let mut served = table.at(place);
            (served.task, served.task_type, std::mem::take(&mut served.bytes))
        };
        let observer = ServiceObserver { left: &|_| (), pause: &|| yielding.pause() };
        let ran = self.runner.run(&self.clock, task, task_type, &bytes, observer);
        let mut served = table.at(place);
        served.bytes = bytes;
        served.reply.clear();
        served.reply.extend_from_slice(self.runner.reply());
        served.ended = Some(ran.ended);
        ran.held
    }

    fn batch(&mut self, yielding: &Yielding<'_>) -> bool {
        self.runner.batch(&|| yielding.pause())
    }
}
