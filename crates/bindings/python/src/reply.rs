//! A worker's answer as a Python object.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use sluice_net::Nanos;
use sluice_net::client::TaskReply;

/// A worker's answer to a task.
///
/// Times are in nanoseconds. ``bytes(reply)`` and ``reply.bytes`` are the service's answer.
#[pyclass(frozen, name = "Reply", module = "sluice")]
pub(crate) struct PyReply {
    /// The service's answer.
    #[pyo3(get)]
    bytes: Py<PyBytes>,
    /// The number of the worker that ran the task.
    #[pyo3(get)]
    worker: u16,
    /// How many times the task was sent.
    #[pyo3(get)]
    attempts: u16,
    /// When the answer came, on the clock of ``time.monotonic_ns()``.
    #[pyo3(get)]
    received_ns: u64,
    /// How long the task waited in the switch.
    #[pyo3(get)]
    switch_wait_ns: u64,
    /// How long the task waited at its worker.
    #[pyo3(get)]
    worker_wait_ns: u64,
    /// How long its service ran.
    #[pyo3(get)]
    service_ns: u64,
}

impl PyReply {
    pub(crate) fn new(py: Python<'_>, reply: &TaskReply, attempts: u16, at: Nanos) -> Self {
        Self {
            bytes: PyBytes::new(py, &reply.bytes).unbind(),
            worker: reply.worker.0,
            attempts,
            received_ns: at.0,
            switch_wait_ns: reply.switch_wait.0,
            worker_wait_ns: reply.worker_wait.0,
            service_ns: reply.service.0,
        }
    }
}

#[pymethods]
impl PyReply {
    #[new]
    #[pyo3(signature = (
        bytes, worker=0, attempts=1, received_ns=0, switch_wait_ns=0, worker_wait_ns=0, service_ns=0
    ))]
    fn make(
        bytes: Py<PyBytes>,
        worker: u16,
        attempts: u16,
        received_ns: u64,
        switch_wait_ns: u64,
        worker_wait_ns: u64,
        service_ns: u64,
    ) -> Self {
        Self { bytes, worker, attempts, received_ns, switch_wait_ns, worker_wait_ns, service_ns }
    }

    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.bytes.clone_ref(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.bytes.as_bytes(py).len()
    }

    /// An answer is an answer, also one of no bytes.
    #[expect(clippy::unused_self, reason = "Python calls it so")]
    const fn __bool__(&self) -> bool {
        true
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let of = (
            self.bytes.clone_ref(py),
            self.worker,
            self.attempts,
            self.received_ns,
            self.switch_wait_ns,
            self.worker_wait_ns,
            self.service_ns,
        );
        Ok((py.get_type::<Self>().into_any(), of.into_pyobject(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 40;
        let bytes = self.bytes.as_bytes(py);
        let shown = PyBytes::new(py, &bytes[..bytes.len().min(SHOWN)]).repr()?;
        let more = if bytes.len() > SHOWN { format!("... ({} bytes)", bytes.len()) } else { String::new() };
        Ok(format!("<Reply {shown}{more} from worker {} in {} ns>", self.worker, self.service_ns))
    }
}
