//! The arguments that all ways to submit share, as Python gives them.

use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use sluice_net::client::{RequiredLabels, TaskSpec};

use crate::ask::Ask;
use crate::connection::RackConnection;
use crate::errors::bad_input;

/// The optional arguments of a task, as Python gives them.
pub(crate) struct TaskArguments<'a, 'py> {
    pub(crate) deadline: Option<f64>,
    pub(crate) budget: Option<f64>,
    pub(crate) priority: Option<i64>,
    pub(crate) work: Option<f64>,
    pub(crate) labels: Option<&'a Bound<'py, PyAny>>,
}

impl TaskArguments<'_, '_> {
    /// Checks the arguments.
    ///
    /// # Errors
    /// `BadInput` or a `TypeError`, which name the argument.
    pub(crate) fn ask(&self, connection: &RackConnection, task_type: &Bound<'_, PyAny>) -> PyResult<Ask> {
        let py = task_type.py();
        let task_type = connection.task_type(task_type)?;
        let spec = match (self.priority, self.work) {
            (None, None) => task_type.into(),
            (Some(priority), None) => TaskSpec::of_class(task_type, class(py, priority)?),
            (None, Some(work)) => TaskSpec::sized(task_type, seconds(py, "work", work)?),
            (Some(_), Some(_)) => {
                return Err(bad_input(py, "a task has a priority or a length of work: give one of both"));
            }
        };
        let budget = self.budget.map(|budget| seconds(py, "budget", budget)).transpose()?;
        let deadline = self.deadline.map(|deadline| seconds(py, "deadline", deadline)).transpose()?;
        let spec = TaskSpec { budget, needs: labels(self.labels)?, ..spec };
        Ok(Ask::new(spec, deadline.unwrap_or(connection.deadline)))
    }
}

/// A class by its number.
fn class(py: Python<'_>, priority: i64) -> PyResult<u8> {
    u8::try_from(priority)
        .map_err(|_| bad_input(py, &format!("priority is a class from 0 to 255, not {priority}")))
}

/// A span in seconds.
pub(crate) fn seconds(py: Python<'_>, name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| bad_input(py, &format!("{name} is a number of seconds from 0 on, not {value}")))
}

/// The labels in an iterable of texts.
fn labels(of: Option<&Bound<'_, PyAny>>) -> PyResult<RequiredLabels> {
    let Some(of) = of else { return Ok(RequiredLabels::default()) };
    if of.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("labels are a list of texts, such as [\"gpu\"], not one text"));
    }
    let labels: PyResult<Vec<String>> = of.try_iter()?.map(|label| label?.extract()).collect();
    Ok(RequiredLabels::of(labels?))
}
