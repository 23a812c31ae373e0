//! What a curve's clients know of a task when it ends.

use sluice_wire::Nanos;

/// What is known of a task when its outcome comes, in the number that the machine keeps for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTag {
    pub class: u8,
    /// When it was to leave its client.
    pub intended: Nanos,
}

impl TaskTag {
    const CLASS_SHIFT: u32 = 56;

    /// As a machine keeps it.
    pub const fn pack(self) -> u64 {
        (self.class as u64) << Self::CLASS_SHIFT | self.intended.0
    }

    /// As it was packed.
    pub const fn unpack(tag: u64) -> Self {
        let intended = Nanos(tag & ((1 << Self::CLASS_SHIFT) - 1));
        Self { class: (tag >> Self::CLASS_SHIFT) as u8, intended }
    }
}
