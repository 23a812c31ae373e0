//! How the worker gets its tasks: for tokens, by polling, or unasked.

use sluice_wire::Nanos;
use sluice_wire::tables::Feed;

/// The feed, and when the next poll may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feeding {
    Tokens {
        ranked: bool,
    },
    /// The pause in nanoseconds, saturating: so the whole stays at two words.
    Polls {
        every_ns: u32,
        next: Nanos,
    },
    Pushed {
        reports: bool,
    },
}

impl Feeding {
    /// As a registration says; a poll may leave at once.
    pub(super) const fn new(feed: Feed) -> Self {
        match feed {
            Feed::Tokens { ranked } => Self::Tokens { ranked },
            Feed::Polls { every } => Self::Polls { every_ns: every.saturated(), next: Nanos(0) },
            Feed::Pushed { reports } => Self::Pushed { reports },
        }
    }

    /// How many tokens may be out of those that the registration allows.
    pub(super) fn quota(self, granted: u8) -> u8 {
        match self {
            Self::Tokens { .. } => granted,
            Self::Polls { .. } => granted.min(1),
            Self::Pushed { .. } => 0,
        }
    }

    /// Whether the switch grants what the worker's tokens count.
    pub(super) const fn is_counted(self) -> bool {
        matches!(self, Self::Tokens { .. })
    }

    /// Whether tokens say how many tasks stand before them.
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

    /// Nothing waited in the switch.
    pub(super) fn found_nothing(&mut self, now: Nanos) {
        if let Self::Polls { every_ns, next } = self {
            *next = now + Nanos((*every_ns).into());
        }
    }

    /// Before then no token leaves.
    pub(super) const fn not_before(self) -> Option<Nanos> {
        match self {
            Self::Polls { next, .. } => Some(next),
            Self::Tokens { .. } | Self::Pushed { .. } => None,
        }
    }
}
