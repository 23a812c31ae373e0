//! Runs compared with queueing theory and with one another; and policies that are wrong on purpose, which
//! the checks must find.

mod cells;
mod coverage;
mod formulas;
mod grid;
mod orders;
mod pairs;
mod servers;
mod sustained;
mod wrong;

use sluice_models::ideal::Central;

#[test]
fn one_queue_is_what_theory_says() {
    let outcome = grid::run(&cells::quick(), 1.0, Central::new);
    assert!(outcome.holds(), "{outcome:#?}");
}

#[test]
#[ignore = "takes minutes; `make soak` runs it"]
fn one_queue_is_what_theory_says_over_the_whole_grid() {
    let outcome = grid::run(&cells::all(), 1.0, Central::new);
    assert!(outcome.holds(), "{outcome:#?}");
}
