//! How signals end a service's process: it drains, for a limited time, and a second signal ends it at once.

use std::ffi::c_int;
use std::fmt;
use std::process;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
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

/// How many signals wait for a service that does not run yet.
const EARLY_MOST: usize = 8;

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
    on_signals(&[SIGHUP], |_| {
        read_anew();
        true
    })
}

/// How many workers of this process signals end.
static WORKERS: AtomicUsize = AtomicUsize::new(0);

/// While this lives, signals end its worker. Its program may go on afterwards: it is not ended for a worker
/// that has ended already.
#[must_use = "the worker counts as ended once it is dropped"]
pub(super) struct WorkerSignals {
    has_ended: Arc<AtomicBool>,
}

impl WorkerSignals {
    fn new() -> Self {
        WORKERS.fetch_add(1, Ordering::AcqRel);
        Self { has_ended: Arc::default() }
    }
}

impl Drop for WorkerSignals {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Release);
        WORKERS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Drains the worker on the first SIGTERM or SIGINT. Ends it at once on the second, or once the limit has
/// passed.
pub(super) fn stop_on_signals(stopper: Stopper, limit: DrainLimit) -> Result<WorkerSignals, NetError> {
    let signals = WorkerSignals::new();
    let has_ended = Arc::clone(&signals.has_ended);
    let mut has_begun = false;
    on_signals(&[SIGTERM, SIGINT], move |_| {
        if has_ended.load(Ordering::Acquire) {
            // The handler stays for good. Without a worker the signal does what it does by default.
            return WORKERS.load(Ordering::Acquire) > 0;
        }
        let patience = if has_begun { Duration::ZERO } else { Duration::from_nanos(limit.0.0) };
        has_begun = true;
        stopper.stop();
        end_after(patience, Arc::clone(&has_ended));
        true
    })?;
    read_anew_on_hangup()?;
    Ok(signals)
}

/// Ends this process if its worker has not ended after so much time, and time for its summary.
fn end_after(patience: Duration, has_ended: Arc<AtomicBool>) {
    let end = move || {
        thread::sleep(patience.saturating_add(SUMMARY_PATIENCE));
        if has_ended.load(Ordering::Acquire) {
            return;
        }
        let why = "the task that runs does not return: the worker ends, and its client tries the task again";
        tell(LogEvent::Failed, why);
        process::exit(Kind::Aborted.code().into())
    };
    let spawned = thread::Builder::new().name("sluice-end".to_owned()).spawn(end);
    if let Err(why) = spawned {
        sluice_log::log!(EndUnwatched, %why, "no thread watches the end of this worker: {why}");
    }
}

/// While this lives, the process's program handles signals, and tells a service of them with
/// [`tell_signal`]; services install no handlers. For programs whose runtime forbids handlers of others.
#[derive(Debug)]
#[must_use = "services install handlers once it is dropped"]
pub struct ToldSignals(());

impl ToldSignals {
    /// Signals from now on are told. One that was told before counts.
    pub fn new() -> Self {
        told().expecting += 1;
        Self(())
    }
}

impl Default for ToldSignals {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ToldSignals {
    fn drop(&mut self) {
        let mut told = told();
        told.expecting -= 1;
        // A service that was refused takes nothing away from the one that runs.
        if told.expecting == 0 {
            *told = Told::default();
        }
    }
}

/// Does to the service of this process what the signal would have done. A signal that comes before the
/// service runs waits for it.
pub fn tell_signal(signal: c_int) {
    let told = &mut *told();
    match told.hearers.iter_mut().find(|hearer| hearer.signals.contains(&signal)) {
        Some(hearer) => drop((hearer.does)(signal)),
        None if told.early.len() < EARLY_MOST => told.early.push(signal),
        None => {}
    }
}

/// What a program has told, and who hears it.
#[derive(Default)]
struct Told {
    /// How many [`ToldSignals`] there are.
    expecting: usize,
    early: Vec<c_int>,
    hearers: Vec<SignalHearer>,
}

/// What a signal does. Returns whether there was somebody for whom it was meant.
type SignalDeed = Box<dyn FnMut(c_int) -> bool + Send>;

struct SignalHearer {
    signals: Vec<c_int>,
    does: SignalDeed,
}

fn told() -> MutexGuard<'static, Told> {
    static TOLD: Mutex<Told> = Mutex::new(Told { expecting: 0, early: Vec::new(), hearers: Vec::new() });
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Told {
    fn hear(&mut self, mut hearer: SignalHearer) {
        for signal in self.early.extract_if(.., |signal| hearer.signals.contains(signal)) {
            (hearer.does)(signal);
        }
        self.hearers.push(hearer);
    }
}

fn on_signals(
    signals: &[c_int],
    mut does: impl FnMut(c_int) -> bool + Send + 'static,
) -> Result<(), NetError> {
    const NAME: &str = "sluice-signals";
    let mut told = told();
    if told.expecting > 0 {
        told.hear(SignalHearer { signals: signals.to_vec(), does: Box::new(does) });
        return Ok(());
    }
    drop(told);
    let failed = |why| NetError::Thread { name: NAME, why };
    let mut signals = Signals::new(signals).map_err(failed)?;
    let listen = move || {
        for signal in signals.forever() {
            if !does(signal) {
                // A program that is about to end by itself does so.
                thread::sleep(SUMMARY_PATIENCE);
                // It fails only for signals that cannot be handled.
                emulate_default_handler(signal).ok();
            }
        }
    };
    thread::Builder::new().name(NAME.to_owned()).spawn(listen).map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn told_signals_reach_who_hears_them_also_if_they_come_early_and_end_with_their_guard() {
        let (sender, heard) = mpsc::channel();
        tell_signal(SIGTERM);
        let guard = ToldSignals::new();
        tell_signal(SIGHUP);
        let again = sender.clone();
        on_signals(&[SIGTERM, SIGINT], move |signal| sender.send(signal).is_ok()).expect("no handler");
        tell_signal(SIGINT);
        on_signals(&[SIGHUP], move |signal| again.send(signal).is_ok()).expect("no handler");
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [SIGTERM, SIGINT, SIGHUP]);
        drop(ToldSignals::new());
        tell_signal(SIGINT);
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [SIGINT], "another guard's end changes nothing");
        drop(guard);
        assert!(heard.try_recv().is_err() && told().expecting == 0 && told().hearers.is_empty());
    }
}
