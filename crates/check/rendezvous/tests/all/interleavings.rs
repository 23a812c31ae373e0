//! The checker finds no error in the program, and finds each planted mistake.

use crate::explorer::{Seen, explore};
use crate::mistakes::Mistake;
use crate::programs::{
    Scene, ranked, ranked_with_a_sweep, ranked_with_a_sweep_of_tasks, taken_in_one_cell, tasks_over_a_lap,
    three_over_a_lap, three_ranked_over_a_lap, tokens_over_a_lap, two_and_two, two_over_a_lap,
    voided_over_a_lap, with_a_sweep, with_a_sweep_of_tasks, with_two_sweeps,
};

fn scenes() -> [(&'static str, Scene); 14] {
    [
        ("2 tokens and 2 tasks on a ring of 2", two_and_two()),
        ("with ranks, tokens that are taken early, over a lap", taken_in_one_cell()),
        ("2 CPUs over a lap of a ring of 8", two_over_a_lap()),
        ("3 CPUs over a lap of a ring of 8", three_over_a_lap()),
        ("3 CPUs, a sweep that voids over a lap", voided_over_a_lap()),
        ("2 tokens, 2 tasks and 2 sweeps, a token stale", with_two_sweeps()),
        ("2 tokens, 2 tasks and a sweep of tasks", with_a_sweep_of_tasks()),
        ("2 tokens, 2 tasks and a sweep of tokens", with_a_sweep()),
        ("2 ranks and 2 tasks", ranked(4)),
        ("2 ranks and 2 tasks, one try", ranked(1)),
        ("a token, a task and a sweep of tokens, beside 2 ranks", ranked_with_a_sweep()),
        ("2 ranks and 2 tasks, a sweep of tasks", ranked_with_a_sweep_of_tasks()),
        ("2 CPUs over a lap of the tasks' ring", tasks_over_a_lap()),
        ("2 CPUs over a lap of a rank's ring", tokens_over_a_lap()),
    ]
}

#[test]
fn every_interleaving_keeps_each_token_and_each_task_once_and_in_order() {
    for (name, scene) in scenes() {
        let Seen { states, paths } = explore(&scene, None).unwrap_or_else(|why| panic!("{name}: {why}"));
        println!("{name}: {states} states, {paths} paths");
    }
}

#[test]
fn every_planted_mistake_is_found_in_some_interleaving() {
    for mistake in Mistake::ALL {
        let by = scenes()
            .into_iter()
            .find_map(|(name, scene)| explore(&scene, Some(mistake)).err().map(|why| (name, why)));
        let (name, why) = by.unwrap_or_else(|| panic!("{mistake:?} is not found"));
        let short: String = why.chars().take(90).collect();
        println!("{mistake:?}: {name}: {short}");
    }
}

#[test]
fn a_ring_that_looks_less_far_ahead_than_it_has_cpus_is_found() {
    let mut scene = three_over_a_lap();
    scene.ring.ahead = 0;
    let why = explore(&scene, None).expect_err("two may look before either takes its number");
    assert!(why.contains("Broken"), "{why}");
}

#[test]
fn with_ranks_a_ring_that_looks_less_far_ahead_than_it_has_cpus_is_found() {
    let why = explore(&three_ranked_over_a_lap(), None).expect_err("one is counted long after it looked");
    assert!(why.contains("Broken"), "{why}");
}
