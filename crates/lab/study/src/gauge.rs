//! What a statement may ask of a point beside its tasks' times: writes, queues, memory, depths.

use std::fmt;

use sluice_outcome::study::Unit;
use sluice_stats::{Each, Estimate, Method, estimate};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

use super::{StudyError, hint};

/// A number that replications count or average.
#[derive(Clone, Copy)]
pub struct Gauge {
    name: &'static str,
    unit: Unit,
    of: fn(&Replication) -> f64,
}

/// What racks can be asked for.
const ALL: [Gauge; 22] = [
    // Copies of waiting tasks that are written to servers.
    Gauge { name: "writes_per_s", unit: Unit::PerS, of: |run| run.writes_per_s() },
    // The same by Rain §5.4: throughput × share that waits × share over 8 bytes × servers.
    Gauge { name: "writes_reckoned_per_s", unit: Unit::PerS, of: |run| run.writes_reckoned_per_s() },
    Gauge {
        name: "writes_over_reckoned",
        unit: Unit::Ratio,
        of: |run| run.writes_per_s() / run.writes_reckoned_per_s().max(f64::MIN_POSITIVE),
    },
    Gauge { name: "writes_per_task", unit: Unit::Ratio, of: |run| run.writes() / run.replied() },
    Gauge { name: "queued_share", unit: Unit::Share, of: |run| run.queued_share() },
    Gauge { name: "ring_bytes", unit: Unit::Count, of: |run| run.one.gauges.ring_bytes.unwrap_or(0.0) },
    // Of the tasks that need or wish for labels, those whose workers have them.
    Gauge { name: "labels_met", unit: Unit::Share, of: |run| run.one.gauges.labels_met.unwrap_or(0.0) },
    // What tasks cost the switch and the network.
    Gauge { name: "passes_per_task", unit: Unit::Ratio, of: |run| run.per_task(run.one.counts.passes) },
    Gauge {
        name: "recirculations_per_task",
        unit: Unit::Ratio,
        of: |run| run.per_task(run.one.counts.recirculations),
    },
    Gauge { name: "packets_per_task", unit: Unit::Ratio, of: |run| run.per_task(run.one.counts.packets) },
    Gauge { name: "idle_share", unit: Unit::Share, of: |run| run.one.gauges.idle_share.unwrap_or(0.0) },
    // What a batch service got of a server's cores (RingLeader §1).
    Gauge { name: "batch_share", unit: Unit::Share, of: |run| run.one.gauges.batch_share.unwrap_or(0.0) },
    Gauge { name: "depth_mean", unit: Unit::Ratio, of: |run| run.one.gauges.depth_mean.unwrap_or(0.0) },
    // Tasks that went round in a spine, in a leaf, or in either (Horus, Figure 15).
    Gauge {
        name: "spine_rounds_per_task",
        unit: Unit::Ratio,
        of: |run| run.per_task(run.one.counts.spine_rounds),
    },
    Gauge {
        name: "leaf_rounds_per_task",
        unit: Unit::Ratio,
        of: |run| run.per_task(run.one.counts.leaf_rounds),
    },
    Gauge {
        name: "rounds_per_task",
        unit: Unit::Ratio,
        of: |run| run.per_task(run.one.counts.spine_rounds + run.one.counts.leaf_rounds),
    },
    // What leaves tell spines (Horus, Figure 16).
    Gauge {
        name: "load_updates_per_task",
        unit: Unit::Ratio,
        of: |run| run.per_task(run.one.counts.load_updates),
    },
    Gauge {
        name: "idle_updates_per_task",
        unit: Unit::Ratio,
        of: |run| run.per_task(run.one.counts.idle_updates),
    },
    // Tasks that found no end, and their share (Horus, Figures 9 and 18).
    Gauge { name: "lost_tasks", unit: Unit::Count, of: |run| run.one.counts.unknown as f64 },
    Gauge {
        name: "lost_share",
        unit: Unit::Share,
        of: |run| run.one.counts.unknown as f64 / (run.one.counts.sent as f64).max(1.0),
    },
    // The longest queue over the mean one, as often as the testbed looks (Horus, Figure 12).
    Gauge { name: "imbalance_p50", unit: Unit::Ratio, of: |run| run.one.gauges.imbalance_p50.unwrap_or(0.0) },
    Gauge { name: "imbalance_p99", unit: Unit::Ratio, of: |run| run.one.gauges.imbalance_p99.unwrap_or(0.0) },
];

/// Gauges as replications tell them.
macro_rules! told {
    ($($name:ident: $unit:ident,)*) => {
        [$(Gauge {
            name: stringify!($name),
            unit: Unit::$unit,
            of: |run| run.one.gauges.$name.unwrap_or(0.0),
        },)*]
    };
}

/// What a fabric counts (HF²T, Tables 1 and 2).
const OF_FABRICS: [Gauge; 17] = told! {
    flowlets: Count,
    flowlet_firsts: Count,
    flowlet_expiries: Count,
    flowlet_collisions: Count,
    holds: Count,
    pauses: Count,
    early_frames: Count,
    frames_again: Count,
    frames_lost: Count,
    congestion_notices: Count,
    frames: Count,
    gaps: Count,
    gaps_from_1_rtt: Share,
    gaps_from_2_rtt: Share,
    gaps_from_3_rtt: Share,
    writes_late: Share,
    writes_lost: Count,
};

/// One replication and what it has in common with the others.
struct Replication<'r> {
    one: &'r Each,
    facts: &'r Facts,
}

/// What is the same in all replications of a point.
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

/// By its name: where its function lies differs from run to run, and a plan that goes on is known by its
/// text.
impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gauge").field(&self.name).finish()
    }
}

impl Gauge {
    /// Reads its name.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let all = || ALL.into_iter().chain(OF_FABRICS);
        let found = all().find(|gauge| gauge.name == text);
        found.ok_or_else(|| StudyError::Point(hint::unknown("gauge", text, all().map(|gauge| gauge.name))))
    }

    /// The unit of its numbers.
    pub const fn unit(self) -> Unit {
        self.unit
    }

    /// What each replication says.
    pub(super) fn values(self, each: &[Each], facts: &Facts) -> Vec<f64> {
        each.iter().map(|one| (self.of)(&Replication { one, facts })).collect()
    }

    /// The mean of all replications.
    pub(super) fn mean(self, values: &[f64]) -> Estimate {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let found = estimate(mean, values, Method::Replications);
        // No share is above one.
        let most = if self.unit == Unit::Share { 1.0 } else { f64::INFINITY };
        Estimate { high: found.high.min(most), ..found }
    }
}

impl PartialEq for Gauge {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
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
}
