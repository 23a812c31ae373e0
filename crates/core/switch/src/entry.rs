//! A task that waits in the switch's memory.
#![expect(clippy::inline_always, reason = "a waiting task is copied to memory at a call that stays one")]

use sluice_wire::sizes::TICKET_MASK;
use sluice_wire::{
    Age, Attempt, Budget, ClientId, Handle, INLINE_BYTES, Incarnation, Nanos, Payload, Place, Serial,
    SliceId, Submit, TaskId, TaskType,
};

/// The cell of a ticket in an array that holds rings of `len` cells one behind the other.
#[inline]
pub(crate) const fn cell(ring: usize, ticket: u32, len: u32) -> usize {
    ring * len as usize + (ticket & (len - 1)) as usize
}

/// A task as an entry of its ring. A stage of the chip has no room for 64 bits of each of 131,072 tasks, so
/// an entry keeps the lower half of an incarnation only. [`Front::whole`](crate::front::Front::whole) takes
/// the upper half from the client's row when the task leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingTask {
    incarnation_low: u32,
    /// A column of racks below spines only, which have no rows of clients.
    incarnation_high: u32,
    sequence: Serial,
    times: Times,
    client: ClientId,
    attempt: Attempt,
    task_type: TaskType,
    len: u16,
    inline: [u8; 8],
    /// The driver's handle of the payload; the chip has no column for it.
    handle: Handle,
    priority: u8,
    constraints: u8,
    kept: Kept,
    budget: Budget,
}

/// Who keeps a large task's bytes while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Whoever drives the switch, under the payload's handle.
    Driver,
    /// The servers of the task's slice: the bytes were written ahead.
    Ahead,
    Client,
}

impl Kept {
    /// Tasks that were written ahead are with the servers. Of the others, a switch that has servers keeps
    /// no bytes.
    #[inline]
    pub(crate) const fn of(ahead: bool, has_servers: bool) -> Self {
        match (ahead, has_servers) {
            (true, _) => Self::Ahead,
            (false, true) => Self::Client,
            (false, false) => Self::Driver,
        }
    }
}

impl Default for WaitingTask {
    fn default() -> Self {
        Self::of(&Submit::default(), Nanos::default(), Kept::Driver)
    }
}

impl WaitingTask {
    #[inline(always)]
    pub(crate) const fn of(submit: &Submit, arrived: Nanos, kept: Kept) -> Self {
        Self {
            incarnation_low: submit.task.incarnation.low(),
            incarnation_high: submit.task.incarnation.high(),
            sequence: submit.task.sequence,
            times: Times::of(arrived, submit.age),
            client: submit.client,
            attempt: submit.attempt,
            task_type: submit.task_type,
            len: submit.payload.len,
            inline: submit.payload.inline,
            handle: if matches!(kept, Kept::Driver) { submit.payload.handle } else { Handle::NONE },
            priority: submit.priority,
            constraints: submit.constraints,
            kept,
            budget: submit.budget,
        }
    }

    /// Where its bytes are, for a task that waits in this slice under this ticket.
    #[inline]
    pub(crate) const fn place(&self, slice: SliceId, ticket: u32) -> Place {
        match self.kept {
            _ if self.len as usize <= INLINE_BYTES => Place::Here,
            Kept::Driver => Place::Here,
            Kept::Ahead => Place::Ahead { slice, ticket: ticket & TICKET_MASK },
            Kept::Client => Place::AtClient,
        }
    }

    /// The index of its client's row.
    #[inline]
    pub(crate) const fn client(&self) -> ClientId {
        self.client
    }

    /// The upper half of its incarnation, where that has a column.
    #[inline]
    pub(crate) const fn incarnation_high(&self) -> u32 {
        self.incarnation_high
    }

    /// The task as its client submitted it, given the upper half of its incarnation; without its epoch and
    /// key, which were checked when it entered.
    #[inline]
    pub(crate) fn submit(&self, incarnation_high: u32) -> Submit {
        let incarnation = Incarnation::of(incarnation_high, self.incarnation_low);
        Submit {
            client: self.client,
            task: TaskId { incarnation, sequence: self.sequence },
            attempt: self.attempt,
            task_type: self.task_type,
            priority: self.priority,
            constraints: self.constraints,
            age: self.times.age(),
            budget: self.budget,
            payload: Payload { len: self.len, inline: self.inline, handle: self.handle },
            ..Submit::default()
        }
    }

    /// Whether the task has a budget, and has waited for longer.
    #[inline(always)]
    pub(crate) const fn is_late(&self, now: Nanos) -> bool {
        !self.budget.is_none() && self.budget.after(self.waited(now)).is_spent()
    }

    /// How long it has waited.
    #[inline]
    pub(crate) const fn waited(&self, now: Nanos) -> Nanos {
        self.times.since_arrival(now)
    }
}

/// When a task arrived and how old it was then, in one word: 50 bits of 16 ns, which wrap after 208 days,
/// and 14 bits of an [`Age`]. These 14 bits hold an age exactly up to 0.13 s. Beyond, they hold it in steps
/// of 34 ms, rounded up, and saturate at 4.6 min. Workers refuse tasks that may be older than they
/// remember, which is less than 4.6 min.
///
/// Where several passes run at once, the pass that takes a task may have read the clock before the pass
/// that added it. Such a task counts as having waited for 0 ns.
#[derive(Clone, Copy, Debug)]
struct Times(u64);

impl Times {
    const TICK_SHIFT: u32 = 4;
    const TICKS: u64 = 1 << (u64::BITS - Self::AGE_BITS);
    /// No pass lasts so many ticks (4.3 s). So a wait this close below the wrap belongs to a pass that
    /// began before the task's.
    const BEHIND_TICKS: u64 = 1 << 28;
    const AGE_BITS: u32 = 14;
    const AGE_MASK: u32 = (1 << Self::AGE_BITS) - 1;
    /// The bit that marks an age in steps; it is also the first age that is written in steps.
    const STEPPED: u32 = 1 << (Self::AGE_BITS - 1);
    const STEP_SHIFT: u32 = 11;

    #[inline(always)]
    const fn of(arrived: Nanos, age: Age) -> Self {
        let age = if age.0 < Self::STEPPED { age.0 } else { Self::stepped(age) };
        Self((arrived.0 >> Self::TICK_SHIFT) << Self::AGE_BITS | age as u64)
    }

    /// Used only for tries that come late. The last step stands for all larger ages.
    #[cold]
    const fn stepped(age: Age) -> u32 {
        let steps = age.0.div_ceil(1 << Self::STEP_SHIFT);
        if steps < Self::STEPPED { Self::STEPPED | steps } else { Self::AGE_MASK }
    }

    #[inline]
    const fn age(self) -> Age {
        let age = self.0 as u32 & Self::AGE_MASK;
        match age & Self::STEPPED {
            0 => Age(age),
            _ if age == Self::AGE_MASK => Age::MAX,
            _ => Age((age & !Self::STEPPED) << Self::STEP_SHIFT),
        }
    }

    #[inline]
    const fn since_arrival(self, now: Nanos) -> Nanos {
        let arrived = self.0 & !(Self::AGE_MASK as u64);
        let ticks = Self::of(now, Age(0)).0.wrapping_sub(arrived) >> Self::AGE_BITS;
        Nanos(if ticks < Self::TICKS - Self::BEHIND_TICKS { ticks << Self::TICK_SHIFT } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time just before the ticks wrap.
    const ARRIVED: Nanos = Nanos((1 << 54) - 32);
    const HOUR: u64 = 3_600_000_000_000;

    fn waited(now: Nanos) -> Nanos {
        WaitingTask::of(&Submit::default(), ARRIVED, Kept::Client).waited(now)
    }

    #[test]
    fn a_task_that_came_after_the_pass_had_looked_at_the_clock_has_waited_for_no_time() {
        for before in [1, 16, 20_000, 4_000_000_000] {
            assert_eq!(waited(ARRIVED.since(Nanos(before))), Nanos(0), "{before} ns");
        }
    }

    #[test]
    fn a_task_may_wait_for_months_and_over_the_wrap() {
        for span in [0, 16, 32, 20_000, 4 * HOUR, (1 << 44) - 16, 1 << 44, 5 * HOUR, 24 * HOUR, 4_800 * HOUR]
        {
            assert_eq!(waited(ARRIVED + Nanos(span)), Nanos(span));
        }
    }

    /// The age of a task after a wait, as its DISPATCH tells it.
    fn aged(age: Age, wait: Nanos) -> Age {
        let task = WaitingTask::of(&Submit { age, ..Submit::default() }, ARRIVED, Kept::Client);
        task.submit(0).age.plus(task.waited(ARRIVED + wait))
    }

    #[test]
    fn an_age_only_grows_however_long_its_task_waits() {
        let spans =
            [0, 20_000, 1_000_000_000, HOUR, 4 * HOUR, 5 * HOUR, 24 * HOUR, 20 * 24 * HOUR, 4_800 * HOUR];
        for age in [0, 1, 8_191, 8_192, 8_193, 1 << 20, (1 << 24) - (1 << 14), 1 << 24, u32::MAX] {
            let ages = spans.map(|span| aged(Age(age), Nanos(span)));
            assert!(ages[0] >= Age(age) && ages.is_sorted(), "{age}: {ages:?}");
        }
    }

    #[test]
    fn an_age_is_kept_as_it_is_up_to_130_ms_then_rounded_up_by_less_than_a_step_and_saturates() {
        for age in [0, 1, 8_191] {
            assert_eq!(aged(Age(age), Nanos(0)), Age(age));
        }
        for age in [8_192, 8_193, 10_240, 305_000, (8_191 << 11) - 2_048] {
            let kept = aged(Age(age), Nanos(0)).0;
            assert!(kept >= age && kept - age < 1 << 11, "{age} is kept as {kept}");
        }
        for age in [8_191 << 11, 1 << 24, u32::MAX] {
            assert_eq!(aged(Age(age), Nanos(0)), Age::MAX);
        }
    }
}
