//! More of this machine than others get, for as long as a rack is measured.

use std::fs;

/// Where the kernel keeps what the processes of a session get together, beside those of other sessions.
const SESSION: &str = "/proc/self/autogroup";
/// The most that can be asked for.
const MOST: i32 = -20;

/// A priority boost that was asked for, whether it was granted or not; given back when it is dropped.
pub(super) struct PriorityBoost {
    before: Option<String>,
}

impl PriorityBoost {
    /// Asks for it: threads that are started from now on share it.
    pub(super) fn ask() -> Self {
        // Without the privilege the rack is run all the same, and may be late: that is measured.
        rustix::process::setpriority_process(None, MOST).ok();
        let before = fs::read_to_string(SESSION).ok();
        let before = before.and_then(|text| text.trim().rsplit(' ').next().map(str::to_owned));
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
