//! Rain with labels that some workers have: each task waits for a worker that serves it, and does not wait
//! while such a worker's token is parked.

use std::collections::VecDeque;

use proptest::prelude::*;
use sluice_switch::{Circulating, Refusal, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{SliceRow, TableAnswer, TableOp, WorkerRow};
use sluice_wire::{Packet, RejectReason, Sweep, SweepOf, TaskType, WorkerId};

use crate::rack::{EPOCH, GET, Rack, SLICE, circulating, dispatched, rejected, row};

const ANY: Labels = Labels::NONE;
const GPU: Labels = Labels(1);
const SSD: Labels = Labels(2);
const BOTH: Labels = Labels(3);
const ALL: [Labels; 4] = [ANY, GPU, SSD, BOTH];
/// Every 16th token looks first for a class other than its first.
const TURN: usize = 16;

/// A rack whose tasks need one of `needs`, and whose workers have `has` by index.
fn rack(needs: &[Labels], has: &[Labels]) -> Rack {
    rack_of(Serving::of(needs, has).unwrap(), has)
}

fn rack_of(serving: Serving, has: &[Labels]) -> Rack {
    let kinds: Vec<u8> = has.iter().map(|has| serving.kind_of(*has).unwrap()).collect();
    Rack::of_kinds(serving, &kinds, 16)
}

/// The worker's next token, parked or spent.
fn token(rack: &mut Rack, worker: u16) -> Verdict {
    let verdict = rack.token(worker);
    rack.go_round(verdict)
}

fn taker(verdict: Verdict) -> u16 {
    dispatched(verdict).worker.0
}

fn sweep(of: SweepOf, left: u16) -> Sweep {
    Sweep { epoch: EPOCH, slice: SLICE, of, left, carried: None }
}

#[test]
fn a_task_takes_the_worker_that_has_least_of_those_that_serve_it() {
    let mut rack = rack(&ALL, &[BOTH, GPU, ANY, SSD]);
    for worker in 0..4 {
        assert_eq!(token(&mut rack, worker), Verdict::Parked);
    }
    assert_eq!(taker(rack.task_with(SSD)), 3);
    assert_eq!([ANY, ANY].map(|needs| taker(rack.task_with(needs))), [2, 1]);
    assert_eq!(taker(rack.task_with(GPU)), 0);
    assert_eq!(rack.task_with(ANY), Verdict::Parked, "it waits in the same pass");
}

#[test]
fn a_token_takes_the_task_that_needs_most_of_those_that_it_serves_and_of_them_the_oldest() {
    let mut rack = rack(&ALL, &[BOTH, SSD]);
    let first = rack.next();
    for needs in [ANY, GPU, SSD, ANY, BOTH, SSD] {
        assert_eq!(rack.task_with(needs), Verdict::Parked);
    }
    let mut taken = |worker| dispatched(rack.token(worker)).task.sequence.since(first);
    assert_eq!([1, 1, 1].map(&mut taken), [2, 5, 0], "one pass each");
    assert_eq!([0, 0, 0].map(&mut taken), [4, 1, 3]);
}

#[test]
fn a_task_is_told_how_many_it_leaves_behind_in_all_classes() {
    let mut rack = rack(&ALL, &[BOTH]);
    for needs in [ANY, GPU, SSD, ANY, BOTH] {
        rack.task_with(needs);
    }
    assert_eq!([4, 3, 2, 1, 0].map(|_| dispatched(rack.token(0)).occupancy), [4, 3, 2, 1, 0]);
}

#[test]
fn a_task_waits_while_only_tokens_are_parked_that_do_not_serve_it() {
    let mut rack = rack(&[ANY, GPU], &[ANY, GPU]);
    token(&mut rack, 0);
    assert_eq!(rack.task_with(GPU), Verdict::Parked);
    let state = rack.state();
    assert_eq!((state.balance, state.tokens_in.since(state.tokens_out)), (-1, 1));
    assert_eq!(taker(rack.task_with(ANY)), 0, "the other takes nothing from it");
    assert_eq!(taker(rack.token(1)), 1);
}

#[test]
fn a_token_that_finds_nobody_parks_in_its_second_pass() {
    let mut rack = rack(&[ANY], &[ANY]);
    let looked = circulating(rack.token(0));
    assert!(rack.program.parked(SLICE).tokens.is_empty());
    assert_eq!(rack.once_more(looked), Verdict::Parked);
    assert_eq!(rack.program.parked(SLICE).tokens.len(), 1);
}

#[test]
fn a_task_that_comes_between_a_tokens_two_passes_gets_it() {
    let mut rack = rack(&[ANY, GPU], &[GPU]);
    let looked = circulating(rack.token(0));
    let task = rack.next();
    assert_eq!(rack.task_with(GPU), Verdict::Parked);
    let parked = rack.once_more(looked);
    assert_eq!(dispatched(rack.go_round(parked)).task.sequence, task);
}

#[test]
fn a_note_for_a_stale_token_goes_on_to_a_live_one() {
    let mut rack = rack(&[ANY], &[ANY, ANY, ANY]);
    let looked: Vec<Circulating> = (0..3).map(|worker| circulating(rack.token(worker))).collect();
    assert_eq!(rack.task_with(ANY), Verdict::Parked);
    let notes: Vec<Circulating> =
        looked.into_iter().map(|token| circulating(rack.once_more(token))).collect();
    rack.admit(0, 2);
    rack.admit(1, 2);
    let second = rack.once_more(notes[0]);
    assert_eq!(taker(rack.go_round(second)), 2, "the first two are stale");
    for note in &notes[1..] {
        assert_eq!(rack.once_more(*note), Verdict::Drop(Refusal::FixDone));
    }
}

#[test]
fn a_token_on_its_way_is_worth_nothing_once_its_worker_has_another_generation() {
    let mut rack = rack(&[ANY], &[ANY]);
    let looked = circulating(rack.token(0));
    rack.admit(0, 2);
    assert_eq!(rack.once_more(looked), Verdict::Drop(Refusal::Closed));
    assert_eq!(rack.task_with(ANY), Verdict::Parked);
}

#[test]
fn what_a_token_that_went_round_had_granted_its_worker_hears_with_the_task() {
    let mut rack = rack(&[ANY], &[ANY]);
    token(&mut rack, 0);
    let seen = rack.worker(0).seen;
    assert_eq!(dispatched(rack.task_with(ANY)).seen, seen);
}

#[test]
fn every_class_has_a_turn_however_many_tasks_wait_that_need_more() {
    let mut rack = rack(&ALL, &[BOTH]);
    for needs in ALL {
        rack.task_with(needs);
    }
    let mut others = Vec::new();
    for place in 0..6 * TURN {
        rack.task_with(BOTH);
        let taken = Labels(dispatched(token(&mut rack, 0)).constraints);
        if taken != BOTH {
            others.push((place, taken));
            rack.task_with(taken);
        }
    }
    let turns = [GPU, SSD, ANY, GPU, SSD, ANY].into_iter().zip(1..);
    assert_eq!(others, turns.map(|(needs, turn)| (turn * TURN - 1, needs)).collect::<Vec<_>>());
}

/// Tokens of two kinds come one by the other's side. The turns of one kind are not counted with those of
/// the other: then half of its turns would fall on classes that it does not serve.
#[test]
fn each_kind_of_workers_has_turns_of_its_own() {
    let mut rack = rack(&ALL, &[GPU, BOTH]);
    for needs in ALL {
        rack.task_with(needs);
    }
    let mut turns = [Vec::new(), Vec::new()];
    for place in 0..3 * TURN {
        for (worker, first) in [GPU, BOTH].into_iter().enumerate() {
            rack.task_with(first);
            let taken = Labels(dispatched(token(&mut rack, worker as u16)).constraints);
            if taken != first {
                turns[worker].push((place, taken));
                rack.task_with(taken);
            }
        }
    }
    assert_eq!(turns[0], [(3 * TURN - 1, ANY)]);
    assert_eq!(turns[1], [(TURN - 1, GPU), (2 * TURN - 1, SSD), (3 * TURN - 1, ANY)]);
}

#[test]
fn a_token_whose_turn_is_for_a_class_without_tasks_takes_another_in_its_second_pass() {
    let mut rack = rack(&ALL, &[BOTH]);
    for _ in 0..TURN - 1 {
        rack.task_with(BOTH);
        dispatched(rack.token(0));
    }
    rack.task_with(BOTH);
    let looked = circulating(rack.token(0));
    assert_eq!(Labels(dispatched(rack.once_more(looked)).constraints), BOTH);
}

#[test]
fn a_task_that_no_worker_serves_is_refused_at_once() {
    let mut rack = rack(&[ANY, GPU], &[GPU]);
    assert_eq!(rejected(rack.task_with(SSD)), RejectReason::Unserved);
    let row = rack.state().row;
    rack.set_slice(SliceRow { closed: 1, ..row });
    assert_eq!(rejected(rack.task_with(GPU)), RejectReason::NoWorkers, "its last worker has gone");
    assert_eq!(rack.task_with(ANY), Verdict::Parked);
}

#[test]
fn a_type_needs_what_is_said_of_it_whatever_its_tasks_say() {
    let mut rack = rack(&[ANY, GPU], &[ANY, GPU]);
    assert_eq!(rack.program.table(TableOp::SetNeeds(GET, GPU)), TableAnswer::Done);
    token(&mut rack, 0);
    assert_eq!(rack.task_with(ANY), Verdict::Parked);
    assert_eq!(taker(rack.token(1)), 1);
    assert_eq!(rack.program.table(TableOp::SetNeeds(TaskType(4), GPU)), TableAnswer::OutOfRange);
}

#[test]
fn who_tells_no_kinds_apart_takes_neither_needs_nor_kinds() {
    let mut rack = Rack::new(1, 16);
    assert_eq!(rack.program.table(TableOp::SetNeeds(GET, GPU)), TableAnswer::OutOfRange);
    let second = WorkerRow { kind: 1, ..row(0, 1, true) };
    assert_eq!(rack.program.table(TableOp::SetWorker(WorkerId(0), Some(second))), TableAnswer::OutOfRange);
    let TableAnswer::Shape(shape) = rack.program.table(TableOp::ReadShape) else { panic!("it has a shape") };
    assert_eq!((shape.classes, shape.kinds), (1, 1));
}

#[test]
fn each_class_has_room_for_as_many_as_the_slices_limit() {
    let serving = Serving::of(&[ANY, GPU], &[GPU]).unwrap();
    let mut rack = Rack::of_kinds(serving, &[0], 2);
    for needs in [ANY, GPU] {
        assert_eq!([0, 1].map(|_| rack.task_with(needs)), [Verdict::Parked; 2]);
        assert_eq!(rejected(rack.task_with(needs)), RejectReason::QueueFull);
    }
    assert_eq!(rack.state().balance, -4);
}

#[test]
fn a_sweep_takes_the_tasks_of_classes_without_workers_and_no_others() {
    let mut rack = rack(&[ANY, GPU, SSD], &[GPU, SSD]);
    let row = rack.state().row;
    for needs in [GPU, SSD, SSD, ANY] {
        rack.task_with(needs);
    }
    let ssd = row.serving.class_of(SSD).unwrap();
    rack.set_slice(SliceRow { closed: 1 << ssd, ..row });
    for _ in 0..2 {
        assert_eq!(rejected(rack.control(sweep(SweepOf::Tasks, 9))), RejectReason::NoWorkers);
    }
    assert_eq!(rack.control(sweep(SweepOf::Tasks, 9)), Verdict::Drop(Refusal::SweepDone));
    rack.set_slice(SliceRow { open: false, ..row });
    for _ in 0..2 {
        assert_eq!(rejected(rack.control(sweep(SweepOf::Tasks, 9))), RejectReason::NoWorkers);
    }
    assert_eq!(rack.control(sweep(SweepOf::Tasks, 9)), Verdict::Drop(Refusal::SweepDone));
    assert_eq!(rack.state().balance, 0);
}

#[test]
fn one_sweep_reaches_a_stale_token_of_any_kind_and_leaves_the_others_in_their_order() {
    let has = [ANY, GPU, SSD, BOTH, ANY, BOTH];
    for stale in 0..6_u16 {
        let mut rack = rack(&ALL, &has);
        for worker in 0..6 {
            token(&mut rack, worker);
        }
        rack.admit(stale, 2);
        let before = rack.state();
        let swept = rack.control(sweep(SweepOf::Tokens, before.tokens_out.behind(before.tokens_in) as u16));
        assert_eq!(rack.go_round(swept), Verdict::Drop(Refusal::SweepDone));
        let after = rack.state();
        assert!(after.tokens_out.behind(before.tokens_in) == 0, "all of before were visited");
        let order = [0, 4, 1, 2, 3, 5].into_iter().filter(|worker| *worker != stale);
        let parked: Vec<u16> = rack.program.parked(SLICE).tokens.iter().map(|(worker, _)| worker.0).collect();
        assert_eq!(parked, order.collect::<Vec<_>>());
    }
}

#[test]
fn who_meets_a_wish_comes_first_and_nobody_waits_for_it() {
    let serving = Serving::of(&[GPU, SSD], &[GPU, SSD]).unwrap().wished();
    let mut rack = rack_of(serving, &[GPU, SSD]);
    for worker in [0, 1] {
        token(&mut rack, worker);
    }
    assert_eq!(taker(rack.task_with(SSD)), 1);
    let asked = circulating(rack.task_with(SSD));
    assert_eq!(taker(rack.once_more(asked)), 0, "the other server's, a pass later");
    for needs in [GPU, SSD, GPU] {
        assert_eq!(
            rack.task_with(needs),
            Verdict::Parked,
            "nobody is there at all: it waits in the same pass"
        );
    }
    let served = [1, 1, 0].map(|worker| Labels(dispatched(token(&mut rack, worker)).constraints));
    assert_eq!(served, [SSD, GPU, GPU]);
}

/// Slices of two, three or four classes, for each kind of worker: the classes that the worker does not meet
/// have one task each, while the class that it meets never runs empty.
#[test]
fn no_wish_starves_while_others_come_one_at_a_time() {
    let sets = [BOTH, GPU, SSD, ANY];
    for wishes in [&sets[..2], &sets[2..], &sets[1..], &sets] {
        for has in sets {
            let serving = Serving::of(wishes, &[has, BOTH]).unwrap().wished();
            let mut rack = rack_of(serving, &[has]);
            let met: Vec<Labels> = wishes.iter().copied().filter(|wish| has.have(*wish)).collect();
            for wish in wishes {
                assert_eq!(rack.task_with(*wish), Verdict::Parked);
            }
            let mut waits = wishes.to_vec();
            for _ in 0..3 * TURN {
                let taken = Labels(dispatched(token(&mut rack, 0)).constraints);
                waits.retain(|wish| *wish != taken);
                let steady = met.first().or(wishes.first()).copied().unwrap();
                assert_eq!(rack.task_with(steady), Verdict::Parked);
            }
            assert_eq!(waits, [], "{has:?} of {wishes:?}");
        }
    }
}

#[test]
fn a_token_that_finds_nobody_at_all_parks_next_also_where_it_would_first_look_for_wishes() {
    let serving = Serving::of(&[GPU, SSD], &[GPU, SSD]).unwrap().wished();
    let mut rack = rack_of(serving, &[GPU, SSD]);
    let looked = circulating(rack.token(0));
    assert_eq!(rack.once_more(looked), Verdict::Parked);
    assert_eq!(taker(rack.task_with(GPU)), 0);
    let looked = circulating(rack.token(1));
    assert_eq!(rack.task_with(GPU), Verdict::Parked);
    let parked = rack.once_more(looked);
    assert_eq!(Labels(dispatched(rack.go_round(parked)).constraints), GPU, "who came meanwhile is seen");
}

#[test]
fn a_task_waits_for_its_wish_as_many_passes_as_it_may_and_then_takes_anybody() {
    let serving = Serving::of(&[GPU, SSD], &[GPU, SSD]).unwrap().wished();
    for wait in [1, 3, 64] {
        let mut rack = Rack::waiting(serving, &[0, 1], 16, wait);
        token(&mut rack, 0);
        let mut asked = circulating(rack.task_with(SSD));
        for _ in 0..wait {
            asked = circulating(rack.once_more(asked));
        }
        assert_eq!(taker(rack.once_more(asked)), 0, "nobody met its wish");
        token(&mut rack, 0);
        let asked = circulating(rack.task_with(SSD));
        token(&mut rack, 1);
        assert_eq!(taker(rack.once_more(asked)), 1, "one who meets it came meanwhile");
        let asked = circulating(rack.task_with(SSD));
        assert_eq!(taker(rack.task_with(GPU)), 0);
        assert_eq!(rack.once_more(asked), Verdict::Parked, "with nobody there it waits with the others");
    }
}

/// Two slices have room for 16 tasks each, and eight workers for eight tokens each: so many packets may
/// recirculate.
#[test]
fn while_as_much_goes_round_as_may_a_task_is_refused_and_counted() {
    let serving = Serving::of(&[GPU, SSD], &[GPU, SSD]).unwrap().wished();
    let mut rack = Rack::waiting(serving, &[0, 1], 16, 64);
    token(&mut rack, 0);
    let mut asking: VecDeque<_> = (0..96).map(|_| circulating(rack.task_with(SSD))).collect();
    for _ in 0..10 {
        assert_eq!(rejected(rack.task_with(SSD)), RejectReason::NoRoom);
        let asked = asking.pop_front().unwrap();
        asking.push_back(circulating(rack.once_more(asked)));
    }
    assert_eq!(rack.program.refusals().of(Refusal::RoundsFull), 10);
    let asked = Verdict::Again(asking.pop_front().unwrap());
    assert_eq!(taker(rack.go_round(asked)), 0);
    token(&mut rack, 0);
    circulating(rack.task_with(SSD));
}

/// A step that may happen to a slice.
#[derive(Clone, Copy, Debug)]
enum Event {
    Token(u16),
    Task(Labels),
    /// From now on the worker's tokens count as of a former generation.
    Stale(u16),
    SweepPass,
    /// The packet that recirculated first passes again, or the one that left last.
    Round {
        newest: bool,
    },
}

/// A rack that checks after each step that nothing is lost, and at rest that no task waits which a parked
/// token serves.
struct Watched {
    rack: Rack,
    has: Vec<Labels>,
    serving: Serving,
    going: VecDeque<Circulating>,
    generation: u32,
    granted: usize,
    came: usize,
    left: usize,
    stale: bool,
}

impl Watched {
    fn new(serving: Serving, has: &[Labels]) -> Self {
        Self::of(rack_of(serving, has), serving, has)
    }

    fn of(rack: Rack, serving: Serving, has: &[Labels]) -> Self {
        Self {
            rack,
            has: has.to_vec(),
            serving,
            going: VecDeque::new(),
            generation: 1,
            granted: 0,
            came: 0,
            left: 0,
            stale: false,
        }
    }

    fn take(&mut self, event: Event) {
        let verdict = match event {
            Event::Token(worker) => {
                self.granted += 1;
                self.rack.token(worker)
            }
            Event::Task(needs) => {
                self.came += 1;
                self.rack.task_with(needs)
            }
            Event::Stale(worker) => {
                self.generation += 1;
                self.stale = true;
                self.rack.admit(worker, self.generation);
                return;
            }
            Event::SweepPass => self.rack.control(sweep(SweepOf::Tokens, 32)),
            Event::Round { newest } => {
                let next = if newest { self.going.pop_back() } else { self.going.pop_front() };
                let Some(next) = next else { return };
                self.rack.once_more(next)
            }
        };
        self.see(verdict);
    }

    fn see(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Again(circulating) => self.going.push_back(circulating),
            Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => {
                let has = self.has[usize::from(dispatch.worker.0)];
                let serves = self.serving.is_wished() || has.have(Labels(dispatch.constraints));
                assert!(serves, "a worker with {has:?} was sent a task that needs {}", dispatch.constraints);
                self.left += 1;
            }
            Verdict::Parked | Verdict::Drop(_) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Lets all recirculating packets come to their end.
    fn rest(mut self) {
        for _ in 0..1_000 {
            let Some(next) = self.going.pop_front() else { break };
            let verdict = self.rack.once_more(next);
            self.see(verdict);
        }
        assert!(self.going.is_empty(), "something goes round for ever");
        let parked = self.rack.program.parked(SLICE);
        assert_eq!(self.left + parked.tasks.len(), self.came, "a task was lost or sent twice");
        let tokens = parked.tokens.len();
        assert!(self.left + tokens <= self.granted, "a token came from nowhere");
        assert!(self.stale || self.left + tokens == self.granted, "a token was lost");
        // A stale token belongs to no worker.
        let live = parked.tokens.iter().filter(|(worker, generation)| {
            let state = self.rack.program.table(TableOp::ReadWorker(*worker));
            matches!(state, TableAnswer::Worker(state) if state.generation_out == *generation)
        });
        let kinds: u8 = live
            .map(|(worker, _)| 1 << self.serving.kind_of(self.has[usize::from(worker.0)]).unwrap())
            .fold(0, |kinds, kind| kinds | kind);
        for task in &parked.tasks {
            let class = self.serving.class_of(Labels(task.constraints)).unwrap();
            let could = self.serving.served_by(class) & kinds;
            assert_eq!(could, 0, "a task that needs {} waits while a token serves it", task.constraints);
        }
    }
}

/// Plays every order of a few events.
#[test]
fn whoever_meets_whom_nobody_waits_who_could_be_served() {
    const EVENTS: [Event; 6] = [
        Event::Token(0),
        Event::Token(1),
        Event::Task(ANY),
        Event::Task(GPU),
        Event::Round { newest: false },
        Event::SweepPass,
    ];
    const LENGTH: u32 = 7;
    let serving = Serving::of(&[ANY, GPU], &[ANY, GPU]).unwrap();
    for number in 0..EVENTS.len().pow(LENGTH) {
        let mut watched = Watched::new(serving, &[ANY, GPU]);
        for place in 0..LENGTH {
            watched.take(EVENTS[number / EVENTS.len().pow(place) % EVENTS.len()]);
        }
        watched.rest();
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..5_u16).prop_map(Event::Token),
        3 => prop::sample::select(&ALL[..]).prop_map(Event::Task),
        1 => (0..5_u16).prop_map(Event::Stale),
        1 => Just(Event::SweepPass),
        6 => any::<bool>().prop_map(|newest| Event::Round { newest }),
    ]
}

proptest! {
    #[test]
    fn whatever_goes_round_in_whatever_order_tasks_and_tokens_find_each_other(
        wished in any::<bool>(),
        wait in 0..4_u8,
        events in prop::collection::vec(any_event(), 1..40),
    ) {
        let has = [BOTH, ANY, GPU, SSD, BOTH];
        let serving = Serving::of(&ALL, &has).unwrap();
        let serving = if wished { serving.wished() } else { serving };
        let kinds = has.map(|has| serving.kind_of(has).unwrap());
        let mut watched = Watched::of(Rack::waiting(serving, &kinds, 16, wait), serving, &has);
        for event in events {
            watched.take(event);
        }
        watched.rest();
    }

    /// With one kind and one class it is Rain's queue: the oldest task meets the oldest token.
    #[test]
    fn where_all_serve_all_the_oldest_meet(events in prop::collection::vec(any::<bool>(), 1..40)) {
        let mut rack = rack(&[ANY], &[ANY]);
        let mut plain = Rack::new(1, 16);
        for is_token in events {
            let (own, its) = if is_token {
                (token(&mut rack, 0), plain.token(0))
            } else {
                (rack.task_with(ANY), plain.task())
            };
            prop_assert_eq!(own, its);
        }
    }
}
