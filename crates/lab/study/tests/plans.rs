//! The project's own plans yield points that can be run.

use std::path::PathBuf;

use sluice_stats::Warmup;
use sluice_study::checked_plan::{CheckedPlan, Length, Overload, RunSettings};
use sluice_study::plan::Plan;

fn assert_can_be_run(plans: &[&str], warmup: Warmup, overload: Overload) {
    for text in plans {
        let plan = Plan::parse("plan", text).unwrap_or_else(|why| panic!("{why}"));
        let length = Length::Tasks(1_000, warmup);
        let terms = RunSettings { length, overload, folder: PathBuf::new() };
        CheckedPlan::new(plan, terms).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn the_plans_about_adaptation_can_be_run() {
    let plans = [
        include_str!("../../../../experiments/rain-9.toml"),
        include_str!("../../../../experiments/rain-10.toml"),
        include_str!("../../../../experiments/rain-6a.toml"),
        include_str!("../../../../experiments/rain-6b.toml"),
        include_str!("../../../../experiments/rain-6c.toml"),
    ];
    assert_can_be_run(&plans, Warmup::Detect, Overload::LeftOut);
}

#[test]
fn the_plans_about_servers_can_be_run() {
    let plans = [
        include_str!("../../../../experiments/ringleader-3.toml"),
        include_str!("../../../../experiments/ringleader-8.toml"),
        include_str!("../../../../experiments/ringleader-assignments.toml"),
        include_str!("../../../../experiments/ringleader-batch.toml"),
        include_str!("../../../../experiments/ringleader-priorities.toml"),
        include_str!("../../../../experiments/ringleader-rack.toml"),
    ];
    assert_can_be_run(&plans, Warmup::Detect, Overload::LeftOut);
}

#[test]
fn the_plans_about_overload_can_be_run() {
    let plans = [
        include_str!("../../../../experiments/rain-overload.toml"),
        include_str!("../../../../experiments/rain-overload-classes.toml"),
    ];
    assert_can_be_run(&plans, Warmup::Detect, Overload::LeftOut);
}

#[test]
fn a_statement_about_goodput_needs_to_know_when_an_answer_is_in_time() {
    let text = include_str!("../../../../experiments/rain-overload.toml");
    let plan = Plan::parse("plan", &text.replace("within = ", "# ")).expect("legal TOML");
    let terms = RunSettings {
        length: Length::Tasks(1_000, Warmup::Detect),
        overload: Overload::LeftOut,
        folder: PathBuf::new(),
    };
    let why = CheckedPlan::new(plan, terms).expect_err("nobody says when").to_string();
    assert!(why.contains("needs to know when an answer is in time"), "{why}");
}

#[test]
fn the_fabrics_plans_can_be_run() {
    let plans = [
        include_str!("../../../../experiments/hf2t-together.toml"),
        include_str!("../../../../experiments/hf2t-horus.toml"),
        include_str!("../../../../experiments/hf2t-loads.toml"),
        include_str!("../../../../experiments/hf2t-settings.toml"),
    ];
    assert_can_be_run(&plans, Warmup::Tasks(0), Overload::Meant);
}
