//! A software dispatcher like Shinjuku's (RingLeader §2.1, §7.1).
//!
//! The dispatcher has a core of its own beside the workers' and does one thing at a time: each request that
//! it hands to an idle core costs it the same time. Each priority has a queue, and the first queue that is
//! not empty goes first. With preemption the dispatcher takes a core away from a request that has run for
//! an interval, if other requests wait. The preempted request goes to the end of its queue, and the core
//! pays for the switch. Requests may also wait while a core is idle, because the dispatcher has not got to
//! them yet; whether a core is taken away then is a setting ([`Preempts`]). Left out: the networking
//! thread. It shares the dispatcher's physical core, and the stated cost covers both.

use std::collections::VecDeque;

use sluice_host::orchestrator::PRIORITIES;
use sluice_stats::Observer;
use sluice_testbed::cores_layout::priorities;
use sluice_testbed::{CoreTimes, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Class;

use super::orchestration::Preempts;
use super::run::{Orchestrates, RequestId, ServerEvent, ServerRun};

#[derive(Debug)]
pub(super) struct Dispatcher {
    times: CoreTimes,
    preempts: Preempts,
    /// The queue of each class.
    queue_of: Vec<usize>,
    /// One queue per priority, the most important first.
    queues: [VecDeque<RequestId>; PRIORITIES],
    idle: Vec<u16>,
    /// The request that each core runs, and for how long.
    running: Vec<Option<(RequestId, Nanos)>>,
    is_dispatching: bool,
}

impl Dispatcher {
    pub(super) fn new(testbed: &Testbed, classes: &[Class], preempts: Preempts) -> Self {
        let cores = testbed.workers as u16;
        let queue = |priority: u8| PRIORITIES - 1 - usize::from(priority);
        Self {
            times: testbed.cores,
            preempts: if testbed.cores.yields > Nanos(0) { preempts } else { Preempts::Never },
            queue_of: priorities(classes).map(queue).collect(),
            queues: Default::default(),
            idle: (0..cores).rev().collect(),
            running: vec![None; cores.into()],
            is_dispatching: false,
        }
    }

    /// Hands the first request to an idle core, if the dispatcher is free.
    fn dispatch<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        if self.is_dispatching || self.idle.is_empty() {
            return;
        }
        let Some(request) = self.queues.iter_mut().find_map(VecDeque::pop_front) else { return };
        let Some(core) = self.idle.pop() else { return };
        self.is_dispatching = true;
        run.queued.leave(run.now);
        run.at_cores.enter(run.now);
        run.after(self.times.dispatch, ServerEvent::Reaches { core, request });
    }

    fn start<O: Observer>(&mut self, core: u16, request: RequestId, run: &mut ServerRun<'_, O>) {
        let never = self.preempts == Preempts::Never;
        let most = if never { Nanos(u64::MAX) } else { self.times.yields };
        let span = run.runs(core, request, (Nanos(0), most));
        self.running[usize::from(core)] = Some((request, span));
    }

    fn ended<O: Observer>(&mut self, core: u16, run: &mut ServerRun<'_, O>) {
        let Some((request, span)) = self.running[usize::from(core)].take() else { return };
        if run.ran(request, span) {
            self.idle.push(core);
            self.dispatch(run);
        } else if self.may_continue() {
            self.start(core, request, run);
        } else {
            self.push(request, run);
            run.switching.enter(run.now);
            run.after(self.times.switch, ServerEvent::Ready { core });
        }
    }

    /// Whether a request that has run for an interval keeps its core.
    fn may_continue(&self) -> bool {
        let spares = self.preempts == Preempts::WhileNoneIsIdle && !self.idle.is_empty();
        spares || self.queues.iter().all(VecDeque::is_empty)
    }

    fn push<O: Observer>(&mut self, request: RequestId, run: &mut ServerRun<'_, O>) {
        self.queues[self.queue_of[usize::from(run.class(request))]].push_back(request);
        run.queued.enter(run.now);
    }
}

impl Orchestrates for Dispatcher {
    fn arrive<O: Observer>(&mut self, request: RequestId, run: &mut ServerRun<'_, O>) {
        self.push(request, run);
        self.dispatch(run);
    }

    fn on_event<O: Observer>(&mut self, event: ServerEvent, run: &mut ServerRun<'_, O>) {
        match event {
            ServerEvent::Ran { core } => self.ended(core, run),
            ServerEvent::Reaches { core, request } => {
                self.is_dispatching = false;
                run.at_cores.leave(run.now);
                self.start(core, request, run);
                self.dispatch(run);
            }
            ServerEvent::Ready { core } => {
                run.switching.leave(run.now);
                self.idle.push(core);
                self.dispatch(run);
            }
            ServerEvent::Told { .. }
            | ServerEvent::Check
            | ServerEvent::Hinted { .. }
            | ServerEvent::Given { .. } => {}
        }
    }
}
