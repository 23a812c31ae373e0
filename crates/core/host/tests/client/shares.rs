//! Tries of tasks that are outstanding beyond their share, because a new grant shrank the share.

use sluice_wire::registrations::ClientRegistration;
use sluice_wire::{Attempt, SliceId, Submit};

use super::machine::{Bench, REJECTED, SECOND, TOO_LATE, grant, reject, reply};

#[test]
fn tries_beyond_a_share_that_shrank_wait_for_room_oldest_first() {
    let mut bench = Bench::registered();
    let tasks: Vec<Submit> = (0..8).map(|_| bench.submit()).collect();
    bench.grant(ClientRegistration { shares: vec![(SliceId(0), 3)], ..grant(5) });
    bench.run(50);
    let tried = bench.sent();
    assert_eq!(tried.len(), 3, "all eight timed out");
    let waiting: Vec<&Submit> =
        tasks.iter().filter(|task| !tried.iter().any(|again| again.task == task.task)).collect();
    bench.hear(reply(waiting[0]));
    assert_eq!(bench.sent(), [], "it was not tried, so nothing takes its place");
    for (ended, next) in tried.iter().zip(&waiting[1..]) {
        bench.hear(reply(ended));
        let again: Vec<_> = bench.sent().iter().map(|submit| (submit.task, submit.attempt)).collect();
        assert_eq!(again, [(next.task, Attempt(2))]);
    }
    bench.hear(reply(waiting[1]));
    assert_eq!(bench.sent().len(), 1);
    bench.hear(reply(waiting[1]));
    assert_eq!(bench.sent(), [], "nobody waits any more");
    bench.run(10 * SECOND);
    let outcomes = bench.outcomes();
    assert_eq!((outcomes.len(), bench.client.outstanding()), (8, 0));
    assert_eq!(outcomes[5..], [TOO_LATE; 3]);
}

/// While no slice takes a type, the share of such types bounds its tasks. Here the type has a slice again.
#[test]
fn rejected_tries_of_a_type_that_got_a_small_share_wait_for_room_and_end_at_their_deadlines() {
    let mut bench = Bench::new();
    bench.grant(ClientRegistration { slices: vec![], ..grant(5) });
    let tasks: Vec<Submit> = (0..8).map(|_| bench.submit()).collect();
    bench.grant(ClientRegistration { shares: vec![(SliceId(0), 3)], ..grant(5) });
    for task in &tasks {
        bench.hear(reject(task, 1));
    }
    bench.run(1);
    let tried = bench.sent();
    assert_eq!(tried.len(), 3);
    bench.run(10 * SECOND);
    let outcomes = bench.outcomes();
    let refused = outcomes.iter().filter(|outcome| **outcome == REJECTED).count();
    assert_eq!((outcomes.len(), refused), (8, 5), "all tries of those that waited were rejected");
    assert!(bench.sent().iter().all(|submit| tried.iter().any(|again| again.task == submit.task)));
}
