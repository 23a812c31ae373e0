//! Keeps the processor busy for the time that the task states.
//!
//! Request and reply: nanoseconds, 8 bytes, big-endian; the reply contains the time that was really spent.
//! A request may have 4 more bytes: the length to which the reply is padded.

use std::hint;
use std::time::{Duration, Instant};

use sluice_net::service::{Service, ServiceError, Task};
use sluice_wire::{Nanos, TaskType};

use crate::span;

/// The task type of a spinning task.
pub const SPIN: TaskType = TaskType(3);

/// A pause takes at most this long if no other request ran in it.
const GLANCE: Duration = Duration::from_nanos(500);

/// The busy service.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

/// A request to spin for `time`. The service refuses more than ten seconds.
pub const fn request(time: Nanos) -> [u8; 8] {
    span::encode(time)
}

/// Like [`request`], with a reply that is padded with zeros to `reply_bytes`. The service refuses more than
/// 64 KiB.
pub fn request_with_reply(time: Nanos, reply_bytes: u32) -> [u8; 12] {
    span::encode_with_reply(time, reply_bytes)
}

impl Service for Spin {
    fn types(&self) -> Vec<TaskType> {
        vec![SPIN]
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let request = span::decode(task.bytes, task.reply_max)?;
        let span = Duration::from_nanos(request.span.0);
        // The time in which others run does not count for this task.
        let mut start = Instant::now();
        let spent = loop {
            let spent = start.elapsed();
            if spent >= span {
                break spent;
            }
            task.left(Nanos(span.saturating_sub(spent).as_nanos() as u64));
            let paused = Instant::now();
            task.pause();
            let away = paused.elapsed();
            if away > GLANCE {
                start += away;
            }
            hint::spin_loop();
        };
        request.reply(Nanos(spent.as_nanos() as u64), reply);
        Ok(())
    }

    fn batch(&mut self, pause: &dyn Fn()) -> bool {
        pause();
        hint::spin_loop();
        true
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
    fn a_reply_is_as_long_as_was_asked_for_up_to_the_maximum() {
        let reply = serve(&request_with_reply(Nanos(1), 900)).expect("it is a legal request");
        assert_eq!(reply.len(), 900);
        assert!(serve(&request_with_reply(Nanos(1), 1_001)).is_err());
    }

    #[test]
    fn a_request_of_another_length_or_too_long_a_span_is_refused() {
        assert!(serve(b"").is_err());
        assert!(serve(&[0; 9]).is_err());
        assert!(serve(&[0xff; 8]).is_err());
    }
}
