//! A core's queue: the most important request first, yields, feedback.

use sluice_host::orchestrator::{
    CoreId, CoreScheduler, Descriptor, Hint, LoadHint, OrchestratorError, RequestHandle, ScheduledRequest,
};
use sluice_wire::Nanos;

use crate::server::{priority, service};

const CORE: CoreId = CoreId(3);
const YIELDS: Nanos = Nanos(5_000);

fn core() -> CoreScheduler {
    CoreScheduler::new(CORE, 4, YIELDS)
}

fn request(handle: u64, of: u8) -> ScheduledRequest {
    ScheduledRequest { handle: RequestHandle(handle), service: service(of.into()), priority: priority(of) }
}

fn deliver(core: &mut CoreScheduler, handle: u64, of: u8) {
    let descriptor = Descriptor { core: CORE, request: Some(request(handle, of)), hint: None };
    assert_eq!(core.deliver(&descriptor), Ok(None));
}

#[test]
fn the_most_important_request_runs_first_and_equals_in_their_order() {
    let mut core = core();
    for (handle, of) in [(1, 0), (2, 1), (3, 1)] {
        deliver(&mut core, handle, of);
    }
    let mut order = Vec::new();
    while let Some(slice) = core.start(Nanos(0)) {
        order.push(slice.request.handle.0);
        core.finish(true).unwrap();
    }
    assert_eq!(order, [2, 3, 1]);
}

#[test]
fn what_runs_yields_after_its_interval_to_what_is_more_important() {
    let mut core = core();
    deliver(&mut core, 1, 0);
    let slice = core.start(Nanos(100)).unwrap();
    assert_eq!((slice.until, slice.is_resumed, slice.is_switch), (Nanos(5_100), false, false));
    assert_eq!(core.start(Nanos(200)), None, "one at a time");
    let alone = core.yields(slice.until).unwrap();
    assert_eq!((alone.request.handle.0, alone.is_switch), (1, false), "nobody else is there: no switch");
    deliver(&mut core, 2, 1);
    let next = core.yields(alone.until).unwrap();
    assert_eq!((next.request.handle.0, next.is_switch, next.is_resumed), (2, true, false));
    core.finish(true).unwrap();
    let back = core.start(Nanos(11_000)).unwrap();
    assert_eq!((back.request.handle.0, back.is_resumed), (1, true));
}

#[test]
fn requests_of_one_priority_take_turns() {
    let mut core = core();
    (1..4).for_each(|handle| deliver(&mut core, handle, 2));
    let mut order = vec![core.start(Nanos(0)).unwrap().request.handle.0];
    order.extend((0..5).map(|_| core.yields(Nanos(0)).unwrap().request.handle.0));
    assert_eq!(order, [1, 2, 3, 1, 2, 3]);
}

#[test]
fn feedback_rides_on_the_reply_or_goes_alone() {
    let mut core = core();
    (0..2).for_each(|handle| deliver(&mut core, handle, 1));
    for replies in [true, false] {
        core.start(Nanos(0)).unwrap();
        let (_, feedback) = core.finish(replies).unwrap();
        assert_eq!((feedback.service, feedback.core, feedback.count), (service(1), CORE, 1));
        assert_eq!(feedback.rides, replies);
    }
    assert!(core.is_idle() && core.held() == 0);
}

#[test]
fn a_hint_comes_with_a_request_or_without() {
    let mut core = core();
    let hint = Some(LoadHint { service: service(1), hint: Hint::ScaleUp });
    let with = Descriptor { core: CORE, request: Some(request(1, 1)), hint };
    assert_eq!(core.deliver(&with), Ok(hint));
    assert_eq!(core.deliver(&Descriptor { request: None, ..with }), Ok(hint));
    assert_eq!(core.held(), 1);
}

#[test]
fn a_coroutine_that_never_yields_is_found_by_name() {
    let mut core = core();
    deliver(&mut core, 1, 6);
    core.start(Nanos(0)).unwrap();
    assert_eq!(core.overdue(2, Nanos(10_000)), None);
    assert_eq!(core.overdue(2, Nanos(10_001)), Some(service(6)));
}

#[test]
fn what_cannot_be_is_refused_and_counted() {
    let mut core = core();
    assert_eq!(core.finish(true), Err(OrchestratorError::NothingRuns(CORE)));
    assert_eq!(core.yields(Nanos(0)), Err(OrchestratorError::NothingRuns(CORE)));
    (0..4).for_each(|handle| deliver(&mut core, handle, 0));
    let more = Descriptor { core: CORE, request: Some(request(9, 7)), hint: None };
    assert_eq!(core.deliver(&more), Err(OrchestratorError::CoreQueueFull(CORE)));
    let elsewhere = Descriptor { core: CoreId(1), ..more };
    assert_eq!(core.deliver(&elsewhere), Err(OrchestratorError::OtherCore(CORE, CoreId(1))));
    assert_eq!((core.refused().total(), core.held()), (4, 4));
}
