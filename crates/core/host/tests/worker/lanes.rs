//! A server's lanes: several workers that share one memory of tasks.

use proptest::prelude::*;
use sluice_host::worker::{Action, Lanes, WorkerSettings};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{
    Attempt, BytesOf, Dispatch, Endpoint, Epoch, Generation, Handle, Incarnation, Nanos, Packet, Part,
    Payload, Place, ReplyStatus, Serial, TaskId, WorkerId,
};

const EPOCH: Epoch = Epoch(3);
const GENERATION: Generation = Generation(5);
const NOW: Nanos = Nanos(1_000);
const CLIENT_AT: Endpoint = Endpoint { ip: [0; 16], port: 5 };

struct Server {
    lanes: Lanes,
    settings: WorkerSettings,
    sent: Vec<u32>,
    out: Vec<Action>,
}

impl Server {
    /// A server whose lane n is worker 10 + n, with all its tokens out.
    fn new(lanes: usize) -> Self {
        let settings = WorkerSettings { at_once: 64, ..WorkerSettings::default() };
        let mut server = Self { lanes: Lanes::new(lanes), settings, sent: vec![0; lanes], out: Vec::new() };
        for lane in 0..lanes {
            let grant = WorkerRegistration {
                worker: WorkerId(10 + lane as u16),
                epoch: EPOCH,
                generation: GENERATION,
                quota: 8,
                ..WorkerRegistration::default()
            };
            server.lanes.lane(lane).grant(NOW, &settings, grant, &mut server.out);
        }
        server.out.clear();
        server
    }

    /// Grants a lane a registration of the next generation.
    fn granted(&mut self, lane: usize, quota: u8) {
        let grant = WorkerRegistration {
            worker: WorkerId(10 + lane as u16),
            epoch: EPOCH,
            generation: Generation(GENERATION.0 + 1),
            quota,
            ..WorkerRegistration::default()
        };
        self.lanes.lane(lane).grant_lane(NOW, &self.settings, grant, &mut self.out);
        self.out.clear();
    }

    /// A lane's next DISPATCH brings this task; returns the actions that follow.
    fn comes(&mut self, lane: usize, sequence: u32, attempt: u16) -> Vec<Action> {
        self.brings(lane, sequence, attempt, Dispatch::default())
    }

    /// A lane's next DISPATCH brings this task with bytes; returns the actions that follow.
    fn brings(&mut self, lane: usize, sequence: u32, attempt: u16, of: Dispatch) -> Vec<Action> {
        self.sent[lane] += 1;
        let sent = Serial(self.sent[lane]);
        let task = task(sequence);
        let packet = Packet::Dispatch(Dispatch {
            epoch: EPOCH,
            worker: WorkerId(10 + lane as u16),
            generation: GENERATION,
            sent,
            seen: sent,
            task,
            attempt: Attempt(attempt),
            client_at: CLIENT_AT,
            ..of
        });
        assert_eq!(self.lanes.of(&packet), lane);
        let answers = self.lanes.packet(lane, (NOW, NOW), &self.settings, &packet, &mut self.out);
        if let (Some(other), Packet::Dispatch(dispatch)) = (answers, &packet) {
            assert!(replies(&self.out).is_empty(), "what it keeps is the other lane's");
            self.lanes.answer_repeat(other, NOW, &self.settings, dispatch, &mut self.out);
        }
        std::mem::take(&mut self.out)
    }

    fn ends(&mut self, lane: usize, slot: u64) -> Vec<Action> {
        let reply = (ReplyStatus::Done, Payload::EMPTY);
        self.lanes.finished(lane, NOW, &self.settings, (slot, NOW), reply, &mut self.out);
        std::mem::take(&mut self.out)
    }

    /// A lane's next DISPATCH brings a task whose bytes are still at its client.
    fn comes_without_bytes(&mut self, lane: usize, sequence: u32) {
        let payload = Payload { len: 640, handle: Handle(1), ..Payload::EMPTY };
        let of = Dispatch { payload, place: Place::AtClient, ..Dispatch::default() };
        assert_eq!(
            runs(&self.brings(lane, sequence, 1, of)),
            [],
            "it does not run before its bytes are there"
        );
    }

    /// Delivers a task of the previous generation, for which no token of this generation was spent. Its
    /// bytes are still at its client.
    fn comes_late_without_bytes(&mut self, lane: usize, sequence: u32) {
        let packet = Packet::Dispatch(Dispatch {
            epoch: EPOCH,
            worker: WorkerId(10 + lane as u16),
            generation: GENERATION,
            sent: Serial(1),
            task: task(sequence),
            attempt: Attempt(1),
            payload: Payload { len: 640, handle: Handle(1), ..Payload::EMPTY },
            place: Place::AtClient,
            client_at: CLIENT_AT,
            ..Dispatch::default()
        });
        let answers = self.lanes.packet(lane, (NOW, NOW), &self.settings, &packet, &mut self.out);
        assert_eq!((answers, runs(&self.out)), (None, vec![]));
        self.out.clear();
    }

    /// The client of a task says that the task has ended.
    fn has_ended(&mut self, sequence: u32) {
        let (of, attempt) = (BytesOf::Task, Attempt(1));
        let packet = Packet::Part(Part { of, task: task(sequence), attempt, ..Part::default() });
        let lane = self.lanes.of(&packet);
        let answers = self.lanes.packet(lane, (NOW, NOW), &self.settings, &packet, &mut self.out);
        assert_eq!(answers, None);
        self.out.clear();
    }

    /// Shares out this room and sends tokens.
    fn room(&mut self, room: u32) {
        self.room_at(NOW, room);
    }

    /// Shares out this room and sends tokens at a later time.
    fn room_at(&mut self, now: Nanos, room: u32) {
        let all: Vec<usize> = (0..self.lanes.len()).collect();
        for lane in &all {
            self.lanes.fetch_due(*lane, now, &self.settings, &mut self.out);
        }
        self.lanes.share_room(&all, room);
        for lane in all {
            self.lanes.lane(lane).tick(now, &self.settings, &mut self.out);
        }
        self.out.clear();
    }

    /// How many tasks the server's lanes hold together.
    fn held(&self) -> u32 {
        self.lanes.iter().map(|lane| lane.stats().held).sum()
    }

    fn out(&self) -> Vec<u32> {
        self.lanes.iter().map(|lane| lane.stats().tokens_out).collect()
    }
}

fn task(sequence: u32) -> TaskId {
    TaskId { incarnation: Incarnation(7), sequence: Serial(sequence) }
}

fn runs(actions: &[Action]) -> Vec<(u64, u32)> {
    let run = |action: &Action| match action {
        Action::Run { slot, task, .. } => Some((*slot, task.sequence.0)),
        _ => None,
    };
    actions.iter().filter_map(run).collect()
}

fn replies(actions: &[Action]) -> Vec<(u16, u32, u16)> {
    let reply = |action: &Action| match action {
        Action::Reply { packet, .. } => Some((packet.worker.0, packet.task.sequence.0, packet.attempt.0)),
        _ => None,
    };
    actions.iter().filter_map(reply).collect()
}

#[test]
fn a_lane_runs_all_that_it_holds_at_once_and_each_ends_when_it_ends() {
    let mut server = Server::new(1);
    let started: Vec<_> = (1..=3).flat_map(|task| runs(&server.comes(0, task, 1))).collect();
    assert_eq!(started, [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(replies(&server.ends(0, 2)), [(10, 2, 1)]);
    assert!(server.ends(0, 2).is_empty(), "it has ended");
    assert_eq!(replies(&server.ends(0, 3)), [(10, 3, 1)]);
    assert_eq!(replies(&server.ends(0, 1)), [(10, 1, 1)]);
    assert_eq!((server.lanes.iter().next().unwrap().stats().held, server.out()), (0, vec![5]));
    server.room(9);
    assert_eq!(server.out(), [8], "eight at most");
}

#[test]
fn a_task_that_one_lane_holds_is_not_run_by_another_and_answered_once() {
    let mut server = Server::new(2);
    assert_eq!(runs(&server.comes(0, 1, 1)), [(1, 1)]);
    let again = server.comes(1, 1, 2);
    assert_eq!((runs(&again), replies(&again)), (vec![], vec![]));
    assert_eq!(server.out(), [7, 8], "the second lane's token is spent, and another left");
    assert_eq!(replies(&server.ends(0, 1)), [(10, 1, 2)], "the newest attempt is answered");
}

#[test]
fn a_task_that_one_lane_has_finished_is_answered_from_there_whoever_gets_it() {
    let mut server = Server::new(3);
    server.comes(2, 1, 1);
    server.ends(2, 1);
    let again = server.comes(0, 1, 2);
    assert_eq!((runs(&again), replies(&again)), (vec![], vec![(12, 1, 2)]));
    assert_eq!(runs(&server.comes(0, 2, 1)), [(1, 2)], "other tasks it runs itself");
}

#[test]
fn a_lane_that_knows_a_task_answers_and_not_one_that_may_have_forgotten_it() {
    let mut server = Server::new(2);
    server.settings.retry_horizon = Nanos(10);
    server.comes(0, 1, 1);
    server.ends(0, 1);
    let later = NOW + Nanos::from_millis(60_000);
    server.lanes.lane(0).tick(later, &server.settings, &mut server.out);
    server.out.clear();
    server.settings.repeats = false;
    assert_eq!(runs(&server.comes(1, 2, 1)), [(1, 2)], "whatever was forgotten");
    server.settings.repeats = true;
    assert_eq!((runs(&server.comes(1, 2, 2)), replies(&server.comes(1, 2, 3))), (vec![], vec![]));
    assert_eq!(replies(&server.ends(1, 1)), [(11, 2, 3)]);
}

#[test]
fn a_task_that_a_lane_may_have_forgotten_is_run_by_none() {
    let mut server = Server::new(2);
    server.settings.retry_horizon = Nanos(10);
    server.comes(0, 1, 1);
    server.ends(0, 1);
    let later = NOW + Nanos::from_millis(60_000);
    server.lanes.lane(0).tick(later, &server.settings, &mut server.out);
    server.out.clear();
    let again = server.comes(1, 1, 2);
    assert_eq!(runs(&again), []);
    assert_eq!(replies(&again), [(10, 1, 2)], "the client hears that it is too old");
}

#[test]
fn tokens_follow_the_room_and_those_that_are_out_count_first() {
    let mut server = Server::new(2);
    assert_eq!(server.out(), [8, 8]);
    server.room(0);
    for task in 1..=8 {
        server.comes(0, task, 1);
    }
    assert_eq!(server.out(), [0, 8], "no room, no tokens for those that were spent");
    server.room(10);
    assert_eq!(server.out(), [0, 8], "a lane has eight tasks granted or held at most");
    for slot in 1..=4 {
        server.ends(0, slot);
    }
    assert_eq!(server.out(), [0, 8], "none leaves before the room is shared out anew");
    server.room(10);
    assert_eq!(server.out(), [2, 8]);
    server.room(3);
    assert_eq!(server.out(), [2, 8], "what is out stays out");
}

#[test]
fn a_task_whose_bytes_are_still_to_come_takes_room() {
    let mut server = Server::new(1);
    server.comes_without_bytes(0, 1);
    for task in 2..=8 {
        server.comes(0, task, 1);
        server.ends(0, u64::from(task) - 1);
    }
    assert_eq!(server.out(), [0]);
    server.room(3);
    assert_eq!(server.out(), [2], "of three, one is its");
}

/// A registration's quota bounds a lane: the controller counted it when it chose how many tasks may wait.
#[test]
fn no_lane_has_more_tokens_out_than_its_registration_allows_and_the_others_have_the_rest() {
    let mut server = Server::new(2);
    server.granted(0, 3);
    server.granted(1, 8);
    assert_eq!(server.out(), [0, 0], "none leaves before the room is shared out");
    server.room(9);
    assert_eq!(server.out(), [3, 6]);
    server.room(20);
    assert_eq!(server.out(), [3, 8]);
}

#[test]
fn the_room_of_a_lane_that_sends_no_tokens_is_the_others() {
    let mut server = Server::new(2);
    (0..2).for_each(|lane| server.granted(lane, 8));
    server.lanes.lane(0).suspend();
    server.room(7);
    assert_eq!(server.out(), [0, 7]);
}

/// Holds for each lane that got the task, and for any number of tasks.
#[test]
fn what_one_lane_waits_for_takes_the_room_of_all() {
    let mut server = Server::new(2);
    for (lane, first) in [(0, 1), (1, 9)] {
        server.comes_without_bytes(lane, first);
        for task in 1..8 {
            server.comes(lane, first + task, 1);
            server.ends(lane, u64::from(task));
        }
    }
    assert_eq!(server.out(), [0, 0]);
    server.room(2);
    assert_eq!(server.out(), [0, 0], "both are theirs");
    server.room(5);
    assert_eq!(server.out(), [3, 0]);
    server.room(13);
    assert_eq!(server.out(), [7, 4], "of thirteen, two are theirs, and a lane has eight at most");
}

/// A server of two lanes whose cores have room for nine tasks. One lane has tokens out for eight. The other
/// lane holds two tasks of its last generation, for which no token was spent and whose bytes are missing.
fn with_late_tasks() -> Server {
    let mut server = Server::new(2);
    (0..2).for_each(|lane| server.granted(lane, 8));
    server.lanes.lane(1).suspend();
    server.room(9);
    server.granted(1, 8);
    (1..=2).for_each(|sequence| server.comes_late_without_bytes(1, sequence));
    server.room(9);
    assert_eq!((server.out(), server.held()), (vec![8, 0], 2), "late tasks come on top of the room");
    server
}

#[test]
fn the_place_of_a_late_task_that_ended_elsewhere_is_no_tokens_before_the_room_is_shared_out() {
    let mut server = with_late_tasks();
    (1..=2).for_each(|sequence| server.has_ended(sequence));
    assert_eq!((server.out(), server.held()), (vec![8, 0], 0));
    server.room(9);
    assert_eq!(server.out(), [8, 1]);
}

#[test]
fn the_places_of_late_tasks_whose_bytes_never_came_bring_no_more_tokens_than_there_is_room() {
    let mut server = with_late_tasks();
    let mut now = NOW;
    while server.held() > 0 {
        now = now + Nanos::from_millis(10);
        assert!(now < Nanos::from_millis(1_000), "it asks a few times only");
        server.room_at(now, 9);
    }
    assert_eq!(server.out(), [8, 1]);
}

proptest! {
    /// Tasks with missing bytes and the tokens of all lanes add up to the available room, unless more
    /// tokens were out before. No room that a lane may take stays unused.
    #[test]
    fn all_lanes_together_have_the_room_that_there_is(
        lanes in 1_usize..4,
        steps in proptest::collection::vec((0_usize..4, 0_u8..4, 0_u32..40), 1..120),
    ) {
        let mut server = Server::new(lanes);
        let (mut fetching, mut running) = (vec![0_u32; lanes], vec![Vec::new(); lanes]);
        for (step, (lane, kind, room)) in (1..).zip(steps) {
            let lane = lane % lanes;
            match kind {
                0 | 1 if server.out()[lane] == 0 => {}
                0 => {
                    server.comes_without_bytes(lane, step);
                    fetching[lane] += 1;
                }
                1 => running[lane].extend(runs(&server.comes(lane, step, 1)).iter().map(|(slot, _)| *slot)),
                2 => {
                    if let Some(slot) = running[lane].pop() {
                        server.ends(lane, slot);
                    }
                }
                _ => {
                    let before = server.out();
                    server.room(room);
                    let out = server.out();
                    let held = |lane: usize| fetching[lane] + running[lane].len() as u32;
                    let waits: u32 = fetching.iter().sum();
                    let most = |lane: usize| before[lane].max(8_u32.saturating_sub(held(lane)));
                    let all: u32 = (0..lanes).map(most).sum();
                    let wanted = room.saturating_sub(waits).clamp(before.iter().sum(), all);
                    prop_assert_eq!(out.iter().sum::<u32>(), wanted, "{:?} {:?}", before, out);
                    for lane in 0..lanes {
                        prop_assert!((before[lane]..=most(lane)).contains(&out[lane]));
                    }
                }
            }
        }
    }
}
