//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::fail::{Failure, Kind, Outcome};

/// Whether the run is to end early.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// One that follows the signals of this process.
    pub(crate) fn on_signals() -> Outcome<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            let code = i32::from(Kind::Aborted.code());
            flag::register_conditional_shutdown(signal, code, Arc::clone(&stop.0))
                .and_then(|_| flag::register(signal, Arc::clone(&stop.0)))
                .map_err(|why| Failure::broken(format!("cannot listen for signals: {why}")))?;
        }
        Ok(stop)
    }

    /// What is set once the end was asked for.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether the end was asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks for it.
    pub(crate) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
