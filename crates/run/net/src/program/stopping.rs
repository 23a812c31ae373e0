//! How signals end a service's process: it drains, for a limited time, and a second signal ends it at once.

use std::ffi::c_int;
use std::fmt;
use std::process;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sluice_log::{LogEvent, tell};
use sluice_rpc::read_anew;
use sluice_units::{WholeSpan, span};
use sluice_wire::Nanos;

use crate::NetError;
use crate::exit::Kind;
use crate::worker::{DRAIN_LIMIT, Stopper};

/// How long a worker that was told to end at once may take for its summary. A service that does not return
/// cannot be interrupted; the process then ends without a summary.
const SUMMARY_PATIENCE: Duration = Duration::from_secs(1);

/// For how long a worker drains, as flags and plans write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainLimit(pub Nanos);

impl Default for DrainLimit {
    fn default() -> Self {
        Self(DRAIN_LIMIT)
    }
}

impl fmt::Display for DrainLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        WholeSpan(self.0).fmt(f)
    }
}

impl FromStr for DrainLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        span(text).map(Self)
    }
}

/// Makes SIGHUP read all certificates of this process again, instead of ending it.
///
/// # Errors
/// [`NetError::Thread`] if the system has no thread left.
pub fn read_anew_on_hangup() -> Result<(), NetError> {
    on_signals(&[SIGHUP], |_| read_anew())
}

/// Drains the worker on the first SIGTERM or SIGINT. Ends it at once on the second, or once the limit has
/// passed.
pub(super) fn stop_on_signals(stopper: Stopper, limit: DrainLimit) -> Result<(), NetError> {
    let mut has_begun = false;
    on_signals(&[SIGTERM, SIGINT], move |_| {
        let patience = if has_begun { Duration::ZERO } else { Duration::from_nanos(limit.0.0) };
        has_begun = true;
        stopper.stop();
        end_after(patience);
    })?;
    read_anew_on_hangup()
}

/// Ends this process once its worker had so much time, and time for its summary.
fn end_after(patience: Duration) {
    let end = move || {
        thread::sleep(patience.saturating_add(SUMMARY_PATIENCE));
        let why = "the task that runs does not return: the worker ends, and its client tries the task again";
        tell(LogEvent::Failed, why);
        process::exit(Kind::Aborted.code().into())
    };
    let spawned = thread::Builder::new().name("sluice-end".to_owned()).spawn(end);
    if let Err(why) = spawned {
        sluice_log::log!(EndUnwatched, %why, "no thread watches the end of this worker: {why}");
    }
}

fn on_signals(signals: &[c_int], mut does: impl FnMut(c_int) + Send + 'static) -> Result<(), NetError> {
    const NAME: &str = "sluice-signals";
    let failed = |why| NetError::Thread { name: NAME, why };
    let mut signals = Signals::new(signals).map_err(failed)?;
    let listen = move || signals.forever().for_each(&mut does);
    thread::Builder::new().name(NAME.to_owned()).spawn(listen).map_err(failed)?;
    Ok(())
}
