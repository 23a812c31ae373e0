//! A task that waits in the switch's memory.

use sluice_wire::{
    Age, Attempt, ClientId, Handle, INLINE_BYTES, Incarnation, Nanos, Payload, Place, Serial, SliceId,
    Submit, TaskId, TaskType,
};

/// A ticket's cell where rings of `len` cells lie behind each other, a ring for each slice or more.
#[inline]
pub(crate) const fn cell(ring: usize, ticket: u32, len: u32) -> usize {
    ring * len as usize + (ticket & (len - 1)) as usize
}

/// A task in its ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingTask {
    incarnation: Incarnation,
    sequence: Serial,
    times: Times,
    client: ClientId,
    attempt: Attempt,
    task_type: TaskType,
    len: u16,
    inline: [u8; 8],
    /// The driver's, beside the chip's columns.
    handle: Handle,
    priority: u8,
    constraints: u8,
    kept: Kept,
}

/// Who keeps a large task's bytes while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Whoever drives the switch, under the payload's handle.
    Driver,
    /// The servers of its slice.
    Ahead,
    Client,
}

impl Kept {
    /// What was written ahead is with the servers; else a switch that has servers keeps nothing.
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
    #[inline]
    pub(crate) const fn of(submit: &Submit, arrived: Nanos, kept: Kept) -> Self {
        Self {
            incarnation: submit.task.incarnation,
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
        }
    }

    /// Where its bytes are, if it waits in this slice under this ticket.
    #[inline]
    pub(crate) const fn place(&self, slice: SliceId, ticket: u32) -> Place {
        match self.kept {
            _ if self.len as usize <= INLINE_BYTES => Place::Here,
            Kept::Driver => Place::Here,
            Kept::Ahead => Place::Ahead { slice, ticket },
            Kept::Client => Place::AtClient,
        }
    }

    /// The task as its client submitted it, but for the epoch and key that it was let in with.
    #[inline]
    pub(crate) fn submit(&self) -> Submit {
        Submit {
            client: self.client,
            task: TaskId { incarnation: self.incarnation, sequence: self.sequence },
            attempt: self.attempt,
            task_type: self.task_type,
            priority: self.priority,
            constraints: self.constraints,
            age: self.times.age(),
            payload: Payload { len: self.len, inline: self.inline, handle: self.handle },
            ..Submit::default()
        }
    }

    /// How long it has waited.
    #[inline]
    pub(crate) const fn waited(&self, now: Nanos) -> Nanos {
        self.times.since_arrival(now)
    }
}

/// When a task arrived and how old it was then, in one word: 50 bits of 16 ns, which wrap after 208 days, and
/// 14 bits of an [`Age`]. Up to 0.13 s these say it exactly; beyond they say it in steps of 34 ms, rounded
/// up, and saturate after 4.6 min. Workers refuse what may be older than they remember, which is less.
///
/// Where several passes run at once, the one that takes a task may have looked at the clock before the one
/// that put it there: the task has waited for no time then.
#[derive(Clone, Copy, Debug)]
struct Times(u64);

impl Times {
    const TICK_SHIFT: u32 = 4;
    const TICKS: u64 = 1 << (u64::BITS - Self::AGE_BITS);
    /// No pass lasts so many ticks, 4.3 s: spans so close below the wrap are those of one that began before
    /// the task's.
    const BEHIND_TICKS: u64 = 1 << 28;
    const AGE_BITS: u32 = 14;
    const AGE_MASK: u32 = (1 << Self::AGE_BITS) - 1;
    /// The bit that says that an age is in steps, and the first age that is.
    const STEPPED: u32 = 1 << (Self::AGE_BITS - 1);
    const STEP_SHIFT: u32 = 11;

    #[inline]
    const fn of(arrived: Nanos, age: Age) -> Self {
        let age = if age.0 < Self::STEPPED { age.0 } else { Self::stepped(age) };
        Self((arrived.0 >> Self::TICK_SHIFT) << Self::AGE_BITS | age as u64)
    }

    /// Of tries that come late only. The last step stands for all beyond it.
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

    /// Just before the ticks wrap.
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

    /// What a task's age is after it waited, as its DISPATCH says it.
    fn aged(age: Age, wait: Nanos) -> Age {
        let task = WaitingTask::of(&Submit { age, ..Submit::default() }, ARRIVED, Kept::Client);
        task.submit().age.plus(task.waited(ARRIVED + wait))
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
