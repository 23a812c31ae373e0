//! The system calls of this crate, and its only unsafe code.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use sluice_wire::Nanos;

/// `CLOCK_MONOTONIC`.
pub(crate) fn monotonic() -> Nanos {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// The wall clock, ns since 1970.
pub(crate) fn realtime() -> u64 {
    read_clock(libc::CLOCK_REALTIME).0
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Nanos {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read_clock(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call writes to; the three clocks used exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Keeps the calling thread on `core`.
pub(crate) fn pin(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a cpu_set_t is a plain bit array, for which all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` was checked against the set's size.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` is valid for the size given; thread 0 is the caller.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) }).map(drop)
}

/// Lets the calling thread's timers fire within a microsecond of their time, instead of the usual 50.
pub(crate) fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and changes the calling thread only; failure is harmless.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

/// A counter in the kernel that a poll can wait for.
pub(super) fn event_fd() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes no pointers.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: `fd` was just opened and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
