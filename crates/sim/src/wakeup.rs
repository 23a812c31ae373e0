//! When a machine is to be woken. An agenda forgets nothing: whoever wants to be woken sooner gets another
//! entry, and of all entries only the last one that was made counts.

use sluice_wire::Nanos;

/// The entry that counts, if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wakeup(Option<Nanos>);

impl Wakeup {
    /// Nobody has to be woken.
    pub(crate) const NONE: Self = Self(None);

    /// The machine wants to be woken then, at the latest: says whether that takes another entry.
    pub(crate) fn by(&mut self, due: Nanos) -> bool {
        let is_sooner = self.0.is_none_or(|at| due < at);
        if is_sooner {
            self.0 = Some(due);
        }
        is_sooner
    }

    /// The time of an entry has come: says whether it counts. None does then, until another is made.
    pub(crate) fn comes(&mut self, now: Nanos) -> bool {
        let counts = self.0 == Some(now);
        if counts {
            self.0 = None;
        }
        counts
    }
}
