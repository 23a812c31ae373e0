//! Long work without the interpreter: a thread of its own runs it, while the caller's thread looks for
//! Python's signals and tells of progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use pyo3::prelude::*;

use crate::connection::SIGNALS_EVERY;
use crate::errors::study_failed;

/// Runs `work` until it ends. Now and then calls `tell`. If that fails, or a signal's handler raises, sets
/// the flag in the argument of `work`, waits until it has ended, and fails the same way.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    mut tell: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, ended) = mpsc::channel();
    let asked = Arc::clone(&stop);
    let spawned = thread::Builder::new().name("sluice-study".to_owned()).spawn(move || {
        // The caller waits for it in any case.
        drop(done.send(work(&asked)));
    });
    spawned
        .map_err(|why| study_failed(py, &format!("no thread can be started: {why}; end other programs")))?;
    let ended = Mutex::new(ended);
    loop {
        match wait(py, &ended) {
            Ok(value) => {
                tell(py)?;
                return Ok(value);
            }
            Err(RecvTimeoutError::Disconnected) => return Err(is_bug(py)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(why) = py.check_signals().and_then(|()| tell(py)) {
            stop.store(true, Ordering::Relaxed);
            while matches!(wait(py, &ended), Err(RecvTimeoutError::Timeout)) {}
            return Err(why);
        }
    }
}

/// Waits a moment, while other threads of Python run.
fn wait<T: Send>(py: Python<'_>, ended: &Mutex<Receiver<T>>) -> Result<T, RecvTimeoutError> {
    py.detach(|| ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SIGNALS_EVERY))
}

fn is_bug(py: Python<'_>) -> PyErr {
    study_failed(py, "a bug in sluice ended it; please report what stands above")
}
