//! What a statement may ask of a point beside its tasks' times: the gauges of pages and files, events for
//! each answered task, and what is reckoned from them.

use std::fmt;

use sluice_outcome::study::{Aggregate, CountDescriptor, Counts, GaugeDescriptor, Gauges, Unit};
use sluice_stats::{Estimate, Method, ReplicationSummary, estimate};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

use super::{StudyError, hint};

/// A number that replications count or average.
#[derive(Clone, Copy)]
pub struct Gauge(GaugeSource);

/// Where a gauge's numbers come from.
#[derive(Clone, Copy)]
enum GaugeSource {
    /// One of the gauges that pages and files have, too.
    Known(&'static GaugeDescriptor),
    /// Events for each answered task.
    PerTask(&'static CountDescriptor),
    /// What only statements ask for.
    Derived(&'static Derived),
}

/// What is reckoned from several gauges and counts.
struct Derived {
    name: &'static str,
    unit: Unit,
    of: fn(&Replication) -> f64,
}

/// What stands behind a count's name where it is taken for each task.
const PER_TASK: &str = "_per_task";

const DERIVED: [Derived; 7] = [
    // Copies of waiting tasks that are written to servers.
    Derived { name: "writes_per_s", unit: Unit::PerS, of: |run| run.writes_per_s() },
    // The same by Rain §5.4: throughput × share that waits × share over 8 bytes × servers.
    Derived { name: "writes_reckoned_per_s", unit: Unit::PerS, of: |run| run.writes_reckoned_per_s() },
    Derived {
        name: "writes_over_reckoned",
        unit: Unit::Ratio,
        of: |run| run.writes_per_s() / run.writes_reckoned_per_s().max(f64::MIN_POSITIVE),
    },
    Derived { name: "queued_share", unit: Unit::Share, of: |run| run.queued_share() },
    // Tasks that went round in a spine or in a leaf (Horus, Figure 15).
    Derived {
        name: "rounds_per_task",
        unit: Unit::Ratio,
        of: |run| run.per_task(run.one.counts.spine_rounds + run.one.counts.leaf_rounds),
    },
    // Tasks that found no end, and their share (Horus, Figures 9 and 18).
    Derived { name: "lost_tasks", unit: Unit::Count, of: |run| run.one.counts.unknown as f64 },
    Derived {
        name: "lost_share",
        unit: Unit::Share,
        of: |run| run.one.counts.unknown as f64 / (run.one.counts.sent as f64).max(1.0),
    },
];

/// One replication and what it has in common with the others.
struct Replication<'r> {
    one: &'r ReplicationSummary,
    facts: &'r Facts,
}

/// What all replications of a point share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    servers: f64,
    large: f64,
}

impl Facts {
    pub(super) fn of(testbed: &Testbed, workload: &Workload) -> Self {
        let large = workload.classes.iter().map(|class| class.share * class.large).sum();
        Self { servers: testbed.servers.count.into(), large }
    }
}

/// Prints the name only: a function's address differs from run to run, and a journal identifies a plan by
/// this text.
impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gauge").field(&self.0.name()).finish()
    }
}

impl Gauge {
    /// Reads its name.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        GaugeSource::all().find(|of| of.name() == text).map(Self).ok_or_else(|| {
            let known: Vec<String> = GaugeSource::all().map(GaugeSource::name).collect();
            StudyError::Point(hint::unknown("gauge", text, known.iter().map(String::as_str)))
        })
    }

    /// The unit of its numbers.
    pub fn unit(self) -> Unit {
        match self.0 {
            GaugeSource::Known(gauge) => gauge.stated_in.unwrap_or(gauge.unit),
            GaugeSource::PerTask(_) => Unit::Ratio,
            GaugeSource::Derived(derived) => derived.unit,
        }
    }

    /// The number of each replication.
    pub(super) fn values(self, each: &[ReplicationSummary], facts: &Facts) -> Vec<f64> {
        each.iter().map(|one| self.0.value(&Replication { one, facts })).collect()
    }

    /// The mean over all replications.
    pub(super) fn mean(self, values: &[f64]) -> Estimate {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let found = estimate(mean, values, Method::Replications);
        // No share is above one.
        let most = if self.unit() == Unit::Share { 1.0 } else { f64::INFINITY };
        Estimate { high: found.high.min(most), ..found }
    }
}

impl PartialEq for Gauge {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl GaugeSource {
    fn all() -> impl Iterator<Item = Self> {
        let known = Gauges::ALL.iter().map(Self::Known);
        let is_known = |of: &Self| Gauges::ALL.iter().any(|gauge| gauge.name == of.name());
        let per_task = Counts::ALL.iter().map(Self::PerTask).filter(move |of| !is_known(of));
        DERIVED.iter().map(Self::Derived).chain(known).chain(per_task)
    }

    fn name(self) -> String {
        match self {
            Self::Known(gauge) => gauge.name.to_owned(),
            Self::PerTask(count) => count.name.to_owned() + PER_TASK,
            Self::Derived(derived) => derived.name.to_owned(),
        }
    }

    fn value(self, run: &Replication<'_>) -> f64 {
        match self {
            Self::Known(gauge) => match gauge.over {
                Aggregate::Tasks { events, .. } => run.per_task(events(&run.one.counts)),
                Aggregate::Mean | Aggregate::Most => (gauge.get)(&run.one.gauges).unwrap_or(0.0),
            },
            Self::PerTask(count) => run.per_task((count.get)(&run.one.counts)),
            Self::Derived(derived) => (derived.of)(run),
        }
    }
}

impl Replication<'_> {
    fn span_s(&self) -> f64 {
        self.one.span_ns.max(1) as f64 / 1e9
    }

    fn writes(&self) -> f64 {
        self.one.counts.writes as f64
    }

    fn replied(&self) -> f64 {
        self.one.counts.replied.max(1) as f64
    }

    fn per_task(&self, count: u64) -> f64 {
        count as f64 / self.replied()
    }

    fn queued_share(&self) -> f64 {
        self.one.counts.queued as f64 / self.replied()
    }

    fn writes_per_s(&self) -> f64 {
        self.writes() / self.span_s()
    }

    fn writes_reckoned_per_s(&self) -> f64 {
        self.replied() / self.span_s() * self.queued_share() * self.facts.large * self.facts.servers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_is_written_down_the_same_by_every_process() {
        let gauge = Gauge::parse("flowlets").expect("it is known");
        assert_eq!(format!("{gauge:?}"), "Gauge(\"flowlets\")");
    }

    #[test]
    fn each_gauge_and_each_count_a_task_can_be_stated_by_one_name() {
        let mut names: Vec<String> = GaugeSource::all().map(GaugeSource::name).collect();
        for name in &names {
            assert_eq!(Gauge::parse(name).expect("it is known").0.name(), *name);
        }
        assert!(
            ["writes_per_task", "packets_per_task", "gaps"].iter().all(|name| Gauge::parse(name).is_ok())
        );
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }

    #[test]
    fn a_mean_of_whole_numbers_is_stated_with_decimals() {
        let unit = |name: &str| Gauge::parse(name).expect("it is known").unit();
        assert_eq!(["depth_mean", "passes_per_task", "recirculations_per_task"].map(unit), [Unit::Ratio; 3]);
        assert_eq!(
            ["flowlets", "labels_met", "writes_per_s"].map(unit),
            [Unit::Count, Unit::Share, Unit::PerS]
        );
    }
}
