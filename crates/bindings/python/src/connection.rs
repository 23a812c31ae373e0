//! A connection: the client of a rack, which belongs to the process that made it.
//!
//! A fork copies the client's memory but not its thread. The copy is never used and never dropped.

use std::collections::BTreeMap;
use std::mem;
use std::process;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};
use sluice_net::client::{ClientOptions, CompletionQueue, SpineClients, SubmitError, deadline_default};
use sluice_net::program::TlsArgs;
use sluice_net::{NetError, TaskType};

use crate::ask::Ask;
use crate::errors::{NotSubmitted, bad_input, net};
use crate::forks::ProcessMark;

/// How long a thread waits before it looks whether Python has a signal to handle.
pub(crate) const SIGNALS_EVERY: Duration = Duration::from_millis(50);
/// For how long the names of task types are taken as they were told.
const NAMES_AGE_MAX: Duration = Duration::from_secs(1);
/// How long the end of a client that waits for nothing may take before it goes on behind the caller.
const ABORT_PATIENCE: Duration = Duration::from_secs(2);

/// A registered client, or what is left of it.
pub(crate) struct RackConnection {
    made: ProcessMark,
    clients: RwLock<Option<SpineClients>>,
    names: Mutex<TypeNames>,
    /// The deadline of a task that states none.
    pub(crate) deadline: Duration,
}

/// The names of task types, and when they were told.
///
/// No lock of this module is held while an object of Python is made: that may let another thread of Python
/// run, which would wait for the lock without letting go of the interpreter.
type TypeNames = Option<(Arc<BTreeMap<String, u16>>, Instant)>;

/// Where a client registers, and how.
pub(crate) struct ConnectionPlan {
    pub(crate) controller: String,
    pub(crate) tls: TlsArgs,
    /// Changes to the default options.
    pub(crate) name: Option<String>,
    pub(crate) listen: std::net::SocketAddr,
    pub(crate) patience: Duration,
    pub(crate) retry: bool,
    pub(crate) dilation: u32,
}

impl ConnectionPlan {
    fn connect(self) -> Result<SpineClients, NetError> {
        let controllers = self.tls.remotes(&self.controller)?;
        let defaults = ClientOptions::of(controllers[0].clone());
        let options = ClientOptions {
            name: self.name.unwrap_or_else(|| defaults.name.clone()),
            listen: self.listen,
            patience: self.patience,
            retry: self.retry,
            dilation: self.dilation,
            ..defaults
        };
        SpineClients::connect(&options, &controllers, u64::from(process::id()))
    }
}

impl RackConnection {
    /// Registers, without holding up other threads of Python or its signals.
    pub(crate) fn open(py: Python<'_>, plan: ConnectionPlan) -> PyResult<Self> {
        let deadline = deadline_default(plan.dilation);
        let clients = in_thread(py, None, move || plan.connect())?;
        let clients = clients.expect("there is no limit").map_err(|why| net(py, &why))?;
        Ok(Self {
            made: ProcessMark::here(),
            clients: RwLock::new(Some(clients)),
            names: Mutex::default(),
            deadline,
        })
    }

    /// Whether nothing can be submitted any more.
    pub(crate) fn is_closed(&self) -> bool {
        !self.made.is_here() || self.clients.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Whether this is the process that connected. In another one no lock may be waited for: whoever held it
    /// at the fork is not here.
    pub(crate) fn is_here(&self) -> bool {
        self.made.is_here()
    }

    /// Submits a task whose outcome goes to `queue`. If there is no room, wakes `waker` when there may be.
    /// Makes no object of Python, so that bytes in place do not change meanwhile.
    pub(crate) fn poll_submit(
        &self,
        (queue, tag): (&CompletionQueue, u64),
        ask: &Ask,
        bytes: &[u8],
        waker: &Waker,
    ) -> Poll<Result<(), NotSubmitted>> {
        if !self.made.is_here() {
            return Poll::Ready(Err(NotSubmitted::Forked));
        }
        let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
        let Some(clients) = &*clients else { return Poll::Ready(Err(SubmitError::Closed.into())) };
        let client = clients.draw(ask.task_type());
        let context = Context::from_waker(waker);
        let polled = client.poll_submit_to(queue, tag, ask.spec(), bytes, ask.deadline, &context);
        polled.map_err(NotSubmitted::from)
    }

    /// The type that a number, or a name in the rack's plan, stands for.
    pub(crate) fn task_type(&self, of: &Bound<'_, PyAny>) -> PyResult<TaskType> {
        let py = of.py();
        if of.is_instance_of::<PyInt>() {
            let number: Result<u16, _> = of.extract();
            return number
                .map(TaskType)
                .map_err(|_| bad_input(py, &format!("a task's type is a number from 0 to 65535, not {of}")));
        }
        let Ok(name) = of.cast::<PyString>() else {
            return Err(PyTypeError::new_err("a task's type is a number, or a name in the rack's plan"));
        };
        let name = name.to_cow()?;
        let names = self.type_names(py)?;
        names.get(&*name).copied().map(TaskType).ok_or_else(|| {
            let known: Vec<&str> = names.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "it names none".to_owned() } else { known.join(", ") };
            let name = name.escape_debug();
            bad_input(
                py,
                &format!("the rack's plan has no type `{name}` ({known}): give a number, or add it"),
            )
        })
    }

    /// The names of task types in the rack's plan.
    pub(crate) fn type_names(&self, py: Python<'_>) -> PyResult<Arc<BTreeMap<String, u16>>> {
        self.check_process(py)?;
        let known = self.names.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((names, _)) = known.filter(|(_, at)| at.elapsed() < NAMES_AGE_MAX) {
            return Ok(names);
        }
        let told = self.with(py, SpineClients::type_names)?;
        let names = Arc::new(told.into_iter().map(|(number, name)| (name, number.0)).collect());
        let now = Some((Arc::clone(&names), Instant::now()));
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(names)
    }

    /// Takes no more tasks, and waits until each has its outcome. A signal that raises an exception ends the
    /// wait; the outcomes then come behind the caller's back.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(clients) = self.take(py)? else { return Ok(()) };
        let ended = in_thread(py, None, move || clients.close())?;
        ended.expect("there is no limit").map(drop).map_err(|why| net(py, &why))
    }

    /// Ends at once: tasks that are under way end as unknown.
    pub(crate) fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let Some(clients) = self.take(py)? else { return Ok(()) };
        in_thread(py, Some(ABORT_PATIENCE), move || drop(clients)).map(drop)
    }

    /// Like [`Self::abort`], without waiting for the end.
    pub(crate) fn abandon(&self) {
        if self.made.is_here() {
            let clients = self.clients.write().unwrap_or_else(PoisonError::into_inner).take();
            // Without a thread left, it ends here, which may take half a second.
            thread::Builder::new().name("sluice-close".to_owned()).spawn(move || drop(clients)).ok();
        }
    }

    fn take(&self, py: Python<'_>) -> PyResult<Option<SpineClients>> {
        self.check_process(py)?;
        Ok(self.clients.write().unwrap_or_else(PoisonError::into_inner).take())
    }

    fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&SpineClients) -> T) -> PyResult<T> {
        self.check_process(py)?;
        let done = self.clients.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(work);
        done.ok_or_else(|| NotSubmitted::from(SubmitError::Closed).into_error(py))
    }

    /// # Errors
    /// `Closed` in a child of the process that connected.
    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_here() { Ok(()) } else { Err(NotSubmitted::Forked.into_error(py)) }
    }
}

impl Drop for RackConnection {
    fn drop(&mut self) {
        let clients = self.clients.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if self.made.is_here() {
            drop(clients);
        } else {
            // Its thread is in the parent: who waits for its end here waits for ever.
            mem::forget(clients);
        }
    }
}

/// Runs `work` in a thread of its own and waits for it, for `limit` at most; `None` if it takes longer.
/// Other threads of Python go on meanwhile, and a signal that raises an exception ends the wait.
fn in_thread<T: Send + 'static>(
    py: Python<'_>,
    limit: Option<Duration>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<Option<T>> {
    let (done, ended) = mpsc::channel();
    let spawned = thread::Builder::new().name("sluice-wait".to_owned()).spawn(move || {
        // Nobody waits any more if a signal came: what was made is dropped here.
        drop(done.send(work()));
    });
    spawned.map_err(|why| net(py, &NetError::Thread { name: "sluice-wait", why }))?;
    let until = limit.map(|limit| Instant::now() + limit);
    let ended = Mutex::new(ended);
    loop {
        let wait = || {
            let ended: &Receiver<T> = &ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.recv_timeout(SIGNALS_EVERY)
        };
        match py.detach(wait) {
            Ok(value) => return Ok(Some(value)),
            Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
        }
        if until.is_some_and(|until| Instant::now() > until) {
            return Ok(None);
        }
    }
}
