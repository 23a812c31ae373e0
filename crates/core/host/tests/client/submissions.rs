//! How a client handles a submission: the class that the task gets, and what is refused before anything is
//! sent.

use sluice_host::client::{
    Action, Busy, Client, ClientSettings, Outcome, RefusedWhy, Submission, UnknownWhy, Urgency,
};
use sluice_wire::registrations::{ClientRegistration, Sizes};
use sluice_wire::{
    ClientId, Endpoint, Epoch, Handle, INLINE_BYTES, Incarnation, Key, Nanos, Payload, Serial, SliceId,
    Submit, TASK_BYTES_MAX, TaskType,
};

const GET: TaskType = TaskType(1);
const SCAN: TaskType = TaskType(2);
const PUT: TaskType = TaskType(3);
const DEADLINE: Nanos = Nanos::from_millis(1_000);
const SWITCH: Endpoint = Endpoint { ip: [0; 16], port: 77 };

struct Bench {
    client: Client,
    settings: ClientSettings,
    out: Vec<Action>,
}

impl Bench {
    fn new(classes: u8) -> Self {
        let client = Client::new(Incarnation(9), Serial(0));
        let mut bench = Self { client, settings: ClientSettings::default(), out: Vec::new() };
        bench.grant(5, classes, &[10, 40, 200]);
        bench
    }

    /// The slice of GETs has these size classes, the slice of SCANs has none, and PUTs have no slice.
    fn grant(&mut self, epoch: u32, classes: u8, ends: &[u64]) {
        let ends: Vec<Nanos> = ends.iter().map(|end| Nanos(*end)).collect();
        let grant = ClientRegistration {
            client: ClientId(3),
            key: Key(epoch),
            epoch: Epoch(epoch),
            switch: SWITCH,
            replay_cells: 64,
            slices: vec![(GET, SliceId(0)), (SCAN, SliceId(1))],
            shares: vec![(SliceId(0), 64), (SliceId(1), 64)],
            classes,
            jobs: 1,
            sizes: vec![(SliceId(0), Sizes::new(&ends).unwrap())],
            retry_for: DEADLINE,
        };
        self.client.grant(Nanos(1), &self.settings, grant, &mut self.out);
    }

    fn submit(&mut self, task_type: TaskType, urgency: Urgency, payload: Payload) {
        let submission = Submission {
            task_type,
            urgency,
            payload,
            deadline: DEADLINE,
            retry: true,
            tag: 1,
            ..Submission::default()
        };
        self.client.submit(Nanos(2), &self.settings, submission, &mut self.out).expect("there is room");
    }

    fn sent(&mut self) -> Vec<Submit> {
        let sent = self.out.iter().filter_map(|action| match action {
            Action::ToSwitch(submit) => Some(*submit),
            _ => None,
        });
        let sent = sent.collect();
        self.out.retain(|action| !matches!(action, Action::ToSwitch(_)));
        sent
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.out.drain(..).find_map(|action| match action {
            Action::Done { outcome, .. } => Some(outcome),
            _ => None,
        })
    }

    /// The class in which the client sends a task.
    fn class(&mut self, task_type: TaskType, urgency: Urgency) -> u8 {
        self.submit(task_type, urgency, Payload::EMPTY);
        self.sent()[0].priority
    }
}

/// A task of `bytes` bytes, of which the first packet brings a part.
fn long(bytes: u32) -> Payload {
    let mut inline = [0; INLINE_BYTES];
    inline[..4].copy_from_slice(&bytes.to_be_bytes());
    Payload { len: 1_400, inline, handle: Handle(7) }
}

#[test]
fn where_tasks_go_is_known_from_the_first_grant_on() {
    assert_eq!(Client::new(Incarnation(9), Serial(0)).switch(), None);
    assert_eq!(Bench::new(1).client.switch(), Some(SWITCH));
}

#[test]
fn a_sizes_class_is_its_slices() {
    let mut bench = Bench::new(4);
    let works = [0, 10, 11, 40, 41, 200, 201, u64::MAX];
    let classes = works.map(|work| bench.class(GET, Urgency::Work(Nanos(work))));
    assert_eq!(classes, [0, 0, 1, 1, 2, 2, 3, 3]);
    for task_type in [SCAN, PUT] {
        assert_eq!(bench.class(task_type, Urgency::Work(Nanos(1_000))), 0, "no size is told from another");
    }
}

#[test]
fn of_whom_nothing_is_said_goes_last_where_there_are_classes() {
    assert_eq!(Bench::new(4).class(GET, Urgency::Unstated), 3);
    assert_eq!(Bench::new(2).class(PUT, Urgency::Unstated), 1);
    assert_eq!(Bench::new(1).class(GET, Urgency::Unstated), 0);
}

#[test]
fn a_priority_is_a_class_and_one_that_the_rack_does_not_have_is_refused() {
    let mut bench = Bench::new(4);
    assert_eq!([0, 1, 3].map(|class| bench.class(GET, Urgency::Priority(class))), [0, 1, 3]);
    bench.submit(GET, Urgency::Priority(4), long(2_000));
    assert_eq!(bench.sent(), []);
    assert!(bench.out.contains(&Action::Release(Handle(7))), "its bytes are given back");
    let why = RefusedWhy::NoClass { priority: 4, classes: 4 };
    assert_eq!(bench.outcome(), Some(Outcome::Refused(why)));
    assert_eq!(why.to_string(), "priority 4 is no class of this rack: take 0, which goes first, to 3");
}

#[test]
fn where_there_are_no_classes_a_priority_is_carried_and_means_nothing() {
    assert_eq!(Bench::new(1).class(GET, Urgency::Priority(200)), 200);
}

#[test]
fn a_task_keeps_its_class_when_it_is_sent_again_and_later_ones_go_by_what_is_told_now() {
    let mut bench = Bench::new(4);
    assert_eq!(bench.class(GET, Urgency::Work(Nanos(30))), 1);
    bench.grant(6, 4, &[100]);
    let again = bench.sent();
    assert_eq!((again.len(), again[0].attempt.0, again[0].priority), (1, 2, 1));
    assert_eq!(bench.class(GET, Urgency::Work(Nanos(30))), 0);
    bench.grant(6, 4, &[20]);
    assert_eq!(bench.class(GET, Urgency::Work(Nanos(30))), 1, "told without a new registration");
}

#[test]
fn a_task_longer_than_any_may_be_is_refused_before_anything_is_sent() {
    let mut bench = Bench::new(1);
    bench.submit(GET, Urgency::Unstated, long(TASK_BYTES_MAX + 1));
    assert_eq!(bench.sent(), []);
    assert!(bench.out.contains(&Action::Release(Handle(7))), "its bytes are given back");
    assert_eq!(bench.outcome(), Some(Outcome::Refused(RefusedWhy::TooLong)));
}

#[test]
fn a_task_as_long_as_any_may_be_is_sent() {
    let mut bench = Bench::new(1);
    bench.submit(GET, Urgency::Unstated, long(TASK_BYTES_MAX));
    assert_eq!((bench.sent().len(), bench.outcome()), (1, None));
}

#[test]
fn whoever_is_pushed_back_or_left_without_an_answer_hears_what_to_do() {
    for why in [Busy::NotRegistered, Busy::ShareSpent, Busy::CellsSpent, Busy::WindowSpent] {
        assert!(why.to_string().contains("again"), "{why:?}");
    }
    for why in [UnknownWhy::Deadline, UnknownWhy::ReplyGone, UnknownWhy::TooOld] {
        assert!(why.to_string().contains("send it again if it may run twice"), "{why:?}");
    }
}
