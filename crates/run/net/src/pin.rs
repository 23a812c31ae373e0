//! Pins threads to cores, and makes their timers precise.

use crate::NetError;
use crate::sys;
pub use crate::sys::sharpen_timers;

/// Pins the calling thread to `core`, counted from 0.
///
/// # Errors
/// [`NetError::Pin`] if the process may not use that core.
pub fn pin_thread(core: usize) -> Result<(), NetError> {
    sys::pin(core).map_err(|why| NetError::Pin { core, last: cores() - 1, why })
}

/// Makes the calling thread's timers precise, and pins the thread if a core is given.
///
/// # Errors
/// As [`pin_thread`].
pub fn settle_thread(core: Option<usize>) -> Result<(), NetError> {
    core.map_or(Ok(()), pin_thread)?;
    sharpen_timers();
    Ok(())
}

/// How many cores this process may use; 1 if the system does not tell.
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
