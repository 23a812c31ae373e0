//! Tasks with a budget at a worker: one that has nothing left does not run, and its token comes back.

use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::tables::Feed;
use sluice_wire::{
    Attempt, Budget, Dispatch, Epoch, Generation, Handle, Incarnation, Nanos, Packet, Payload, Reply,
    ReplyStatus, Serial, TaskId, WorkerId,
};

const QUOTA: u8 = 4;
const US: Nanos = Nanos::from_micros(1);

struct Bench {
    worker: Worker,
    settings: WorkerSettings,
    now: Nanos,
    sent: u32,
    out: Vec<Action>,
}

impl Bench {
    fn new(feed: Feed) -> Self {
        let settings = WorkerSettings::default();
        let mut bench =
            Self { worker: Worker::new(), settings, now: Nanos(1_000_000), sent: 0, out: Vec::new() };
        bench.grant(feed, 1);
        bench
    }

    fn grant(&mut self, feed: Feed, generation: u32) {
        let (worker, generation) = (WorkerId(2), Generation(generation));
        let grant =
            WorkerRegistration { worker, epoch: Epoch(5), generation, quota: QUOTA, feed, ..<_>::default() };
        self.worker.grant(self.now, &self.settings, grant, &mut self.out);
    }

    /// The next DISPATCH; its task's bytes have the task's number as their handle.
    fn dispatched(&mut self, task: u32, budget: Budget) -> Dispatch {
        self.sent += 1;
        Dispatch {
            epoch: Epoch(5),
            worker: WorkerId(2),
            generation: Generation(1),
            sent: Serial(self.sent),
            seen: Serial(self.sent),
            task: TaskId { incarnation: Incarnation(1), sequence: Serial(task) },
            attempt: Attempt(1),
            budget,
            payload: Payload { len: 100, handle: Handle(task), ..Payload::EMPTY },
            ..Dispatch::default()
        }
    }

    fn hear(&mut self, dispatch: Dispatch) {
        self.worker.packet(self.now, self.now, &self.settings, &Packet::Dispatch(dispatch), &mut self.out);
    }

    fn dispatch(&mut self, task: u32, budget: Budget) {
        let dispatch = self.dispatched(task, budget);
        self.hear(dispatch);
    }

    fn finish(&mut self, slot: u64) {
        let (now, done) = (self.now, ReplyStatus::Done);
        self.worker.finished(now, &self.settings, slot, now, done, Payload::EMPTY, &mut self.out);
    }

    /// The tasks that began, those that were refused, and the tokens that left since the last look.
    fn seen(&mut self) -> (Vec<u32>, Vec<u32>, usize) {
        let (mut began, mut refused, mut tokens) = (Vec::new(), Vec::new(), 0);
        for action in self.out.drain(..) {
            match action {
                Action::Run { task, .. } => began.push(task.sequence.0),
                Action::Reply { packet: Reply { status: ReplyStatus::Late, task, .. }, .. }
                | Action::Report(Reply { status: ReplyStatus::Late, task, .. }) => {
                    refused.push(task.sequence.0);
                }
                Action::ToSwitch(Packet::Token(_)) => tokens += 1,
                _ => {}
            }
        }
        (began, refused, tokens)
    }
}

#[test]
fn a_task_that_waited_for_longer_than_its_budget_is_refused_and_the_next_one_runs() {
    let mut bench = Bench::new(Feed::TOKENS);
    assert_eq!(bench.seen().2, QUOTA.into());
    for (task, budget) in [(1, Budget(9)), (2, Budget(9)), (3, Budget(500)), (4, Budget(9))] {
        bench.dispatch(task, budget);
    }
    assert_eq!(bench.seen(), (vec![1], vec![], 0));
    bench.now = bench.now + US.times(100);
    bench.finish(1);
    assert!(bench.out.contains(&Action::Release(Handle(2))), "its bytes are given back");
    assert_eq!(bench.seen(), (vec![3], vec![2], 2), "a token for each of the two");
    bench.now = bench.now + US.times(100);
    bench.finish(2);
    assert_eq!(bench.seen(), (vec![], vec![4], 2));
    let stats = bench.worker.stats();
    assert_eq!((stats.finished, stats.over_budget, stats.held, stats.tokens_out), (2, 2, 0, QUOTA.into()));
}

#[test]
fn a_spent_budget_never_runs_and_one_that_did_not_wait_does() {
    let mut bench = Bench::new(Feed::TOKENS);
    bench.seen();
    bench.dispatch(1, Budget::SPENT);
    assert_eq!(bench.seen(), (vec![], vec![1], 1));
    bench.dispatch(2, Budget(2));
    assert_eq!(bench.seen(), (vec![2], vec![], 0));
}

/// A copy of a DISPATCH from before the worker's newest registration has no number that tells it from the
/// first.
#[test]
fn a_copy_of_a_refused_task_is_answered_alike_and_does_not_run() {
    let mut bench = Bench::new(Feed::TOKENS);
    bench.dispatch(1, Budget::NONE);
    let late = bench.dispatched(2, Budget(9));
    bench.grant(Feed::TOKENS, 2);
    bench.hear(late);
    bench.now = bench.now + US.times(100);
    bench.seen();
    bench.finish(1);
    assert_eq!(bench.seen().1, [2]);
    bench.hear(late);
    assert_eq!(bench.seen(), (vec![], vec![2], 0));
    assert_eq!((bench.worker.stats().repeated_tasks, bench.worker.stats().over_budget), (1, 1));
}

/// A fault run found the copy answered with "it ran, but its reply is gone".
#[test]
fn a_refused_task_is_remembered_as_one_that_did_not_run_when_its_answer_is_no_longer_kept() {
    let mut bench = Bench::new(Feed::TOKENS);
    bench.settings.replies_max = 1;
    bench.dispatch(1, Budget::SPENT);
    bench.dispatch(2, Budget::NONE);
    bench.finish(1);
    bench.seen();
    let again = Dispatch { attempt: Attempt(2), ..bench.dispatched(1, Budget(9)) };
    bench.hear(again);
    assert_eq!(bench.seen(), (vec![], vec![1], 1));
    assert_eq!((bench.worker.stats().table, bench.worker.stats().replies), (2, 1));
}

#[test]
fn where_tasks_are_pushed_the_switch_hears_the_refusal_with_the_load_that_is_left() {
    let mut bench = Bench::new(Feed::Pushed { reports: true });
    bench.dispatch(1, Budget::NONE);
    bench.dispatch(2, Budget(9));
    bench.dispatch(3, Budget::NONE);
    bench.now = bench.now + US.times(100);
    bench.finish(1);
    let told = bench.out.iter().find_map(|action| match action {
        Action::Report(reply) if reply.status == ReplyStatus::Late => {
            Some((reply.task.sequence.0, reply.load))
        }
        _ => None,
    });
    assert_eq!((told, bench.seen().0), (Some((2, 1)), vec![1, 3]));
}
