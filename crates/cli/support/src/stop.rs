//! Ctrl-C and SIGTERM: the first one asks for an orderly end, the second one ends the process at once. A
//! closed terminal asks for an orderly end too.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::fail::{Failure, Kind, Outcome};

/// How often the flag is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether the run should end early.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Follows the signals of this process.
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

    /// Also follows SIGHUP, for a run whose result must not be lost with its terminal. The kernel and the
    /// shell may both send SIGHUP, so a second one does not end the process. Under `nohup` the run
    /// continues.
    pub fn on_signals_and_hangup() -> Outcome<Self> {
        let stop = Self::on_signals()?;
        if !is_ignored(SIGHUP) {
            listen(SIGHUP, &stop.0)?;
        }
        Ok(stop)
    }

    /// A flag that is set once the end was asked for.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether the run was asked to end.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks the run to end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Runs `work`. Once the run is asked to end, `work` may continue for `patience`; then the flag in its
    /// argument is set.
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
            // Set even if the work panics, since the scope waits for the thread.
            let _over = SetOnDrop(&over);
            work(&late)
        })
    }
}

/// Makes a write beyond the file size limit (`ulimit -f`) an error, instead of the end of this process.
pub fn ignore_size_signal() -> Outcome<()> {
    // The writer gets the error, so this flag is never read.
    listen(SIGXFSZ, &Arc::default())
}

/// Whether this process was started with a signal ignored.
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

/// Sets a flag when dropped.
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
