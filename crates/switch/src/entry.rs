//! A task that waits in the switch's memory.

use sluice_wire::{
    Age, Attempt, ClientId, Handle, INLINE_BYTES, Incarnation, Nanos, Payload, Place, Serial, SliceId,
    Submit, TaskId, TaskType,
};

/// A ticket's cell in its slice's part of a ring of `len` a slice.
#[inline]
pub(crate) const fn cell(slice: SliceId, ticket: u32, len: u32) -> usize {
    slice.0 as usize * len as usize + (ticket & (len - 1)) as usize
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

/// When a task arrived and how old it was then, in one word: 40 bits of 16 ns, which wrap after 4.9 h, and 24 bits of
/// an [`Age`], which saturate after 4.6 min. Workers refuse what may be older than they remember, which is less.
#[derive(Clone, Copy, Debug)]
struct Times(u64);

impl Times {
    const TICK_SHIFT: u32 = 4;
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
        Nanos(ticks << Self::TICK_SHIFT)
    }
}
