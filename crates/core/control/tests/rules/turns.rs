//! A switch obeys one controller: the last to claim it takes it over, and the one before is told so and
//! stops.

use crate::rack::switch::{Switch, config};
use crate::rack::{LEASE, RENEW, Rack, client, plan, server, worker};
use sluice_control::{Action, Answer, Controller, Event, LinkState, Note, Waiting};
use sluice_switch::Config;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Epoch, Nanos, Term};

/// A second controller at a rack's switch: a standby that was started too, or one back from a partition.
struct Other {
    controller: Controller,
    notes: Vec<Note>,
}

impl Other {
    fn started(rack: &mut Rack) -> Self {
        let controller = Controller::new(plan(), [9; 32]).expect("the test's plan is sound");
        let mut other = Self { controller, notes: Vec::new() };
        other.told(rack, Event::SwitchUp(rack.switch.shape()));
        other
    }

    fn told(&mut self, rack: &mut Rack, event: Event) {
        let mut out = Vec::new();
        self.controller.event(rack.now, event, &mut out);
        self.act(rack, out);
    }

    fn tick(&mut self, rack: &mut Rack) {
        let mut out = Vec::new();
        self.controller.tick(rack.now, &mut out);
        self.act(rack, out);
    }

    /// The switch answers at once.
    fn act(&mut self, rack: &mut Rack, mut out: Vec<Action>) {
        while !out.is_empty() {
            for action in std::mem::take(&mut out) {
                match action {
                    Action::Table(op) => {
                        let answer = rack.switch.asked(self.controller.term(), op);
                        self.controller.event(rack.now, Event::TableAnswered(answer), &mut out);
                    }
                    Action::Note(note) => self.notes.push(note),
                    _ => {}
                }
            }
        }
    }
}

/// A switch in its second life that obeys the controller of this term.
fn obeying(term: Term) -> Switch {
    Switch::new("rain", Config { epoch: Epoch(101), term, ..config(4, 64) })
}

fn is_superseded(answer: &Answer) -> bool {
    matches!(answer, Answer::Wait { why: Waiting::Superseded, .. })
}

#[test]
fn who_had_the_switch_hears_that_another_has_it_tells_everyone_and_writes_nothing_any_more() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    rack.join(&hello);
    rack.join_client(&client("c", 2));
    let other = Other::started(&mut rack);
    assert!(other.controller.term() > rack.controller.term());
    // Its next step is refused, whatever the step is.
    let answer = rack.ask(&worker("v", 3));
    assert!(is_superseded(&answer), "{answer:?}");
    let (by, ours) = (other.controller.term(), Term(1));
    assert!(rack.notes.contains(&Note::Superseded { by, ours }), "{:?}", rack.notes);
    assert_eq!(rack.controller.view(rack.now).link, LinkState::Superseded);
    assert!(is_superseded(&rack.ask(&hello)), "it must not say that all is well");
    assert!(is_superseded(&rack.ask_client(&client("c", 2))));
    let call = rack.server_hello(&server("s", 4));
    assert!(is_superseded(&rack.answers[&call]));
    let call = rack.move_to("w", "scan");
    assert!(is_superseded(&rack.answers[&call]));
    let ops = rack.ops;
    rack.run(LEASE.times(10));
    assert_eq!((rack.ops, rack.controller.deadline()), (ops, None));
    assert!(rack.open.is_empty(), "nobody is left without an answer");
}

#[test]
fn nobody_is_taken_off_the_switch_by_the_one_that_nobody_renews_with() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let grant = rack.join(&hello);
    // The first controller's leases end while the other one has the switch and gets the renewals.
    let mut other = Other::started(&mut rack);
    let call = sluice_control::CallId(1);
    for _ in 0..20 {
        rack.run(RENEW);
        let hello = hello.clone();
        other.told(&mut rack, Event::WorkerHello { call, hello });
        other.tick(&mut rack);
    }
    assert_eq!(rack.row(grant.worker).generation, grant.generation);
    assert_eq!(rack.controller.view(rack.now).link, LinkState::Superseded, "its first step told it");
}

#[test]
fn one_that_finds_another_in_its_place_when_it_comes_back_stands_aside() {
    let mut rack = Rack::up();
    rack.disconnect(0);
    Other::started(&mut rack);
    rack.connect();
    assert!(rack.inbox.is_empty());
    assert_eq!(rack.controller.view(rack.now).link, LinkState::Superseded);
    // It never claims again by itself, not even when the switch restarts.
    rack.feed(Event::SwitchDown);
    let mut shape = rack.switch.shape();
    shape.epoch.0 += 1;
    rack.feed(Event::SwitchUp(shape));
    assert!(rack.inbox.is_empty());
}

#[test]
fn one_that_finds_a_restarted_switch_in_the_hands_of_another_stands_aside() {
    let mut rack = Rack::up();
    rack.disconnect(0);
    // It has heard nothing of the other controller when it returns, and the switch has forgotten all but
    // its term.
    let term = Other::started(&mut rack).controller.term();
    rack.restart_switch();
    rack.run(Nanos::from_millis(10));
    assert_eq!(rack.controller.view(rack.now).link, LinkState::Superseded);
    assert_eq!(rack.switch.shape().term, term, "it claims nothing");
}

#[test]
fn a_controller_that_restarts_has_a_greater_number_and_keeps_the_hosts() {
    let mut rack = Rack::up();
    let hello = worker("w", 1);
    let grant = rack.join(&hello);
    rack.restart_controller(0);
    rack.flush();
    assert_eq!((rack.controller.term(), rack.switch.shape().term), (Term(2), Term(2)));
    assert_eq!(rack.join(&hello).generation, grant.generation);
}

#[test]
fn a_controller_whose_line_broke_has_its_turn_still() {
    let mut rack = Rack::up();
    rack.disconnect(0);
    rack.connect();
    rack.run(Nanos::from_millis(10));
    assert_eq!((rack.controller.term(), rack.switch.shape().term), (Term(1), Term(1)));
}

#[test]
fn after_a_restart_of_the_switch_the_controller_claims_it_again() {
    let mut rack = Rack::up();
    rack.restart_switch();
    rack.run(Nanos::from_millis(10));
    assert_eq!((rack.controller.term(), rack.switch.shape().term), (Term(2), Term(2)));
    rack.join(&worker("w", 1));
}

#[test]
fn a_switch_that_lost_its_number_is_claimed_again_too() {
    let mut rack = Rack::up();
    rack.restart_controller(0);
    rack.flush();
    rack.disconnect(0);
    rack.switch = obeying(Term(0));
    rack.connect();
    rack.run(Nanos::from_millis(10));
    assert_eq!((rack.controller.term(), rack.switch.shape().term), (Term(1), Term(1)));
    rack.join(&worker("w", 1));
}

#[test]
fn only_the_next_number_is_granted_and_after_the_last_there_is_none() {
    let mut rack = Rack::up();
    for claimed in [0, 1, 3, u32::MAX] {
        let answer = rack.switch.asked(Term(1), TableOp::Claim(Term(claimed)));
        assert_eq!(answer, TableAnswer::Superseded(Term(1)), "{claimed}");
    }
    rack.switch = obeying(Term(u32::MAX));
    let late = Other::started(&mut rack);
    assert_eq!(late.controller.view(rack.now).link, LinkState::Superseded);
    assert_eq!(rack.switch.shape().term, Term(u32::MAX));
}

#[test]
fn a_claim_whose_answer_was_lost_is_made_again() {
    let mut rack = Rack::new(4, 64);
    rack.connect();
    rack.disconnect(1);
    rack.connect();
    rack.flush();
    assert_eq!(rack.controller.term(), rack.switch.shape().term);
    rack.restart_switch();
    rack.disconnect(1);
    rack.connect();
    rack.run(Nanos::from_millis(10));
    assert_eq!(rack.controller.term(), rack.switch.shape().term);
    rack.join(&worker("w", 1));
}

#[test]
fn of_two_that_claim_at_once_the_one_whose_claim_came_last_has_the_switch() {
    let mut rack = Rack::new(4, 64);
    rack.connect();
    let mut other = Other::started(&mut rack);
    rack.flush();
    assert_eq!(rack.controller.view(rack.now).link, LinkState::Up);
    assert_eq!((rack.controller.term(), rack.switch.shape().term), (Term(2), Term(2)));
    let call = sluice_control::CallId(1);
    other.told(&mut rack, Event::WorkerHello { call, hello: worker("w", 1) });
    assert_eq!(other.controller.view(rack.now).link, LinkState::Superseded);
    rack.join(&worker("w", 1));
}

#[test]
fn a_claim_of_its_own_that_comes_late_supersedes_nobody() {
    let mut rack = Rack::up();
    rack.restart_switch();
    // Its claim is on its way; the link breaks, and the claim arrives after the controller has found the
    // switch anew.
    let late = rack.inbox.pop_front().expect("it claims");
    assert_eq!(late, TableOp::Claim(Term(2)));
    rack.disconnect(0);
    rack.connect();
    rack.switch.asked(Term(1), late);
    rack.run(Nanos::from_millis(10));
    assert_eq!((rack.controller.term(), rack.switch.shape().term), (Term(3), Term(3)));
    rack.join(&worker("w", 1));
}

#[test]
fn of_claims_in_a_row_whose_answers_were_lost_each_may_have_been_granted() {
    let mut rack = Rack::up();
    rack.restart_switch();
    assert!(rack.execute_one(), "its claim is granted, and its answer lost");
    rack.restart_switch();
    // The next claim does not arrive.
    rack.restart_switch();
    rack.run(Nanos::from_millis(10));
    assert_eq!((rack.controller.term(), rack.switch.shape().term), (Term(3), Term(3)));
    rack.join(&worker("w", 1));
}

#[test]
fn a_claim_of_one_that_died_keeps_nobody_from_the_switch() {
    let mut rack = Rack::new(4, 64);
    rack.connect();
    let dead = rack.inbox.pop_front().expect("it claims");
    rack.restart_controller(0);
    rack.switch.asked(Term(0), dead);
    rack.run(Nanos::from_millis(10));
    assert_eq!((rack.controller.term(), rack.switch.shape().term), (Term(2), Term(2)));
    rack.join(&worker("w", 1));
}

#[test]
fn steps_of_a_lesser_number_change_nothing_and_questions_of_the_shape_are_free() {
    let mut rack = Rack::up();
    for claimed in 2..=7 {
        rack.switch.asked(Term(0), TableOp::Claim(Term(claimed)));
    }
    for op in [TableOp::SetType(sluice_wire::TaskType(1), None), TableOp::Drain, TableOp::Claim(Term(7))] {
        assert_eq!(rack.switch.asked(Term(6), op), TableAnswer::Superseded(Term(7)));
    }
    assert_eq!(rack.switch.asked(Term(6), TableOp::ReadShape), TableAnswer::Shape(rack.switch.shape()));
    // A superseded controller is told so by its questions too. Term 0 is no controller and may ask.
    let question = TableOp::ReadType(sluice_wire::TaskType(1));
    assert_eq!(rack.switch.asked(Term(6), question), TableAnswer::Superseded(Term(7)));
    assert_eq!(rack.switch.asked(Term(0), question), TableAnswer::Type(Some(sluice_wire::SliceId(0))));
    assert_eq!(rack.switch.asked(Term(7), TableOp::Drain), TableAnswer::Done);
    // A term that was never granted is refused.
    assert_eq!(rack.switch.asked(Term(8), TableOp::Drain), TableAnswer::Superseded(Term(7)));
}
