//! Ways to submit that block: each thread has a queue of its own, on which it waits detached from the
//! interpreter, and looks for signals now and then.

use std::cell::Cell;
use std::task::Poll;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sluice_net::client::{Completed, CompletionQueue, SubmitError};

use crate::ask::Ask;
use crate::bytes_like::BytesLike;
use crate::connection::{RackConnection, SIGNALS_EVERY};
use crate::errors::{NotSubmitted, PyOutcome};
use crate::forks::ProcessMark;

/// How many outcomes are taken at once.
const TAKEN_MOST: usize = 1_024;

thread_local! {
    /// The thread's queue, unless a call uses it: a signal's handler may submit within a call.
    static OWN: Cell<Option<OwnQueue>> = const { Cell::new(None) };
}

/// A thread's queue. Outcomes of a call that a signal ended come later, and are dropped.
struct OwnQueue {
    made: ProcessMark,
    queue: CompletionQueue,
    next_tag: u64,
    ended: Vec<Completed>,
}

impl OwnQueue {
    fn new() -> Self {
        Self { made: ProcessMark::here(), queue: CompletionQueue::new(), next_tag: 0, ended: Vec::new() }
    }

    /// Runs `work` with the thread's queue.
    fn with<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        // A child of a fork has a copy of its parent's queue, whose lock somebody may hold for ever.
        let mut own = OWN.take().filter(|own| own.made.is_here()).unwrap_or_else(Self::new);
        let worked = work(&mut own);
        OWN.set(Some(own));
        worked
    }

    /// The first of so many tags that are used by nobody else.
    fn tags(&mut self, count: usize) -> u64 {
        let first = self.next_tag;
        self.next_tag += count as u64;
        first
    }

    /// Waits for outcomes, or for room; for a moment only, after which Python may handle its signals.
    fn wait(&mut self, py: Python<'_>) -> PyResult<()> {
        let Self { queue, ended, .. } = self;
        py.detach(|| queue.wait(ended, TAKEN_MOST, Some(SIGNALS_EVERY)));
        py.check_signals()
    }
}

/// Submits one task and waits for its outcome.
pub(crate) fn submit(
    py: Python<'_>,
    connection: &RackConnection,
    ask: &Ask,
    bytes: BytesLike<'_>,
    wait_for_room: bool,
) -> PyResult<Py<PyAny>> {
    OwnQueue::with(|own| {
        let tag = own.tags(1);
        let waker = own.queue.waker();
        loop {
            match bytes.with(|bytes| connection.poll_submit((&own.queue, tag), ask, bytes, &waker)) {
                Poll::Ready(Ok(())) => break,
                Poll::Ready(Err(why)) => return Err(why.into_error(py)),
                Poll::Pending if wait_for_room => own.wait(py)?,
                Poll::Pending => return Err(NotSubmitted::from(SubmitError::Busy).into_error(py)),
            }
        }
        // They were copied: whoever has them may change their number meanwhile.
        drop(bytes);
        loop {
            let ended = own.ended.drain(..).find(|completed| completed.tag == tag);
            if let Some(completed) = ended {
                return PyOutcome::new(py, completed.ended, &own.queue)?.into_result(py);
            }
            own.wait(py)?;
        }
    })
}

/// Submits many tasks, as there is room, and waits for all outcomes, which come in the order of the tasks.
pub(crate) fn submit_many<'py>(
    py: Python<'py>,
    connection: &RackConnection,
    ask: &Ask,
    tasks: &[Bound<'py, PyAny>],
) -> PyResult<Bound<'py, PyList>> {
    let outcomes = OwnQueue::with(|own| {
        let mut many =
            Many { first: own.tags(tasks.len()), sent: 0, left: tasks.len(), outcomes: Vec::new() };
        many.outcomes.resize_with(tasks.len(), || None);
        while many.left > 0 {
            many.send(py, own, (connection, ask), tasks)?;
            if many.left > 0 {
                own.wait(py)?;
                many.take(py, own)?;
            }
        }
        Ok::<_, PyErr>(many.outcomes)
    })?;
    PyList::new(py, outcomes.into_iter().flatten())
}

/// Tasks of one call.
struct Many {
    /// The first one's tag; the others follow.
    first: u64,
    sent: usize,
    /// How many have no outcome yet.
    left: usize,
    outcomes: Vec<Option<Py<PyAny>>>,
}

impl Many {
    /// Submits the next tasks until there is no room. What is wrong with one task is its outcome.
    fn send(
        &mut self,
        py: Python<'_>,
        own: &OwnQueue,
        (connection, ask): (&RackConnection, &Ask),
        tasks: &[Bound<'_, PyAny>],
    ) -> PyResult<()> {
        let waker = own.queue.waker();
        while let Some(task) = tasks.get(self.sent) {
            let tag = self.first + self.sent as u64;
            let bytes = BytesLike::of(task)?;
            let ask = ask.anew();
            match bytes.with(|bytes| connection.poll_submit((&own.queue, tag), &ask, bytes, &waker)) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(why)) => {
                    self.ended(self.sent, why.into_error(py).into_value(py).into_any());
                }
                Poll::Pending => return Ok(()),
            }
            self.sent += 1;
        }
        Ok(())
    }

    fn take(&mut self, py: Python<'_>, own: &mut OwnQueue) -> PyResult<()> {
        for Completed { tag, ended } in own.ended.drain(..) {
            let place = tag.checked_sub(self.first).map(|place| place as usize);
            if let Some(place) = place.filter(|place| *place < self.outcomes.len()) {
                let outcome = PyOutcome::new(py, ended, &own.queue)?;
                self.ended(place, outcome.into_value());
            }
        }
        Ok(())
    }

    fn ended(&mut self, place: usize, outcome: Py<PyAny>) {
        self.outcomes[place] = Some(outcome);
        self.left -= 1;
    }
}

/// All tasks of an iterable, each checked to have bytes.
pub(crate) fn listed<'py>(tasks: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if BytesLike::of(tasks).is_ok() {
        return Err(PyTypeError::new_err("tasks are a list of bytes, not the bytes of one: use submit()"));
    }
    let listed: Vec<Bound<'py, PyAny>> = tasks.try_iter()?.collect::<PyResult<_>>()?;
    for task in &listed {
        BytesLike::of(task)?;
    }
    Ok(listed)
}
