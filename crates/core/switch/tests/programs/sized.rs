//! Tests of Rain with a queue of a fixed size: the slice's row is a limit too.

use sluice_switch::Verdict;
use sluice_wire::RejectReason;

use crate::rack::{Rack, rejected};

#[test]
fn so_many_tasks_wait_and_one_more_is_refused_whichever_limit_is_lower() {
    for (program, limit) in [("rain:1,queue=4", 16), ("rain:1,queue=16", 4)] {
        let mut rack = Rack::of(program, 1, limit);
        (0..4).for_each(|at| assert_eq!(rack.task(), Verdict::Parked, "{program}: task {at}"));
        assert_eq!(rejected(rack.task()), RejectReason::QueueFull, "{program}");
        rack.token(0);
        assert_eq!(rack.task(), Verdict::Parked, "{program}: a token took one");
    }
}
