//! Runs a study from its first to its last point: determines the next points from the known ones.
//!
//! Everything that a study answers (its grid, its searches, the paper's statements, the causes of
//! differences) is a function of the known points, which returns an answer or names missing points. A round
//! runs all missing points; rounds continue until none is missing. So the set of points depends on results
//! alone, not on threads or the clock, and a stopped study continues in the same way.

use std::collections::BTreeSet;

use sluice_outcome::study::Verdict;

use super::checked_plan::CheckedPlan;
use super::evaluator::Evaluator;
use super::finding::{Finding, find};
use super::known_points::{Evaluation, KnownPoints, PointId};
use super::plan::{CauseTest, Claim, Subject};

/// The points of the next round; none if everything is known.
pub(super) fn wanted(bench: &CheckedPlan, known: &KnownPoints) -> BTreeSet<PointId> {
    let grid = grid(bench);
    let missing: BTreeSet<PointId> = grid.into_iter().filter(|id| known.get(id).is_none()).collect();
    if !missing.is_empty() {
        return missing;
    }
    let evaluator = Evaluator::new(bench, known, None);
    let plan = bench.plan();
    let mut wants = BTreeSet::new();
    for search in &plan.searches {
        wants.extend(
            evaluator.rate_within_limit(search.case, &Subject::one(&search.run), &search.limit).wants(),
        );
    }
    for claim in &plan.claims {
        match find(plan, claim, evaluator) {
            Evaluation::Wants(points) => wants.extend(points),
            Evaluation::Known(finding) if needs_cause(&finding) => {
                for (at, _) in causes(bench, claim) {
                    wants.extend(find(plan, claim, Evaluator::new(bench, known, Some(at))).wants());
                }
            }
            Evaluation::Known(_) => {}
        }
    }
    wants
}

/// The points with causes' changes that statements may need, if none of the statements agrees. A search's
/// later points cannot be known beforehand; its first ones are included.
pub(super) fn of_causes(bench: &CheckedPlan, known: &KnownPoints) -> BTreeSet<PointId> {
    let plan = bench.plan();
    let each = plan.claims.iter().flat_map(|claim| {
        causes(bench, claim)
            .flat_map(move |(at, _)| find(plan, claim, Evaluator::new(bench, known, Some(at))).wants())
    });
    each.filter(|id| id.change.is_some()).collect()
}

/// The points of the plan itself.
pub(super) fn grid(bench: &CheckedPlan) -> BTreeSet<PointId> {
    let cases = bench.plan().cases.iter().enumerate();
    let ids = cases.flat_map(|(case, of)| {
        of.runs.iter().flat_map(move |run| {
            let id = move |rate: &f64| PointId { case, run: run.clone(), rate: *rate as u64, change: None };
            of.rates.iter().map(id)
        })
    });
    ids.filter(|id| bench.is_within_reach(id)).collect()
}

/// Whether to look for a cause, because our number differs from the paper's. An undecided number has no
/// difference that could have a cause.
pub(super) fn needs_cause(finding: &Finding) -> bool {
    !matches!(finding.verdict, Verdict::Agrees | Verdict::Undecided | Verdict::NotMeasured)
}

/// The causes that a claim may have, with their indices in the plan.
pub(super) fn causes<'b>(
    bench: &'b CheckedPlan,
    claim: &'b Claim,
) -> impl Iterator<Item = (usize, &'b CauseTest)> {
    let all = bench.plan().causes.iter().enumerate();
    all.filter(|(_, cause)| cause.of.contains(&claim.id))
}
