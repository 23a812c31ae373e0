//! A pass of the switch, with the checks before and after it: which tokens are admitted (`gate`), the order
//! of tasks (`order`, `labels`), the age of tasks and the number of recirculating packets (`reckoning`).

use sluice_switch::{Arrival, Cargo, Circulating, Program, Verdict};
use sluice_wire::tables::{RingCounts, TableAnswer, TableOp};
use sluice_wire::{Nanos, Packet, RejectReason, Serial, SliceId, Submit, TaskType};

use super::gate::Bearer;
use super::labels::Came;
use super::limits::SLICES;
use super::oracle::Oracle;
use super::order;
use super::scenario::Scenario;
use super::switch::SwitchNode;

impl SwitchNode {
    /// One pass of the switch; `None` if it is down.
    pub(super) fn pass(
        &mut self,
        now: Nanos,
        arrival: Arrival,
        scenario: &Scenario,
        oracle: &mut Oracle,
    ) -> Result<Option<Verdict>, String> {
        let kept_out = bearer(&arrival).filter(|bearer| self.gate.refuses(*bearer).is_some());
        let before = kept_out.map(|bearer| self.let_in(bearer));
        let Some(program) = &mut self.program else { return Ok(None) };
        let was_round = matches!(arrival, Arrival::Round(_));
        let token = match &arrival {
            Arrival::Wire { packet: Packet::Token(token), .. } => Some(token.worker),
            _ => None,
        };
        let was_note = matches!(arrival, Arrival::Round(Circulating { cargo: Cargo::Note, .. }));
        let queues = self.queues.take().unwrap_or_else(|| order::queues(&**program));
        let verdict = program.pass(now, arrival);
        let left = order::queues(&**program);
        self.is_unseen = true;
        self.reckoning.check(now, &arrival, &verdict, scenario.worker_rows)?;
        if let Verdict::Send { packet: Packet::Reject(reject), .. } = &verdict {
            // A program without targets refuses as busy by what waits at its workers, not in the switch.
            let takes_targets = scenario.program.traits().takes_targets;
            let waiting = match reject.reason {
                RejectReason::QueueFull => queue_of(&mut **program, reject.task_type),
                RejectReason::Busy
                    if takes_targets && queue_of(&mut **program, reject.task_type).is_empty() =>
                {
                    return Err(format!(
                        "promise 8: task {} was refused as busy while none waited",
                        reject.task
                    ));
                }
                _ => Vec::new(),
            };
            oracle.rejected(reject, &waiting)?;
        }
        if scenario.program.traits().kinds > 1 {
            let (labels, queues) = (&scenario.worker_labels, (&*queues, &*left));
            let came = Came { token, was_round };
            self.fairness.check(labels, &mut **program, queues, (came, &verdict))?;
        } else {
            self.order.check(scenario.program.traits().classes, &queues, &left, &verdict)?;
        }
        self.queues = Some(left);
        if let Some((worker, _)) =
            kept_out.filter(|bearer| Some(self.let_in(*bearer)) != before || dispatched(&verdict).is_some())
        {
            return Err(format!("promise 3: a token of worker {worker}, which is closed, was let in"));
        }
        let gate = &self.gate;
        if was_note && let Some(worker) = dispatched(&verdict).and_then(|token| gate.refuses(token)) {
            return Err(format!("promise 3: a token of worker {worker} went round, and it is closed"));
        }
        if let Some(worker) = told_counters(&verdict).and_then(|told| gate.refuses(told)) {
            return Err(format!("promise 3: worker {worker}, which is closed, heard its counters"));
        }
        Ok(Some(verdict))
    }

    /// How many tokens of this worker were ever granted, and how many entered each slice's ring. Read only
    /// for workers whose tokens may not be admitted: polls are most of a run, so their cost decides how
    /// long a run takes.
    fn let_in(&mut self, (worker, _): Bearer) -> (Option<Serial>, [Option<RingCounts>; SLICES]) {
        let Some(program) = &mut self.program else { return (None, [None; SLICES]) };
        let granted = match program.table(TableOp::ReadWorker(worker)) {
            TableAnswer::Worker(state) => Some(state.seen),
            _ => None,
        };
        let entered =
            std::array::from_fn(|slice| match program.table(TableOp::ReadSlice(SliceId(slice as u16))) {
                TableAnswer::Slice(state) => Some(state.tokens_in),
                _ => None,
            });
        (granted, entered)
    }
}

/// The tasks that wait in the slice of a type.
fn queue_of(program: &mut dyn Program, task_type: TaskType) -> Vec<Submit> {
    match program.table(TableOp::ReadType(task_type)) {
        TableAnswer::Type(Some(slice)) => program.parked(slice).tasks,
        _ => Vec::new(),
    }
}

/// The worker and generation of the token that this arrival brings to the queue.
fn bearer(arrival: &Arrival) -> Option<Bearer> {
    match arrival {
        Arrival::Wire { packet: Packet::Token(token), .. } => Some((token.worker, token.generation)),
        Arrival::Round(circulating) => match &circulating.cargo {
            Cargo::Sweep(sweep) => sweep.carried,
            _ => None,
        },
        _ => None,
    }
}

/// The worker that this verdict tells its counters.
fn told_counters(verdict: &Verdict) -> Option<Bearer> {
    match verdict {
        Verdict::Send { packet: Packet::Answer(answer), .. } if answer.counters.is_some() => {
            Some((answer.worker, answer.generation))
        }
        _ => None,
    }
}

/// The worker whose token a task met.
const fn dispatched(verdict: &Verdict) -> Option<Bearer> {
    match verdict {
        Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => {
            Some((dispatch.worker, dispatch.generation))
        }
        _ => None,
    }
}
