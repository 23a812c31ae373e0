//! When to ask the controller for a new registration: at once, but no more often than
//! [`ClientSettings::renew_gap`] allows.

use alloc::vec::Vec;

use sluice_wire::Nanos;

use super::{Action, ClientSettings};

/// Spaces the asking.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    asked: Option<Nanos>,
    due: Option<Nanos>,
}

impl Renewal {
    /// Asks now, or as soon as the gap since the last request has passed. Returns whether it asked now.
    pub(super) fn ask(&mut self, now: Nanos, settings: &ClientSettings, out: &mut Vec<Action>) -> bool {
        let earliest = self.asked.map_or(now, |asked| asked + settings.renew_gap);
        if earliest > now {
            self.due = Some(earliest);
            return false;
        }
        self.asked = Some(now);
        self.due = None;
        out.push(Action::Renew);
        true
    }

    /// Schedules another request after the gap; a grant cancels it.
    pub(super) fn repeat(&mut self, now: Nanos, settings: &ClientSettings) {
        self.due = Some(now + settings.renew_gap.max(Nanos(1)));
    }

    /// A grant came: cancels the scheduled request.
    pub(super) fn settle(&mut self) {
        self.due = None;
    }

    /// The time of the next scheduled request.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.due
    }
}
