//! A pass reads the clock once, before it reaches its cell. The entry in the cell may come from a pass that
//! read the clock later. (Real clocks: `crowd.rs`.)

use sluice_wire::{Age, Dispatch, Nanos};

use crate::crowd::{Pair, SHAPE, set_up};
use crate::plane::Xdp;

/// The time at which the tests' task arrived.
const CAME: Nanos = Nanos::from_millis(1_000);

/// The DISPATCH of a waiting task if the pass of the token that takes it read this time.
fn taken_at(now: Nanos) -> Option<Dispatch> {
    let mut xdp = Xdp::new(SHAPE)?;
    set_up(&mut xdp);
    xdp.switch.set_now(CAME);
    Pair::new(&xdp.switch, 0).task();
    xdp.switch.set_now(now);
    let mut pair = Pair::new(&xdp.switch, 0);
    pair.token();
    pair.dispatched.pop()
}

#[test]
fn a_task_whose_clock_is_ahead_of_the_token_s_has_waited_for_no_time() {
    for behind in [Nanos(1), Nanos(16), Nanos(700), Nanos::from_millis(900)] {
        let Some(dispatch) = taken_at(CAME.since(behind)) else { return };
        assert_eq!((dispatch.wait_ns, dispatch.age), (0, Age(0)), "{behind:?} behind");
    }
}

#[test]
fn a_task_that_waited_for_hours_is_told_to_be_so_old() {
    let hours = Nanos::from_millis(4 * 3_600_000);
    let Some(dispatch) = taken_at(CAME + hours) else { return };
    assert_eq!((dispatch.wait_ns, dispatch.age), (u32::MAX, Age::of(hours)));
}
