//! One task's service: the call, its panics, its time, and what dilation makes of it.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sluice_wire::{Nanos, ReplyStatus, TaskId, TaskType};

use crate::clock::Clock;
use crate::service::{Service, ServiceError, Task};

/// The service and the buffer for its answers.
pub(super) struct Runner<S> {
    service: S,
    dilation: u32,
    reply_max: usize,
    packet_max: usize,
    reply: Vec<u8>,
}

/// How a service call went; its answer is in [`Runner::reply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) started: Nanos,
    /// When the worker is free for the next task: later than now under dilation, or if the service holds it.
    pub(super) until: Nanos,
    pub(super) ended: Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    Failed,
    Panicked,
}

impl Ended {
    pub(super) const fn status(self) -> ReplyStatus {
        match self {
            Self::Done => ReplyStatus::Done,
            Self::Failed | Self::Panicked => ReplyStatus::Failed,
        }
    }
}

impl<S: Service> Runner<S> {
    pub(super) fn new(service: S, dilation: u32, reply_max: usize, packet_max: usize) -> Self {
        Self { service, dilation: dilation.max(1), reply_max, packet_max, reply: Vec::new() }
    }

    /// Runs the service on a task's bytes. A paced worker begins when its own time says; what the service holds it for
    /// is then all that it takes.
    pub(super) fn run(
        &mut self,
        clock: &Clock,
        paced: Option<Nanos>,
        task: TaskId,
        task_type: TaskType,
        bytes: &[u8],
        left: &dyn Fn(Nanos),
    ) -> Ran {
        let held = Cell::new(Nanos(0));
        let offered = Task::new(bytes, task_type, self.reply_max, &held)
            .in_packets_of(self.packet_max)
            .called(task)
            .heard_by(left);
        self.reply.clear();
        let started = clock.now();
        // A service that panicked may be in any state; it is still the only one there is.
        let answer = catch_unwind(AssertUnwindSafe(|| self.service.serve(offered, &mut self.reply)));
        let real =
            if paced.is_some() && held.get() > Nanos(0) { Nanos(0) } else { clock.now().since(started) };
        let took = real + held.get();
        let started = paced.unwrap_or(started);
        let ended = match answer {
            Ok(Ok(())) if self.reply.len() <= self.reply_max => Ended::Done,
            Ok(Ok(())) => {
                let bytes = self.reply.len();
                self.fail(&format!("an answer of {bytes} bytes is over {}", self.reply_max), Ended::Failed)
            }
            Ok(Err(why)) => self.fail_with(&why),
            Err(panic) => self.fail(&format!("the service panicked: {}", words(&*panic)), Ended::Panicked),
        };
        Ran { started, until: started + took.times(self.dilation.into()), ended }
    }

    /// The last answer.
    pub(super) fn reply(&self) -> &[u8] {
        &self.reply
    }

    fn fail_with(&mut self, why: &ServiceError) -> Ended {
        self.fail(&why.to_string(), Ended::Failed)
    }

    fn fail(&mut self, why: &str, ended: Ended) -> Ended {
        self.reply.clear();
        self.reply.extend_from_slice(&why.as_bytes()[..why.len().min(self.reply_max)]);
        ended
    }
}

/// What a panic said, if it said anything.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does what the task's first byte says.
    struct Moody;

    impl Service for Moody {
        fn types(&self) -> Vec<TaskType> {
            vec![TaskType(1)]
        }

        fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
            reply.extend(b"half an answer");
            match task.bytes {
                b"panic" => panic!("out of {}", "mood"),
                b"error" => Err(ServiceError::new("not today")),
                b"long" => {
                    reply.resize(1_000, 0);
                    Ok(())
                }
                b"hold" => {
                    task.hold(Nanos::from_millis(7));
                    Ok(())
                }
                _ => Ok(()),
            }
        }
    }

    fn run(dilation: u32, bytes: &[u8]) -> (Ran, String) {
        let mut runner = Runner::new(Moody, dilation, 100, 50);
        let ran = runner.run(&Clock::start(), None, TaskId::default(), TaskType(1), bytes, &|_| ());
        (ran, String::from_utf8_lossy(runner.reply()).into_owned())
    }

    #[test]
    fn a_service_that_panics_fails_the_task_and_no_more() {
        let (ran, reply) = run(1, b"panic");
        assert_eq!((ran.ended, reply.as_str()), (Ended::Panicked, "the service panicked: out of mood"));
    }

    #[test]
    fn an_error_replaces_what_was_written_of_the_answer() {
        let (ran, reply) = run(1, b"error");
        assert_eq!((ran.ended, reply.as_str()), (Ended::Failed, "not today"));
    }

    #[test]
    fn an_answer_over_the_maximum_is_a_failure() {
        let (ran, reply) = run(1, b"long");
        assert_eq!((ran.ended, reply.as_str()), (Ended::Failed, "an answer of 1000 bytes is over 100"));
    }

    #[test]
    fn dilation_stretches_real_and_held_time() {
        let (ran, _) = run(10, b"hold");
        let taken = ran.until.since(ran.started);
        assert!(taken >= Nanos::from_millis(70) && taken < Nanos::from_millis(200), "{taken:?}");
    }
}
