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
    /// The client only.
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

/// When a task arrived and how old it was then, in one word: 40 bits of 16 ns, which wrap after 4.9 h, and 24
/// bits of an [`Age`], which saturate after 4.6 min. Workers refuse what may be older than they remember,
/// which is less.
///
/// Where several passes run at once, the one that takes a task may have looked at the clock before the one
/// that put it there: the task has waited for no time then.
#[derive(Clone, Copy, Debug)]
struct Times(u64);

impl Times {
    const TICK_SHIFT: u32 = 4;
    const TICKS: u64 = 1 << 40;
    /// No pass lasts so many ticks, 4.3 s: spans so close below the wrap are those of one that began before
    /// the task's.
    const BEHIND_TICKS: u64 = 1 << 28;
    const AGE_BITS: u32 = 24;
    const AGE_MAX: u32 = (1 << Self::AGE_BITS) - 1;

    #[inline]
    const fn of(arrived: Nanos, age: Age) -> Self {
        let age = if age.0 > Self::AGE_MAX { Self::AGE_MAX } else { age.0 };
        Self((arrived.0 >> Self::TICK_SHIFT) << Self::AGE_BITS | age as u64)
    }

    #[inline]
    const fn age(self) -> Age {
        let age = self.0 as u32 & Self::AGE_MAX;
        if age == Self::AGE_MAX { Age::MAX } else { Age(age) }
    }

    #[inline]
    const fn since_arrival(self, now: Nanos) -> Nanos {
        let ticks =
            Self::of(now, Age(0)).0.wrapping_sub(self.0 - self.0 % (1 << Self::AGE_BITS)) >> Self::AGE_BITS;
        Nanos(if ticks < Self::TICKS - Self::BEHIND_TICKS { ticks << Self::TICK_SHIFT } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Just before the ticks wrap.
    const ARRIVED: Nanos = Nanos((1 << 44) - 32);

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
    fn a_task_may_wait_for_hours_and_over_the_wrap() {
        for span in [0, 16, 32, 20_000, 4 * 3_600_000_000_000] {
            assert_eq!(waited(ARRIVED + Nanos(span)), Nanos(span));
        }
    }
}
