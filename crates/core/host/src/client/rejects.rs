//! Tasks for which the switch had no room, and the room that repeats take.
//!
//! A rejected task is retried after the time that its REJECT names, paid from the budget. If the budget is
//! spent, the task is refused, provided that every attempt was rejected. There is one exception. The switch
//! cannot tell that an earlier attempt of the same task already waits, so a repeat takes a second place in
//! the queue. Therefore a task that found no room while this client's repeats may have taken some is
//! retried anyway, as long as workers remember it: no task is refused because its own client sent another
//! one twice.
//!
//! A REJECT for lack of workers also makes the client ask the controller, which may know workers at another
//! switch. Shortly after a restart of the switch its workers are only about to register again. So the task is
//! tried again meanwhile, without cost for the budget.

use alloc::vec::Vec;

use sluice_wire::{Attempt, Nanos, Reject, RejectReason, Reply, TaskId, TaskType};

use super::slots::{NextTry, Slot};
use super::{Action, Client, ClientSettings, CutOff, Outcome, RefusedWhy};

/// How many tries fit into a first timeout, at most, while the workers of a restarted switch are missing.
const RETURN_TRIES: u64 = 8;

impl Client {
    /// Handles a REJECT. If the task was sent in a submission of several, the REJECT may also cover the
    /// tasks behind it.
    pub(super) fn on_reject(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        reject: &Reject,
        out: &mut Vec<Action>,
    ) {
        for at in 0..=reject.behind.into() {
            let sequence = reject.task.sequence.plus(at);
            let one = Reject { task: TaskId { sequence, ..reject.task }, behind: 0, ..*reject };
            self.on_reject_of(now, settings, &one, out);
        }
    }

    /// Handles the REJECT of one task. Only the first REJECT of the newest attempt counts, and only in the
    /// epoch in which that attempt was sent.
    fn on_reject_of(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        reject: &Reject,
        out: &mut Vec<Action>,
    ) {
        let Some(id) = self.hear(now, settings, reject.task, reject.epoch, out) else {
            return self.comes_late(reject.task, reject.task_type);
        };
        let living = self.living().is_some();
        let slot = self.slots.get(id);
        let newest = (Attempt(slot.attempts), slot.sent_in) == (reject.attempt, reject.epoch);
        if !newest || slot.rejected.is_some() {
            self.stats.late += 1;
            return;
        }
        self.stats.rejects += 1;
        slot.rejected = Some(RefusedWhy::of(reject.reason, slot.task_type));
        self.shares.end_repeats(slot.share, slot.repeats().min(1));
        slot.waiting = slot.waiting.saturating_sub(1);
        if reject.reason == RejectReason::NoWorkers {
            // The controller knows how many workers there are now, and whether another switch has some.
            self.ask_renewal(now, settings, out);
        }
        if reject.reason == RejectReason::Busy {
            return self.end_busy(now, id, reject, out);
        }
        let slot = self.slots.get(id);
        let is_final =
            matches!(reject.reason, RejectReason::UnknownType | RejectReason::Unserved | RejectReason::Late);
        if slot.kept_back && !is_final {
            return;
        }
        let mut again = now + Nanos(u64::from(reject.retry_after_ns));
        if reject.reason == RejectReason::NoWorkers && now < self.workers_return_by {
            again = again.max(now + Nanos(settings.first_timeout.0 / RETURN_TRIES));
        }
        let slot = self.slots.get(id);
        if slot.may_retry(again) && !is_final {
            if !living {
                return;
            }
            if let Some(due) = self.retry_of_rejected(now, settings, id) {
                self.slots.get(id).due = due;
                self.timers.set(id, again);
                return;
            }
        }
        if let Some(why) = self.slots.get(id).refused() {
            self.end(id, Outcome::Refused(why), out);
        }
    }

    /// The task would have waited for longer than its slice's target. It ends at once, unless an earlier
    /// attempt may have run: the application knows best whether it is still worth a retry.
    #[cold]
    fn end_busy(&mut self, now: Nanos, id: u32, reject: &Reject, out: &mut Vec<Action>) {
        let target = Nanos(u64::from(reject.retry_after_ns));
        let slot = self.slots.get(id);
        let (share, is_refused) = (slot.share, slot.refused().is_some());
        self.shares.is_busy(share, now, target, reject.load);
        if is_refused {
            self.end(id, Outcome::Refused(RefusedWhy::Busy { retry_after: target }), out);
        }
    }

    /// A worker says that it did not run the task, and will not: nothing was left of its budget. For the
    /// client this is a REJECT without another try.
    #[cold]
    pub(super) fn on_late(&mut self, id: u32, reply: &Reply, out: &mut Vec<Action>) {
        let slot = self.slots.get(id);
        if reply.attempt != Attempt(slot.attempts) || slot.rejected.is_some() || slot.fetching {
            self.stats.late += 1;
            return;
        }
        slot.rejected = Some(RefusedWhy::Late(CutOff::Worker));
        self.shares.end_repeats(slot.share, slot.repeats().min(1));
        slot.waiting = slot.waiting.saturating_sub(1);
        if let Some(why) = self.slots.get(id).refused() {
            self.end(id, Outcome::Refused(why), out);
        }
    }

    /// Ends a task that was kept back until nothing was left of its budget, if no try of it can have run.
    #[cold]
    pub(super) fn end_if_late(&mut self, now: Nanos, id: u32, out: &mut Vec<Action>) {
        let slot = self.slots.get(id);
        if slot.budget(now).is_spent() && slot.refused().is_some() {
            self.end(id, Outcome::Refused(RefusedWhy::Late(CutOff::Client)), out);
        }
    }

    /// How the next attempt of a rejected task is paid: from the budget, or free if the task would
    /// otherwise be refused for lack of room that this client's repeats may have taken, or while the workers
    /// of a restarted switch may be missing. `None` if it cannot be paid.
    fn retry_of_rejected(&mut self, now: Nanos, settings: &ClientSettings, id: u32) -> Option<NextTry> {
        let wants_workers =
            self.slots.get(id).rejected == Some(RefusedWhy::Rejected(RejectReason::NoWorkers));
        if wants_workers && now < self.workers_return_by {
            return Some(NextTry::Free);
        }
        if self.budget.pay(settings) {
            return Some(NextTry::Paid);
        }
        let slot = self.slots.get(id);
        let wants_room = matches!(
            slot.rejected,
            Some(RefusedWhy::Rejected(RejectReason::QueueFull | RejectReason::NoRoom))
        );
        let is_to_be_refused = slot.refused().is_some();
        let is_free = wants_room && is_to_be_refused && self.shares.has_repeats(slot.share, now);
        is_free.then_some(NextTry::Free)
    }

    /// The time that a REJECT named has passed: sends the next attempt, or keeps it back while more tasks
    /// are tried than the share allows. A client that stood still meanwhile may be too late, since workers
    /// may have forgotten the task.
    pub(super) fn try_rejected(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        id: u32,
        out: &mut Vec<Action>,
    ) {
        let slot = self.slots.get(id);
        if slot.may_retry(now) {
            if self.is_beyond_share(id) {
                return self.wait_for_room(now, settings, id);
            }
            match self.slots.get(id).due {
                NextTry::Free => self.stats.retries_free += 1,
                _ => self.stats.retries_paid += 1,
            }
            self.send(now, settings, id, out);
        } else if let Some(why) = slot.refused() {
            self.end(id, Outcome::Refused(why), out);
        } else {
            slot.due = NextTry::Timeout;
            let deadline = slot.deadline;
            self.timers.set(id, deadline);
        }
    }

    /// An answer came for an attempt of a task that has already ended.
    pub(super) fn comes_late(&mut self, task: TaskId, task_type: TaskType) {
        if task.incarnation == self.incarnation {
            self.shares.comes_late(self.shares.of(task_type));
        }
    }

    /// Notes the attempts of an ended task that may still wait in the switch, until the time at which the
    /// client would have given them up.
    pub(super) fn leave_behind(&mut self, id: u32, slot: &Slot, outcome: &Outcome) {
        let repeats = slot.repeats();
        self.shares.end_repeats(slot.share, repeats);
        let behind = match outcome {
            Outcome::Reply(reply) => u32::from(slot.attempts - reply.attempt.0).min(repeats),
            Outcome::Refused(_) | Outcome::Unknown(_) => repeats,
        };
        if let Some(until) = self.timers.at(id) {
            self.shares.leave_behind(slot.share, behind, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use sluice_wire::registrations::ClientRegistration;
    use sluice_wire::{
        ClientId, Endpoint, Epoch, Incarnation, Key, Packet, Serial, SliceId, SliceLoad, Submit,
    };

    use super::super::{Busy, Submission};
    use super::*;

    const ROOM: u32 = 3;

    /// A client whose retry budget is zero, and its clock.
    struct Bench {
        client: Client,
        settings: ClientSettings,
        now: Nanos,
        out: Vec<Action>,
    }

    impl Bench {
        fn new() -> Self {
            let settings = ClientSettings { retry_burst: 0, ..ClientSettings::default() };
            let client = Client::new(Incarnation(1), Serial(0));
            let mut bench = Self { client, settings, now: Nanos(1), out: Vec::new() };
            bench.grant(1, ROOM);
            bench
        }

        fn grant(&mut self, epoch: u32, room: u32) {
            let grant = ClientRegistration {
                client: ClientId(0),
                key: Key(epoch),
                epoch: Epoch(epoch),
                switch: Endpoint::default(),
                replay_cells: 16,
                slices: vec![(TaskType(0), SliceId(0))],
                shares: vec![(SliceId(0), room)],
                classes: 1,
                jobs: 1,
                sizes: Vec::new(),
                retry_for: Nanos::from_millis(5_000),
            };
            self.client.grant(self.now, &self.settings, grant, &mut self.out);
        }

        fn offer(&mut self) -> Result<Submit, Busy> {
            let deadline = self.now + Nanos::from_millis(5_000);
            let task = Submission { deadline, retry: true, ..Submission::default() };
            self.client.submit(self.now, &self.settings, task, &mut self.out)?;
            Ok(self.sent())
        }

        /// Runs the client until its next attempt, and returns that attempt.
        fn again(&mut self) -> Submit {
            loop {
                self.now = self.client.deadline().expect("something is outstanding");
                self.client.tick(self.now, &self.settings, &mut self.out);
                if !self.out.is_empty() {
                    return self.sent();
                }
            }
        }

        fn sent(&mut self) -> Submit {
            match self.out.drain(..).next_back() {
                Some(Action::ToSwitch(submit)) => submit,
                other => panic!("nothing was sent: {other:?}"),
            }
        }

        fn reject(&mut self, to: &Submit) {
            self.reject_for(to, RejectReason::QueueFull);
        }

        fn reject_for(&mut self, to: &Submit, reason: RejectReason) {
            let Submit { epoch, client, task, attempt, task_type, .. } = *to;
            let is_busy = reason == RejectReason::Busy;
            let load = if is_busy { SliceLoad { room: 1, clients: 2 } } else { SliceLoad::default() };
            let retry_after_ns = 1_000_000;
            self.hear(Reject {
                epoch,
                client,
                task,
                attempt,
                task_type,
                reason,
                behind: 0,
                retry_after_ns,
                load,
            });
        }

        fn hear(&mut self, reject: Reject) {
            self.client.packet(self.now, &self.settings, &Packet::Reject(reject), &mut self.out);
        }

        fn reply(&mut self, to: &Submit) {
            let Submit { epoch, client, task, attempt, task_type, .. } = *to;
            let reply = Reply { epoch, client, task, attempt, task_type, ..Reply::default() };
            self.client.packet(self.now, &self.settings, &Packet::Reply(reply), &mut self.out);
        }

        fn refused(&self) -> u64 {
            self.client.stats().refused
        }
    }

    #[test]
    fn a_reject_for_want_of_workers_asks_the_controller_and_one_that_proves_nothing_does_not() {
        let mut bench = Bench::new();
        bench.settings.retry_burst = 8;
        let Submit { epoch, client, task, attempt, task_type, .. } = bench.offer().expect("there is room");
        let (reason, retry_after_ns) = (RejectReason::NoWorkers, 1_000_000);
        let (behind, load) = (0, SliceLoad::default());
        let said = Reject { epoch, client, task, attempt, task_type, reason, behind, retry_after_ns, load };
        for forged in [
            Reject { task: TaskId { incarnation: Incarnation(2), ..task }, ..said },
            Reject { task: TaskId { sequence: task.sequence.plus(1), ..task }, ..said },
            Reject { epoch: Epoch(0), ..said },
            Reject { attempt: Attempt(2), ..said },
        ] {
            bench.hear(forged);
            assert_eq!((&bench.out[..], bench.client.stats().renewals), (&[][..], 0), "{forged:?}");
        }
        bench.hear(said);
        assert_eq!(bench.out.drain(..).collect::<Vec<_>>(), [Action::Renew]);
        bench.hear(said);
        assert_eq!((&bench.out[..], bench.client.stats().renewals), (&[][..], 1), "the same one again");
    }

    #[test]
    fn none_is_refused_while_the_workers_of_a_restarted_switch_are_missing() {
        let mut bench = Bench::new();
        bench.grant(2, ROOM);
        let back_by = bench.now + bench.settings.return_time;
        let mut tried = bench.offer().expect("there is room");
        let mut tries = 0;
        while bench.now < back_by {
            bench.reject_for(&tried, RejectReason::NoWorkers);
            assert_eq!(bench.refused(), 0);
            bench.out.clear();
            tried = bench.again();
            tries += 1;
        }
        assert!((100..=u64::from(u8::MAX)).contains(&tries), "{tries}");
        bench.reject_for(&tried, RejectReason::NoWorkers);
        assert_eq!(bench.refused(), 1, "later they are not only about to return");
    }

    #[test]
    fn none_is_refused_for_the_room_that_a_repeat_of_another_took() {
        let mut bench = Bench::new();
        let first = bench.offer().expect("there is room");
        let repeat = bench.again();
        let fresh = bench.offer().expect("there is room for three tries");
        bench.reject(&fresh);
        assert_eq!(bench.refused(), 0, "the repeat may have taken its place");
        let second = bench.again();
        assert_eq!((second.task, second.attempt), (fresh.task, Attempt(2)));
        bench.reply(&first);
        bench.reject(&second);
        assert_eq!(bench.refused(), 0, "the task has ended, its repeat may still wait");
        bench.out.clear();
        let third = bench.again();
        bench.reply(&repeat);
        bench.reject(&third);
        assert_eq!((bench.refused(), bench.client.stats().retries_free), (1, 2), "nothing waits twice");
    }

    #[test]
    fn a_repeat_takes_a_place_of_the_share_until_it_is_rejected_or_its_task_ends() {
        let mut bench = Bench::new();
        let first = bench.offer().expect("there is room");
        let repeat = bench.again();
        let other = bench.offer().expect("there is room");
        assert_eq!((bench.offer(), repeat.attempt), (Err(Busy::ShareSpent), Attempt(2)));
        bench.reject(&repeat);
        assert!(bench.offer().is_ok(), "it waits no more");
        for task in [first, other] {
            bench.reply(&task);
        }
        bench.out.clear();
        assert!(bench.offer().is_ok());
    }

    #[test]
    fn what_an_ended_task_left_behind_holds_a_place_until_it_would_be_given_up() {
        let mut bench = Bench::new();
        let first = bench.offer().expect("there is room");
        bench.again();
        bench.offer().expect("there is room");
        bench.reply(&first);
        bench.out.clear();
        assert!(bench.offer().is_ok(), "two tasks and a repeat");
        assert_eq!(bench.offer(), Err(Busy::ShareSpent));
        bench.grant(1, ROOM + 1);
        assert!(bench.offer().is_ok(), "also with another grant: three tasks and a repeat");
        assert_eq!(bench.offer(), Err(Busy::ShareSpent));
        bench.now = bench.now + bench.settings.timeout(1);
        bench.grant(1, ROOM + 2);
        assert!(bench.offer().is_ok(), "three tasks before it, and no repeat");
        bench.grant(2, ROOM + 3);
        bench.out.clear();
        assert!(bench.offer().is_ok(), "a new switch has forgotten all");
    }

    #[test]
    fn what_waits_for_room_leaves_its_repeats_behind_for_one_timeout() {
        let mut bench = Bench::new();
        let tasks = [bench.offer(), bench.offer()].map(|task| task.expect("there is room"));
        bench.again();
        bench.grant(1, 1);
        bench.again();
        let held = |bench: &mut Bench| {
            let share = bench.client.shares.of(TaskType(0));
            bench.client.shares.has_repeats(share, bench.now)
        };
        let kept_back: Vec<u32> = bench.client.slots.ids().collect();
        let is_kept_back = |id: &u32| bench.client.slots.get(*id).kept_back;
        assert_eq!(kept_back.iter().copied().filter(is_kept_back).count(), 1, "one is tried");
        for task in &tasks {
            bench.reply(task);
        }
        assert_eq!(bench.client.outstanding(), 0);
        bench.reply(&tasks[0]);
        bench.reply(&tasks[0]);
        assert!(held(&mut bench), "of five tries, two ended their tasks and two came late");
        bench.now = bench.now + bench.settings.timeout(3);
        assert!(!held(&mut bench), "they are given up");
    }

    #[test]
    fn a_final_reject_ends_a_task_that_waits_for_room_at_once() {
        for reason in [RejectReason::Busy, RejectReason::UnknownType, RejectReason::Unserved] {
            let mut bench = Bench::new();
            let tasks = [bench.offer(), bench.offer()].map(|task| task.expect("there is room"));
            bench.grant(1, 1);
            bench.now = bench.now + bench.settings.timeout(0);
            bench.client.tick(bench.now, &bench.settings, &mut bench.out);
            let kept: Vec<u32> = bench.client.slots.ids().collect();
            let kept = kept.into_iter().find(|id| bench.client.slots.get(*id).kept_back);
            let sequence = bench.client.slots.get(kept.expect("one of two is beyond the share")).sequence;
            let late = tasks.iter().find(|task| task.task.sequence == sequence).expect("it was sent");
            bench.out.clear();
            bench.reject_for(late, reason);
            let ended = |action: &Action| match action {
                Action::Done { task, outcome: Outcome::Refused(_), .. } => *task == late.task,
                _ => false,
            };
            assert!(bench.out.iter().any(ended), "{reason:?}: {:?}", bench.out);
        }
    }

    #[test]
    fn a_busy_slice_is_told_with_a_hint_and_what_is_beyond_the_share_is_not_sent() {
        let mut bench = Bench::new();
        bench.grant(1, 100);
        let first = bench.offer().expect("there is room");
        bench.reject_for(&first, RejectReason::Busy);
        let hint = RefusedWhy::Busy { retry_after: Nanos(1_000_000) };
        let told = |out: &[Action]| {
            let outcome = |action: &Action| match action {
                Action::Done { attempts, outcome, .. } => Some((*attempts, *outcome)),
                _ => None,
            };
            out.iter().find_map(outcome)
        };
        assert_eq!(told(&bench.out), Some((1, Outcome::Refused(hint))));
        bench.out.clear();
        assert!(bench.offer().is_ok(), "one task in 1 ms × 2 / 4 is the share");
        let task = Submission { deadline: Nanos(u64::MAX), retry: true, ..Submission::default() };
        assert!(bench.client.submit(bench.now, &bench.settings, task, &mut bench.out).is_ok());
        let Some((0, Outcome::Refused(RefusedWhy::Busy { retry_after }))) = told(&bench.out) else {
            panic!("{:?}", bench.out)
        };
        assert!(retry_after > Nanos(0) && bench.client.stats().refused_here == 1);
        bench.now = bench.now + retry_after;
        bench.out.clear();
        assert!(bench.offer().is_ok(), "the hint is right");
    }

    #[test]
    fn with_nothing_outstanding_a_task_is_taken_whatever_was_left_behind() {
        let mut bench = Bench::new();
        bench.grant(1, 1);
        let first = bench.offer().expect("there is room");
        bench.again();
        bench.reply(&first);
        bench.out.clear();
        assert!(bench.offer().is_ok(), "no outcome would come to offer it again after");
    }
}
