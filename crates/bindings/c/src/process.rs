//! What a library must know of its process: forks, and signals that are not for its threads.

use std::mem::MaybeUninit;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use sluice_net::NetError;

use crate::fault::Fault;

/// How many forks led to this process since the library was first used.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Where in a line of forks something was made. A child has a copy of its parent's memory, but none of its
/// threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Birth(u32);

impl Birth {
    pub(crate) fn now() -> Self {
        static WATCHED: Once = Once::new();
        extern "C" fn forked() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the function touches an atomic only. The call fails only for want of memory; then forks
        // go unnoticed.
        WATCHED.call_once(|| {
            let _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this process has forked off since.
    pub(crate) fn is_of_parent(self) -> bool {
        self.0 != FORKS.load(Ordering::Relaxed)
    }
}

/// While this lives, new threads get no signals but those of their own faults: an application's handlers run
/// on its own threads, and a lost connection to the controller raises no SIGPIPE.
pub(crate) struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: the first call initialises `all`, the last one `before`; no call can fail with these
        // arguments.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for own in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP]
            {
                libc::sigdelset(all.as_mut_ptr(), own);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is one that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// Runs `work` on a thread that takes no signals, nor do the threads that it starts, and waits for it. The
/// calling thread takes them meanwhile: Ctrl-C ends a program that waits for a registration.
pub(crate) fn without_signals<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, Fault> {
    const NAME: &str = "sluice-connect";
    thread::scope(|scope| {
        let blocked = SignalsBlocked::new();
        let working = thread::Builder::new().name(NAME.to_owned()).spawn_scoped(scope, work);
        drop(blocked);
        let working = working.map_err(|why| NetError::Thread { name: NAME, why })?;
        Ok(working.join().unwrap_or_else(|panicked| resume_unwind(panicked)))
    })
}

/// Has writes to closed pipes fail instead of ending the process, as in programs written in Rust.
pub(crate) fn ignore_closed_pipes() {
    // SAFETY: to ignore a signal runs no code.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
