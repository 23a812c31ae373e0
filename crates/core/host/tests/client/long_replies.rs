//! Clients fetch replies that are longer than a packet.

use sluice_host::client::{Action, Client, ClientSettings, Outcome, Submission, UnknownWhy, Urgency};
use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{
    Attempt, BytesOf, ClientId, Endpoint, Epoch, Handle, Incarnation, Key, Nanos, Packet, Part, Payload,
    Reject, RejectReason, Reply, ReplyStatus, Serial, SliceId, SliceLoad, Submit, TASK_BYTES_MAX, TaskId,
    TaskType, WorkerId,
};

const LONG: u32 = 5_000;
const FIRST: u16 = 1_400;
const WORKER: u16 = 3;
const REST: [(u32, u32); 1] = [(1_024, 3_976)];

struct Bench {
    client: Client,
    settings: ClientSettings,
    now: Nanos,
    out: Vec<Action>,
}

fn long(total: u32, len: u16) -> Payload {
    Payload { len, inline: (u64::from(total) << 32 | 0x63).to_be_bytes(), handle: Handle::NONE }
}

impl Bench {
    fn new() -> Self {
        let settings = ClientSettings::default();
        let (mut client, mut out) = (Client::new(Incarnation(7), Serial(u32::MAX)), Vec::new());
        let now = Nanos::from_millis(1);
        let grant = ClientRegistration {
            client: ClientId(4),
            key: Key(9),
            epoch: Epoch(5),
            switch: Endpoint::default(),
            replay_cells: 64,
            slices: vec![(TaskType(1), SliceId(0))],
            shares: vec![(SliceId(0), 16)],
            classes: 1,
            jobs: 1,
            sizes: Vec::new(),
            retry_for: Nanos::from_millis(5_000),
        };
        client.grant(now, &settings, grant, &mut out);
        Self { client, settings, now, out: Vec::new() }
    }

    fn submit(&mut self, retry: bool) -> Submit {
        let deadline = self.now + Nanos::from_millis(5_000);
        let (task_type, payload) = (TaskType(1), Payload::EMPTY);
        let submission = Submission {
            task_type,
            urgency: Urgency::Unstated,
            payload,
            deadline,
            retry,
            tag: 42,
            ..Submission::default()
        };
        self.client.submit(self.now, &self.settings, submission, &mut self.out).expect("there is room");
        self.tries().pop().expect("a task that was taken is sent")
    }

    fn hear(&mut self, packet: Packet) {
        self.client.packet(self.now, &self.settings, &packet, &mut self.out);
    }

    /// Delivers the first packet of `worker`'s reply.
    fn reply(&mut self, to: &Submit, worker: u16, total: u32) {
        let worker_at = Endpoint { port: 1_000 + worker, ..Endpoint::default() };
        let (worker, payload) = (WorkerId(worker), long(total, FIRST));
        let Submit { task, attempt, epoch, .. } = *to;
        self.hear(Packet::Reply(Reply {
            epoch,
            worker,
            worker_at,
            task,
            attempt,
            payload,
            ..Reply::default()
        }));
    }

    fn part(&mut self, task: TaskId, offset: u32, len: u16) {
        let (of, worker, payload) = (BytesOf::Reply, WorkerId(WORKER), long(LONG, len));
        let attempt = Attempt(1);
        self.hear(Packet::Part(Part { of, worker, task, attempt, offset, payload, ..Part::default() }));
    }

    fn checked(&mut self, task: TaskId, is_right: bool) {
        self.client.checked(self.now, &self.settings, task, is_right, &mut self.out);
    }

    /// Advances the clock in steps of a millisecond.
    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now + Nanos::from_millis(1);
            self.client.tick(self.now, &self.settings, &mut self.out);
        }
    }

    /// Takes the runs of bytes that the client asked for.
    fn asked(&mut self) -> Vec<(u32, u32)> {
        let run = |action: &Action| match action {
            Action::Need { to, packet } => {
                assert_eq!((packet.of, to.port), (BytesOf::Reply, 1_000 + packet.worker.0));
                Some((packet.offset, packet.length))
            }
            _ => None,
        };
        let runs = self.out.iter().filter_map(run).collect();
        self.out.retain(|action| !matches!(action, Action::Need { .. }));
        runs
    }

    /// Takes the attempts that were sent.
    fn tries(&mut self) -> Vec<Submit> {
        let sent = self.out.iter().filter_map(|action| match action {
            Action::ToSwitch(submit) => Some(*submit),
            _ => None,
        });
        let sent = sent.collect();
        self.out.retain(|action| !matches!(action, Action::ToSwitch(_)));
        sent
    }

    /// Takes the remaining actions.
    fn rest(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.out)
    }

    fn ended(&mut self) -> Option<Outcome> {
        let mut ends = self.out.drain(..).filter_map(|action| match action {
            Action::Done { outcome, .. } => Some(outcome),
            _ => None,
        });
        let end = ends.next();
        assert_eq!(ends.next(), None, "a task ends once");
        end
    }
}

#[test]
fn a_long_reply_ends_its_task_once_its_last_part_came_and_was_checked() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, LONG);
    assert_eq!(bench.asked(), REST);
    let begin = Action::Begin { at: Handle(0), payload: long(LONG, FIRST), have: FIRST };
    assert_eq!(bench.rest(), [begin]);
    // Parts arrive in any order, and one of them twice.
    for (offset, len) in [(3_072, 1_928), (1_024, 1_024), (3_072, 1_928), (2_048, 1_024)] {
        bench.part(sent.task, offset, len);
    }
    let placed = bench.rest().into_iter().filter(|action| !matches!(action, Action::Need { .. }));
    let place = |offset| Action::Place { at: Handle(0), offset };
    let check = Action::Check { task: sent.task, at: Handle(0), payload: long(LONG, FIRST) };
    assert_eq!(placed.collect::<Vec<_>>(), [place(3_072), place(1_024), place(2_048), check]);
    assert_eq!(bench.client.outstanding(), 1, "nothing is told before it is checked");
    bench.checked(sent.task, true);
    let actions = bench.rest();
    let [Action::Done { outcome: Outcome::Reply(reply), attempts: 1, .. }, Action::Forget(at)] = actions[..]
    else {
        panic!("{actions:?}")
    };
    assert_eq!((reply.payload.handle, reply.payload.total(), at), (Handle(0), LONG, Handle(0)));
    bench.part(sent.task, 1_024, 1_024);
    bench.reply(&sent, WORKER, LONG);
    assert_eq!((bench.rest(), bench.client.outstanding()), (vec![], 0), "what comes late changes nothing");
}

#[test]
fn what_was_lost_is_asked_for_at_once_when_the_last_part_came_and_else_after_a_pause_that_doubles() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, LONG);
    bench.asked();
    bench.part(sent.task, 1_024, 1_024);
    assert_eq!(bench.asked(), [], "more may be on its way");
    bench.part(sent.task, 3_072, 1_928);
    assert_eq!(bench.asked(), [(2_048, 1_024)]);
    bench.run(1);
    assert_eq!(bench.asked(), []);
    bench.run(1);
    assert_eq!(bench.asked(), [(2_048, 1_024)]);
    bench.run(3);
    assert_eq!(bench.asked(), []);
    bench.run(1);
    assert_eq!(bench.asked(), [(2_048, 1_024)]);
    assert_eq!(bench.tries(), [], "the task has run: it is not tried again meanwhile");
}

#[test]
fn a_worker_that_dies_half_way_costs_a_retry_which_another_worker_may_answer() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, LONG);
    bench.part(sent.task, 1_024, 2_048);
    bench.run(500);
    let asked = bench.asked();
    assert_eq!(asked.len(), 1 + usize::from(bench.settings.need_tries), "{asked:?}");
    let again = bench.tries();
    assert_eq!(again.iter().map(|submit| submit.attempt).collect::<Vec<_>>(), [Attempt(2)]);
    let forgotten = bench.rest().contains(&Action::Forget(Handle(0)));
    assert!(forgotten, "the half that came is of no use");
    bench.reply(&again[0], 8, LONG);
    assert_eq!(bench.asked(), REST, "another worker's bytes may be others: from its own first packet on");
    bench.part(sent.task, 3_072, 1_928);
    assert!(!bench.rest().iter().any(|action| matches!(action, Action::Place { .. })), "the first worker's");
    assert_eq!(bench.client.stats().long_replies_lost, 1);
}

#[test]
fn a_task_that_must_not_be_tried_again_is_unknown_when_the_rest_of_its_reply_cannot_be_had() {
    let mut bench = Bench::new();
    let sent = bench.submit(false);
    bench.reply(&sent, WORKER, LONG);
    bench.run(500);
    assert_eq!(bench.tries(), []);
    assert_eq!(bench.ended(), Some(Outcome::Unknown(UnknownWhy::ReplyGone)));
}

#[test]
fn a_worker_that_no_longer_keeps_the_reply_says_so_and_the_task_is_unknown() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, LONG);
    bench.rest();
    let Submit { task, attempt, epoch, .. } = sent;
    let gone = Reply { epoch, task, attempt, status: ReplyStatus::Gone, ..Reply::default() };
    bench.hear(Packet::Reply(Reply { worker: WorkerId(8), ..gone }));
    assert_eq!(bench.ended(), None, "another worker's word about its own run");
    bench.hear(Packet::Reply(Reply { worker: WorkerId(WORKER), ..gone }));
    assert_eq!(bench.ended(), Some(Outcome::Unknown(UnknownWhy::ReplyGone)));
}

#[test]
fn a_task_whose_retry_was_rejected_is_not_refused_while_an_earlier_try_s_reply_is_fetched() {
    let mut bench = Bench::new();
    let first = bench.submit(true);
    bench.run(51);
    let second = bench.tries().pop().expect("the first timeout passed");
    let Submit { epoch, client, task, attempt, task_type, .. } = second;
    let (reason, retry_after_ns) = (RejectReason::QueueFull, 1_000_000);
    bench.hear(Packet::Reject(Reject {
        epoch,
        client,
        task,
        attempt,
        task_type,
        reason,
        behind: 0,
        retry_after_ns,
        load: SliceLoad::default(),
    }));
    bench.reply(&first, WORKER, LONG);
    bench.rest();
    bench.now = bench.now + Nanos::from_millis(6_000);
    bench.client.tick(bench.now, &bench.settings, &mut bench.out);
    assert_eq!(bench.ended(), Some(Outcome::Unknown(UnknownWhy::Deadline)));
}

#[test]
fn bytes_that_are_not_the_described_ones_count_as_a_lost_reply() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, LONG);
    bench.part(sent.task, 1_024, 3_976);
    bench.rest();
    bench.checked(sent.task, false);
    assert_eq!(bench.tries(), [], "it is not asked for again and again");
    bench.run(50);
    assert_eq!(bench.tries().len(), 1, "the budget pays for a retry");
    assert_eq!(bench.client.stats().long_replies_lost, 1);
}

#[test]
fn replies_beyond_the_room_for_bytes_wait_until_others_are_whole() {
    let mut bench = Bench::new();
    bench.settings.reply_bytes_max = 2 * LONG as usize - 1;
    let (one, two) = (bench.submit(true), bench.submit(true));
    bench.reply(&one, WORKER, LONG);
    assert_eq!(bench.asked(), REST);
    bench.reply(&two, WORKER, LONG);
    bench.run(30);
    assert!(bench.asked().iter().all(|run| *run == REST[0]), "only the first is asked for");
    bench.part(one.task, 1_024, 3_976);
    bench.checked(one.task, true);
    bench.rest();
    bench.run(30);
    assert_eq!(bench.asked()[0], (0, LONG), "its first bytes were not kept");
    assert!(bench.rest().iter().any(|action| matches!(action, Action::Begin { have: 0, .. })));
    let three = bench.submit(true);
    bench.reply(&three, WORKER, LONG);
    assert!(
        !bench.rest().iter().any(|action| matches!(action, Action::Begin { .. })),
        "the room is taken again"
    );
}

#[test]
fn a_reply_over_the_maximum_is_not_believed() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, TASK_BYTES_MAX + 1);
    assert_eq!((bench.rest(), bench.client.stats().foreign), (vec![], 1));
}

#[test]
fn a_switch_that_restarts_meanwhile_does_not_make_the_task_run_again() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, LONG);
    bench.rest();
    let grant = ClientRegistration {
        client: ClientId(1),
        key: Key(2),
        epoch: Epoch(6),
        switch: Endpoint::default(),
        replay_cells: 64,
        slices: vec![(TaskType(1), SliceId(0))],
        shares: vec![(SliceId(0), 16)],
        classes: 1,
        jobs: 1,
        sizes: Vec::new(),
        retry_for: Nanos::from_millis(5_000),
    };
    bench.client.grant(bench.now, &bench.settings, grant, &mut bench.out);
    assert_eq!(bench.tries(), []);
    bench.part(sent.task, 1_024, 3_976);
    bench.checked(sent.task, true);
    assert!(matches!(bench.ended(), Some(Outcome::Reply(_))));
}

#[test]
fn a_reply_may_take_the_last_byte_of_room_and_what_is_whole_gives_its_room_back() {
    let mut bench = Bench::new();
    bench.settings.reply_bytes_max = 2 * LONG as usize;
    let (one, two, three) = (bench.submit(true), bench.submit(true), bench.submit(true));
    for (sent, has_room) in [(&one, true), (&two, true), (&three, false)] {
        bench.reply(sent, WORKER, LONG);
        let begins = bench.rest().iter().filter(|action| matches!(action, Action::Begin { .. })).count();
        assert_eq!(begins, usize::from(has_room));
    }
    bench.part(one.task, 1_024, 3_976);
    bench.checked(one.task, true);
    bench.rest();
    bench.run(30);
    assert!(bench.rest().iter().any(|action| matches!(action, Action::Begin { have: 0, .. })));
    // The third reply took the room.
    let four = bench.submit(true);
    bench.reply(&four, WORKER, LONG);
    assert!(!bench.rest().iter().any(|action| matches!(action, Action::Begin { .. })));
}

#[test]
fn room_for_just_one_long_reply_serves_one_after_the_other() {
    let mut bench = Bench::new();
    bench.settings.reply_bytes_max = LONG as usize;
    for _ in 0..3 {
        let sent = bench.submit(true);
        bench.reply(&sent, WORKER, LONG);
        assert!(bench.rest().iter().any(|action| matches!(action, Action::Begin { .. })));
        bench.part(sent.task, 1_024, 3_976);
        bench.checked(sent.task, true);
        bench.rest();
    }
}

#[test]
fn another_worker_s_reply_takes_over_once_the_first_one_was_asked_twice_in_vain() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, LONG);
    assert_eq!(bench.asked(), REST);
    bench.reply(&sent, WORKER + 1, LONG);
    assert_eq!((bench.asked(), bench.client.stats().late), (vec![], 1), "asked once only");
    while bench.asked().is_empty() {
        bench.run(1);
    }
    bench.reply(&sent, WORKER, LONG);
    assert_eq!((bench.asked(), bench.client.stats().late), (vec![], 2), "the same worker's, once more");
    bench.rest();
    bench.reply(&sent, WORKER + 1, LONG);
    assert_eq!(bench.asked(), REST);
    assert_eq!((bench.client.stats().late, bench.client.stats().long_replies), (2, 2));
}

#[test]
fn what_another_worker_no_longer_keeps_is_of_no_matter_to_what_is_fetched() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, LONG);
    let Submit { task, attempt, epoch, .. } = sent;
    let (worker, status) = (WorkerId(WORKER + 1), ReplyStatus::Gone);
    bench.hear(Packet::Reply(Reply { epoch, worker, task, attempt, status, ..Reply::default() }));
    assert_eq!((bench.client.stats().late, bench.client.outstanding()), (1, 1));
}

#[test]
fn parts_are_counted_by_what_is_wrong_with_them() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    let of_another = TaskId { incarnation: Incarnation(8), ..sent.task };
    let counts = |bench: &Bench| (bench.client.stats().foreign, bench.client.stats().late);
    bench.part(sent.task, 1_024, 3_976);
    assert_eq!(counts(&bench), (0, 1), "nothing is fetched yet");
    bench.reply(&sent, WORKER, LONG);
    bench.rest();
    bench.part(of_another, 1_024, 3_976);
    assert_eq!(counts(&bench), (1, 1));
    bench.part(sent.task, 1_025, 1_000);
    assert_eq!(counts(&bench), (1, 2), "no part begins there");
    let strange = Payload { len: 1_024, inline: [9; 8], handle: Handle::NONE };
    let part = Part { of: BytesOf::Reply, worker: WorkerId(WORKER), task: sent.task, ..Part::default() };
    bench.hear(Packet::Part(Part { offset: 1_024, payload: strange, attempt: Attempt(1), ..part }));
    assert_eq!((counts(&bench), bench.rest()), ((1, 3), vec![]), "of another reply");
    bench.part(sent.task, 1_024, 3_976);
    assert_eq!(counts(&bench), (1, 3));
    assert!(matches!(bench.rest()[..], [Action::Place { .. }, Action::Check { .. }]));
}

#[test]
fn what_comes_between_is_placed_and_only_the_last_part_asked_for_asks_on() {
    let mut bench = Bench::new();
    let sent = bench.submit(true);
    bench.reply(&sent, WORKER, LONG);
    bench.rest();
    // The middle part is missing when the last one arrives: the client asks for it at once.
    bench.part(sent.task, 1_024, 1_024);
    assert_eq!(bench.asked(), []);
    bench.part(sent.task, 3_072, 1_928);
    assert_eq!(bench.asked(), [(2_048, 1_024)]);
}
