//! Occupies the worker for the time that the task states, without using the processor.
//!
//! For dilated runs on small machines: many workers can be busy at once on few cores, and each still
//! receives packets. Request and reply: nanoseconds, 8 bytes, big-endian; the reply repeats the request's
//! time. A request may have 4 more bytes: the length to which the reply is padded.

use sluice_net::service::{Service, ServiceError, Task};
use sluice_wire::{Nanos, TaskType};

use crate::span;

/// The task type of a holding task.
pub const HOLD: TaskType = TaskType(4);

/// The service that only takes time.
#[derive(Clone, Debug)]
pub struct Hold {
    types: Vec<TaskType>,
}

impl Hold {
    /// A service for tasks of these types.
    pub const fn of(types: Vec<TaskType>) -> Self {
        Self { types }
    }
}

impl Default for Hold {
    fn default() -> Self {
        Self::of(vec![HOLD])
    }
}

/// A request to occupy a worker for `time` (before dilation). The service refuses more than ten seconds.
pub const fn request(time: Nanos) -> [u8; 8] {
    span::encode(time)
}

/// Like [`request`], with a reply that is padded with zeros to `reply_bytes`. The service refuses more than
/// 64 KiB.
pub fn request_with_reply(time: Nanos, reply_bytes: u32) -> [u8; 12] {
    span::encode_with_reply(time, reply_bytes)
}

impl Service for Hold {
    fn types(&self) -> Vec<TaskType> {
        self.types.clone()
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let request = span::decode(task.bytes, task.reply_max)?;
        let span = request.span;
        task.left(span);
        task.hold(span);
        request.reply(span, reply);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn holds_the_worker_for_the_span_and_repeats_it() {
        let held = Cell::new(Nanos(0));
        let mut reply = Vec::new();
        let request = request(Nanos(1_234));
        Hold::default()
            .serve(Task::new(&request, HOLD, 1_000, &held), &mut reply)
            .expect("it is a legal request");
        assert_eq!(held.get(), Nanos(1_234));
        assert_eq!(reply, request);
    }
}
