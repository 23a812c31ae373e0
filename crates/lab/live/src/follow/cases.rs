//! Which cases and policies of a plan run live, and for how long.

use std::time::Duration;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_study::PointId;
use sluice_study::checked_plan::CheckedPlan;
use sluice_study::plan::{Case, PolicySetup};
use sluice_support::fail::{Failure, Outcome};
use sluice_support::load::nanos;
use sluice_switch::registry::Choice;
use sluice_testbed::Testbed;
use sluice_wire::Nanos;

use crate::args::FollowArgs;
use crate::live_sweep::LivePolicy;

/// The default length of a run.
pub(super) const SPAN: Duration = Duration::from_millis(200);

/// One case under one policy.
pub(super) struct FollowedCase {
    pub(super) case: String,
    pub(super) title: String,
    pub(super) who: LivePolicy,
    pub(super) point: Point,
    /// The length of the run in the emulated rack.
    pub(super) span: Nanos,
}

impl FollowedCase {
    /// The start and end of the time in which some workers are slow.
    pub(super) fn slow(&self) -> Option<(Nanos, Nanos)> {
        let slow = &self.point.testbed.slow;
        slow.is_any().then(|| (slow.from, slow.from + slow.length))
    }
}

/// The runs in the plan's order. Policies whose agents only advise keep a fixed depth: they run only in
/// cases with slow workers, as a comparison, or if the user names them.
pub(super) fn picks(args: &FollowArgs, bench: &CheckedPlan) -> Outcome<Vec<FollowedCase>> {
    let plan = bench.plan();
    let cases: Vec<&str> = plan.cases.iter().map(|case| case.id.as_str()).collect();
    if let Some(name) = args.case.iter().find(|name| !cases.contains(&name.as_str())) {
        return Err(Failure::bad_input(sluice_units::unknown("case", name, &cases)));
    }
    let named = args.policies();
    let runs = || plan.cases.iter().flat_map(|case| &case.runs).filter(|run| adaptive_choice(run).is_some());
    if let Some(name) = named.iter().find(|name| !runs().any(|run| run.policy == **name)) {
        let mut known: Vec<&str> = runs().map(|run| run.policy.as_str()).collect();
        known.dedup();
        return Err(Failure::bad_input(sluice_units::unknown("policy with an agent", name, &known)));
    }
    let mut picks = Vec::new();
    for (place, case) in plan.cases.iter().enumerate() {
        if !args.case.is_empty() && !args.case.contains(&case.id) {
            continue;
        }
        let testbed = bench.testbed(place, None);
        for run in &case.runs {
            let Some(choice) = adaptive_choice(run) else { continue };
            let is_fixed = choice.traits().adaptive.is_some_and(|adaptive| adaptive.advises);
            let is_wanted = if named.is_empty() {
                !is_fixed || testbed.slow.is_any()
            } else {
                named.contains(&run.policy)
            };
            if is_wanted {
                check(&case.id, testbed)?;
                picks.push(pick(args, bench, (place, case), run, choice)?);
            }
        }
    }
    if picks.is_empty() {
        let name = &plan.name;
        return Err(Failure::bad_input(format!("{name} has no adaptive policy that could be followed live")));
    }
    Ok(picks)
}

/// The policy, if its agent reports depths.
fn adaptive_choice(run: &PolicySetup) -> Option<Choice> {
    Choice::parse(&run.policy).ok().filter(|choice| choice.traits().adaptive.is_some())
}

fn pick(
    args: &FollowArgs,
    bench: &CheckedPlan,
    (place, case): (usize, &Case),
    run: &PolicySetup,
    choice: Choice,
) -> Outcome<FollowedCase> {
    let rate = case.rates.first().copied().unwrap_or(1.0) as u64;
    let point = bench.point(&PointId { case: place, run: run.clone(), rate, change: None });
    let lasts = case.lasts_ns.filter(|_| point.testbed.slow.is_any()).map(Nanos);
    Ok(FollowedCase {
        case: case.id.clone(),
        title: case.title.clone(),
        who: LivePolicy {
            name: run.policy.clone(),
            choice,
            policy: Policy::parse(&run.policy).map_err(Failure::bad_input)?,
        },
        point,
        span: args.span.map(nanos).or(lasts).unwrap_or(nanos(SPAN)),
    })
}

/// Checks that a live rack can emulate this testbed.
fn check(case: &str, testbed: &Testbed) -> Outcome<()> {
    if testbed.has_faults() || testbed.stalls.per_s > 0.0 {
        let why = format!("case {case}: faults and stalls are the simulator's only: leave --live out");
        return Err(Failure::bad_input(why));
    }
    if !testbed.labels.is_none() {
        let why = format!("case {case}: labels in a testbed are the simulator's only: leave --live out");
        return Err(Failure::bad_input(why));
    }
    Ok(())
}
