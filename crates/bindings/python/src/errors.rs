//! Outcomes and errors as Python sees them: a `Reply`, or an exception of `sluice._errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sluice_net::NetError;
use sluice_net::client::{CompletionQueue, EndedTask, Outcome, RefusedWhy, SubmitError};
use sluice_study::StudyError;

use crate::reply::PyReply;

/// The exceptions, which are written in Python.
pub(crate) struct PyErrors {
    failed: Py<PyAny>,
    refused: Py<PyAny>,
    unknown: Py<PyAny>,
    busy: Py<PyAny>,
    too_long: Py<PyAny>,
    closed: Py<PyAny>,
    bad_input: Py<PyAny>,
    not_connected: Py<PyAny>,
    study_failed: Py<PyAny>,
}

impl PyErrors {
    fn of(py: Python<'_>) -> PyResult<&'static Self> {
        static ERRORS: PyOnceLock<PyErrors> = PyOnceLock::new();
        ERRORS.get_or_try_init(py, || {
            let module = py.import("sluice._errors")?;
            let get = |name| -> PyResult<Py<PyAny>> { Ok(module.getattr(name)?.unbind()) };
            Ok(Self {
                failed: get("Failed")?,
                refused: get("Refused")?,
                unknown: get("Unknown")?,
                busy: get("Busy")?,
                too_long: get("TooLong")?,
                closed: get("Closed")?,
                bad_input: get("BadInput")?,
                not_connected: get("NotConnected")?,
                study_failed: get("StudyFailed")?,
            })
        })
    }
}

/// How a task ended.
pub(crate) enum PyOutcome {
    Reply(Py<PyAny>),
    /// An exception of ours.
    Error(Py<PyAny>),
}

impl PyOutcome {
    /// The outcome for Python. The bytes of a reply go back to their queue.
    pub(crate) fn new(py: Python<'_>, ended: EndedTask, queue: &CompletionQueue) -> PyResult<Self> {
        let errors = PyErrors::of(py)?;
        let said = match &ended.outcome {
            Outcome::Reply(reply) if !reply.failed => String::new(),
            other => other.to_string(),
        };
        match ended.outcome {
            Outcome::Reply(reply) => {
                let failed = reply.failed;
                let own = PyReply::new(py, &reply, ended.attempts, ended.at);
                queue.recycle(reply.bytes);
                let own = Bound::new(py, own)?.into_any();
                if !failed {
                    return Ok(Self::Reply(own.unbind()));
                }
                Ok(Self::Error(errors.failed.call1(py, (said, own))?))
            }
            Outcome::Refused(why) => {
                let retry_after = match why {
                    RefusedWhy::Busy { retry_after } => Some(retry_after.0 as f64 / 1e9),
                    _ => None,
                };
                Ok(Self::Error(errors.refused.call1(py, (said, why.word(), retry_after))?))
            }
            Outcome::Unknown(why) => Ok(Self::Error(errors.unknown.call1(py, (said, why.word()))?)),
        }
    }

    /// The reply, or the exception to raise.
    pub(crate) fn into_result(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Reply(reply) => Ok(reply),
            Self::Error(error) => Err(PyErr::from_value(error.into_bound(py))),
        }
    }

    /// The outcome as a value among others.
    pub(crate) fn into_value(self) -> Py<PyAny> {
        match self {
            Self::Reply(value) | Self::Error(value) => value,
        }
    }
}

/// An exception of a class in `sluice._errors`.
fn error(py: Python<'_>, class: impl FnOnce(&'static PyErrors) -> &'static Py<PyAny>, said: &str) -> PyErr {
    let made = PyErrors::of(py).and_then(|errors| class(errors).call1(py, (said,)));
    made.map_or_else(|why| why, |error| PyErr::from_value(error.into_bound(py)))
}

/// Why a task was not taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NotSubmitted {
    Submit(SubmitError),
    /// The client was connected in another process.
    Forked,
}

impl From<SubmitError> for NotSubmitted {
    fn from(why: SubmitError) -> Self {
        Self::Submit(why)
    }
}

impl NotSubmitted {
    /// The exception.
    pub(crate) fn into_error(self, py: Python<'_>) -> PyErr {
        const FORKED: &str =
            "the client was connected before a fork, which copies no threads: connect in the child";
        let why = match self {
            Self::Submit(why) => why,
            Self::Forked => return error(py, |errors| &errors.closed, FORKED),
        };
        let class: fn(&'static PyErrors) -> &'static Py<PyAny> = match why {
            SubmitError::Busy => |errors| &errors.busy,
            SubmitError::TooLong { .. } => |errors| &errors.too_long,
            SubmitError::Closed => |errors| &errors.closed,
        };
        error(py, class, &why.to_string())
    }
}

/// An argument makes no sense.
pub(crate) fn bad_input(py: Python<'_>, said: &str) -> PyErr {
    error(py, |errors| &errors.bad_input, said)
}

/// There is no connection, or no longer one.
pub(crate) fn net(py: Python<'_>, why: &NetError) -> PyErr {
    match why {
        NetError::NotRegistered { .. } | NetError::Refused { .. } => {
            error(py, |errors| &errors.not_connected, &why.to_string())
        }
        _ if why.is_bad_input() => bad_input(py, &why.to_string()),
        _ => error(py, |errors| &errors.not_connected, &why.to_string()),
    }
}

/// Why a study cannot be run, in the command's words.
pub(crate) fn study(py: Python<'_>, why: &StudyError) -> PyErr {
    if why.is_bad_input() { bad_input(py, &why.to_string()) } else { study_failed(py, &why.to_string()) }
}

/// A study ended early.
pub(crate) fn study_failed(py: Python<'_>, said: &str) -> PyErr {
    error(py, |errors| &errors.study_failed, said)
}
