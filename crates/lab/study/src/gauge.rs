//! What a statement may ask of a point beside its tasks' times: the gauges of pages and files, events for
//! each answered task, and what is reckoned from them.

use std::fmt;

use sluice_outcome::study::{Aggregate, CountDescriptor, Counts, GaugeDescriptor, Gauges, Unit};
use sluice_stats::{Estimate, Method, ReplicationSummary, estimate};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

use super::{StudyError, hint};

/// A number that replications count or average.
#[derive(Clone)]
pub struct Gauge {
    source: GaugeSource,
    /// The class of tasks whose goodput it is; `None` for all tasks.
    class: Option<String>,
}

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

/// The gauge that classes have, too.
const GOODPUT: &str = "goodput_per_s";
/// What is measured only where it is said when an answer is in time.
const LIMITED: [&str; 3] = [GOODPUT, "refused_per_s", "switch_wait_p99"];

const DERIVED: [Derived; 9] = [
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
    Derived { name: "lost_share", unit: Unit::Share, of: |run| run.share_of_sent(run.one.counts.unknown) },
    // Replies to tasks of any time, which is what an overloaded rack can do.
    Derived { name: "replies_per_s", unit: Unit::PerS, of: |run| run.one.throughput_per_s },
    Derived {
        name: "refused_share",
        unit: Unit::Share,
        of: |run| run.share_of_sent(run.one.counts.refused + run.one.counts.pushed_back),
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
        f.debug_tuple("Gauge").field(&self.name()).finish()
    }
}

impl Gauge {
    /// Reads its name; before the goodput may stand a class, as in `get.goodput_per_s`.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let of_class = text.strip_suffix(GOODPUT).and_then(|before| before.strip_suffix('.'));
        let (class, name) = of_class.map_or((None, text), |class| (Some(class.to_owned()), GOODPUT));
        let found = GaugeSource::all().find(|of| of.name() == name);
        found.map(|source| Self { source, class }).ok_or_else(|| {
            let known: Vec<String> = GaugeSource::all().map(GaugeSource::name).collect();
            StudyError::Point(hint::unknown("gauge", text, known.iter().map(String::as_str)))
        })
    }

    /// The name as it is read.
    pub fn name(&self) -> String {
        let class = self.class.as_ref().map(|class| format!("{class}."));
        class.unwrap_or_default() + &self.source.name()
    }

    /// The class of tasks whose number it is; `None` for all tasks.
    pub fn class(&self) -> Option<&str> {
        self.class.as_deref()
    }

    /// Whether it is measured only where it is said when an answer is in time.
    pub(super) fn needs_limit(&self) -> bool {
        LIMITED.contains(&self.source.name().as_str())
    }

    /// The unit of its numbers.
    pub fn unit(&self) -> Unit {
        match self.source {
            GaugeSource::Known(gauge) => gauge.stated_in.unwrap_or(gauge.unit),
            GaugeSource::PerTask(_) => Unit::Ratio,
            GaugeSource::Derived(derived) => derived.unit,
        }
    }

    /// The number of each replication.
    pub(super) fn values(
        &self,
        each: &[ReplicationSummary],
        facts: &Facts,
        class: Option<usize>,
    ) -> Vec<f64> {
        let value = |one: &ReplicationSummary| match class {
            Some(class) => one.goodput_per_s[class].unwrap_or(0.0),
            None => self.source.value(&Replication { one, facts }),
        };
        each.iter().map(value).collect()
    }

    /// The mean over all replications.
    pub(super) fn mean(&self, values: &[f64]) -> Estimate {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let found = estimate(mean, values, Method::Replications);
        // No share is above one.
        let most = if self.unit() == Unit::Share { 1.0 } else { f64::INFINITY };
        Estimate { high: found.high.min(most), ..found }
    }
}

impl PartialEq for Gauge {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
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

    fn share_of_sent(&self, count: u64) -> f64 {
        count as f64 / (self.one.counts.sent as f64).max(1.0)
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
            assert_eq!(Gauge::parse(name).expect("it is known").name(), *name);
        }
        assert!(
            ["writes_per_task", "packets_per_task", "gaps"].iter().all(|name| Gauge::parse(name).is_ok())
        );
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }

    #[test]
    fn a_class_has_its_own_goodput_and_no_other_gauge() {
        let of_class = Gauge::parse("kv/get.goodput_per_s").expect("it is known");
        assert_eq!((of_class.class(), of_class.unit()), (Some("kv/get"), Unit::PerS));
        assert_eq!(of_class.name(), "kv/get.goodput_per_s");
        assert!(of_class.needs_limit() && !Gauge::parse("replies_per_s").expect("it is known").needs_limit());
        assert!(Gauge::parse("get.refused_per_s").is_err());
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
