//! Tasks whose bytes a DISPATCH did not bring, or only in part.

use sluice_host::worker::{Action, Worker, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{
    Attempt, BytesOf, ClientId, Dispatch, Endpoint, Epoch, Generation, Handle, Incarnation, Nanos, Need,
    Packet, Part, Payload, Place, Serial, TASK_BYTES_MAX, TaskId, WorkerId,
};

const LONG: u32 = 5_000;

struct Bench {
    worker: Worker,
    settings: WorkerSettings,
    now: Nanos,
    sent: u32,
    out: Vec<Action>,
}

fn task(sequence: u32) -> TaskId {
    TaskId { incarnation: Incarnation(7), sequence: Serial(sequence) }
}

fn long(total: u32, len: u16, handle: u32) -> Payload {
    Payload { len, inline: (u64::from(total) << 32 | 0x63).to_be_bytes(), handle: Handle(handle) }
}

impl Bench {
    fn new() -> Self {
        let settings = WorkerSettings { first_rtt: Nanos(10_000), ..WorkerSettings::default() };
        let (mut worker, mut out) = (Worker::new(), Vec::new());
        let (epoch, generation) = (Epoch(1), Generation(1));
        let grant = WorkerRegistration {
            worker: WorkerId(3),
            epoch,
            generation,
            quota: 2,
            ..WorkerRegistration::default()
        };
        worker.grant(Nanos(1), &settings, grant, &mut out);
        Self { worker, settings, now: Nanos(1_000), sent: 0, out: Vec::new() }
    }

    /// Delivers the next DISPATCH; the task has the DISPATCH's number.
    fn dispatch(&mut self, payload: Payload, place: Place) {
        self.dispatch_of(Endpoint { port: 5, ..Endpoint::default() }, payload, place);
    }

    /// Delivers such a DISPATCH of a client at this address.
    fn dispatch_of(&mut self, client_at: Endpoint, payload: Payload, place: Place) {
        self.sent += 1;
        let (sent, seen) = (Serial(self.sent), Serial(self.sent));
        let dispatch = Dispatch {
            epoch: Epoch(1),
            worker: WorkerId(3),
            generation: Generation(1),
            sent,
            seen,
            client: ClientId(4),
            client_at,
            task: task(self.sent),
            attempt: Attempt(1),
            payload,
            place,
            ..Dispatch::default()
        };
        self.hear(Packet::Dispatch(dispatch));
    }

    fn part(&mut self, sequence: u32, offset: u32, len: u16) {
        let payload = long(LONG, len, 50);
        self.hear(Packet::Part(Part { task: task(sequence), offset, payload, ..Part::default() }));
    }

    fn hear(&mut self, packet: Packet) {
        self.worker.packet(self.now, self.now, &self.settings, &packet, &mut self.out);
    }

    fn checked(&mut self, sequence: u32, is_right: bool) {
        self.worker.checked(self.now, &self.settings, task(sequence), is_right, &mut self.out);
    }

    fn actions(&mut self) -> Vec<Action> {
        self.out.drain(..).filter(|action| !matches!(action, Action::ToSwitch(_))).collect()
    }

    /// The runs of bytes that the worker asked for. It must have asked for nothing else.
    fn asked(&mut self) -> Vec<(u32, u32)> {
        let run = |action| match action {
            Action::Need { to, packet: Need { of, worker, client, attempt, offset, length, .. } } => {
                assert_eq!((to.port, of, worker), (5, BytesOf::Task, WorkerId(3)));
                assert_eq!((client, attempt), (ClientId(4), Attempt(1)));
                (offset, length)
            }
            other => panic!("not a NEED: {other:?}"),
        };
        self.actions().into_iter().map(run).collect()
    }
}

#[test]
fn a_task_that_was_not_where_it_should_be_is_asked_for_checked_and_run() {
    let mut bench = Bench::new();
    bench.dispatch(long(640, 640, 1), Place::AtClient);
    assert_eq!(bench.asked(), [(0, 640)]);
    bench.hear(Packet::Part(Part { task: task(1), payload: long(640, 640, 50), ..Part::default() }));
    let payload = long(640, 640, 1);
    let place = Action::Place { at: Handle(1), offset: 0, part: long(640, 640, 50) };
    let check = Action::Check { task: task(1), payload };
    assert_eq!(bench.actions(), [place, check, Action::Release(Handle(50))]);
    bench.checked(1, true);
    assert!(matches!(bench.actions()[..], [Action::Run { task: ran, .. }] if ran == task(1)));
    assert_eq!(bench.worker.stats().fetches, 1);
}

#[test]
fn a_slot_that_its_driver_did_not_look_at_counts_as_empty() {
    let mut bench = Bench::new();
    bench.dispatch(long(640, 640, 1), Place::Ahead { slice: sluice_wire::SliceId(0), ticket: 4 });
    assert_eq!(bench.asked(), [(0, 640)]);
}

#[test]
fn only_what_the_first_packet_did_not_bring_is_asked_for_and_a_lost_part_again() {
    let mut bench = Bench::new();
    bench.dispatch(long(LONG, 1_400, 1), Place::Here);
    assert_eq!(bench.asked(), [(1_024, LONG - 1_024)]);
    bench.part(1, 4_096, 904);
    bench.part(1, 1_024, 1_024);
    bench.part(1, 1_024, 1_024);
    let placed = bench.actions();
    assert_eq!(placed.iter().filter(|action| matches!(action, Action::Place { .. })).count(), 2);
    let due = bench.worker.deadline(&bench.settings).expect("it asks again");
    bench.now = due;
    bench.worker.tick(due, &bench.settings, &mut bench.out);
    assert_eq!(bench.asked(), [(2_048, 2_048)]);
}

#[test]
fn a_whole_task_runs_before_one_that_waits_for_its_bytes() {
    let mut bench = Bench::new();
    bench.dispatch(long(LONG, 1_400, 1), Place::Here);
    bench.actions();
    bench.dispatch(long(640, 640, 2), Place::Here);
    assert!(matches!(bench.actions()[..], [Action::Run { task: ran, .. }] if ran == task(2)));
    assert_eq!(bench.worker.stats().held, 2, "both keep their places");
}

#[test]
fn wrong_bytes_are_asked_for_again_from_the_first() {
    let mut bench = Bench::new();
    bench.dispatch(long(LONG, 1_400, 1), Place::Here);
    bench.part(1, 1_024, (LONG - 1_024) as u16);
    bench.actions();
    bench.checked(1, false);
    assert_eq!(bench.asked(), [(0, LONG)]);
}

#[test]
fn a_silent_client_is_asked_again_after_two_round_trips_and_then_ever_later() {
    let mut bench = Bench::new();
    bench.settings.first_rtt = Nanos::from_micros(10);
    bench.dispatch(long(640, 640, 1), Place::AtClient);
    assert_eq!(bench.asked().len(), 1);
    let waits = [(); 3].map(|()| {
        let asked = bench.now;
        while bench.asked().is_empty() {
            bench.now = bench.worker.deadline(&bench.settings).expect("it asks again");
            bench.worker.tick(bench.now, &bench.settings, &mut bench.out);
        }
        bench.now - asked
    });
    assert_eq!(waits, [20, 40, 80].map(Nanos::from_micros));
}

#[test]
fn a_client_that_never_answers_costs_a_place_for_a_bounded_time() {
    let mut bench = Bench::new();
    bench.dispatch(long(LONG, 1_400, 1), Place::Here);
    let mut asked = 1;
    let began = bench.now;
    while bench.worker.stats().held > 0 {
        bench.actions();
        bench.now = bench.worker.deadline(&bench.settings).expect("it does not wait for ever");
        bench.worker.tick(bench.now, &bench.settings, &mut bench.out);
        asked += u32::from(bench.out.iter().any(|action| matches!(action, Action::Need { .. })));
    }
    assert_eq!(asked, u32::from(bench.settings.need_tries));
    assert!(bench.now - began < Nanos::from_millis(100));
    assert!(bench.actions().contains(&Action::Release(Handle(1))));
    assert_eq!(bench.worker.stats().fetches_failed, 1);
}

/// A client's registration ends while its tasks wait: the switch no longer knows an address to ask for
/// their bytes.
#[test]
fn a_task_of_a_client_that_is_nowhere_gives_up_its_place_at_once() {
    let mut bench = Bench::new();
    let tokens = bench.worker.stats().tokens_out;
    bench.dispatch_of(Endpoint::default(), long(LONG, 1_400, 1), Place::Here);
    assert!(bench.out.iter().any(|a| matches!(a, Action::ToSwitch(Packet::Token(_)))), "for another task");
    assert_eq!(bench.actions(), [Action::Release(Handle(1))]);
    let stats = bench.worker.stats();
    assert_eq!((stats.held, stats.tokens_out, stats.fetches_failed), (0, tokens, 1));
}

#[test]
fn a_task_that_has_ended_elsewhere_gives_its_place_to_another_at_once() {
    let mut bench = Bench::new();
    bench.dispatch(long(LONG, 1_400, 1), Place::Here);
    let tokens = bench.worker.stats().tokens_out;
    bench.out.clear();
    let gone = Part { task: task(1), attempt: Attempt(1), ..Part::default() };
    for other in [
        Part { attempt: Attempt(2), ..gone },
        Part { of: BytesOf::Reply, ..gone },
        Part { task: task(2), ..gone },
    ] {
        bench.hear(Packet::Part(other));
    }
    assert_eq!((bench.actions(), bench.worker.stats().held), (vec![], 1));
    bench.hear(Packet::Part(gone));
    let asks_on = bench.out.iter().any(|a| matches!(a, Action::ToSwitch(Packet::Token(_))));
    assert!(asks_on, "for another task");
    assert_eq!(bench.actions(), [Action::Release(Handle(1))]);
    let stats = bench.worker.stats();
    assert_eq!((stats.held, stats.tokens_out, stats.fetches_failed), (0, tokens + 1, 0));
}

#[test]
fn parts_that_nobody_asked_for_change_nothing() {
    let mut bench = Bench::new();
    bench.part(1, 0, 1_024);
    bench.dispatch(long(LONG, 1_400, 1), Place::Here);
    bench.actions();
    bench.part(2, 1_024, 1_024);
    bench.part(1, 1_000, 1_024);
    let payload = long(LONG, 1_024, 50);
    bench.hear(Packet::Part(Part {
        of: BytesOf::Reply,
        task: task(1),
        offset: 1_024,
        payload,
        ..Part::default()
    }));
    assert_eq!(bench.actions(), [Action::Release(Handle(50)); 3]);
}

#[test]
fn a_task_longer_than_any_may_be_is_not_held() {
    let mut bench = Bench::new();
    bench.dispatch(long(TASK_BYTES_MAX + 1, 1_400, 1), Place::Here);
    assert_eq!(bench.actions(), [Action::Release(Handle(1))]);
    assert_eq!((bench.worker.stats().held, bench.worker.stats().dropped), (0, 1));
}
