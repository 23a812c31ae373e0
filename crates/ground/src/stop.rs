//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
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
            let _over = Over(&over);
            work(&late)
        })
    }
}

/// Sets a flag when it goes.
struct Over<'f>(&'f AtomicBool);

impl Drop for Over<'_> {
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
