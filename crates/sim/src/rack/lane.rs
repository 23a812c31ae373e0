//! Links whose delay is the same for every packet: what left first arrives first, and needs no sorting.

use std::collections::VecDeque;

use sluice_wire::Nanos;

use crate::agenda::Moment;

/// What is under way on one link, in the order in which it arrives.
#[derive(Debug)]
pub(super) struct Lane<T> {
    under_way: VecDeque<(Moment, T)>,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { under_way: VecDeque::new() }
    }
}

impl<T> Lane<T> {
    /// When the next one arrives.
    #[inline]
    pub(super) fn first(&self) -> Moment {
        self.under_way.front().map_or(Moment::NEVER, |(moment, _)| *moment)
    }

    /// Whether something that arrives then comes after all that is under way.
    #[inline]
    pub(super) fn takes(&self, at: Nanos) -> bool {
        self.under_way.back().is_none_or(|(last, _)| last.at <= at)
    }

    #[inline]
    pub(super) fn push(&mut self, moment: Moment, item: T) {
        debug_assert!(self.takes(moment.at), "a lane must be entered in order");
        self.under_way.push_back((moment, item));
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        self.under_way.pop_front().map(|(_, item)| item)
    }
}
