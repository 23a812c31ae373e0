//! The paper's own examples: figures 5 and 7.

use sluice_host::orchestrator::{Balancing, CoreId, Lambda, Nic, NicSettings};
use sluice_wire::Nanos;

use crate::server::{enable_everywhere, fill, jbsrq, next, nic, send, service, settings};

const CORE_1: CoreId = CoreId(0);
const CORE_2: CoreId = CoreId(1);
/// Service A has a higher priority than service B.
const A: usize = 1;
const B: usize = 0;

/// Two cores hold the given numbers of requests of A and B; returns the core that the next request of a
/// service goes to.
fn chosen(balancing: Balancing, held: [(usize, usize); 2], of: usize) -> CoreId {
    let mut nic = nic(&settings(2, 4, balancing), &[0, 1]);
    for (core, (a, b)) in held.into_iter().enumerate() {
        fill(&mut nic, A, core as u16, &vec![1; a]);
        fill(&mut nic, B, core as u16, &vec![2; b]);
    }
    enable_everywhere(&mut nic, A);
    enable_everywhere(&mut nic, B);
    next(&mut nic, of).expect("there is room").core
}

#[test]
fn a_more_important_request_passes_over_a_long_queue_of_less_important_ones_under_jbsrq_alone() {
    // Figures 5 (a) and (c).
    let held = [(0, 3), (2, 0)];
    assert_eq!(chosen(Balancing::GlobalJbsq, held, A), CORE_2, "wrong, as the paper says");
    assert_eq!(chosen(jbsrq(), held, A), CORE_1);
}

#[test]
fn a_less_important_request_avoids_a_queue_of_more_important_ones_under_jbsrq_alone() {
    // Figures 5 (b) and (e).
    let held = [(3, 0), (0, 1)];
    assert_eq!(chosen(Balancing::PerServiceJbsq, held, B), CORE_1, "wrong, as the paper says");
    assert_eq!(chosen(jbsrq(), held, B), CORE_2);
}

#[test]
fn an_idle_core_is_better_than_one_that_would_have_to_yield() {
    // Figure 5 (d) shows the purpose of λ.
    let held = [(0, 1), (0, 0)];
    assert_eq!(chosen(Balancing::Jbsrq(Lambda::new(0, 1).unwrap()), held, A), CORE_1);
    assert_eq!(chosen(jbsrq(), held, A), CORE_2);
}

/// The registers of priorities 1, 2 and 3, in fifths.
fn registers(nic: &Nic, core: CoreId) -> [u32; 3] {
    let all = nic.balancer().registers(core).unwrap();
    [all[1], all[2], all[3]]
}

#[test]
fn the_end_to_end_example_of_figure_7_has_the_papers_numbers() {
    // "Service 1" has priority 2, "service 2" priority 1. Requests A to E are at the cores; F arrives.
    let (service_1, service_2) = (0, 1);
    let (a, f) = (1, 6);
    let mut nic = nic(&NicSettings { depth: 3, ..settings(2, 3, jbsrq()) }, &[2, 1]);
    fill(&mut nic, service_2, 0, &[a, 2]);
    fill(&mut nic, service_2, 1, &[3, 4]);
    fill(&mut nic, service_1, 1, &[5]);
    enable_everywhere(&mut nic, service_1);
    assert_eq!(registers(&nic, CORE_1), [10, 2, 2], "2 / 0.4 / 0.4");
    assert_eq!(registers(&nic, CORE_2), [15, 7, 3], "3 / 1.4 / 0.6");
    assert!(nic.is_eligible(service(service_1)) && nic.is_eligible(service(service_2)));

    send(&mut nic, service_2, 7);
    send(&mut nic, service_1, f);
    let sent = nic.dispatch(Nanos(0)).unwrap();
    assert_eq!((sent.core, sent.request.unwrap().service), (CORE_1, service(service_1)));
    assert_eq!(registers(&nic, CORE_1), [15, 7, 3], "3 / 1.4 / 0.6");
    assert!(!nic.is_eligible(service(service_2)), "its cores are both full");
    assert_eq!(nic.dispatch(Nanos(0)), None, "so its request waits");

    nic.load_feedback(service(service_1), CORE_1, 1).unwrap();
    assert_eq!(registers(&nic, CORE_1), [10, 2, 2], "F has ended: 2 / 0.4 / 0.4");
    assert!(nic.is_eligible(service(service_2)));
    nic.load_feedback(service(service_2), CORE_1, 1).unwrap();
    assert_eq!(registers(&nic, CORE_1), [5, 1, 1], "A, too: 1 / 0.2 / 0.2");
    assert_eq!(nic.dispatch(Nanos(0)).unwrap().core, CORE_1, "and what waited goes on");
}

#[test]
fn the_rank_of_a_service_is_infinite_where_it_does_not_run() {
    let mut nic = nic(&settings(2, 3, jbsrq()), &[2, 1]);
    nic.enable_service(service(0), CORE_2).unwrap();
    assert_eq!(nic.balancer().rank(service(0), CORE_1), None);
    assert_eq!(nic.balancer().rank(service(0), CORE_2), Some(0));
    assert_eq!(next(&mut nic, 0).unwrap().core, CORE_2);
}

#[test]
fn the_bound_is_each_prioritys_own_so_that_a_queue_may_exceed_the_depth() {
    let mut nic =
        nic(&settings(1, 4, Balancing::Jbsrq(Lambda::new(0, 1).unwrap())), &[0, 1, 2, 3, 4, 5, 6, 7]);
    for number in 0..8 {
        nic.enable_service(service(number), CORE_1).unwrap();
        (0..6).for_each(|_| send(&mut nic, number, 0));
        let sent = std::iter::from_fn(|| nic.dispatch(Nanos(0))).count();
        assert_eq!(sent, 4, "service {number}");
    }
    let held: u32 = (0..8).map(|number| nic.balancer().outstanding(service(number), CORE_1)).sum();
    assert_eq!(held, jbsrq().held_max(4), "depth times priorities, which a core's ring has room for");
}
