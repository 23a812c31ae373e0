//! The switch's counters as metrics. They are read from what its thread publishes, whether it switches on a
//! socket, in the kernel or on BMv2.

use std::sync::Arc;

use sluice_metrics::{Measured, Metric, MetricKind, MetricSource};
use sluice_switch::Refusal;
use sluice_wire::ParseError;

use super::counters::{Count, SwitchCounters};

impl Count {
    /// The metric of a counter, and its label if it has one.
    const fn metric(self) -> (Metric, Option<&'static str>) {
        let plain = match self {
            Self::Received => Metric::SwitchReceived,
            Self::Sent => Metric::SwitchSent,
            Self::Submits => Metric::SwitchSubmits,
            Self::Tokens => Metric::SwitchTokens,
            Self::Dispatched => Metric::SwitchDispatched,
            Self::Rejected => Metric::SwitchRejected,
            Self::WrittenAhead => Metric::SwitchWrittenAhead,
            Self::Recirculated => Metric::SwitchRecirculated,
            Self::Batches => Metric::SwitchBatches,
            Self::PayloadsWaiting => Metric::SwitchPayloadsWaiting,
            Self::SendFailed => Metric::SwitchSendFailed,
            Self::Superseded => Metric::SwitchSuperseded,
            Self::HandedDown => Metric::LeafHandedDown,
            Self::ToldAbove => Metric::LeafToldAbove,
            Self::FaultLost => return (Metric::SwitchFaults, Some("lost")),
            Self::FaultDoubled => return (Metric::SwitchFaults, Some("doubled")),
            Self::FaultHeld => return (Metric::SwitchFaults, Some("held")),
            Self::Oversized
            | Self::HeldOverrun
            | Self::KernelDropped
            | Self::Truncated
            | Self::Fragment
            | Self::IpOptions
            | Self::RingBusy
            | Self::CellBroken
            | Self::OffLink => return (Metric::SwitchDropped, Some(self.name())),
        };
        (plain, None)
    }
}

impl SwitchCounters {
    /// What gives the counters when they are scraped.
    pub fn metrics(&self) -> Arc<dyn MetricSource> {
        let counters = self.clone();
        Arc::new(move || counters.measured())
    }

    fn measured(&self) -> Vec<Measured> {
        let own = Count::ALL.iter().map(|count| {
            let ((metric, label), value) = (count.metric(), self.of(*count));
            let measured = match metric.kind() {
                MetricKind::Gauge => Measured::level(metric, value as f64),
                MetricKind::Counter | MetricKind::Histogram => Measured::count(metric, value),
            };
            match (label, metric.labels().first()) {
                (Some(label), Some(name)) => measured.with(name, label),
                _ => measured,
            }
        });
        let malformed = ParseError::ALL.iter().map(|reason| {
            Measured::count(Metric::SwitchMalformed, self.malformed(*reason)).with("reason", reason.name())
        });
        let refused = Refusal::ALL.iter().map(|reason| {
            Measured::count(Metric::SwitchRefused, self.refused(*reason)).with("reason", reason.name())
        });
        own.chain(malformed).chain(refused).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_a_series_of_its_own() {
        let counters = SwitchCounters::new();
        (1..).zip(Count::ALL).for_each(|(value, count)| counters.set(count, value));
        let mut series: Vec<String> =
            counters.measured().iter().map(|of| format!("{:?}", (of.metric(), of.labels()))).collect();
        let all = series.len();
        assert_eq!(all, counters.all().count());
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all, "{series:#?}");
    }
}
