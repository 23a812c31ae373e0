//! Services in Python: a worker whose service calls functions.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sluice_net::program::run_service_of;
use sluice_net::{Service, ServiceError, Task, TaskType};

use crate::bytes_like::BytesLike;

/// Functions, each for the tasks of one type. The worker's thread is the one that called `run_worker`; it is
/// attached to the interpreter only while a function runs.
struct PyFunctions {
    functions: Vec<(TaskType, Py<PyAny>)>,
    /// Called with the type and the exception of a task that failed.
    failed: Py<PyAny>,
}

impl Service for PyFunctions {
    fn types(&self) -> Vec<TaskType> {
        self.functions.iter().map(|(task_type, _)| *task_type).collect()
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let function = self.functions.iter().find(|(task_type, _)| *task_type == task.task_type);
        let Some((_, function)) = function else {
            return Err(ServiceError::new(format!("this service does not know type {}", task.task_type)));
        };
        Python::attach(|py| {
            let answer = function.bind(py).call1((PyBytes::new(py, task.bytes),));
            let replied = answer.and_then(|answer| {
                BytesLike::of(&answer).map(|bytes| bytes.with(|bytes| reply.extend_from_slice(bytes)))
            });
            replied.map_err(|why| self.error(py, task.task_type, why))
        })
    }
}

impl PyFunctions {
    /// An exception as the text of a failed reply.
    fn error(&self, py: Python<'_>, task_type: TaskType, why: PyErr) -> ServiceError {
        let told = self.failed.call1(py, (task_type.0, why.value(py)));
        let told = told.and_then(|told| told.extract::<String>(py));
        ServiceError::new(
            told.unwrap_or_else(|_| "the service failed, and its exception has no text".to_owned()),
        )
    }
}

/// Runs a worker whose service calls `functions`, as the words of a command line say, until a signal ends
/// it. Returns the exit code.
#[pyfunction]
pub(crate) fn run_worker(
    py: Python<'_>,
    words: Vec<OsString>,
    functions: Vec<(u16, Py<PyAny>)>,
    failed: Py<PyAny>,
) -> u8 {
    let functions = functions.into_iter().map(|(number, function)| (TaskType(number), function)).collect();
    let service = PyFunctions { functions, failed };
    py.detach(move || run_service_of(words, service))
}
