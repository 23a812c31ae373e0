//! Invalid calls: each gets a one-line error, is counted, and changes nothing.

use std::num::NonZeroU8;

use sluice_host::orchestrator::{
    Balancing, Branch, CoreId, Nic, NicSettings, OrchestratorError, OrchestratorSetupError, Priority,
    Ranking, RequestHandle, ServiceId, Trigger,
};
use sluice_wire::Nanos;

use crate::server::{address, jbsrq, nic, priority, send, service, settings};

fn refused(nic: &Nic, name: &str) -> u64 {
    nic.counts().refused.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn every_bad_call_is_refused_in_a_line_and_counted() {
    let mut nic = nic(&settings(2, 1, jbsrq()), &[0]);
    let (known, unknown) = (service(0), service(1));
    let trigger = Trigger::congestion(Nanos(10));
    let calls: [(&str, Result<(), OrchestratorError>); 12] = [
        ("unknown_core", nic.enable_service(known, CoreId(2))),
        ("unknown_core", nic.load_feedback(known, CoreId(u16::MAX), 1)),
        ("unknown_service", nic.disable_service(unknown, CoreId(0))),
        ("unknown_service", nic.load_feedback(unknown, CoreId(0), 1)),
        ("unknown_service", nic.enable_load_monitor(unknown, trigger, Nanos(0))),
        ("unknown_destination", nic.receive(&address(1), (RequestHandle(0), 64), Nanos(0), |_| {}).map(drop)),
        ("feedback_overrun", nic.load_feedback(known, CoreId(0), 1)),
        ("service_taken", nic.register_service(known, address(1), priority(0))),
        ("address_taken", nic.register_service(unknown, address(0), priority(0))),
        ("no_monitor", nic.rearm_load_monitor(known)),
        ("trigger", nic.enable_load_monitor(known, Trigger { interval: Nanos(0), ..trigger }, Nanos(0))),
        ("too_large", nic.receive(&address(0), (RequestHandle(0), u32::MAX), Nanos(0), |_| {}).map(drop)),
    ];
    for (name, told) in calls {
        let why = told.unwrap_err();
        assert_eq!(why.name(), name);
        assert!(!why.to_string().contains('\n') && why.to_string().contains(':'), "{why}");
        assert!(refused(&nic, name) > 0);
    }
    assert_eq!(nic.counts().refused.total(), 12);
    nic.enable_load_monitor(known, trigger, Nanos(0)).unwrap();
    assert_eq!(nic.rearm_load_monitor(known), Err(OrchestratorError::NoHintOut(known)));
    send(&mut nic, 0, 1);
    assert_eq!(nic.dispatch(Nanos(0)), None, "nothing was enabled");
}

#[test]
fn what_is_out_of_range_cannot_be_said() {
    assert!(Priority::new(8).is_err() && Priority::new(7).is_ok());
    assert!(ServiceId::new(64).is_none() && ServiceId::new(63).is_some());
    for (settings, why) in [
        (settings(0, 4, jbsrq()), OrchestratorSetupError::Cores(0)),
        (settings(257, 4, jbsrq()), OrchestratorSetupError::Cores(257)),
        (settings(8, 0, jbsrq()), OrchestratorSetupError::Depth(0, 1_024)),
        (settings(8, 1_025, jbsrq()), OrchestratorSetupError::Depth(1_025, 1_024)),
        (NicSettings { buffer_bytes: 63, ..settings(8, 4, jbsrq()) }, OrchestratorSetupError::Buffer(63)),
    ] {
        assert_eq!(Nic::new(&settings).map(drop), Err(why));
    }
}

#[test]
fn a_ranking_knows_the_services_that_it_names() {
    let ranking = Ranking::Strict(vec![Branch::new(Ranking::Service(service(3)))]);
    let mut nic = Nic::new(&NicSettings { ranking, ..settings(1, 1, jbsrq()) }).unwrap();
    let told = nic.register_service(service(0), address(0), priority(0));
    assert_eq!(told, Err(OrchestratorError::Unranked(service(0))));
    nic.register_service(service(3), address(0), priority(0)).unwrap();
}

#[test]
fn per_service_jbsq_has_registers_for_eight_services() {
    let mut nic = nic(&settings(1, 1, Balancing::PerServiceJbsq), &[0; 8]);
    let told = nic.register_service(service(8), address(8), priority(0));
    assert_eq!(told, Err(OrchestratorError::NoRegister(service(8))));
}

#[test]
fn as_many_services_as_entries_and_as_many_un_acked_hints_as_stated_are_fine() {
    let hints = NonZeroU8::new(255).unwrap();
    let mut nic = nic(&NicSettings { unacked_hints: hints, ..settings(256, 4, jbsrq()) }, &[3; 64]);
    for number in 0..64 {
        nic.enable_service(service(number), CoreId(255)).unwrap();
        send(&mut nic, number, number as u64);
    }
    let sent: Vec<u64> =
        std::iter::from_fn(|| nic.dispatch(Nanos(0))).map(|d| d.request.unwrap().handle.0).collect();
    assert_eq!(sent, [0, 1, 2, 3], "the core has room for four of a priority");
}
