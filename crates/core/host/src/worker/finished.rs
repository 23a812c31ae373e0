//! The finished tasks: their ids for the retry horizon, so that no task runs twice, and as many of their
//! replies as fit.
//!
//! Tasks and replies are stored in the order in which they ended. A hash table of ticket numbers finds a
//! task. A task takes about 32 bytes beside its reply.
//!
//! A task that waited in the switch while its client's registration ended comes with another upper half of its
//! incarnation. So tasks count as the same if [`TaskId::kept`] is, and such a repeat is answered as too old to
//! tell: it does not run again, and nobody gets another client's reply.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use hashbrown::HashTable;
use sluice_wire::{Handle, Incarnation, Nanos, Payload, ReplyStatus, Serial, TaskId};

use super::types::{Action, WorkerSettings};

/// A service's reply, and how long the service took.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptReply {
    pub(super) status: ReplyStatus,
    pub(super) switch_wait_ns: u32,
    pub(super) worker_wait_ns: u32,
    pub(super) service_ns: u32,
    pub(super) payload: Payload,
}

impl KeptReply {
    /// The answer to a repeat when the reply is no longer kept.
    pub(super) const GONE: Self = Self {
        status: ReplyStatus::Gone,
        switch_wait_ns: 0,
        worker_wait_ns: 0,
        service_ns: 0,
        payload: Payload::EMPTY,
    };
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Finished {
    tasks: VecDeque<Ended>,
    replies: VecDeque<KeptReply>,
    /// How many of the kept replies say that the task did not run.
    refused: usize,
    /// Bytes of all kept replies that are not inline.
    bytes: usize,
    tickets: HashTable<u32>,
    /// The ticket of the oldest task. Tickets wrap around.
    first: u32,
    /// The end time of the newest task that was dropped.
    forgotten: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    incarnation: Incarnation,
    sequence: Serial,
    /// Whether it did not run, because its budget was spent.
    is_refused: bool,
    at: Nanos,
}

impl Ended {
    const fn task(&self) -> TaskId {
        TaskId { incarnation: self.incarnation, sequence: self.sequence }
    }

    /// The answer to a repeat when the reply is no longer kept.
    const fn without_reply(&self) -> KeptReply {
        let status = if self.is_refused { ReplyStatus::Late } else { ReplyStatus::Gone };
        KeptReply { status, ..KeptReply::GONE }
    }
}

impl Finished {
    /// How many tasks are kept.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// How many replies of services are kept.
    pub(super) fn replies(&self) -> usize {
        self.replies.len() - self.refused
    }

    /// Whether every task that ended at or after `time` is still known.
    pub(super) fn knows_all_since(&self, time: Nanos) -> bool {
        self.forgotten.is_none_or(|newest| newest < time)
    }

    /// The answer to a repeat of this task; `None` if the task has not ended here.
    #[inline]
    pub(super) fn find(&self, task: TaskId) -> Option<KeptReply> {
        let is_same = |known: TaskId| known.kept() == task.kept();
        let ticket = *self.tickets.find(spread(task), |ticket| self.task(*ticket).is_some_and(is_same))?;
        if self.task(ticket) != Some(task) {
            return Some(KeptReply { status: ReplyStatus::Old, ..KeptReply::GONE });
        }
        let age = self.first.wrapping_add(self.tasks.len() as u32).wrapping_sub(ticket) as usize;
        let reply = self.replies.len().checked_sub(age).and_then(|index| self.replies.get(index));
        Some(
            reply
                .copied()
                .unwrap_or_else(|| self.ended(ticket).map_or(KeptReply::GONE, Ended::without_reply)),
        )
    }

    /// Stores a task that ended now, and its reply. The oldest replies give way if there is no room.
    #[inline]
    pub(super) fn add(
        &mut self,
        now: Nanos,
        settings: &WorkerSettings,
        task: TaskId,
        reply: KeptReply,
        out: &mut Vec<Action>,
    ) {
        let ticket = self.first.wrapping_add(self.tasks.len() as u32);
        let (TaskId { incarnation, sequence }, is_refused) = (task, reply.status == ReplyStatus::Late);
        self.tasks.push_back(Ended { incarnation, sequence, is_refused, at: now });
        let Self { tasks, tickets, first, .. } = self;
        tickets.insert_unique(spread(task), ticket, |ticket| {
            tasks.get(ticket.wrapping_sub(*first) as usize).map_or(0, |ended| spread(ended.task()))
        });
        self.bytes += long_bytes(&reply);
        self.refused += usize::from(is_refused);
        self.replies.push_back(reply);
        while self.replies.len() > settings.replies_max || self.bytes > settings.reply_bytes_max {
            self.forget_oldest_reply(out);
        }
    }

    /// Drops the tasks that ended more than a retry horizon ago, and frees the memory when none is left.
    pub(super) fn evict(&mut self, now: Nanos, settings: &WorkerSettings, out: &mut Vec<Action>) {
        while self.tasks.front().is_some_and(|oldest| oldest.at + settings.retry_horizon <= now) {
            if self.replies.len() == self.tasks.len() {
                self.forget_oldest_reply(out);
            }
            self.drop_oldest_task();
            if self.tasks.is_empty() {
                *self = Self { forgotten: self.forgotten, ..Self::default() };
            }
        }
    }

    /// When [`Self::evict`] should run: at once if the table is full, otherwise late enough to drop many
    /// tasks together.
    pub(super) fn deadline(&self, settings: &WorkerSettings) -> Option<Nanos> {
        let expires = self.tasks.front()?.at + settings.retry_horizon;
        let full = self.tasks.len() >= settings.finished_max.saturating_sub(settings.held_max);
        Some(if full { expires } else { expires + Nanos(settings.retry_horizon.0 / 16) })
    }

    fn task(&self, ticket: u32) -> Option<TaskId> {
        self.ended(ticket).map(Ended::task)
    }

    fn ended(&self, ticket: u32) -> Option<&Ended> {
        self.tasks.get(ticket.wrapping_sub(self.first) as usize)
    }

    fn forget_oldest_reply(&mut self, out: &mut Vec<Action>) {
        let Some(reply) = self.replies.pop_front() else { return };
        self.bytes -= long_bytes(&reply);
        self.refused -= usize::from(reply.status == ReplyStatus::Late);
        if reply.payload.handle != Handle::NONE {
            out.push(Action::Forget(reply.payload.handle));
        }
    }

    fn drop_oldest_task(&mut self) {
        let Some(oldest) = self.tasks.front() else { return };
        let ticket = self.first;
        if let Ok(entry) = self.tickets.find_entry(spread(oldest.task()), |found| *found == ticket) {
            entry.remove();
        }
        self.forgotten = Some(oldest.at);
        self.tasks.pop_front();
        self.first = self.first.wrapping_add(1);
    }
}

/// Bytes of a reply that the driver stores.
fn long_bytes(reply: &KeptReply) -> usize {
    let Payload { len, handle, .. } = reply.payload;
    if handle == Handle::NONE { 0 } else { reply.payload.total().max(len.into()) as usize }
}

/// A hash that is the same in every run, of what the switch keeps of an id. Incarnations are random already;
/// the function spreads sequence numbers over all bits.
fn spread(task: TaskId) -> u64 {
    let (incarnation, sequence) = task.kept();
    let mixed = u64::from(incarnation) ^ u64::from(sequence.0).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    fn settings() -> WorkerSettings {
        WorkerSettings { retry_horizon: Nanos(100), replies_max: 3, ..WorkerSettings::default() }
    }

    fn task(number: u32) -> TaskId {
        TaskId { incarnation: Incarnation(7), sequence: Serial(number) }
    }

    fn reply(handle: u32) -> KeptReply {
        let payload = Payload { len: 100, handle: Handle(handle), ..Payload::EMPTY };
        KeptReply { status: ReplyStatus::Done, payload, ..KeptReply::GONE }
    }

    fn filled(count: u32) -> (Finished, Vec<Action>) {
        let (mut table, mut out) = (Finished { first: u32::MAX - 2, ..Finished::default() }, Vec::new());
        (0..count).for_each(|n| table.add(Nanos(n.into()), &settings(), task(n), reply(n), &mut out));
        (table, out)
    }

    #[test]
    fn the_newest_replies_are_kept_and_older_ones_are_gone() {
        let (table, out) = filled(5);
        assert_eq!(out, [Action::Forget(Handle(0)), Action::Forget(Handle(1))]);
        let found = |n| table.find(task(n)).map(|kept| (kept.status, kept.payload.handle.0));
        assert_eq!(found(1), Some((ReplyStatus::Gone, Handle::NONE.0)));
        assert_eq!(found(2), Some((ReplyStatus::Done, 2)));
        assert_eq!(found(4), Some((ReplyStatus::Done, 4)));
        assert_eq!(found(5), None);
    }

    #[test]
    fn a_task_is_known_for_the_whole_horizon_and_then_forgotten_with_its_reply() {
        let (mut table, mut out) = filled(5);
        out.clear();
        assert_eq!(table.deadline(&settings()), Some(Nanos(100 + 100 / 16)), "many at a time");
        table.evict(Nanos(102), &settings(), &mut out);
        assert_eq!([2, 3].map(|time| table.knows_all_since(Nanos(time))), [false, true]);
        assert_eq!((table.len(), table.replies(), out.as_slice()), (2, 2, &[Action::Forget(Handle(2))][..]));
        assert!(table.find(task(2)).is_none());
        assert_eq!(table.find(task(3)).map(|kept| kept.payload.handle), Some(Handle(3)));
        table.evict(Nanos(1_000), &settings(), &mut out);
        assert_eq!((table.len(), table.replies(), table.tickets.len(), out.len()), (0, 0, 0, 3));
        assert_eq!(table.deadline(&settings()), None);
    }

    #[test]
    fn with_no_room_for_replies_each_is_forgotten_at_once() {
        let (mut table, mut out) = (Finished::default(), Vec::new());
        let settings = WorkerSettings { replies_max: 0, ..settings() };
        table.add(Nanos(1), &settings, task(1), reply(1), &mut out);
        assert_eq!(out, [Action::Forget(Handle(1))]);
        assert_eq!(table.find(task(1)).map(|kept| kept.status), Some(ReplyStatus::Gone));
    }

    #[test]
    fn long_replies_are_kept_up_to_so_many_bytes_and_short_ones_cost_none() {
        let (mut table, mut out) = (Finished::default(), Vec::new());
        let settings = WorkerSettings { replies_max: 10, reply_bytes_max: 200, ..settings() };
        let short = KeptReply { status: ReplyStatus::Done, ..KeptReply::GONE };
        for (number, reply) in [reply(0), reply(1), short, short].into_iter().enumerate() {
            table.add(Nanos(1), &settings, task(number as u32), reply, &mut out);
        }
        assert_eq!((table.replies(), out.as_slice()), (4, &[][..]));
        table.add(Nanos(1), &settings, task(4), reply(4), &mut out);
        assert_eq!((table.replies(), out.as_slice()), (4, &[Action::Forget(Handle(0))][..]));
        table.evict(Nanos(101), &settings, &mut out);
        assert_eq!((table.replies(), table.bytes), (0, 0));
    }

    #[test]
    fn a_fast_worker_still_has_the_reply_when_the_fifth_attempt_asks_for_it() {
        let settings = WorkerSettings::default();
        let long = KeptReply { payload: Payload { len: 1_000, ..reply(0).payload }, ..reply(0) };
        let short = KeptReply { payload: Payload::EMPTY, ..reply(0) };
        for (per_second, reply) in [(100_000_u64, short), (40_000, long)] {
            let (mut table, mut out) = (Finished::default(), Vec::new());
            for number in 0..per_second * 3 / 2 {
                let now = Nanos(number * 1_000_000_000 / per_second);
                table.add(now, &settings, task(number as u32), reply, &mut out);
            }
            assert_eq!(table.find(task(0)).map(|kept| kept.status), Some(ReplyStatus::Done), "{per_second}");
        }
    }

    #[test]
    fn a_task_that_lost_half_of_its_incarnation_is_known_and_its_reply_is_not_given_away() {
        let (table, _) = filled(3);
        let other = TaskId { incarnation: Incarnation::of(9, 7), ..task(2) };
        assert_eq!(table.find(other).map(|kept| kept.status), Some(ReplyStatus::Old));
        assert!(table.find(TaskId { incarnation: Incarnation::of(9, 8), ..task(2) }).is_none());
    }

    #[test]
    fn the_tasks_of_a_client_are_spread_over_the_table() {
        for incarnation in [7, u64::MAX] {
            let task = |number| TaskId { incarnation: Incarnation(incarnation), sequence: Serial(number) };
            let places = |of: &dyn Fn(u64) -> u64| {
                let places: BTreeSet<u64> = (0..4_096).map(|number| of(spread(task(number)))).collect();
                places.len()
            };
            let (low, high) = (places(&|hash| hash % 4_096), places(&|hash| hash >> 52));
            assert!(low > 2_400 && high > 2_400, "{low} and {high} of 4096; dice would hit 2589");
        }
    }

    #[test]
    fn thousands_of_tasks_are_found_and_dropped() {
        let (mut table, mut out) = filled(10_000);
        assert!((0..10_000).all(|n| table.find(task(n)).is_some()));
        table.evict(Nanos(100 + 4_999), &settings(), &mut out);
        assert!((0..10_000).all(|n| table.find(task(n)).is_some() == (n >= 5_000)));
    }
}
