//! Admission shares: how many tasks the client may have outstanding in each slice (Rain §3.2.2).
//!
//! The switch cannot tell that an earlier attempt of the same task already waits, so a repeat takes a place
//! of its own. Therefore the client charges repeats to the share too, until they are answered or would have
//! been given up. New tasks wait until that room is free.

use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::mem;

use sluice_wire::registrations::{ClientRegistration, Sizes};
use sluice_wire::{Nanos, Serial, SliceId, SliceLoad, TaskType};

use super::pace::SharePace;

/// The index of the share for all task types that the grant maps to no slice.
const UNMAPPED: u32 = 0;

/// One slice's share, and how much of it is in use.
#[derive(Debug)]
struct Share {
    /// `None` for the share of the task types that the grant maps to no slice.
    slice: Option<SliceId>,
    limit: u32,
    used: u32,
    /// Attempts that may wait in the switch beside another attempt of the same task.
    repeats: u32,
    /// The attempts of ended tasks that may still wait in the switch: for each one, the latest time of its
    /// wait.
    left_behind: BinaryHeap<Reverse<Nanos>>,
    sizes: Sizes,
    /// Charged tasks that wait for room before they are sent again, oldest first.
    kept_back: VecDeque<Serial>,
    /// How often a task may be sent, while the slice is busy.
    pace: Option<Box<SharePace>>,
}

impl Share {
    fn new(slice: Option<SliceId>, limit: u32, sizes: Sizes) -> Self {
        let (left_behind, kept_back) = (BinaryHeap::new(), VecDeque::new());
        Self { slice, limit, used: 0, repeats: 0, left_behind, sizes, kept_back, pace: None }
    }

    /// The charged tasks that are being tried.
    fn tried(&self) -> usize {
        self.used as usize - self.kept_back.len()
    }

    fn has_room_to_send(&self) -> bool {
        self.tried() < self.limit as usize
    }

    /// How many places of the slice's queue repeats may occupy.
    fn held_by_repeats(&mut self, now: Nanos) -> usize {
        while self.left_behind.peek().is_some_and(|Reverse(until)| *until <= now) {
            self.left_behind.pop();
        }
        self.repeats as usize + self.left_behind.len()
    }
}

/// All shares, found by task type.
#[derive(Debug, Default)]
pub(super) struct Shares {
    routes: Vec<(TaskType, u32)>,
    each: Vec<Share>,
    /// How many tasks are kept back in all shares together.
    kept_back: usize,
    /// How many slices are busy.
    busy: usize,
}

impl Shares {
    /// The shares of a grant, without any outstanding task.
    pub(super) fn new(grant: &ClientRegistration, unmapped: u32) -> Self {
        let mut by_slice: Vec<(SliceId, u32)> = grant.shares.clone();
        by_slice.sort_by_key(|(slice, _)| *slice);
        by_slice.dedup_by_key(|(slice, _)| *slice);
        let sizes_of = |slice| grant.sizes.iter().find(|(of, _)| *of == slice).map(|(_, sizes)| *sizes);
        let share = |(slice, limit): &(SliceId, u32)| {
            Share::new(Some(*slice), *limit, sizes_of(*slice).unwrap_or_default())
        };
        let each = core::iter::once(Share::new(None, unmapped, Sizes::default()))
            .chain(by_slice.iter().map(share))
            .collect();
        let share_of = |slice: SliceId| {
            by_slice.binary_search_by_key(&slice, |(slice, _)| *slice).map_or(UNMAPPED, |at| at as u32 + 1)
        };
        let mut routes: Vec<_> = grant.slices.iter().map(|(kind, slice)| (*kind, share_of(*slice))).collect();
        routes.sort_by_key(|(kind, _)| *kind);
        routes.dedup_by_key(|(kind, _)| *kind);
        Self { routes, each, kept_back: 0, busy: 0 }
    }

    /// The share to which tasks of this type are charged.
    pub(super) fn of(&self, task_type: TaskType) -> u32 {
        let route = self.routes.binary_search_by_key(&task_type, |(kind, _)| *kind);
        route.map_or(UNMAPPED, |at| self.routes[at].1)
    }

    /// The class of a task that is declared to need `work` time.
    pub(super) fn class_of(&self, share: u32, work: Nanos) -> u8 {
        self.each.get(share as usize).map_or(0, |share| share.sizes.class_of(work))
    }

    /// Whether the share has room for one more task. A share without outstanding tasks always has:
    /// otherwise no outcome would ever come after which the application could offer the task again.
    #[inline]
    pub(super) fn has_room(&mut self, share: u32, now: Nanos) -> bool {
        self.each.get_mut(share as usize).is_some_and(|share| {
            share.used < share.limit
                && (share.used == 0
                    || share.used as usize + share.held_by_repeats(now) < share.limit as usize)
        })
    }

    /// Whether a repeat may occupy a place in the slice's queue, which may be why another task was
    /// rejected.
    pub(super) fn has_repeats(&mut self, share: u32, now: Nanos) -> bool {
        self.each.get_mut(share as usize).is_some_and(|share| share.held_by_repeats(now) > 0)
    }

    /// Takes a new task of one of so many classes into account, if the pace of a busy slice allows it; else
    /// says for how long none of its class may be sent.
    #[inline]
    pub(super) fn keep_pace(&mut self, share: u32, now: Nanos, class: (u8, u8)) -> Result<(), Nanos> {
        if self.busy == 0 { Ok(()) } else { self.take_pace(share, now, class) }
    }

    #[cold]
    fn take_pace(&mut self, share: u32, now: Nanos, class: (u8, u8)) -> Result<(), Nanos> {
        let pace = self.each.get_mut(share as usize).and_then(|share| share.pace.as_mut());
        pace.map_or(Ok(()), |pace| pace.take(now, class))
    }

    /// A task was refused because the slice is busy; `target` is the longest wait there.
    pub(super) fn is_busy(&mut self, share: u32, now: Nanos, target: Nanos, load: SliceLoad) {
        let Some(share) = self.each.get_mut(share as usize) else { return };
        match &mut share.pace {
            Some(pace) => pace.refused(now, target, load),
            none => {
                *none = SharePace::new(now, target, load, share.used).map(Box::new);
                self.busy += usize::from(none.is_some());
            }
        }
    }

    /// A task of the share waited in the switch for so long.
    #[inline]
    pub(super) fn waited(&mut self, share: u32, now: Nanos, wait: Nanos) {
        if self.busy > 0 {
            self.note_wait(share, now, wait);
        }
    }

    #[cold]
    fn note_wait(&mut self, share: u32, now: Nanos, wait: Nanos) {
        let Some(share) = self.each.get_mut(share as usize) else { return };
        if share.pace.as_mut().is_some_and(|pace| !pace.waited(now, wait)) {
            share.pace = None;
            self.busy -= 1;
        }
    }

    /// Charges a repeat: an attempt of a task of which another attempt may still wait.
    pub(super) fn repeat(&mut self, share: u32) {
        if let Some(share) = self.each.get_mut(share as usize) {
            share.repeats += 1;
        }
    }

    /// Frees the room of `count` repeats: they no longer wait, or their task has ended.
    pub(super) fn end_repeats(&mut self, share: u32, count: u32) {
        if let Some(share) = self.each.get_mut(share as usize) {
            share.repeats = share.repeats.saturating_sub(count);
        }
    }

    /// Charges `count` attempts of an ended task, which may wait in the switch until `until`.
    pub(super) fn leave_behind(&mut self, share: u32, count: u32, until: Nanos) {
        if let Some(share) = self.each.get_mut(share as usize) {
            share.left_behind.extend((0..count).map(|_| Reverse(until)));
        }
    }

    /// An attempt of an ended task was answered: frees its room.
    pub(super) fn comes_late(&mut self, share: u32) {
        if let Some(share) = self.each.get_mut(share as usize) {
            share.left_behind.pop();
        }
    }

    /// The switch lost its memory: no repeat waits in it any more.
    pub(super) fn forget_repeats(&mut self) {
        for share in &mut self.each {
            share.repeats = 0;
            share.left_behind.clear();
            share.pace = None;
        }
        self.busy = 0;
    }

    /// Takes over the attempts of ended tasks from the shares of an earlier grant, slice by slice.
    pub(super) fn take_over(&mut self, mut earlier: Self) {
        for share in &mut self.each {
            if let Some(same) = earlier.each.iter_mut().find(|of| of.slice == share.slice) {
                share.left_behind = mem::take(&mut same.left_behind);
                share.pace = same.pace.take();
                self.busy += usize::from(share.pace.is_some());
            }
        }
    }

    /// Charges a task even if the share is full: a new grant may shrink a share below what is outstanding.
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

    /// Whether more tasks are tried than the share allows.
    pub(super) fn is_exceeded(&self, share: u32) -> bool {
        self.each.get(share as usize).is_some_and(|share| share.tried() > share.limit as usize)
    }

    /// Keeps a charged task back until [`Shares::next_kept_back`] lets it go.
    pub(super) fn keep_back(&mut self, share: u32, task: Serial) {
        if let Some(share) = self.each.get_mut(share as usize) {
            let older = share.kept_back.partition_point(|kept| kept.since(task) < 0);
            share.kept_back.insert(older, task);
            self.kept_back += 1;
        }
    }

    /// A task ends while it is kept back. Its charge stays until [`Shares::free`].
    pub(super) fn forget(&mut self, share: u32, task: Serial) {
        if let Some(share) = self.each.get_mut(share as usize) {
            let before = share.kept_back.len();
            share.kept_back.retain(|kept| *kept != task);
            self.kept_back -= before - share.kept_back.len();
        }
    }

    /// Takes the oldest kept-back task of a share that has room.
    pub(super) fn next_kept_back(&mut self) -> Option<Serial> {
        let mut shares = self.each.iter_mut();
        let next = shares
            .find_map(|share| if share.has_room_to_send() { share.kept_back.pop_front() } else { None });
        self.kept_back -= usize::from(next.is_some());
        next
    }

    /// Whether any share keeps a task back.
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

    /// A grant with one slice, in which `limit` tasks may be outstanding.
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
    fn what_was_kept_back_leaves_oldest_first_as_far_as_there_is_room() {
        let mut shares = shares(2);
        let share = shares.of(KIND);
        for number in [0, 2, 3, 1] {
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
