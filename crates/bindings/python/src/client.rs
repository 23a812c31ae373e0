//! The client class, but for what is easier to say in Python (`sluice._client`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyList;
use sluice_net::program::TlsArgs;

use crate::arguments::{TaskArguments, seconds};
use crate::blocking;
use crate::bytes_like::BytesLike;
use crate::connection::{ConnectionPlan, RackConnection};
use crate::errors::bad_input;
use crate::loop_tasks::{LoopTasks, running_loop};

/// A registered client of a rack: what ``sluice.Client`` is built on.
#[pyclass(frozen, subclass, module = "sluice._sluice")]
pub(crate) struct ClientCore {
    connection: Arc<RackConnection>,
    /// The loops on which tasks were submitted.
    loops: Mutex<Vec<Py<LoopTasks>>>,
}

#[pymethods]
impl ClientCore {
    /// Registers with a controller, and waits for the registration, for `patience` seconds at most.
    #[new]
    #[pyo3(signature = (controller, *, name, ca, identity, listen, patience, retry, dilation))]
    fn connect(
        py: Python<'_>,
        controller: String,
        name: Option<String>,
        ca: Option<PathBuf>,
        identity: Option<(PathBuf, PathBuf)>,
        listen: &str,
        patience: f64,
        retry: bool,
        dilation: i64,
    ) -> PyResult<Self> {
        if identity.is_some() && ca.is_none() {
            return Err(bad_input(py, "an identity is shown with TLS only: give the authority's file as ca"));
        }
        let listen = listen.parse().map_err(|_| {
            bad_input(
                py,
                &format!("listen is ADDRESS:PORT, such as 127.0.0.1:0, not {}", listen.escape_debug()),
            )
        })?;
        let Some(dilation) = u32::try_from(dilation).ok().filter(|dilation| *dilation > 0) else {
            return Err(bad_input(py, &format!("dilation is a factor from 1 on, not {dilation}")));
        };
        let identity = identity.map(|(certificate, key)| vec![certificate, key]);
        let tls = TlsArgs { ca, identity };
        let patience = seconds(py, "patience", patience)?;
        let plan = ConnectionPlan { controller, tls, name, listen, patience, retry, dilation };
        Ok(Self { connection: Arc::new(RackConnection::open(py, plan)?), loops: Mutex::default() })
    }

    /// Submits a task and waits for its reply.
    #[pyo3(signature = (
        task_type, data, *, deadline=None, budget=None, priority=None, work=None, labels=None,
        wait_for_room=true
    ))]
    fn submit(
        &self,
        task_type: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        deadline: Option<f64>,
        budget: Option<f64>,
        priority: Option<i64>,
        work: Option<f64>,
        labels: Option<&Bound<'_, PyAny>>,
        wait_for_room: bool,
    ) -> PyResult<Py<PyAny>> {
        let of = TaskArguments { deadline, budget, priority, work, labels };
        let ask = of.ask(&self.connection, task_type)?;
        blocking::submit(data.py(), &self.connection, &ask, BytesLike::of(data)?, wait_for_room)
    }

    /// Submits many tasks of one type, and waits for all outcomes.
    #[pyo3(signature = (
        task_type, tasks, *, deadline=None, budget=None, priority=None, work=None, labels=None
    ))]
    fn submit_many<'py>(
        &self,
        task_type: &Bound<'py, PyAny>,
        tasks: &Bound<'py, PyAny>,
        deadline: Option<f64>,
        budget: Option<f64>,
        priority: Option<i64>,
        work: Option<f64>,
        labels: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let of = TaskArguments { deadline, budget, priority, work, labels };
        let ask = of.ask(&self.connection, task_type)?;
        blocking::submit_many(tasks.py(), &self.connection, &ask, &blocking::listed(tasks)?)
    }

    /// Submits a task, and returns a future of the loop that runs for its reply.
    #[pyo3(signature = (
        task_type, data, *, deadline=None, budget=None, priority=None, work=None, labels=None,
        wait_for_room=true
    ))]
    fn submit_async(
        &self,
        task_type: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        deadline: Option<f64>,
        budget: Option<f64>,
        priority: Option<i64>,
        work: Option<f64>,
        labels: Option<&Bound<'_, PyAny>>,
        wait_for_room: bool,
    ) -> PyResult<Py<PyAny>> {
        let of = TaskArguments { deadline, budget, priority, work, labels };
        let ask = of.ask(&self.connection, task_type)?;
        let tasks = self.tasks_here(data.py())?;
        tasks.get().submit(data.py(), ask, &BytesLike::of(data)?, wait_for_room)
    }

    /// Submits many tasks of one type, and returns a future of the loop that runs for all outcomes.
    #[pyo3(signature = (
        task_type, tasks, *, deadline=None, budget=None, priority=None, work=None, labels=None
    ))]
    fn submit_many_async(
        &self,
        task_type: &Bound<'_, PyAny>,
        tasks: &Bound<'_, PyAny>,
        deadline: Option<f64>,
        budget: Option<f64>,
        priority: Option<i64>,
        work: Option<f64>,
        labels: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let of = TaskArguments { deadline, budget, priority, work, labels };
        let ask = of.ask(&self.connection, task_type)?;
        let listed = blocking::listed(tasks)?;
        self.tasks_here(tasks.py())?.get().submit_many(tasks.py(), ask, listed)
    }

    /// The names of task types in the rack's plan, with their numbers.
    #[getter]
    fn types(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u16>> {
        Ok((*self.connection.type_names(py)?).clone())
    }

    /// The deadline of a task that states none, in seconds.
    #[getter]
    fn deadline_default(&self) -> f64 {
        self.connection.deadline.as_secs_f64()
    }

    /// Whether the client takes no more tasks.
    #[getter]
    fn closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Takes no more tasks, waits until each has its outcome, and ends the registration.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = self.connection.close(py);
        self.wake_loops();
        closed
    }

    /// Ends at once: tasks that are under way end as unknown, because they may have run.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let aborted = self.connection.abort(py);
        self.wake_loops();
        aborted
    }
}

impl ClientCore {
    /// The tasks on the loop that runs in this thread.
    fn tasks_here<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, LoopTasks>> {
        let running = running_loop(py)?;
        let known = |loops: &Vec<Py<LoopTasks>>| {
            let here = loops.iter().rev().find(|tasks| tasks.get().is_on(&running));
            here.map(|tasks| tasks.clone_ref(py))
        };
        let here = known(&self.loops.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(here) = here {
            return Ok(here.into_bound(py));
        }
        self.forget_loops(py);
        let tasks = LoopTasks::attach(&self.connection, &running)?;
        let kept = tasks.clone().unbind();
        self.loops.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        Ok(tasks)
    }

    /// Forgets loops that were closed, with the futures of their tasks.
    fn forget_loops(&self, py: Python<'_>) {
        let all: Vec<Py<LoopTasks>> = {
            let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
            loops.iter().map(|tasks| tasks.clone_ref(py)).collect()
        };
        let over: Vec<Py<LoopTasks>> = all.into_iter().filter(|tasks| tasks.get().is_over(py)).collect();
        // They are freed behind the lock: that may run other code.
        let mut kept = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |tasks: &Py<LoopTasks>| over.iter().any(|one| one.is(tasks));
        let (freed, left) = std::mem::take(&mut *kept).into_iter().partition::<Vec<_>, _>(is_over);
        *kept = left;
        drop(kept);
        drop(freed);
    }

    /// Has the loops look at the client's state, unless they are another process's.
    fn wake_loops(&self) {
        if !self.connection.is_here() {
            return;
        }
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.iter().for_each(|tasks| tasks.get().wake());
    }
}

impl Drop for ClientCore {
    fn drop(&mut self) {
        if !self.connection.is_closed() {
            self.connection.abandon();
        }
        self.wake_loops();
    }
}
