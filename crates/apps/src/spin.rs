//! Keeps the processor busy for as long as the task says.
//!
//! Request and reply: nanoseconds, 8 bytes, big-endian; the reply holds the time that was really spent.

use std::hint;
use std::time::{Duration, Instant};

use sluice_net::service::{Service, ServiceError, Task};
use sluice_wire::{Nanos, TaskType};

use crate::span;

/// The type number of a spinning task.
pub const SPIN: TaskType = TaskType(3);

/// The busy service.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

/// A request to spin for `time`; the service refuses more than ten seconds.
pub const fn request(time: Nanos) -> [u8; 8] {
    span::encode(time)
}

impl Service for Spin {
    fn types(&self) -> Vec<TaskType> {
        vec![SPIN]
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let span = Duration::from_nanos(span::decode(task.bytes)?.0);
        let start = Instant::now();
        let spent = loop {
            let spent = start.elapsed();
            if spent >= span {
                break spent;
            }
            task.left(Nanos(span.saturating_sub(spent).as_nanos() as u64));
            hint::spin_loop();
        };
        reply.extend(span::encode(Nanos(spent.as_nanos() as u64)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn serve(bytes: &[u8]) -> Result<Vec<u8>, ServiceError> {
        let held = Cell::new(Nanos(0));
        let mut reply = Vec::new();
        Spin.serve(Task::new(bytes, SPIN, 1_000, &held), &mut reply)?;
        Ok(reply)
    }

    #[test]
    fn spins_at_least_as_long_as_asked() {
        let reply = serve(&request(Nanos::from_micros(200))).expect("it is a legal request");
        let spent = u64::from_be_bytes(reply.try_into().expect("8 bytes"));
        assert!(spent >= 200_000);
    }

    #[test]
    fn a_request_of_another_length_or_too_long_a_span_is_refused() {
        assert!(serve(b"").is_err());
        assert!(serve(&[0; 9]).is_err());
        assert!(serve(&[0xff; 8]).is_err());
    }
}
