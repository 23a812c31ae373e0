//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once. A terminal that goes away
//! asks, too.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::fail::{Failure, Kind, Outcome};

/// How often it is looked whether the end was asked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether the run is to end early.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// One that follows the signals of this process.
    pub fn on_signals() -> Outcome<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            let code = i32::from(Kind::Aborted.code());
            flag::register_conditional_shutdown(signal, code, Arc::clone(&stop.0))
                .and_then(|_| flag::register(signal, Arc::clone(&stop.0)))
                .map_err(|why| Failure::broken(format!("cannot listen for signals: {why}")))?;
        }
        Ok(stop)
    }

    /// The same for a run with a result, which must not be lost with the terminal that it was started from.
    /// Kernel and shell both tell of a terminal that is gone: a second SIGHUP ends nothing at once. Under
    /// `nohup` the run goes on.
    pub fn on_signals_and_hangup() -> Outcome<Self> {
        let stop = Self::on_signals()?;
        if !is_ignored(SIGHUP) {
            listen(SIGHUP, &stop.0)?;
        }
        Ok(stop)
    }

    /// What is set once the end was asked for.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether the end was asked for.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks for it.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Does work that may go on for `patience` once the end was asked for; then the flag that it is given is
    /// set.
    pub fn after<T>(&self, patience: Duration, work: impl FnOnce(&AtomicBool) -> T) -> T {
        let (over, late) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut until = None;
                while !over.load(Ordering::Relaxed) {
                    let asked =
                        self.is_asked().then(|| *until.get_or_insert_with(|| Instant::now() + patience));
                    if asked.is_some_and(|until| Instant::now() >= until) {
                        late.store(true, Ordering::Relaxed);
                        return;
                    }
                    thread::sleep(LOOK_EVERY);
                }
            });
            // Also when the work panics: the scope waits for the thread.
            let _over = SetOnDrop(&over);
            work(&late)
        })
    }
}

/// Lets a file that grows over a limit (`ulimit -f`) be a write that fails, and not the end of this process.
pub fn outlive_limits() -> Outcome<()> {
    // Whoever writes is told of it, so that nobody looks at this.
    listen(SIGXFSZ, &Arc::default())
}

/// Whether whoever started this process wants it to pass over a signal.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    ignored.is_some_and(|set| set >> (signal - 1) & 1 == 1)
}

fn listen(signal: i32, heard: &Arc<AtomicBool>) -> Outcome<()> {
    let failed = |why| Failure::broken(format!("cannot listen for signals: {why}"));
    flag::register(signal, Arc::clone(heard)).map(drop).map_err(failed)
}

/// Sets a flag when it goes.
struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_when_its_time_after_the_stop_is_over_and_not_before() {
        let stop = Stop::default();
        assert!(!stop.after(Duration::ZERO, |late| late.load(Ordering::Relaxed)));
        stop.ask();
        assert!(!stop.after(Duration::from_hours(1), |late| late.load(Ordering::Relaxed)));
        stop.after(Duration::ZERO, |late| {
            while !late.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
    }
}
