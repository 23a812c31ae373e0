//! Runs the service for one task: the call, its panics, and its time.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use sluice_wire::{Nanos, ReplyStatus, TaskId, TaskType};

use crate::clock::Clock;
use crate::service::{Service, ServiceError, Task};

/// The service and the buffer for its answers.
pub(super) struct Runner<S> {
    service: S,
    reply_max: usize,
    packet_max: usize,
    reply: Vec<u8>,
}

/// The result of a service call; the answer is in [`Runner::reply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServiceRun {
    pub(super) started: Nanos,
    /// How long the call really took.
    pub(super) real: Nanos,
    /// For how much longer the service holds the worker.
    pub(super) held: Nanos,
    pub(super) ended: ServiceEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceEnd {
    Done,
    Failed,
    Panicked,
}

impl ServiceEnd {
    pub(super) const fn status(self) -> ReplyStatus {
        match self {
            Self::Done => ReplyStatus::Done,
            Self::Failed | Self::Panicked => ReplyStatus::Failed,
        }
    }
}

/// Functions that a running service can call.
#[derive(Clone, Copy)]
pub(super) struct ServiceObserver<'a> {
    /// Takes the service's statements about its remaining time.
    pub(super) left: &'a dyn Fn(Nanos),
    /// Lets other tasks run at a pause.
    pub(super) pause: &'a dyn Fn(),
}

impl<S: Service> Runner<S> {
    pub(super) fn new(service: S, reply_max: usize, packet_max: usize) -> Self {
        Self { service, reply_max, packet_max, reply: Vec::new() }
    }

    /// Runs the service on a task's bytes.
    pub(super) fn run(
        &mut self,
        clock: &Clock,
        task: TaskId,
        task_type: TaskType,
        bytes: &[u8],
        observer: ServiceObserver<'_>,
    ) -> ServiceRun {
        let held = Cell::new(Nanos(0));
        let offered = Task::new(bytes, task_type, self.reply_max, &held)
            .in_packets_of(self.packet_max)
            .called(task)
            .with_listener(observer.left)
            .with_pauser(observer.pause);
        self.reply.clear();
        let started = clock.now();
        // After a panic the service may be in any state, but there is no other instance.
        let answer = catch_unwind(AssertUnwindSafe(|| self.service.serve(offered, &mut self.reply)));
        let real = clock.now().since(started);
        let ended = match answer {
            Ok(Ok(())) if self.reply.len() <= self.reply_max => ServiceEnd::Done,
            Ok(Ok(())) => {
                let bytes = self.reply.len();
                self.fail(
                    &format!("an answer of {bytes} bytes is over {}", self.reply_max),
                    ServiceEnd::Failed,
                )
            }
            Ok(Err(why)) => self.fail_with(&why),
            Err(panic) => {
                self.fail(&format!("the service panicked: {}", words(&*panic)), ServiceEnd::Panicked)
            }
        };
        ServiceRun { started, real, held: held.get(), ended }
    }

    /// Does one piece of the service's batch work. Returns whether more may be left; after a panic, never.
    pub(super) fn batch(&mut self, pause: &dyn Fn()) -> bool {
        // A core that ends while the work is paused unwinds it from the pause. This is not a panic of the
        // service.
        let is_paused = Cell::new(false);
        let pause = || {
            is_paused.set(true);
            pause();
            is_paused.set(false);
        };
        match catch_unwind(AssertUnwindSafe(|| self.service.batch(&pause))) {
            Ok(goes_on) => goes_on,
            Err(end) if is_paused.get() => resume_unwind(end),
            Err(panic) => {
                let why = words(&*panic);
                sluice_log::log!(
                    BatchPanicked,
                    why,
                    "the batch service panicked, and runs no more on this core: {why}"
                );
                false
            }
        }
    }

    /// The last answer.
    pub(super) fn reply(&self) -> &[u8] {
        &self.reply
    }

    fn fail_with(&mut self, why: &ServiceError) -> ServiceEnd {
        self.fail(&why.to_string(), ServiceEnd::Failed)
    }

    fn fail(&mut self, why: &str, ended: ServiceEnd) -> ServiceEnd {
        self.reply.clear();
        self.reply.extend_from_slice(&why.as_bytes()[..why.len().min(self.reply_max)]);
        ended
    }
}

/// The message of a panic, if it has one.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service whose behaviour the task's first byte chooses.
    struct ChangingService;

    impl Service for ChangingService {
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

        fn batch(&mut self, pause: &dyn Fn()) -> bool {
            pause();
            panic!("out of mood")
        }
    }

    const DEAF: ServiceObserver<'_> = ServiceObserver { left: &|_| (), pause: &|| () };

    fn run(bytes: &[u8]) -> (ServiceRun, String) {
        let mut runner = Runner::new(ChangingService, 100, 50);
        let ran = runner.run(&Clock::start(), TaskId::default(), TaskType(1), bytes, DEAF);
        (ran, String::from_utf8_lossy(runner.reply()).into_owned())
    }

    #[test]
    fn a_service_that_panics_fails_the_task_and_no_more() {
        let (ran, reply) = run(b"panic");
        assert_eq!((ran.ended, reply.as_str()), (ServiceEnd::Panicked, "the service panicked: out of mood"));
    }

    #[test]
    fn batch_work_that_panics_is_over_and_a_core_that_ends_is_not_taken_for_a_panic() {
        let mut runner = Runner::new(ChangingService, 100, 50);
        assert!(!runner.batch(&|| ()));
        let unwound = catch_unwind(AssertUnwindSafe(|| runner.batch(&|| resume_unwind(Box::new(7)))));
        assert_eq!(unwound.expect_err("it goes on").downcast_ref(), Some(&7));
    }

    #[test]
    fn an_error_replaces_what_was_written_of_the_answer() {
        let (ran, reply) = run(b"error");
        assert_eq!((ran.ended, reply.as_str()), (ServiceEnd::Failed, "not today"));
    }

    #[test]
    fn an_answer_over_the_maximum_is_a_failure() {
        let (ran, reply) = run(b"long");
        assert_eq!((ran.ended, reply.as_str()), (ServiceEnd::Failed, "an answer of 1000 bytes is over 100"));
    }
}
