//! The switch lets one controller lead, and a controller stops before another one is let.

use sluice_control::{
    Arbiter, Contender, Controller, Event, HeldLease, LeadAnswer, LeadCall, Plan, SlicePlan,
};

use sluice_wire::tables::TableAnswer;
use sluice_wire::{Endpoint, Nanos, Term};

const LEASE: Nanos = Nanos::from_millis(1_000);
const NONE: Term = Term(0);

fn at(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn call(who: &str, term: Term) -> LeadCall {
    LeadCall { at: who.to_owned(), term, lease: LEASE, plan: 7, ends: false }
}

fn standby() -> Controller {
    let slice = SlicePlan { name: "s".to_owned(), ..SlicePlan::default() };
    Controller::standby(Plan::new(Endpoint::default(), vec![slice]), [1; 32]).unwrap()
}

/// An arbiter whose leader, of term 1, was heard just now.
fn led(now: Nanos) -> Arbiter {
    let mut arbiter = Arbiter::new(now, Term(1));
    arbiter.call(now, &call("leader", Term(1)));
    arbiter
}

#[test]
fn a_switch_that_never_had_a_controller_is_free_at_once() {
    assert!(Arbiter::new(at(5), NONE).call(at(5), &call("one", NONE)).is_free);
}

#[test]
fn a_standby_is_let_in_after_a_lease_of_silence_and_not_before() {
    let mut arbiter = led(at(0));
    for ms in (100..1_000).step_by(100) {
        let answer = arbiter.call(at(ms), &call("other", NONE));
        assert!(!answer.is_free && answer.leader == "leader" && answer.silent == at(ms), "{answer:?}");
    }
    assert!(arbiter.call(at(1_000), &call("other", NONE)).is_free);
}

#[test]
fn any_call_of_the_leader_counts_and_none_of_another_term() {
    let mut arbiter = led(at(0));
    arbiter.call(at(400), &call("other", NONE));
    arbiter.heard(at(700), Term(1));
    arbiter.heard(at(900), Term(2));
    arbiter.heard(at(900), NONE);
    assert_eq!(arbiter.call(at(800), &call("other", NONE)).silent, at(100));
}

#[test]
fn a_leader_that_ends_makes_room_at_once_and_another_term_needs_a_lease_again() {
    let mut arbiter = led(at(0));
    arbiter.call(at(10), &LeadCall { ends: true, ..call("leader", Term(1)) });
    assert!(arbiter.call(at(20), &call("other", NONE)).is_free);
    arbiter.obeys(at(30), Term(2));
    assert!(!arbiter.call(at(40), &call("third", NONE)).is_free);
    assert!(arbiter.lets_claim(at(40), Term(2), LEASE) && !arbiter.lets_claim(at(40), NONE, LEASE));
}

#[test]
fn the_leaders_silence_proves_nothing_if_nobody_else_was_heard_either() {
    let mut arbiter = led(at(0));
    // The switch stood still, or was cut off from all.
    assert!(!arbiter.call(at(9_000), &call("other", NONE)).is_free);
    for ms in (9_400..10_000).step_by(200) {
        assert!(!arbiter.call(at(ms), &call("other", NONE)).is_free);
    }
    assert!(arbiter.call(at(10_000), &call("other", NONE)).is_free);
}

#[test]
fn another_plan_than_the_last_leaders_never_leads() {
    let mut arbiter = led(at(0));
    arbiter.call(at(1), &LeadCall { ends: true, ..call("leader", Term(1)) });
    let answer = arbiter.call(at(2), &LeadCall { plan: 8, ..call("other", NONE) });
    assert!(answer.is_other_plan && !answer.is_free);
}

#[test]
fn those_that_wait_are_listed_for_a_lease_and_there_are_never_many() {
    let mut arbiter = led(at(0));
    for number in 0..99 {
        arbiter.call(at(1), &call(&format!("standby {number}"), NONE));
    }
    assert_eq!(arbiter.call(at(2), &call("leader", Term(1))).standbys.len(), 16);
    assert_eq!(arbiter.call(at(1_002), &call("leader", Term(1))).standbys, Vec::<String>::new());
}

#[test]
fn a_contender_whose_calls_are_not_answered_stops_within_its_lease() {
    let mut controller = standby();
    let mut contender = Contender::new(LEASE);
    assert!(contender.calls(at(10), &controller) && !contender.lapses(at(99_000), &controller));
    let busy = LeadAnswer { term: Term(3), ..LeadAnswer::default() };
    assert_eq!(contender.answered(at(10), &busy, &controller), None);
    let free = LeadAnswer { is_free: true, ..busy };
    assert_eq!(contender.answered(at(20), &free, &controller), Some(Event::Lead(Term(3))));
    // Without a switch it cannot lead, whatever it is told.
    let mut out = Vec::new();
    controller.event(at(21), Event::Lead(Term(3)), &mut out);
    assert!(controller.is_standby() && out.is_empty());
}

#[test]
fn without_the_stores_lease_a_free_switch_is_left_alone() {
    let controller = standby();
    let mut contender = Contender::new(LEASE);
    let free = LeadAnswer { is_free: true, term: Term(3), ..LeadAnswer::default() };
    let lease = |is_held| HeldLease { is_held, asked: at(10) };
    assert_eq!(contender.answered_under(lease(false), Some(&free), &controller), None);
    assert_eq!(contender.answered_under(lease(true), None, &controller), None);
    let leads = Some(Event::Lead(Term(3)));
    assert_eq!(contender.answered_under(lease(true), Some(&free), &controller), leads);
}

#[test]
fn a_leader_leads_as_long_as_it_holds_the_stores_lease_whether_the_switch_answers_or_not() {
    let mut controller = standby();
    let mut contender = Contender::new(LEASE);
    let mut out = Vec::new();
    let shape = crate::rack::switch::config(4, 16).shape_of_plain_rain(Term(3));
    controller.event(at(0), Event::SwitchUp(shape), &mut out);
    controller.event(at(0), Event::Lead(Term(3)), &mut out);
    controller.event(at(1), Event::TableAnswered(TableAnswer::Done), &mut out);
    assert_eq!(controller.term(), Term(4));
    let held = |asked| HeldLease { is_held: true, asked };
    for ms in [400, 800, 1_200] {
        assert_eq!(contender.answered_under(held(at(ms)), None, &controller), None);
        assert!(!contender.lapses(at(ms + 999), &controller), "the lease began at {ms} ms");
    }
    // An answer that is late renews nothing that is older than what was known.
    assert_eq!(contender.answered_under(held(at(800)), None, &controller), None);
    assert!(!contender.lapses(at(2_199), &controller) && contender.lapses(at(2_200), &controller));
    let lost = HeldLease { is_held: false, asked: at(2_000) };
    assert_eq!(contender.answered_under(lost, None, &controller), Some(Event::StandBy));
}
