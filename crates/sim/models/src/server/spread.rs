//! Random queues (RingLeader §2.1): RSS, work stealing, d-ideal(X, Y).
//!
//! Each queue has a group of cores. By flow, a queue is drawn once for each flow, and each request belongs
//! to a random flow; by request, a queue is drawn for each request. With stealing, a core without work
//! takes the oldest request of the first queue that has one, starting at a random queue; that costs it
//! time. Left out: the time that a core spends on looking for work without finding any.

use std::collections::VecDeque;

use sluice_events::dice::Dice;
use sluice_stats::Observer;
use sluice_wire::Nanos;

use super::run::{Orchestrates, RequestId, ServerEvent, ServerRun};

#[derive(Debug)]
pub(super) struct SpreadQueues {
    queues: Vec<VecDeque<RequestId>>,
    /// The idle cores of each queue.
    idle: Vec<Vec<u16>>,
    cores_each: usize,
    /// The request that each core runs.
    running: Vec<Option<(RequestId, Nanos)>>,
    flows: Vec<u32>,
    dice: Dice,
    /// The time to steal a request.
    steal: Option<Nanos>,
}

impl SpreadQueues {
    /// So many queues with so many cores each.
    pub(super) fn new(queues: usize, cores_each: usize, flows: Option<u32>, mut dice: Dice) -> Self {
        let flows = (0..flows.unwrap_or(0)).map(|_| dice.below(queues as u64) as u32).collect();
        let cores = |queue: usize| (queue * cores_each..(queue + 1) * cores_each).rev();
        Self {
            queues: vec![VecDeque::new(); queues],
            idle: (0..queues).map(|queue| cores(queue).map(|core| core as u16).collect()).collect(),
            cores_each,
            running: vec![None; queues * cores_each],
            flows,
            dice,
            steal: None,
        }
    }

    /// The same queues, with stealing by cores without work.
    pub(super) fn stealing(self, costs: Nanos) -> Self {
        Self { steal: Some(costs), ..self }
    }

    fn queue(&mut self) -> usize {
        match self.flows.len() as u64 {
            0 => self.dice.below(self.queues.len() as u64) as usize,
            flows => self.flows[self.dice.below(flows) as usize] as usize,
        }
    }

    fn start<O: Observer>(
        &mut self,
        core: u16,
        request: RequestId,
        first: Nanos,
        run: &mut ServerRun<'_, O>,
    ) {
        let span = run.runs(core, request, (first, Nanos(u64::MAX)));
        self.running[usize::from(core)] = Some((request, span));
    }

    /// An idle core that can steal at once.
    fn thief(&mut self) -> Option<u16> {
        self.steal?;
        let queues = self.idle.len();
        let first = self.dice.below(queues as u64) as usize;
        (0..queues).find_map(|at| self.idle[(first + at) % queues].pop())
    }

    /// The next request of a core, and the time to get it.
    fn next(&mut self, queue: usize) -> Option<(RequestId, Nanos)> {
        if let Some(own) = self.queues[queue].pop_front() {
            return Some((own, Nanos(0)));
        }
        let (costs, queues) = (self.steal?, self.queues.len());
        let first = self.dice.below(queues as u64) as usize;
        let stolen = (0..queues).find_map(|at| self.queues[(first + at) % queues].pop_front())?;
        Some((stolen, costs))
    }
}

impl Orchestrates for SpreadQueues {
    fn arrive<O: Observer>(&mut self, request: RequestId, run: &mut ServerRun<'_, O>) {
        let queue = self.queue();
        if let Some(core) = self.idle[queue].pop() {
            return self.start(core, request, Nanos(0), run);
        }
        if let Some(core) = self.thief() {
            return self.start(core, request, self.steal.unwrap_or_default(), run);
        }
        self.queues[queue].push_back(request);
        run.at_cores.enter(run.now);
    }

    fn on_event<O: Observer>(&mut self, event: ServerEvent, run: &mut ServerRun<'_, O>) {
        let ServerEvent::Ran { core } = event else { return };
        let Some((request, span)) = self.running[usize::from(core)].take() else { return };
        run.ran(request, span);
        let queue = usize::from(core) / self.cores_each;
        match self.next(queue) {
            Some((next, first)) => {
                run.at_cores.leave(run.now);
                self.start(core, next, first, run);
            }
            None => self.idle[queue].push(core),
        }
    }
}
