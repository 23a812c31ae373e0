//! A notation means the same in flags, plans, policies, workloads, limits and faults.

use std::time::Duration;

use sluice_netem::Rates;
use sluice_outcome::study::Unit;
use sluice_study::limit::value_of;
use sluice_study::numbers;
use sluice_support::plan::{Arrivals, Plan};
use sluice_support::units;
use sluice_switch::registry::Choice;
use sluice_wire::Nanos;
use sluice_wire::tables::Feed;
use sluice_workload::Workload;

const PLAN: &str = "[[slice]]\nname = \"a\"\ntypes = [\"get\"]\n[load]\nmix = \"get=1\"\n";

#[test]
fn a_span_is_the_same_everywhere() {
    for (text, ns) in
        [("700ns", 700), ("1.5us", 1_500), ("4.35µs", 4_350), (".25ms", 250_000), ("2s", 2_000_000_000)]
    {
        assert_eq!(units::span(text), Ok(Duration::from_nanos(ns)), "a flag: {text}");
        let faults: Rates = format!("delay={text}").parse().expect(text);
        assert_eq!(faults.delay, Nanos(ns), "faults: {text}");
        let policy = Choice::parse(&format!("draconis:poll={text}")).expect(text);
        assert_eq!(policy.traits().feed, Feed::Polls { every: Nanos(ns) }, "a policy: {text}");
        assert_eq!(value_of(text, Unit::Ns), Some(ns as f64), "a limit: {text}");
        let workload = Workload::parse(&format!("const:{text}")).expect(text);
        assert_eq!(Some(workload.mean_service_ns()), Some(ns as f64), "a workload: {text}");
        let plan = Plan::from_text("here", &format!("{PLAN}rate = 1\nlength = \"{text}\"\n")).expect(text);
        assert_eq!(plan.load.expect("it has one").length, Duration::from_nanos(ns), "a plan: {text}");
    }
}

#[test]
fn a_rate_is_the_same_everywhere() {
    for (text, per_s) in [("500", 5e2), ("1_000", 1e3), ("2000k", 2e6), ("2.8M", 2.8e6)] {
        assert_eq!(units::rate(text), Ok(per_s), "a rack's flag: {text}");
        assert_eq!(numbers::rate(text).ok(), Some(per_s), "a study's flag: {text}");
        let plan = Plan::from_text("here", &format!("{PLAN}rate = \"{text}\"\n")).expect(text);
        assert_eq!(plan.load.expect("it has one").arrivals, Arrivals::Poisson(per_s), "a plan: {text}");
    }
}

#[test]
fn a_share_is_the_same_everywhere() {
    let mix = units::mix("get=1/4,scan=0.75").expect("legal");
    assert_eq!(mix, [("get".to_owned(), 0.25), ("scan".to_owned(), 0.75)]);
    assert_eq!("loss=1/4".parse::<Rates>().map(|rates| rates.loss).ok(), Some(0.25));
    let workload = Workload::parse("a=1/4@const:1us+b=0.75@const:1us").expect("legal");
    assert_eq!(workload.classes.first().map(|class| class.share), Some(0.25));
}
