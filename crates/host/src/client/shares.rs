//! Admission shares: how many tasks the client may have outstanding in each slice (Rain §3.2.2).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sluice_wire::registrations::{ClientRegistration, Sizes};
use sluice_wire::{Nanos, Serial, SliceId, TaskType};

/// The index of the share that takes what the grant maps nowhere.
const UNMAPPED: u32 = 0;

/// One slice's share and what of it is outstanding.
#[derive(Debug)]
struct Share {
    limit: u32,
    used: u32,
    sizes: Sizes,
    /// Of those, the ones that are kept back until there is room to send them again, oldest first.
    kept_back: VecDeque<Serial>,
}

impl Share {
    fn has_room_to_send(&self) -> bool {
        (self.used as usize - self.kept_back.len()) < self.limit as usize
    }
}

/// All shares, found by task type.
#[derive(Debug, Default)]
pub(super) struct Shares {
    routes: Vec<(TaskType, u32)>,
    each: Vec<Share>,
    /// Tasks kept back in all shares.
    kept_back: usize,
}

impl Shares {
    /// The shares of a grant, with nothing outstanding.
    pub(super) fn new(grant: &ClientRegistration, unmapped: u32) -> Self {
        let mut by_slice: Vec<(SliceId, u32)> = grant.shares.clone();
        by_slice.sort_by_key(|(slice, _)| *slice);
        by_slice.dedup_by_key(|(slice, _)| *slice);
        let share = |limit, sizes| Share { limit, used: 0, sizes, kept_back: VecDeque::new() };
        let sizes_of = |slice| grant.sizes.iter().find(|(of, _)| *of == slice).map(|(_, sizes)| *sizes);
        let each = core::iter::once(share(unmapped, Sizes::default()))
            .chain(by_slice.iter().map(|(slice, limit)| share(*limit, sizes_of(*slice).unwrap_or_default())))
            .collect();
        let share_of = |slice: SliceId| {
            by_slice.binary_search_by_key(&slice, |(slice, _)| *slice).map_or(UNMAPPED, |at| at as u32 + 1)
        };
        let mut routes: Vec<_> = grant.slices.iter().map(|(kind, slice)| (*kind, share_of(*slice))).collect();
        routes.sort_by_key(|(kind, _)| *kind);
        routes.dedup_by_key(|(kind, _)| *kind);
        Self { routes, each, kept_back: 0 }
    }

    /// Which share a task of this type is charged to.
    pub(super) fn of(&self, task_type: TaskType) -> u32 {
        let route = self.routes.binary_search_by_key(&task_type, |(kind, _)| *kind);
        route.map_or(UNMAPPED, |at| self.routes[at].1)
    }

    /// Which class a task of so much work is in.
    pub(super) fn class_of(&self, share: u32, work: Nanos) -> u8 {
        self.each.get(share as usize).map_or(0, |share| share.sizes.class_of(work))
    }

    /// Whether one more task may be charged to the share.
    pub(super) fn has_room(&self, share: u32) -> bool {
        self.each.get(share as usize).is_some_and(|share| share.used < share.limit)
    }

    /// Charges a task, also beyond the limit: shares may shrink under tasks that are outstanding.
    pub(super) fn charge(&mut self, share: u32) {
        if let Some(share) = self.each.get_mut(share as usize) {
            share.used += 1;
        }
    }

    /// A task of the share has ended.
    pub(super) fn free(&mut self, share: u32) {
        if let Some(share) = self.each.get_mut(share as usize) {
            share.used = share.used.saturating_sub(1);
        }
    }

    /// Keeps a charged task back until [`Shares::next_kept_back`] lets it go.
    pub(super) fn keep_back(&mut self, share: u32, task: Serial) {
        if let Some(share) = self.each.get_mut(share as usize) {
            share.kept_back.push_back(task);
            self.kept_back += 1;
        }
    }

    /// A task that was kept back ends, still charged.
    pub(super) fn forget(&mut self, share: u32, task: Serial) {
        if let Some(share) = self.each.get_mut(share as usize) {
            let before = share.kept_back.len();
            share.kept_back.retain(|kept| *kept != task);
            self.kept_back -= before - share.kept_back.len();
        }
    }

    /// The oldest task that is kept back in a share with room.
    pub(super) fn next_kept_back(&mut self) -> Option<Serial> {
        let mut shares = self.each.iter_mut();
        let next = shares
            .find_map(|share| if share.has_room_to_send() { share.kept_back.pop_front() } else { None });
        self.kept_back -= usize::from(next.is_some());
        next
    }

    /// Whether any task is kept back.
    #[inline]
    pub(super) fn keep_any_back(&self) -> bool {
        self.kept_back > 0
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use sluice_wire::{ClientId, Endpoint, Epoch, Key};

    use super::*;

    const KIND: TaskType = TaskType(3);

    /// One slice, in which so many tasks may be outstanding.
    fn shares(limit: u32) -> Shares {
        let slice = SliceId(1);
        let grant = ClientRegistration {
            client: ClientId(0),
            key: Key(0),
            epoch: Epoch(1),
            switch: Endpoint::default(),
            replay_cells: 64,
            slices: vec![(KIND, slice)],
            shares: vec![(slice, limit)],
            classes: 1,
            jobs: 1,
            sizes: Vec::new(),
            retry_for: Nanos(1),
        };
        Shares::new(&grant, 1)
    }

    #[test]
    fn what_was_kept_back_leaves_in_its_order_as_far_as_there_is_room() {
        let mut shares = shares(2);
        let share = shares.of(KIND);
        for number in 0..4 {
            shares.charge(share);
            shares.keep_back(share, Serial(number));
        }
        let sent: Vec<_> = core::iter::from_fn(|| shares.next_kept_back()).collect();
        assert_eq!(sent, [Serial(0), Serial(1)], "two are outstanding");
        shares.free(share);
        shares.free(share);
        assert_eq!(shares.next_kept_back(), Some(Serial(2)));
        assert!(shares.keep_any_back());
        assert_eq!(shares.next_kept_back(), Some(Serial(3)));
        assert!(!shares.keep_any_back(), "all have left");
    }

    #[test]
    fn nobody_looks_for_what_was_kept_back_and_has_ended() {
        let mut shares = shares(2);
        let share = shares.of(KIND);
        shares.charge(share);
        shares.keep_back(share, Serial(7));
        shares.forget(share, Serial(8));
        assert!(shares.keep_any_back(), "another one has ended");
        shares.forget(share, Serial(7));
        assert!(!shares.keep_any_back());
        assert_eq!(shares.next_kept_back(), None);
    }
}
