//! The packets that recirculate: fixes of pointers, polls that look at the next class, tasks that are
//! carried past others, and the rest of a submission of several tasks.
//!
//! A memo has 64 bits. So a carried task holds only the low bits of its worker's generation and of its
//! ticket. The switch completes both from its present values when the packet comes back; by then these have
//! advanced by a few laps of the ring at most.

use sluice_wire::{Generation, Nanos, SliceId, TaskJob, WorkerId};

use crate::program::{Cargo, Circulating, Verdict};

/// How many low bits of a generation and of a ticket a memo holds.
const GENERATION_BITS: u32 = 10;
const TICKET_BITS: u32 = 20;
/// How many slices a memo can tell apart: it has eight bits for the slice.
pub(super) const CARRIED_SLICES: u16 = 1 << 8;
/// The class stands between the ticket and the generation, in two bits.
const GENERATION_SHIFT: u32 = TICKET_BITS + 2;

/// A queue: of one class of a slice's tasks, or of all its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueId {
    pub(super) slice: SliceId,
    pub(super) class: u8,
}

/// The memo of a recirculating packet that holds no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SelfNote {
    /// Sets the retrieve pointer of a queue to this ticket.
    Fix { queue: QueueId, ticket: u32 },
    /// A token that found the classes before this one empty.
    Poll { worker: WorkerId, generation: Generation, class: u8 },
    /// Sets a retrieve pointer, and then answers the token, for which no task was found.
    FixAndEmpty(Carrier),
    /// Answers the token, for which no task was found.
    Empty(Carrier),
}

/// The memo of a recirculating task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskNote {
    /// The task found its queue full: sets the add pointer back.
    Fix { queue: QueueId, ticket: u32 },
    /// The task is carried past others for a worker that it does not suit.
    Carried(Carrier),
    /// Sets the add pointer back first, which the carried task left too far ahead; then the task is carried
    /// on.
    CarriedFix(Carrier),
}

/// The memo of a recirculating job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobNote {
    /// The last task of the job has entered; a retrieve pointer must still be put right.
    Fix { queue: QueueId, ticket: u32 },
    /// The next task of the job may enter.
    Next,
    /// The next task found its queue full: sets the add pointer back.
    Full { queue: QueueId, ticket: u32 },
}

/// A token with a task that does not suit its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carrier {
    pub(super) slice: SliceId,
    pub(super) worker: WorkerId,
    generation: u16,
    ticket: u32,
    pub(super) class: u8,
    pub(super) swaps: u8,
}

impl Carrier {
    /// A token of this worker, without a task yet.
    pub(super) const fn new(slice: SliceId, worker: WorkerId, generation: Generation) -> Self {
        let generation = low(generation.0, GENERATION_BITS) as u16;
        Self { slice, worker, generation, ticket: 0, class: 0, swaps: 0 }
    }

    /// This carrier with a task of this class; the task is compared next with the entry of `ticket`.
    pub(super) const fn with(self, class: u8, ticket: u32) -> Self {
        Self { class, ..self.at(ticket) }
    }

    /// This carrier at another ticket.
    pub(super) const fn at(self, ticket: u32) -> Self {
        Self { ticket: low(ticket, TICKET_BITS), ..self }
    }

    /// This carrier after one more swap.
    pub(super) const fn swapped(self) -> Self {
        Self { swaps: self.swaps + 1, ..self }
    }

    /// The whole ticket whose low bits the carrier holds: the one nearest to `near_to`.
    pub(super) const fn ticket(self, near_to: u32) -> u32 {
        near(self.ticket, TICKET_BITS, near_to)
    }

    /// The whole generation whose low bits the carrier holds: the one nearest to the worker's present
    /// generation.
    pub(super) const fn generation(self, present: Generation) -> Generation {
        Generation(near(self.generation as u32, GENERATION_BITS, present.0))
    }

    const fn memo(self) -> u64 {
        (self.swaps as u64) << 56
            | (self.slice.0 as u64 & 0xff) << 48
            | (self.worker.0 as u64) << 32
            | (self.generation as u64) << GENERATION_SHIFT
            | (self.class as u64) << TICKET_BITS
            | self.ticket as u64
    }

    const fn read(memo: u64) -> Self {
        Self {
            swaps: (memo >> 56) as u8 & 0x3f,
            slice: SliceId((memo >> 48) as u16 & 0xff),
            worker: WorkerId((memo >> 32) as u16),
            generation: low((memo >> GENERATION_SHIFT) as u32, GENERATION_BITS) as u16,
            class: (memo >> TICKET_BITS) as u8 & 0x3,
            ticket: low(memo as u32, TICKET_BITS),
        }
    }
}

/// The upper two bits of a memo say which variant it is.
const KIND_SHIFT: u32 = 62;

impl SelfNote {
    pub(super) const fn read(memo: u64) -> Self {
        match memo >> KIND_SHIFT {
            0 => {
                let (queue, ticket) = fix_of(memo);
                Self::Fix { queue, ticket }
            }
            1 => Self::Poll {
                worker: WorkerId(memo as u16),
                generation: Generation((memo >> 16) as u32),
                class: (memo >> 48) as u8,
            },
            2 => Self::FixAndEmpty(Carrier::read(memo)),
            _ => Self::Empty(Carrier::read(memo)),
        }
    }

    const fn memo(self) -> u64 {
        match self {
            Self::Fix { queue, ticket } => fix_memo(queue, ticket),
            Self::Poll { worker, generation, class } => {
                1 << KIND_SHIFT | (class as u64) << 48 | (generation.0 as u64) << 16 | worker.0 as u64
            }
            Self::FixAndEmpty(carrier) => 2 << KIND_SHIFT | carrier.memo(),
            Self::Empty(carrier) => 3 << KIND_SHIFT | carrier.memo(),
        }
    }

    /// Recirculates this note. A task that came in the same pass was added and waits.
    pub(super) const fn go(self) -> Verdict {
        Verdict::Again(Circulating { cargo: Cargo::Note, arrived: Nanos(0), memo: self.memo() })
    }
}

impl TaskNote {
    pub(super) const fn read(memo: u64) -> Self {
        match memo >> KIND_SHIFT {
            0 => {
                let (queue, ticket) = fix_of(memo);
                Self::Fix { queue, ticket }
            }
            1 => Self::Carried(Carrier::read(memo)),
            _ => Self::CarriedFix(Carrier::read(memo)),
        }
    }

    pub(super) const fn memo(self) -> u64 {
        match self {
            Self::Fix { queue, ticket } => fix_memo(queue, ticket),
            Self::Carried(carrier) => 1 << KIND_SHIFT | carrier.memo(),
            Self::CarriedFix(carrier) => 2 << KIND_SHIFT | carrier.memo(),
        }
    }
}

impl JobNote {
    /// Reads a memo. A fix of the retrieve pointer has the same memo with a job as without.
    pub(super) const fn read(memo: u64) -> Self {
        let (queue, ticket) = fix_of(memo);
        match memo >> KIND_SHIFT {
            0 => Self::Fix { queue, ticket },
            1 => Self::Next,
            _ => Self::Full { queue, ticket },
        }
    }

    /// Reads the memo of a task that sets the add pointer back and has others of its job behind it.
    pub(super) const fn of_full(memo: u64) -> Self {
        let (queue, ticket) = fix_of(memo);
        Self::Full { queue, ticket }
    }

    const fn memo(self) -> u64 {
        match self {
            Self::Fix { queue, ticket } => fix_memo(queue, ticket),
            Self::Next => 1 << KIND_SHIFT,
            Self::Full { queue, ticket } => 2 << KIND_SHIFT | fix_memo(queue, ticket),
        }
    }

    /// Recirculates the job.
    pub(super) const fn go(self, job: TaskJob, arrived: Nanos) -> Verdict {
        Verdict::Again(Circulating { cargo: Cargo::Job(job), arrived, memo: self.memo() })
    }
}

const fn fix_memo(queue: QueueId, ticket: u32) -> u64 {
    (queue.class as u64) << 48 | (queue.slice.0 as u64) << 32 | ticket as u64
}

const fn fix_of(memo: u64) -> (QueueId, u32) {
    (QueueId { slice: SliceId((memo >> 32) as u16), class: (memo >> 48) as u8 & 0x3 }, memo as u32)
}

const fn low(number: u32, bits: u32) -> u32 {
    number & ((1 << bits) - 1)
}

/// The number with these low bits that is nearest to another.
const fn near(low_bits: u32, bits: u32, to: u32) -> u32 {
    let spare = u32::BITS - bits;
    let off = (low_bits.wrapping_sub(to) << spare) as i32 >> spare;
    to.wrapping_add(off as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_back() {
        let queue = QueueId { slice: SliceId(700), class: 3 };
        let carrier = Carrier::new(SliceId(255), WorkerId(u16::MAX), Generation(0x3ff)).with(3, u32::MAX);
        let carrier = (0..63).fold(carrier, |carrier, _| carrier.swapped());
        let (worker, generation) = (WorkerId(9), Generation(u32::MAX));
        for note in [
            SelfNote::Fix { queue, ticket: u32::MAX },
            SelfNote::Poll { worker, generation, class: 3 },
            SelfNote::FixAndEmpty(carrier),
            SelfNote::Empty(carrier),
        ] {
            assert_eq!(SelfNote::read(note.memo()), note);
        }
        for note in
            [TaskNote::Fix { queue, ticket: 7 }, TaskNote::Carried(carrier), TaskNote::CarriedFix(carrier)]
        {
            assert_eq!(TaskNote::read(note.memo()), note);
        }
        let ticket = u32::MAX;
        for note in [JobNote::Fix { queue, ticket }, JobNote::Next, JobNote::Full { queue, ticket }] {
            assert_eq!(JobNote::read(note.memo()), note);
        }
        let fix = SelfNote::Fix { queue, ticket };
        assert_eq!(JobNote::read(fix.memo()), JobNote::Fix { queue, ticket });
    }

    #[test]
    fn whole_numbers_come_back_from_their_low_bits_on_either_side_of_the_wrap() {
        for (whole, near_to) in [(5, 9), (9, 5), (u32::MAX, 3), (3, u32::MAX), (1 << 20, (1 << 20) - 7)] {
            let carrier = Carrier::new(SliceId(0), WorkerId(0), Generation(whole)).at(whole);
            assert_eq!(carrier.ticket(near_to), whole);
            assert_eq!(carrier.generation(Generation(near_to)), Generation(whole));
        }
    }
}
