//! Statements about two policies rest on pairs where both met the same tasks, and on both numbers' own
//! intervals where they did not.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sluice_outcome::study::{Estimate, StudyOutcome, Verdict};
use sluice_stats::{Method, Warmup};
use sluice_study::checked_plan::{CheckedPlan, Length, Overload, RunSettings};
use sluice_study::outcome::{Provenance, outcome};
use sluice_study::plan::Plan;
use sluice_study::run::Study;

const PLAN: &str = r#"
name = "pairs"
title = "A plan for tests"
source = "nowhere"
ours = true
testbed = "ideal"
workers = 4
seed = 1
tasks = 20_000
replications = 5
[tolerance]
value = 0.1
ratio = 0.03
change = 0.03
rate = 0.1
order = 0.25
[[policy]]
run = ["central", "jbsq:1", "jbsq:2"]
[[case]]
id = "exp"
title = "Exponential service"
workload = "exp:10us"
rates = "340k"
[[case]]
id = "same"
title = "The same tasks under another name"
workload = "exp:10us"
rates = "340k"
[[case]]
id = "slower"
title = "Other tasks"
workload = "exp:11us"
rates = "340k"
[[claim]]
id = "no-worse"
says = "One queue is as good as one task a worker"
place = "nowhere"
case = "exp"
metric = "p99"
at = "340k"
policy = "jbsq:1"
over = "central"
at_most = "1.05"
[[claim]]
id = "ratio"
says = "Two tasks a worker cost that much"
place = "nowhere"
case = "exp"
metric = "p99"
at = "340k"
policy = "jbsq:2"
over = "central"
ratio = 1.1
[[claim]]
id = "order"
says = "Two tasks a worker are worse"
place = "nowhere"
case = "exp"
metric = "p99"
at = "340k"
order = ["central", "jbsq:2"]
[[claim]]
id = "across"
says = "The same over another case's"
place = "nowhere"
case = "exp"
metric = "p99"
at = "340k"
policy = "jbsq:2"
over = "central"
over_case = "same"
ratio = 1.1
[[claim]]
id = "others"
says = "The same over that of other tasks"
place = "nowhere"
case = "exp"
metric = "p99"
at = "340k"
policy = "central"
over = "central"
over_case = "slower"
ratio = 1.0
"#;

fn study() -> StudyOutcome {
    let plan = Plan::parse("pairs", PLAN).unwrap_or_else(|why| panic!("{why}"));
    let length = Length::Tasks(4_000, Warmup::Tasks(1_000));
    let terms = RunSettings { length, overload: Overload::LeftOut, folder: PathBuf::new() };
    let bench = Arc::new(CheckedPlan::new(plan, terms).unwrap_or_else(|why| panic!("{why}")));
    let folder = tempfile::tempdir().expect("a folder");
    let mut study = Study::new(Arc::clone(&bench), 1, folder.path(), &Vec::new()).expect("it begins");
    assert!(study.run(&AtomicBool::new(false), |_| {}).expect("it runs"));
    let provenance =
        Provenance { sluice: String::new(), commit: String::new(), plan: None, commands: Vec::new() };
    outcome(&bench, study.known(), &provenance)
}

#[test]
fn statements_of_two_policies_rest_on_pairs_where_the_tasks_are_the_same() {
    let outcome = study();
    let row = |id: &str| outcome.expectations.iter().find(|row| row.id == id).expect("it is stated");
    let found = |id: &str| row(id).measured.unwrap_or_else(|| panic!("{id}: {}", row(id).why));
    let half = |of: Estimate| (of.high - of.low) / 2.0 / of.value;

    // One task a worker is one queue, so that the quotient is 1 to a cell of the histogram.
    let same = found("no-worse");
    assert_eq!((same.method, row("no-worse").verdict), (Method::Paired, Verdict::Agrees));
    assert!(half(same) < 0.002, "{same:?}");

    let p99 = |policy: &str| {
        let series = outcome.panels[0].series.iter().find(|series| series.policy == policy);
        series.expect("it ran").points[0].overall.latency_ns.p99
    };
    let (one, two) = (p99("central"), p99("jbsq:2"));
    assert!(one.most() > two.low, "apart nobody could tell which is less: {one:?} {two:?}");
    assert_eq!(row("order").verdict, Verdict::Agrees, "{}", row("order").why);
    assert_eq!(found("ratio").method, Method::Paired);
    assert_eq!(found("ratio"), found("across"), "a case of the same workload has the same tasks");
    assert_eq!(found("others").method, Method::Batches, "those of another workload are others");
}
