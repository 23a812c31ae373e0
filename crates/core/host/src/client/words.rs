//! One word for each reason why a task has no reply, the same in every language.

use sluice_wire::RejectReason;

use super::{RefusedWhy, UnknownWhy};

impl RefusedWhy {
    /// The reason in one word, such as `queue-full`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Rejected(RejectReason::QueueFull) => "queue-full",
            Self::Rejected(RejectReason::NoRoom) => "no-room",
            Self::Rejected(RejectReason::NoWorkers) => "no-workers",
            Self::Rejected(RejectReason::StaleTokens) => "stale-tokens",
            Self::Rejected(RejectReason::Unserved) => "unserved",
            Self::NoSlice(_) | Self::Rejected(RejectReason::UnknownType) => "no-slice",
            Self::Busy { .. } | Self::Rejected(RejectReason::Busy) => "busy",
            Self::Late(_) | Self::Rejected(RejectReason::Late) => "late",
            Self::NeverSent => "never-sent",
            Self::LongBudget => "long-budget",
            Self::TooLong => "too-long",
            Self::UnknownLabel => "unknown-label",
            Self::NoClass { .. } => "no-class",
        }
    }
}

impl UnknownWhy {
    /// The reason in one word, such as `deadline`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::ReplyGone => "reply-gone",
            Self::TooOld => "too-old",
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use sluice_wire::{Nanos, TaskType};

    use super::super::CutOff;
    use super::*;

    #[test]
    fn a_reason_of_the_switch_has_the_word_of_what_it_stands_for() {
        let of = |reason| RefusedWhy::of(reason, TaskType(9)).word();
        let words: BTreeSet<&str> = RejectReason::ALL.into_iter().map(of).collect();
        assert_eq!(words.len(), RejectReason::ALL.len());
        assert!(
            RejectReason::ALL.into_iter().all(|reason| RefusedWhy::Rejected(reason).word() == of(reason))
        );
        let alike = [RefusedWhy::Late(CutOff::Worker), RefusedWhy::Busy { retry_after: Nanos(1) }];
        assert_eq!(alike.map(|why| why.word()), ["late", "busy"]);
    }
}
