//! A slice as the controller knows it: its row, its last reading, and the open questions that later
//! readings will answer.
//!
//! Readings of the switch answer whether stale tokens have left the ring, whether tasks still wait after
//! the slice was closed or its last worker was asked for, and whether tasks of types that are mapped
//! elsewhere now are gone.

use alloc::string::String;
use alloc::vec::Vec;

use sluice_wire::tables::{RingCounts, SliceRow, SliceState};
use sluice_wire::{Nanos, TaskType, WorkerId};

use crate::plan::SlicePlan;

/// How often a slice is read while a sweep of it makes progress.
pub(crate) const SWEEP_EVERY: Nanos = Nanos::from_millis(1);

/// How many readings without waiting tasks end the sweep of a closed slice. The second reading sees a task
/// that was recirculating when the slice was closed.
pub(crate) const CALM_READINGS: u8 = 2;

/// For so long a slice that was seen empty counts as empty, if no type was mapped to it meanwhile. For so
/// long it is also read after the last request that it should be empty.
pub(crate) const EMPTY_FOR: Nanos = Nanos::from_millis(1_000);

/// While an operator watches, balances are read so many times per lease. A watch ends so many leases after
/// it was last asked for.
const WATCHES_A_LEASE: u64 = 10;
pub(crate) const WATCH_LEASES: u64 = 2;

#[derive(Debug, Default)]
pub(crate) struct Slice {
    pub(crate) name: String,
    pub(crate) planned_limit: Option<u32>,
    /// The target of the plan; zero if it gives none.
    pub(crate) target: Nanos,
    /// The mean service of the plan, if it gives any.
    pub(crate) service: Option<Nanos>,
    /// The slice's row as last written to the switch.
    pub(crate) row: SliceRow,
    /// Workers that are open in the slice.
    pub(crate) serving: u32,
    pub(crate) quotas: u32,
    /// The last reading and when it came.
    pub(crate) state: Option<(SliceState, Nanos)>,
    /// How many tasks the slice's workers refused because their budget was spent.
    pub(crate) late_at_worker: u64,
    pub(crate) stale: Vec<Stale>,
    /// While the slice or one of its classes is closed: how many readings without unserved tasks are still
    /// needed.
    pub(crate) calm_left: u8,
    pub(crate) emptying: Option<Emptying>,
    former: Option<Former>,
    /// When to read the slice next, and the interval of readings.
    pub(crate) look: Option<Nanos>,
    pub(crate) pace: Nanos,
    /// Whether a reading is on its way.
    pub(crate) asked: bool,
    /// The tokens-out counts that the last sweep for tokens was sent to reach.
    swept_to: RingCounts,
    /// How many tokens had left each ring at the reading before the last.
    out_before: RingCounts,
}

/// Types that were mapped to this slice before, and whose tasks may still wait.
#[derive(Debug)]
struct Former {
    types: Vec<TaskType>,
    /// Readings that are still needed before all such tasks are known to be in the queue: as many as for a
    /// sweep.
    unread: u8,
    /// These tasks are gone when so many tasks have left each ring.
    until: RingCounts,
}

impl Former {
    /// Takes a reading; `None` if none of these tasks waits any more.
    fn read(mut self, state: &SliceState) -> Option<Self> {
        let waiting = state.balance.min(0).unsigned_abs();
        if self.unread > 0 {
            self.unread -= 1;
            self.until = state.tasks_in;
        }
        let counted = state.tasks_in != state.tasks_out;
        let gone = waiting == 0 || counted && state.tasks_out.behind(self.until) == 0;
        (self.unread > 0 || !gone).then_some(self)
    }
}

/// A slice whose last worker is wanted in another slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emptying {
    /// Readings without waiting tasks that are still needed.
    pub(crate) left: u8,
    /// When emptiness was last asked for, or when the last reading that was needed came.
    pub(crate) since: Nanos,
}

/// Tokens in the ring that may be of a former generation. A token that a sweep carries is not counted: the
/// sweep checks that the row of its worker is open before it parks the token.
#[derive(Debug)]
pub(crate) struct Stale {
    /// The worker of these tokens; `None` after a read-back, for all workers.
    pub(crate) worker: Option<WorkerId>,
    /// At most so many tokens.
    pub(crate) tokens: u32,
    /// These tokens are gone when so many tokens have left each ring.
    pub(crate) until: RingCounts,
}

impl Slice {
    pub(crate) fn new(plan: &SlicePlan) -> Self {
        Self {
            name: plan.name.clone(),
            planned_limit: plan.limit,
            target: plan.target.unwrap_or_default(),
            service: plan.service,
            pace: SWEEP_EVERY,
            ..Self::default()
        }
    }

    /// Starts anew from a read-back: any parked token may be stale.
    pub(crate) fn restore(&mut self, now: Nanos, state: SliceState) {
        self.row = state.row;
        self.state = Some((state, now));
        self.stale.clear();
        self.emptying = None;
        self.former = None;
        self.asked = false;
        self.pace = SWEEP_EVERY;
        self.swept_to = state.tokens_out;
        self.out_before = state.tokens_out;
        let tokens = state.tokens_in.since(state.tokens_out);
        if tokens > 0 {
            self.stale.push(Stale { worker: None, tokens, until: state.tokens_in });
        }
        let all_served = state.row.open && state.row.closed == 0;
        self.calm_left = if all_served { 0 } else { CALM_READINGS };
        self.look = self.is_dirty().then_some(now);
    }

    /// Tokens became stale at this reading. If none were stale before, the target of the last sweep is
    /// void: since then more tokens may have left than serial numbers can tell apart.
    pub(crate) fn goes_stale(&mut self, stale: Stale, state: &SliceState) {
        if self.stale.is_empty() {
            self.swept_to = state.tokens_out;
        }
        self.stale.push(stale);
    }

    pub(crate) fn stale_tokens(&self) -> u32 {
        self.stale.iter().map(|s| s.tokens).sum()
    }

    /// Whether a worker that serves these types serves all tasks that may still wait here of types mapped
    /// here before.
    pub(crate) fn former_are_served(&self, serves: impl Fn(TaskType) -> bool) -> bool {
        self.former.as_ref().is_none_or(|former| former.types.iter().all(|t| serves(*t)))
    }

    /// These types are mapped elsewhere from now on, or may have been until now, and their tasks may wait
    /// here. A reading that is under way was asked too early to count.
    pub(crate) fn types_left(&mut self, types: impl IntoIterator<Item = TaskType>) {
        let former =
            self.former.get_or_insert(Former { types: Vec::new(), unread: 0, until: RingCounts::default() });
        former.unread = CALM_READINGS + u8::from(self.asked);
        former.types.extend(types);
    }

    /// Whether no task can ever have waited here in this epoch of the switch.
    pub(crate) fn was_never_open(&self) -> bool {
        self.row == SliceRow::default()
    }

    /// Whether later readings have to show that a sweep or a change of the slice is finished.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.stale.is_empty()
            || self.calm_left > 0
            || self.emptying.is_some_and(|emptying| emptying.left > 0)
            || self.former.is_some()
    }

    /// Takes a reading; returns whether it differs from the last.
    pub(crate) fn take(&mut self, now: Nanos, state: SliceState) -> bool {
        let last = self.state.replace((state, now));
        self.out_before = last.map_or_else(RingCounts::default, |(last, _)| last.tokens_out);
        self.stale.retain(|stale| state.tokens_out.behind(stale.until) > 0);
        if self.calm_left > 0 {
            self.calm_left = if self.wait_in_vain(&state) > 0 { CALM_READINGS } else { self.calm_left - 1 };
        }
        self.emptying = self.emptying.and_then(|emptying| emptying.read(now, state.balance < 0));
        self.former = self.former.take().and_then(|former| former.read(&state));
        last.is_none_or(|(last, _)| last.tokens_out != state.tokens_out || last.balance != state.balance)
    }

    /// How many entries a sweep for tokens should visit now; `None` if none is needed or one is under way.
    pub(crate) fn token_sweep(&mut self, state: SliceState) -> Option<u16> {
        let entries = |s: &Stale| state.tokens_out.behind(s.until);
        let left = self.stale.iter().map(entries).max().filter(|left| *left > 0)?;
        if self.is_swept(state.tokens_out) {
            return None;
        }
        let left = u16::try_from(left).unwrap_or(u16::MAX);
        self.swept_to = state.tokens_out.towards(state.tokens_in, left.into());
        Some(left)
    }

    /// Whether the last sweep for tokens may still be under way: some ring has not reached the sweep's
    /// target, and each such ring has lost a token since the reading before. Tasks take tokens too, but not
    /// from the last rank, nor from kinds that serve none of them; such a ring stands still if the sweep
    /// was lost. A second sweep that meets one under way ends at once.
    fn is_swept(&self, out: RingCounts) -> bool {
        let rings = out.0.into_iter().zip(self.swept_to.0).zip(self.out_before.0);
        let mut unswept = rings.filter(|((out, to), _)| to.since(*out) > 0).peekable();
        unswept.peek().is_some() && unswept.all(|((out, _), before)| out != before)
    }
}

impl Emptying {
    /// Takes a reading; `None` if the time for which it was asked is over.
    fn read(self, now: Nanos, waits: bool) -> Option<Self> {
        let Self { left, since } = self;
        let left = if waits { CALM_READINGS } else { left.saturating_sub(1) };
        let since = if self.left > 0 && left == 0 { now } else { since };
        (now.since(since) < EMPTY_FOR).then_some(Self { left, since })
    }
}

/// An operator watches the balances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// When to read them next.
    pub(crate) next: Nanos,
    /// When the watch ends, unless it is asked for again.
    pub(crate) until: Nanos,
}

impl Watch {
    /// The balances are being read: the watch with its next reading, or `None` if it has ended. The next
    /// reading lies in the future, however late this call is.
    pub(crate) fn read(self, now: Nanos, lease: Nanos) -> Option<Self> {
        let next = now + Nanos(lease.0 / WATCHES_A_LEASE).max(Nanos(1));
        (next < self.until).then_some(Self { next, ..self })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use sluice_wire::Serial;

    use super::*;

    const START: Serial = Serial(u32::MAX - 1);

    /// A reading in which so many tasks of each class have come and have left.
    fn state(tasks_in: [u32; 4], tasks_out: [u32; 4]) -> SliceState {
        let counts = |counts: [u32; 4]| RingCounts(counts.map(|count| START.plus(count)));
        let waiting: u32 = tasks_in.iter().zip(tasks_out).map(|(came, left)| came - left).sum();
        let (tasks_in, tasks_out) = (counts(tasks_in), counts(tasks_out));
        SliceState { balance: -(waiting as i32), tasks_in, tasks_out, ..SliceState::default() }
    }

    fn former() -> Former {
        Former { types: vec![TaskType(1)], unread: 1, until: RingCounts::default() }
    }

    #[test]
    fn types_that_left_are_not_gone_before_all_readings_came() {
        let former = Former { unread: 2, ..former() };
        let former = former.read(&state([0; 4], [0; 4])).expect("one more may show a task");
        assert!(former.read(&state([0; 4], [0; 4])).is_none());
    }

    #[test]
    fn types_that_left_are_gone_once_each_class_has_lost_what_waited_then() {
        let former = former().read(&state([0, 2, 0, 0], [0, 0, 0, 0])).expect("two wait");
        let former = former.read(&state([5, 2, 0, 0], [4, 1, 0, 0]));
        let former = former.expect("four of the first class left, and one of the second still waits");
        assert!(former.read(&state([6, 3, 0, 0], [4, 2, 0, 0])).is_none());
    }

    #[test]
    fn types_that_left_are_waited_for_until_a_task_that_was_going_round_would_be_seen() {
        for (asked, readings) in [(false, 2), (true, 3)] {
            let mut slice = slice();
            slice.asked = asked;
            slice.types_left([TaskType(1)]);
            for _ in 1..readings {
                slice.take(Nanos(0), SliceState::default());
                assert!(slice.is_dirty());
            }
            slice.take(Nanos(0), SliceState::default());
            assert!(!slice.is_dirty());
        }
    }

    fn slice() -> Slice {
        let plan = SlicePlan { name: "s".into(), ..SlicePlan::default() };
        Slice::new(&plan)
    }

    /// A reading in which so many tokens have come and have been taken.
    fn tokens(came: u32, left: u32) -> SliceState {
        let count = |count| RingCounts::of_one(START.plus(count));
        SliceState {
            balance: came.wrapping_sub(left) as i32,
            tokens_in: count(came),
            tokens_out: count(left),
            ..SliceState::default()
        }
    }

    #[test]
    fn a_reading_differs_when_tokens_were_taken_or_as_many_came_as_tasks() {
        let mut slice = slice();
        let readings = [tokens(5, 0), tokens(5, 0), tokens(6, 1), tokens(7, 1)];
        assert_eq!(readings.map(|state| slice.take(Nanos(0), state)), [true, false, true, true]);
    }

    #[test]
    fn a_sweep_goes_as_far_as_stale_tokens_lie_and_another_when_it_is_there_or_lost() {
        let mut slice = slice();
        let stale = |until| Stale { worker: None, tokens: 5, until: tokens(until, 0).tokens_in };
        slice.restore(Nanos(0), tokens(0, 0));
        assert_eq!(swept(&mut slice, tokens(5, 0)), None, "nothing is stale");
        slice.stale.push(stale(5));
        assert_eq!(swept(&mut slice, tokens(7, 0)), Some(5));
        assert_eq!(swept(&mut slice, tokens(7, 2)), None, "it is about");
        assert_eq!(swept(&mut slice, tokens(8, 2)), Some(3), "it was lost");
        slice.stale.push(stale(7));
        assert_eq!(swept(&mut slice, tokens(8, 5)), Some(2), "it is there, and there are more");
        assert_eq!(swept(&mut slice, tokens(8, 7)), None);
    }

    /// Takes a reading; returns the length of the sweep that is sent.
    fn swept(slice: &mut Slice, state: SliceState) -> Option<u16> {
        slice.take(Nanos(0), state);
        slice.token_sweep(state)
    }

    /// A reading in which seven tokens of each of two ranks came, and so many were taken.
    fn ranked(left: [u32; 2]) -> SliceState {
        let counts = |[first, second]: [u32; 2]| {
            RingCounts([START.plus(first), START.plus(second), Serial(0), Serial(0)])
        };
        SliceState {
            balance: 14 - left.iter().sum::<u32>() as i32,
            tokens_in: counts([7, 7]),
            tokens_out: counts(left),
            ..SliceState::default()
        }
    }

    /// Tasks take tokens of the first rank, and none of the second.
    #[test]
    fn another_sweep_is_sent_if_a_ring_stands_that_it_has_not_done_whatever_tasks_take_elsewhere() {
        let mut slice = slice();
        slice.restore(Nanos(0), SliceState { tokens_in: ranked([0, 0]).tokens_out, ..ranked([0, 0]) });
        let stale = Stale { worker: None, tokens: 8, until: ranked([0, 0]).tokens_in };
        slice.goes_stale(stale, &ranked([0, 0]));
        assert_eq!(swept(&mut slice, ranked([0, 0])), Some(7));
        assert_eq!(swept(&mut slice, ranked([3, 1])), None, "it is about");
        assert_eq!(
            swept(&mut slice, ranked([4, 1])),
            Some(6),
            "it is lost: a task took the one that is gone"
        );
        assert_eq!(swept(&mut slice, ranked([7, 2])), None);
        assert_eq!(swept(&mut slice, ranked([7, 7])), None, "it has been everywhere");
    }

    #[test]
    fn a_sweep_is_sent_however_many_tokens_have_left_since_the_last_one() {
        for left in [0, 1, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 31) + 7, u32::MAX] {
            let mut slice = slice();
            slice.swept_to = tokens(0, 0).tokens_out;
            let state = tokens(left.wrapping_add(5), left);
            slice.goes_stale(Stale { worker: None, tokens: 5, until: state.tokens_in }, &state);
            assert_eq!(swept(&mut slice, state), Some(5), "after {left}");
        }
    }

    #[test]
    fn that_a_slice_was_seen_empty_counts_for_a_while_and_a_task_begins_the_count_anew() {
        let at = Nanos::from_millis;
        let asked = Emptying { left: 2, since: at(0) };
        let once = asked.read(at(400), false).expect("one more reading");
        assert_eq!((once.left, once.since), (1, at(0)));
        assert_eq!(once.read(at(500), true).map(|again| again.left), Some(2));
        let empty = once.read(at(900), false).expect("it is empty");
        assert_eq!((empty.left, empty.since), (0, at(900)));
        let empty = empty.read(at(1_500), false).expect("it still counts");
        assert_eq!(empty.since, at(900));
        assert!(empty.read(at(1_900), false).is_none());
        let mut slice = slice();
        slice.emptying = Some(empty);
        assert!(!slice.is_dirty(), "nothing has to be looked at");
    }

    #[test]
    fn balances_are_read_ten_times_a_lease_until_nobody_looks() {
        let at = Nanos::from_millis;
        let watch = Watch { next: at(0), until: at(1_000) };
        let next = watch.read(at(500), at(1_000)).expect("someone looks");
        assert_eq!((next.next, next.until), (at(600), at(1_000)));
        assert!(next.read(at(900), at(1_000)).is_none());
    }

    #[test]
    fn where_nobody_counts_they_are_gone_once_nobody_waits() {
        let waits = SliceState { balance: -3, ..SliceState::default() };
        let former = former().read(&waits).expect("three wait");
        let former = former.read(&SliceState { balance: -1, ..waits }).expect("one waits");
        assert!(former.read(&SliceState::default()).is_none());
    }
}
