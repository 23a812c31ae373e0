//! The tasks of one client on one asyncio loop: futures, and the queue whose descriptor the loop watches.
//!
//! The loop is woken once for all outcomes that came meanwhile, and all their futures are resolved then. A
//! task for which there is no room waits here, behind others of its type, until the client has room.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;
use slab::Slab;
use sluice_net::client::{Completed, CompletionQueue, SubmitError};

use crate::ask::Ask;
use crate::bytes_like::BytesLike;
use crate::connection::RackConnection;
use crate::errors::{NotSubmitted, PyOutcome, net};

/// How many outcomes are taken before the loop's other work has its turn.
const TAKEN_MOST: usize = 1_024;

/// A client's tasks on one loop. All its functions run in the loop's thread.
#[pyclass(frozen, module = "sluice._sluice")]
pub(crate) struct LoopTasks {
    connection: Arc<RackConnection>,
    queue: CompletionQueue,
    watched: Py<PyAny>,
    create_future: Py<PyAny>,
    /// Never locked while an object of Python is made or called: that may come back here.
    state: Mutex<LoopState>,
}

#[derive(Default)]
struct LoopState {
    /// Tasks that are under way, by tag.
    under_way: Slab<Awaited>,
    /// Tasks for which there was no room, by type.
    backlog: BTreeMap<u16, VecDeque<Waiting>>,
    /// An empty buffer.
    ended: Vec<Completed>,
    is_detached: bool,
}

/// Who waits for an outcome.
enum Awaited {
    One(Py<PyAny>),
    /// Several tasks that one future stands for, and which of them it is.
    OfMany(Arc<ManyTasks>, usize),
}

/// Tasks that one future stands for.
struct ManyTasks {
    future: Py<PyAny>,
    tasks: Vec<Py<PyAny>>,
    outcomes: Py<PyList>,
    left: Mutex<usize>,
}

/// What waits for room.
struct Waiting {
    ask: Ask,
    work: WaitingWork,
}

enum WaitingWork {
    One(Py<PyAny>, Vec<u8>),
    /// The tasks from this one on.
    Many(Arc<ManyTasks>, usize),
}

impl LoopTasks {
    /// The tasks of a client on `watched`, which is told to watch for outcomes.
    pub(crate) fn attach<'py>(
        connection: &Arc<RackConnection>,
        watched: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let py = watched.py();
        let queue = CompletionQueue::new();
        let fd = queue.fd().map_err(|why| net(py, &why))?.as_raw_fd();
        let tasks = Self {
            connection: Arc::clone(connection),
            queue,
            watched: watched.clone().unbind(),
            create_future: watched.getattr("create_future")?.unbind(),
            state: Mutex::default(),
        };
        let tasks = Bound::new(py, tasks)?;
        watched.call_method1("add_reader", (fd, tasks.getattr("_take")?))?;
        Ok(tasks)
    }

    /// Whether these are the tasks on `running`.
    pub(crate) fn is_on(&self, running: &Bound<'_, PyAny>) -> bool {
        self.watched.is(running)
    }

    /// Whether the loop was closed, so that nobody waits for these tasks any more.
    pub(crate) fn is_over(&self, py: Python<'_>) -> bool {
        let asked = self.watched.call_method0(py, "is_closed").and_then(|is| is.extract(py));
        asked.unwrap_or(true)
    }

    /// Has the loop look at the client's state soon. May be called in any thread.
    pub(crate) fn wake(&self) {
        self.queue.waker().wake();
    }

    /// Submits a task, and returns its future.
    pub(crate) fn submit(
        &self,
        py: Python<'_>,
        ask: Ask,
        bytes: &BytesLike<'_>,
        wait_for_room: bool,
    ) -> PyResult<Py<PyAny>> {
        let future = self.create_future.call0(py)?;
        let returned = future.clone_ref(py);
        let is_first = !self.state().backlog.contains_key(&ask.task_type().0);
        if is_first {
            match bytes.with(|bytes| self.send(&ask, bytes, || Awaited::One(future.clone_ref(py)))) {
                Poll::Ready(Ok(())) => return Ok(returned),
                Poll::Ready(Err(why)) => return Err(why.into_error(py)),
                Poll::Pending => {}
            }
        }
        if !wait_for_room {
            return Err(NotSubmitted::from(SubmitError::Busy).into_error(py));
        }
        let bytes = bytes.with(<[u8]>::to_vec);
        self.wait(Waiting { ask, work: WaitingWork::One(future, bytes) });
        Ok(returned)
    }

    /// Submits tasks, as there is room, and returns a future for the list of all outcomes.
    pub(crate) fn submit_many(
        &self,
        py: Python<'_>,
        ask: Ask,
        tasks: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let future = self.create_future.call0(py)?;
        let left = tasks.len();
        let outcomes = PyList::new(py, (0..left).map(|_| py.None()))?.unbind();
        if left == 0 {
            future.call_method1(py, "set_result", (outcomes,))?;
            return Ok(future);
        }
        let returned = future.clone_ref(py);
        let tasks = tasks.into_iter().map(Bound::unbind).collect();
        let many = Arc::new(ManyTasks { future, tasks, outcomes, left: Mutex::new(left) });
        let task_type = ask.task_type().0;
        self.wait(Waiting { ask, work: WaitingWork::Many(many, 0) });
        self.send_backlog_of(py, task_type)?;
        Ok(returned)
    }

    /// Keeps a task until there is room.
    fn wait(&self, waiting: Waiting) {
        let task_type = waiting.ask.task_type().0;
        self.state().backlog.entry(task_type).or_default().push_back(waiting);
    }

    /// Hands a task to the client if that has room.
    fn send(
        &self,
        ask: &Ask,
        bytes: &[u8],
        awaited: impl FnOnce() -> Awaited,
    ) -> Poll<Result<(), NotSubmitted>> {
        let tag = self.state().under_way.vacant_key();
        let polled = self.connection.poll_submit((&self.queue, tag as u64), ask, bytes, &self.queue.waker());
        if let Poll::Ready(Ok(())) = polled {
            // Nobody else uses the key meanwhile: this is the loop's thread.
            self.state().under_way.insert(awaited());
        }
        polled
    }

    /// Hands the client what waits for room, as far as there is some.
    fn send_backlog(&self, py: Python<'_>) -> PyResult<()> {
        let types: Vec<u16> = self.state().backlog.keys().copied().collect();
        types.into_iter().try_for_each(|task_type| self.send_backlog_of(py, task_type))
    }

    fn send_backlog_of(&self, py: Python<'_>, task_type: u16) -> PyResult<()> {
        loop {
            let mut state = self.state();
            let Some(waiting) = state.backlog.get_mut(&task_type) else { return Ok(()) };
            let Some(next) = waiting.pop_front() else {
                state.backlog.remove(&task_type);
                return Ok(());
            };
            drop(state);
            if let Some(left) = self.send_waiting(py, next)? {
                self.state().backlog.entry(task_type).or_default().push_front(left);
                return Ok(());
            }
        }
    }

    /// Sends what waited; returns what there was no room for.
    fn send_waiting(&self, py: Python<'_>, waiting: Waiting) -> PyResult<Option<Waiting>> {
        let Waiting { ask, work } = waiting;
        match work {
            WaitingWork::One(future, bytes) => {
                if is_done(py, &future)? {
                    // Its submitter has cancelled it: it never runs.
                    return Ok(None);
                }
                match self.send(&ask, &bytes, || Awaited::One(future.clone_ref(py))) {
                    Poll::Ready(Ok(())) => Ok(None),
                    Poll::Ready(Err(why)) => {
                        let error = why.into_error(py).into_value(py);
                        future.call_method1(py, "set_exception", (error,)).map(|_| None)
                    }
                    Poll::Pending => Ok(Some(Waiting { ask, work: WaitingWork::One(future, bytes) })),
                }
            }
            WaitingWork::Many(many, from) => {
                let left = self.send_many(py, &ask, &many, from)?;
                Ok(left.map(|from| Waiting { ask, work: WaitingWork::Many(many, from) }))
            }
        }
    }

    /// Sends these tasks from number `from` on; returns the first for which there is no room.
    fn send_many(
        &self,
        py: Python<'_>,
        ask: &Ask,
        many: &Arc<ManyTasks>,
        from: usize,
    ) -> PyResult<Option<usize>> {
        if is_done(py, &many.future)? {
            return Ok(None);
        }
        for (place, task) in many.tasks.iter().enumerate().skip(from) {
            let bytes = match BytesLike::of(task.bind(py)) {
                Ok(bytes) => bytes,
                Err(why) => {
                    many.future.call_method1(py, "set_exception", (why.into_value(py),))?;
                    return Ok(None);
                }
            };
            let awaited = || Awaited::OfMany(Arc::clone(many), place);
            match bytes.with(|bytes| self.send(&ask.anew(), bytes, awaited)) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(why)) => {
                    many.ended(py, place, why.into_error(py).into_value(py).into_any())?;
                }
                Poll::Pending => return Ok(Some(place)),
            }
        }
        Ok(None)
    }

    /// Stops watching once the client is closed and nothing is left to wait for.
    fn detach_at_the_end(&self, py: Python<'_>) -> PyResult<()> {
        if !self.connection.is_closed() {
            return Ok(());
        }
        let mut state = self.state();
        if state.is_detached || !state.under_way.is_empty() || !state.backlog.is_empty() {
            return Ok(());
        }
        state.is_detached = true;
        drop(state);
        let fd = self.queue.fd().map_err(|why| net(py, &why))?.as_raw_fd();
        self.watched.call_method1(py, "remove_reader", (fd,)).map(drop)
    }

    fn state(&self) -> MutexGuard<'_, LoopState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl LoopTasks {
    /// Resolves the futures of all tasks that have ended. The loop calls this.
    fn _take(&self, py: Python<'_>) -> PyResult<()> {
        let mut ended = mem::take(&mut self.state().ended);
        self.queue.take(&mut ended, TAKEN_MOST);
        for completed in ended.drain(..) {
            let awaited = self.state().under_way.try_remove(completed.tag as usize);
            let Some(awaited) = awaited else { continue };
            let outcome = PyOutcome::new(py, completed.ended, &self.queue);
            if let Err(why) = outcome.and_then(|outcome| awaited.resolve(py, outcome)) {
                // One broken future must not hold up the others.
                why.write_unraisable(py, None);
            }
        }
        self.state().ended = ended;
        self.send_backlog(py)?;
        self.detach_at_the_end(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.watched)?;
        visit.call(&self.create_future)?;
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        for (_, awaited) in &state.under_way {
            if let Awaited::One(future) = awaited {
                visit.call(future)?;
            }
        }
        Ok(())
    }
}

impl Awaited {
    fn resolve(self, py: Python<'_>, outcome: PyOutcome) -> PyResult<()> {
        match self {
            Self::OfMany(many, place) => many.ended(py, place, outcome.into_value()),
            Self::One(future) => {
                // Its submitter may have cancelled it.
                if is_done(py, &future)? {
                    return Ok(());
                }
                let (resolve, value) = match outcome {
                    PyOutcome::Reply(value) => (pyo3::intern!(py, "set_result"), value),
                    PyOutcome::Error(value) => (pyo3::intern!(py, "set_exception"), value),
                };
                future.call_method1(py, resolve, (value,)).map(drop)
            }
        }
    }
}

impl ManyTasks {
    fn ended(&self, py: Python<'_>, place: usize, outcome: Py<PyAny>) -> PyResult<()> {
        self.outcomes.bind(py).set_item(place, outcome)?;
        let is_last = {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            *left -= 1;
            *left == 0
        };
        if is_last && !is_done(py, &self.future)? {
            self.future.call_method1(py, "set_result", (&self.outcomes,))?;
        }
        Ok(())
    }
}

fn is_done(py: Python<'_>, future: &Py<PyAny>) -> PyResult<bool> {
    future.call_method0(py, pyo3::intern!(py, "done"))?.is_truthy(py)
}

/// The loop that runs in this thread.
///
/// # Errors
/// A `RuntimeError` if there is none.
pub(crate) fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static GET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let get = GET.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        Ok(py.import("asyncio")?.getattr("get_running_loop")?.unbind())
    })?;
    get.bind(py).call0().map_err(|_| {
        PyRuntimeError::new_err(
            "no event loop runs in this thread: call this in a coroutine, or use submit()",
        )
    })
}
