//! The load monitor: when a hint is due, how it travels, and that only one is out at a time.

use std::num::{NonZeroU8, NonZeroU32};

use proptest::prelude::*;
use sluice_host::orchestrator::{
    CoreId, Descriptor, Hint, LoadHint, Nic, NicSettings, RequestHandle, Trigger, UpRule,
};
use sluice_wire::Nanos;

use crate::server::{address, enable_everywhere, jbsrq, nic, service, settings};

const US: u64 = 1_000;

fn us(us: u64) -> Nanos {
    Nanos(us * US)
}

fn watched(trigger: Trigger) -> Nic {
    let mut nic = nic(&settings(2, 1, jbsrq()), &[0]);
    nic.enable_load_monitor(service(0), trigger, us(0)).unwrap();
    nic
}

fn send_at(nic: &mut Nic, number: usize, now: Nanos) {
    nic.receive(&address(number), (RequestHandle(1), 64), now, |_| {}).unwrap();
}

fn drain(nic: &mut Nic, now: Nanos) -> Vec<Descriptor> {
    nic.tick(now);
    std::iter::from_fn(|| nic.dispatch(now)).collect()
}

fn hints(sent: &[Descriptor]) -> Vec<Hint> {
    sent.iter().filter_map(|sent| sent.hint).map(|hint| hint.hint).collect()
}

#[test]
fn a_request_that_is_there_at_two_checks_in_a_row_wants_a_core() {
    let mut nic = watched(Trigger { down: None, ..Trigger::congestion(us(10)) });
    send_at(&mut nic, 0, us(5));
    assert_eq!(drain(&mut nic, us(10)), [], "it was not there at the check before");
    let sent = drain(&mut nic, us(20));
    assert_eq!(hints(&sent), [Hint::ScaleUp]);
    assert_eq!(sent[0].request, None, "the service runs nowhere: a descriptor of its own");
}

#[test]
fn requests_that_come_and_go_between_checks_want_nothing() {
    let mut nic = watched(Trigger { down: None, ..Trigger::congestion(us(10)) });
    enable_everywhere(&mut nic, 0);
    for at in 1..40 {
        send_at(&mut nic, 0, us(at));
        let sent = drain(&mut nic, us(at));
        assert!(sent[0].hint.is_none() && sent.len() == 1);
        nic.load_feedback(service(0), sent[0].core, 1).unwrap();
    }
}

#[test]
fn a_queue_that_was_short_for_an_interval_gives_a_core_back() {
    let trigger = Trigger { down: Some(1), ..Trigger::congestion(us(10)) };
    let mut nic = watched(trigger);
    enable_everywhere(&mut nic, 0);
    (0..4).for_each(|_| send_at(&mut nic, 0, us(1)));
    assert_eq!(drain(&mut nic, us(1)).len(), 2, "one for each core");
    (0..2).for_each(|core| nic.load_feedback(service(0), CoreId(core), 1).unwrap());
    drain(&mut nic, us(2));
    assert_eq!(hints(&drain(&mut nic, us(10))), [], "two waited at once");
    assert_eq!(hints(&drain(&mut nic, us(20))), [Hint::ScaleDown], "none did");
}

#[test]
fn other_triggers_look_at_waits_and_lengths() {
    let interval = us(10);
    let mut patient = watched(Trigger { interval, up: UpRule::Waited(us(25)), down: None });
    send_at(&mut patient, 0, us(1));
    assert_eq!(hints(&drain(&mut patient, us(20))), []);
    assert_eq!(hints(&drain(&mut patient, us(30))), [Hint::ScaleUp]);
    let longest = UpRule::Longest(NonZeroU32::new(3).unwrap());
    let mut long = watched(Trigger { interval, up: longest, down: None });
    (0..2).for_each(|_| send_at(&mut long, 0, us(1)));
    assert_eq!(hints(&drain(&mut long, us(10))), []);
    send_at(&mut long, 0, us(11));
    assert_eq!(hints(&drain(&mut long, us(20))), [Hint::ScaleUp]);
}

#[test]
fn a_hint_rides_on_a_descriptor_to_the_services_least_loaded_core() {
    let mut nic = nic(&settings(2, 2, jbsrq()), &[0]);
    nic.enable_load_monitor(service(0), Trigger::congestion(us(10)), us(0)).unwrap();
    enable_everywhere(&mut nic, 0);
    send_at(&mut nic, 0, us(1));
    assert_eq!(nic.dispatch(us(1)).unwrap().core, CoreId(0));
    nic.tick(us(10));
    send_at(&mut nic, 0, us(10));
    let sent = nic.dispatch(us(10)).unwrap();
    assert_eq!((sent.core, sent.request.is_some()), (CoreId(1), true));
    assert_eq!(sent.hint, Some(LoadHint { service: service(0), hint: Hint::ScaleDown }));
    assert_eq!((nic.counts().hints, nic.counts().hints_alone), (1, 0));
}

#[test]
fn a_core_has_no_more_hints_un_acked_than_stated() {
    let mut nic = nic(&NicSettings { unacked_hints: NonZeroU8::MIN, ..settings(1, 1, jbsrq()) }, &[0, 0]);
    for number in 0..2 {
        nic.enable_service(service(number), CoreId(0)).unwrap();
        nic.enable_load_monitor(service(number), Trigger::congestion(us(10)), us(0)).unwrap();
    }
    let sent = drain(&mut nic, us(10));
    assert_eq!(sent.len(), 1, "the other hint waits");
    let first = sent[0].hint.unwrap().service;
    nic.rearm_load_monitor(first).unwrap();
    let sent = drain(&mut nic, us(11));
    assert_eq!(sent.len(), 1);
    assert_ne!(sent[0].hint.unwrap().service, first);
}

#[test]
fn a_late_tick_leads_to_one_check_and_a_deadline_that_is_later() {
    let mut nic = watched(Trigger::congestion(us(10)));
    assert_eq!(nic.next_deadline(), Some(us(10)));
    assert_eq!(drain(&mut nic, us(95)).len(), 1);
    assert_eq!(nic.next_deadline(), Some(us(105)));
}

proptest! {
    #[test]
    fn one_hint_of_a_service_is_in_flight_whatever_happens(
        steps in proptest::collection::vec((0_u8..5, 0_usize..3, 0_u16..4, 0_u64..30), 1..200)
    ) {
        let unacked = NonZeroU8::new(2).unwrap();
        let mut nic = nic(&NicSettings { unacked_hints: unacked, ..settings(4, 2, jbsrq()) }, &[0, 1, 2]);
        for number in 0..3 {
            nic.enable_load_monitor(service(number), Trigger::congestion(us(10)), us(0)).unwrap();
        }
        let mut out: [Option<CoreId>; 3] = [None; 3];
        let mut now = us(0);
        for (what, number, core, later) in steps {
            now = now + us(later);
            let (id, core) = (service(number), CoreId(core));
            match what {
                0 => send_at(&mut nic, number, now),
                1 => nic.enable_service(id, core).unwrap(),
                2 => nic.disable_service(id, core).unwrap(),
                3 => drop(nic.load_feedback(id, core, 1)),
                _ => {
                    prop_assert_eq!(nic.rearm_load_monitor(id).is_ok(), out[number].is_some());
                    out[number] = None;
                }
            }
            for sent in drain(&mut nic, now) {
                let Some(hint) = sent.hint else { continue };
                let slot = &mut out[hint.service.index()];
                prop_assert!(slot.is_none(), "a second hint of {}", hint.service);
                *slot = Some(sent.core);
            }
            for core in 0..4 {
                let unacked = out.iter().flatten().filter(|at| **at == CoreId(core)).count();
                prop_assert!(unacked <= 2);
            }
            prop_assert!(nic.next_deadline().is_none_or(|next| next > now));
        }
    }
}
