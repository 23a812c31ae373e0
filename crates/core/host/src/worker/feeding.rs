//! How a worker gets its tasks: by tokens, by polling, or by tasks that the switch pushes.

use sluice_wire::Nanos;
use sluice_wire::tables::Feed;

/// The kind of feed; for polling, also when the next poll may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feeding {
    Tokens {
        ranked: bool,
    },
    /// The pause is in nanoseconds and saturates at 32 bits, so that the whole enum takes two words.
    Polls {
        every_ns: u32,
        next: Nanos,
    },
    Pushed {
        reports: bool,
    },
}

impl Feeding {
    /// The feed that a registration names; the first poll may leave at once.
    pub(super) const fn new(feed: Feed) -> Self {
        match feed {
            Feed::Tokens { ranked } => Self::Tokens { ranked },
            Feed::Polls { every } => Self::Polls { every_ns: every.saturated(), next: Nanos(0) },
            Feed::Pushed { reports } => Self::Pushed { reports },
        }
    }

    /// How many tokens may be out, if the registration allows `granted`.
    pub(super) fn quota(self, granted: u8) -> u8 {
        match self {
            Self::Tokens { .. } => granted,
            Self::Polls { .. } => granted.min(1),
            Self::Pushed { .. } => 0,
        }
    }

    /// Whether the switch counts the tokens that it was sent.
    pub(super) const fn is_counted(self) -> bool {
        matches!(self, Self::Tokens { .. })
    }

    /// Whether a token states how many tasks stand before it at the worker.
    pub(super) const fn is_ranked(self) -> bool {
        matches!(self, Self::Tokens { ranked: true })
    }

    pub(super) const fn is_pushed(self) -> bool {
        matches!(self, Self::Pushed { .. })
    }

    /// Whether replies go through the switch.
    pub(super) const fn reports(self) -> bool {
        matches!(self, Self::Pushed { reports: true })
    }

    /// A poll found no waiting task: the pause before the next poll grows.
    pub(super) fn found_nothing(&mut self, now: Nanos) {
        if let Self::Polls { every_ns, next } = self {
            *next = now + Nanos((*every_ns).into());
        }
    }

    /// The earliest time at which the next token may leave.
    pub(super) const fn not_before(self) -> Option<Nanos> {
        match self {
            Self::Polls { next, .. } => Some(next),
            Self::Tokens { .. } | Self::Pushed { .. } => None,
        }
    }
}
