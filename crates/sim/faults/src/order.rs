//! Promise 8: no task waits beside a parked token, and tasks and tokens leave in the promised order.
//!
//! Each pass is compared with the queue before it. A task that a token takes was the oldest of its class,
//! and all classes have their turns. A token that a task takes was the oldest of the least rank. And no
//! task waits in a slice where a token is parked.

use sluice_switch::{Parked, Program, Verdict};
use sluice_wire::tables::Feed;
use sluice_wire::{Packet, SliceId, Submit};

use super::turns::{PassedOver, between_turns};

/// How often each class of a slice has been passed over.
#[derive(Debug, Default)]
pub(super) struct Precedence {
    passed_over: Vec<PassedOver>,
}

/// The contents of all slices' queues, if tokens wait in them; programs without waiting tokens keep no such
/// order.
pub(super) fn queues(program: &dyn Program) -> Vec<Parked> {
    let shape = program.shape();
    let slices = if matches!(shape.feed, Feed::Tokens { .. }) { shape.slices } else { 0 };
    (0..slices).map(|slice| program.parked(SliceId(slice))).collect()
}

impl Precedence {
    /// Checks the queues before and after a pass; `classes` is how many the program tells apart.
    pub(super) fn check(
        &mut self,
        classes: u8,
        before: &[Parked],
        after: &[Parked],
        verdict: &Verdict,
    ) -> Result<(), String> {
        self.forget_empty(classes, after);
        let both = |queue: &Parked| !queue.tasks.is_empty() && !queue.tokens.is_empty();
        if let Some(slice) = after.iter().position(both) {
            return Err(format!("promise 8: a task waits in slice {slice}, where a token is parked"));
        }
        let (dispatched, try_of) = match verdict {
            Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => {
                (Some(dispatch), (dispatch.task, dispatch.attempt))
            }
            // A token took the task, and goes on to the next one.
            Verdict::Late { reject, .. } => (None, (reject.task, reject.attempt)),
            _ => return Ok(()),
        };
        for (slice, queue) in before.iter().enumerate() {
            if let Some(left) = queue.tasks.iter().find(|task| (task.task, task.attempt) == try_of) {
                self.left(slice, classes, queue, left)?;
            }
        }
        let Some(dispatch) = dispatched else { return Ok(()) };
        let took = |(before, after): (&Parked, &Parked)| before.tokens.len() > after.tokens.len();
        let Some(slice) = before.iter().zip(after).position(took) else { return Ok(()) };
        let first = before[slice].tokens.first().map(|(worker, _)| *worker);
        if first == Some(dispatch.worker) {
            return Ok(());
        }
        Err(format!(
            "promise 8: a task took a token of worker {} in slice {slice}, worker {} was before it",
            dispatch.worker,
            first.map_or(0, |worker| worker.0)
        ))
    }

    /// A class without waiting tasks is not passed over any more, even if a sweep took its last task.
    fn forget_empty(&mut self, classes: u8, queues: &[Parked]) {
        for (counts, queue) in self.passed_over.iter_mut().zip(queues) {
            if !counts.is_zero() {
                counts.forget_all_but(waiting(queue, classes));
            }
        }
    }

    /// A waiting task left for a worker.
    fn left(&mut self, slice: usize, classes: u8, queue: &Parked, left: &Submit) -> Result<(), String> {
        let oldest = |class| queue.tasks.iter().find(move |task| class_of(task, classes) == class);
        let class = class_of(left, classes);
        if oldest(class).is_some_and(|oldest| (oldest.task, oldest.attempt) != (left.task, left.attempt)) {
            let task = left.task;
            return Err(format!(
                "promise 8: task {task} left slice {slice} before an older one of its class"
            ));
        }
        self.passed_over.resize_with(self.passed_over.len().max(slice + 1), PassedOver::default);
        // The first class goes first except for the turns of others: it is never passed over twice in a
        // row. Each token that finds tasks waiting takes one in the same pass.
        let most = |class| if class == 0 { 1 } else { between_turns(classes) };
        match self.passed_over[slice].count(waiting(queue, classes), Some(class), most) {
            Some((class, times)) => {
                Err(format!("promise 8: class {class} of slice {slice} was passed over {times} times"))
            }
            None => Ok(()),
        }
    }
}

/// The classes that have a waiting task, one bit each.
fn waiting(queue: &Parked, classes: u8) -> u8 {
    queue.tasks.iter().fold(0, |waiting, task| waiting | 1 << class_of(task, classes))
}

fn class_of(task: &Submit, classes: u8) -> u8 {
    task.priority.min(classes - 1)
}
