//! Raises this process's scheduling priority while a rack is measured.

use std::fs;

/// The kernel file with the priority of this session's processes relative to other sessions.
const SESSION: &str = "/proc/self/autogroup";
/// The highest priority.
const MOST: i32 = -20;
/// The priority of a session that nobody changed.
const USUAL: &str = "0";

/// A requested priority boost, whether granted or not. Dropping it restores the session's old priority, or
/// the usual one if it was the highest already. So of two measurements in one session the first to end takes
/// the boost of the session from the other.
pub(super) struct PriorityBoost {
    before: Option<String>,
}

impl PriorityBoost {
    /// Requests the boost. Threads that start later share it.
    pub(super) fn ask() -> Self {
        // Without the privilege the rack runs anyway and may be late; its lateness is measured.
        rustix::process::setpriority_process(None, MOST).ok();
        let before = fs::read_to_string(SESSION).ok();
        let before = before.and_then(|text| restored(&text));
        fs::write(SESSION, MOST.to_string()).ok();
        Self { before }
    }
}

impl Drop for PriorityBoost {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            fs::write(SESSION, before).ok();
        }
    }
}

/// What a session goes back to, from the kernel's text such as `/autogroup-7 nice 0`. The highest priority is
/// that of a measurement beside this one, or of one that was killed: it must not stay.
fn restored(text: &str) -> Option<String> {
    let before = text.trim().rsplit(' ').next()?;
    Some(if before == MOST.to_string() { USUAL } else { before }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_keeps_its_own_priority_and_not_that_of_a_measurement() {
        for (found, restores) in [("0", "0"), ("5", "5"), ("-3", "-3"), ("-20", "0")] {
            assert_eq!(restored(&format!("/autogroup-7 nice {found}\n")).as_deref(), Some(restores));
        }
    }
}
