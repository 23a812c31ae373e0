//! When to ask for the controller: at once, but not more often than a setting says.

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
    /// Asks now, or as soon as the gap since the last time allows. Returns whether it asked.
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

    /// Asks again after the gap unless a grant comes first.
    pub(super) fn repeat(&mut self, now: Nanos, settings: &ClientSettings) {
        self.due = Some(now + settings.renew_gap.max(Nanos(1)));
    }

    /// A grant came: nothing is due any more.
    pub(super) fn settle(&mut self) {
        self.due = None;
    }

    /// When it wants to ask next.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.due
    }
}
