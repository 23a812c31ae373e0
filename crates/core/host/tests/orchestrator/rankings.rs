//! The order of services: strict and weighted functions, nested, with rates.

use std::num::{NonZeroU32, NonZeroU64};

use proptest::prelude::*;
use sluice_host::orchestrator::{
    Branch, CoreId, Nic, NicSettings, OrchestratorSetupError, Ranking, RequestHandle,
};
use sluice_wire::Nanos;

use crate::server::{address, jbsrq, nic, service, settings};

fn leaf(number: usize) -> Branch {
    Branch::new(Ranking::Service(service(number)))
}

fn weighing(weight: u32, branch: Branch) -> Branch {
    Branch { weight: NonZeroU32::new(weight).unwrap(), ..branch }
}

/// A NIC with one core, on which all services run.
fn ranked(ranking: Ranking, services: usize) -> Nic {
    let mut nic = nic(&NicSettings { ranking, ..settings(1, 1_000, jbsrq()) }, &vec![0; services]);
    (0..services).for_each(|number| nic.enable_service(service(number), CoreId(0)).unwrap());
    nic
}

fn send(nic: &mut Nic, number: usize, bytes: u32) {
    nic.receive(&address(number), (RequestHandle(0), bytes), Nanos(0), |_| {}).unwrap();
}

fn order(nic: &mut Nic, now: Nanos, most: usize) -> Vec<usize> {
    let sent = std::iter::from_fn(|| nic.dispatch(now));
    sent.take(most).map(|sent| sent.request.unwrap().service.index()).collect()
}

#[test]
fn two_services_share_by_weight_and_go_before_a_third() {
    // The paper's example of a hierarchy (§3.2).
    let pair = Branch::new(Ranking::Weighted(vec![weighing(2, leaf(0)), leaf(1)]));
    let mut nic = ranked(Ranking::Strict(vec![pair, leaf(2)]), 3);
    for number in [2, 1, 0] {
        (0..30).for_each(|_| send(&mut nic, number, 100));
    }
    let first = order(&mut nic, Nanos(0), 30);
    assert_eq!([0, 1, 2].map(|of| first.iter().filter(|served| **served == of).count()), [20, 10, 0]);
    assert_eq!(order(&mut nic, Nanos(0), 100)[30..], [2; 30]);
}

#[test]
fn strict_order_holds_inside_a_weighted_share() {
    let pair = Branch::new(Ranking::Strict(vec![leaf(0), leaf(1)]));
    let mut nic = ranked(Ranking::Weighted(vec![pair, leaf(2)]), 3);
    for number in 0..3 {
        (0..4).for_each(|_| send(&mut nic, number, 100));
    }
    assert_eq!(order(&mut nic, Nanos(0), 12), [0, 2, 0, 2, 0, 2, 0, 2, 1, 1, 1, 1]);
}

#[test]
fn shares_are_of_bytes() {
    let mut nic = ranked(Ranking::Weighted(vec![leaf(0), leaf(1)]), 2);
    (0..40).for_each(|_| send(&mut nic, 0, 300));
    (0..40).for_each(|_| send(&mut nic, 1, 100));
    let first = order(&mut nic, Nanos(0), 40);
    assert_eq!(first.iter().filter(|served| **served == 1).count(), 30);
}

#[test]
fn a_service_that_had_nothing_to_send_has_no_credit_for_it() {
    let mut nic = ranked(Ranking::Weighted(vec![leaf(0), leaf(1)]), 2);
    (0..100).for_each(|_| send(&mut nic, 0, 100));
    assert_eq!(order(&mut nic, Nanos(0), 50), [0; 50]);
    (0..10).for_each(|_| send(&mut nic, 1, 100));
    let shared = order(&mut nic, Nanos(0), 10);
    assert_eq!(shared.iter().filter(|served| **served == 1).count(), 5);
}

#[test]
fn a_rate_holds_a_service_back_until_its_transmission_time() {
    // 64 bytes at 64 MB/s take a microsecond.
    let slow = Branch { rate_bytes_per_s: NonZeroU64::new(64_000_000), ..leaf(0) };
    let mut nic = ranked(Ranking::Strict(vec![slow, leaf(1)]), 2);
    (0..3).for_each(|_| send(&mut nic, 0, 64));
    send(&mut nic, 1, 64);
    assert_eq!(order(&mut nic, Nanos(0), 9), [0, 1], "the other one need not wait");
    let ranked = nic.ranked(service(0)).unwrap();
    assert_eq!(ranked.rate_bytes_per_s, NonZeroU64::new(64_000_000));
    assert_eq!(ranked.transmission, Nanos(1_000));
    assert_eq!(nic.next_deadline(), Some(Nanos(1_000)));
    assert_eq!(order(&mut nic, Nanos(999), 9), [0; 0]);
    assert_eq!(order(&mut nic, Nanos(1_000), 9), [0]);
    assert_eq!(nic.next_deadline(), Some(Nanos(2_000)));
}

#[test]
fn without_a_ranking_priorities_are_strict_and_equal_ones_share() {
    let mut nic = nic(&settings(1, 100, jbsrq()), &[3, 5, 3]);
    (0..3).for_each(|number| nic.enable_service(service(number), CoreId(0)).unwrap());
    for number in 0..3 {
        (0..2).for_each(|_| send(&mut nic, number, 64));
    }
    assert_eq!(order(&mut nic, Nanos(0), 9), [1, 1, 0, 2, 0, 2]);
}

#[test]
fn a_ranking_that_cannot_be_is_refused_when_it_is_built() {
    let built =
        |ranking| Nic::new(&NicSettings { ranking, ..settings(1, 1, jbsrq()) }).map(drop).unwrap_err();
    assert_eq!(built(Ranking::Strict(vec![])), OrchestratorSetupError::EmptyRanking);
    let twice = Ranking::Strict(vec![leaf(0), leaf(0)]);
    assert_eq!(built(twice), OrchestratorSetupError::RankedTwice(service(0)));
    let deep = (0..5).fold(Ranking::Service(service(0)), |of, _| Ranking::Strict(vec![Branch::new(of)]));
    assert!(matches!(built(deep), OrchestratorSetupError::RankingShape { .. }));
}

proptest! {
    #[test]
    fn what_goes_is_what_ranks_least(
        steps in proptest::collection::vec((0_usize..5, 1_u32..400, any::<bool>()), 1..200)
    ) {
        let inner = Branch::new(Ranking::Weighted(vec![weighing(3, leaf(0)), leaf(1)]));
        let strict = Branch::new(Ranking::Strict(vec![leaf(2), inner]));
        let mut nic = ranked(Ranking::Weighted(vec![strict, weighing(2, leaf(3)), leaf(4)]), 5);
        for (number, bytes, goes) in steps {
            send(&mut nic, number, bytes);
            if !goes {
                continue;
            }
            let waiting = (0..5).filter(|of| nic.waiting(service(*of)) > 0);
            let least = waiting.min_by_key(|of| nic.ranked(service(*of)).unwrap().rank);
            prop_assert_eq!(order(&mut nic, Nanos(0), 1), [least.unwrap()]);
        }
    }
}
