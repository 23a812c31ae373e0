//! Raises this process's scheduling priority while a rack is measured.

use std::fs;

/// The kernel file with the priority of this session's processes relative to other sessions.
const SESSION: &str = "/proc/self/autogroup";
/// The highest priority.
const MOST: i32 = -20;

/// A requested priority boost, whether granted or not; dropping it restores the old priority.
pub(super) struct PriorityBoost {
    before: Option<String>,
}

impl PriorityBoost {
    /// Requests the boost. Threads that start later share it.
    pub(super) fn ask() -> Self {
        // Without the privilege the rack runs anyway and may be late; its lateness is measured.
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
