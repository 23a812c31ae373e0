//! Threads that stay on one core and wake on time.

use crate::NetError;
use crate::sys;
pub use crate::sys::sharpen_timers;

/// Keeps the calling thread on `core`, counted from 0.
///
/// # Errors
/// [`NetError::Pin`] when the process may not use that core.
pub fn pin_thread(core: usize) -> Result<(), NetError> {
    sys::pin(core).map_err(|why| NetError::Pin { core, last: cores() - 1, why })
}

/// The calling thread wakes on time, and stays on this core if one is given.
///
/// # Errors
/// As [`pin_thread`].
pub fn settle_thread(core: Option<usize>) -> Result<(), NetError> {
    core.map_or(Ok(()), pin_thread)?;
    sharpen_timers();
    Ok(())
}

/// How many cores this process may use; 1 when the system does not say.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_does_not_exist_is_named_in_the_error() {
        let said = pin_thread(100_000).unwrap_err().to_string();
        assert!(said.contains("100000"), "{said}");
    }

    #[test]
    fn a_thread_can_be_pinned_to_the_first_core() {
        std::thread::spawn(|| pin_thread(0)).join().expect("the thread ends").expect("core 0 exists");
    }
}
