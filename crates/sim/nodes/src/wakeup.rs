//! When a machine is to be woken. An event queue forgets nothing: whoever wants to be woken sooner gets
//! another entry, and of all entries only the last one that was made counts.

use sluice_wire::Nanos;

/// The entry that counts; that at the end of time is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup(Nanos);

impl Wakeup {
    /// Nobody has to be woken.
    pub const NONE: Self = Self(Nanos(u64::MAX));

    /// The machine wants to be woken then, at the latest: says whether that takes another entry.
    pub fn wake_by(&mut self, due: Nanos) -> bool {
        let is_sooner = due < self.0;
        if is_sooner {
            self.0 = due;
        }
        is_sooner
    }

    /// The time of an entry has come: says whether it counts. None does then, until another is made.
    pub fn fires(&mut self, now: Nanos) -> bool {
        let counts = self.0 == now;
        if counts {
            *self = Self::NONE;
        }
        counts
    }
}

impl Default for Wakeup {
    fn default() -> Self {
        Self::NONE
    }
}
