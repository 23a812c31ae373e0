//! Tasks with a budget: what each try says is left of it, and where a task ends that has nothing left.

use sluice_host::client::{
    Action, Client, ClientSettings, ClientStats, CutOff, Outcome, RefusedWhy, Submission, UnknownWhy,
};
use sluice_wire::{
    Attempt, Budget, Incarnation, Nanos, Packet, Reject, RejectReason, Reply, ReplyStatus, Serial, SliceLoad,
    Submit,
};

use crate::machine::{GET, grant};

const MS: Nanos = Nanos::from_millis(1);

struct Bench {
    client: Client,
    settings: ClientSettings,
    now: Nanos,
    out: Vec<Action>,
}

impl Bench {
    fn new() -> Self {
        let settings = ClientSettings { first_timeout: MS.times(10), ..ClientSettings::default() };
        let client = Client::new(Incarnation(9), Serial(u32::MAX));
        let mut bench = Self { client, settings, now: Nanos(1_000), out: Vec::new() };
        bench.client.grant(bench.now, &bench.settings, grant(5), &mut bench.out);
        bench
    }

    fn offer(&mut self, begin_by: Option<Nanos>) {
        let deadline = self.now + MS.times(1_000);
        let task = Submission { task_type: GET, deadline, begin_by, retry: true, ..Submission::default() };
        self.client.submit(self.now, &self.settings, task, &mut self.out).expect("there is room");
    }

    /// The only action since the last look, beside requests to the controller.
    fn action(&mut self) -> Action {
        self.out.retain(|action| *action != Action::Renew);
        assert_eq!(self.out.len(), 1, "{:?}", self.out);
        self.out.remove(0)
    }

    fn sent(&mut self) -> Submit {
        match self.action() {
            Action::ToSwitch(submit) => submit,
            other => panic!("{other:?}"),
        }
    }

    fn ended(&mut self) -> Outcome {
        match self.action() {
            Action::Done { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    }

    /// Runs the client until this time.
    fn run_until(&mut self, end: Nanos) {
        while let Some(at) = self.client.deadline().filter(|at| *at <= end) {
            self.client.tick(at, &self.settings, &mut self.out);
        }
        self.now = end;
    }

    fn reject(&mut self, to: &Submit, reason: RejectReason, after: Nanos) {
        let Submit { epoch, client, task, attempt, task_type, .. } = *to;
        let retry_after_ns = after.saturated();
        let load = SliceLoad::default();
        let packet =
            Reject { epoch, client, task, attempt, task_type, reason, behind: 0, retry_after_ns, load };
        self.client.packet(self.now, &self.settings, &Packet::Reject(packet), &mut self.out);
    }

    fn late_reply(&mut self, to: &Submit) {
        let Submit { epoch, client, task, attempt, task_type, .. } = *to;
        let status = ReplyStatus::Late;
        let packet = Reply { epoch, client, task, attempt, task_type, status, ..Reply::default() };
        self.client.packet(self.now, &self.settings, &Packet::Reply(packet), &mut self.out);
    }

    fn cut_off(&self) -> [u64; 4] {
        let ClientStats { refused, over_budget_here, over_budget_in_switch, over_budget_at_worker, .. } =
            self.client.stats();
        [refused, over_budget_here, over_budget_in_switch, over_budget_at_worker]
    }
}

const fn late(at: CutOff) -> Outcome {
    Outcome::Refused(RefusedWhy::Late(at))
}

#[test]
fn each_try_tells_what_is_left_of_the_budget_since_the_task_was_first_offered() {
    let mut bench = Bench::new();
    bench.offer(None);
    assert_eq!(bench.sent().budget, Budget::NONE);
    let offered = bench.now;
    bench.now = bench.now + MS;
    bench.offer(Some(offered + MS.times(30)));
    let first = bench.sent();
    assert_eq!(first.budget, Budget::of(MS.times(29)));
    bench.run_until(bench.now + MS.times(10));
    let second = bench.out.iter().rev().find_map(|action| match action {
        Action::ToSwitch(submit) if submit.task == first.task => Some(*submit),
        _ => None,
    });
    let second = second.expect("it timed out");
    assert_eq!((second.attempt, second.budget), (Attempt(2), Budget::of(MS.times(19))));
}

#[test]
fn a_budget_that_is_spent_or_too_long_for_a_packet_is_not_sent() {
    let cases = [
        (Some(Nanos(0)), late(CutOff::Client)),
        (Some(Nanos(1_000)), late(CutOff::Client)),
        (Some(Nanos(1_000 + 2_047)), late(CutOff::Client)),
        (Some(Nanos(1_001) + Budget::LONGEST), Outcome::Refused(RefusedWhy::LongBudget)),
    ];
    for (begin_by, outcome) in cases {
        let mut bench = Bench::new();
        bench.offer(begin_by);
        assert_eq!(bench.ended(), outcome, "{begin_by:?}");
        let is_late = u64::from(outcome == late(CutOff::Client));
        assert_eq!(bench.cut_off(), [1, is_late, 0, 0]);
    }
    for (begin_by, budget) in
        [(Nanos(1_000 + 2_048), Budget(2)), (Nanos(1_000) + Budget::LONGEST, Budget(u16::MAX))]
    {
        let mut bench = Bench::new();
        bench.offer(Some(begin_by));
        assert_eq!(bench.sent().budget, budget);
    }
}

#[test]
fn a_switchs_refusal_for_a_spent_budget_is_final() {
    let mut bench = Bench::new();
    bench.offer(Some(bench.now + MS.times(60)));
    let first = bench.sent();
    bench.reject(&first, RejectReason::Late, MS);
    assert_eq!((bench.ended(), bench.cut_off()), (late(CutOff::Switch), [1, 0, 1, 0]));
}

#[test]
fn a_workers_refusal_is_one_only_for_a_task_of_which_no_other_try_can_have_run() {
    let mut bench = Bench::new();
    bench.offer(Some(bench.now + MS.times(60)));
    let first = bench.sent();
    bench.late_reply(&first);
    assert_eq!((bench.ended(), bench.cut_off()), (late(CutOff::Worker), [1, 0, 0, 1]));
    bench.late_reply(&first);
    assert_eq!((bench.out.len(), bench.client.stats().late), (0, 1));
    bench.offer(Some(bench.now + MS.times(25)));
    let first = bench.sent();
    bench.run_until(bench.now + MS.times(10));
    let second = bench.sent();
    bench.late_reply(&first);
    assert_eq!(bench.out, [], "the second try may still run");
    bench.late_reply(&second);
    assert_eq!(bench.out, [], "the first may have run, as far as the client knows");
    bench.run_until(bench.now + MS.times(1_000));
    assert_eq!(bench.ended(), Outcome::Unknown(UnknownWhy::Deadline), "nothing was sent after the budget");
}

#[test]
fn no_try_leaves_when_nothing_is_left_of_the_budget() {
    let mut bench = Bench::new();
    bench.offer(Some(bench.now + MS.times(5)));
    let first = bench.sent();
    bench.reject(&first, RejectReason::QueueFull, MS.times(5));
    let full = Outcome::Refused(RefusedWhy::Rejected(RejectReason::QueueFull));
    assert_eq!(bench.ended(), full, "its next try would come too late");
    bench.offer(Some(bench.now + MS.times(5)));
    bench.sent();
    bench.run_until(bench.now + MS.times(1_000));
    assert_eq!(bench.ended(), Outcome::Unknown(UnknownWhy::Deadline), "its only try was not answered");
}
