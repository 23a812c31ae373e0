//! The switch's counters as metrics. They are read from what its thread publishes, whether it switches on a
//! socket, in the kernel or on BMv2.

use std::sync::Arc;

use sluice_metrics::{MetricFamily, MetricKind, MetricSample, MetricSource};
use sluice_switch::Refusal;
use sluice_wire::{ParseError, RejectReason};

use super::counters::{Count, SwitchCounters, rejected_name};

impl Count {
    /// The metric of a counter, and its label if it has one.
    const fn metric(self) -> (MetricFamily, Option<&'static str>) {
        let plain = match self {
            Self::Received => MetricFamily::SwitchReceived,
            Self::Sent => MetricFamily::SwitchSent,
            Self::Submits => MetricFamily::SwitchSubmits,
            Self::Tokens => MetricFamily::SwitchTokens,
            Self::Dispatched => MetricFamily::SwitchDispatched,
            Self::Rejected => MetricFamily::SwitchRejected,
            Self::WrittenAhead => MetricFamily::SwitchWrittenAhead,
            Self::Recirculated => MetricFamily::SwitchRecirculated,
            Self::Batches => MetricFamily::SwitchBatches,
            Self::PayloadsWaiting => MetricFamily::SwitchPayloadsWaiting,
            Self::SendFailed => MetricFamily::SwitchSendFailed,
            Self::Superseded => MetricFamily::SwitchSuperseded,
            Self::HandedDown => MetricFamily::LeafHandedDown,
            Self::ToldAbove => MetricFamily::LeafToldAbove,
            Self::FaultLost => return (MetricFamily::SwitchFaults, Some("lost")),
            Self::FaultDoubled => return (MetricFamily::SwitchFaults, Some("doubled")),
            Self::FaultHeld => return (MetricFamily::SwitchFaults, Some("held")),
            Self::Oversized
            | Self::HeldOverrun
            | Self::KernelDropped
            | Self::Truncated
            | Self::Fragment
            | Self::IpOptions
            | Self::RingBusy
            | Self::CellBroken
            | Self::NotTaken
            | Self::OffLink => return (MetricFamily::SwitchDropped, Some(self.name())),
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

    fn measured(&self) -> Vec<MetricSample> {
        let own = Count::ALL.iter().map(|count| {
            let ((metric, label), value) = (count.metric(), self.of(*count));
            let measured = match metric.kind() {
                MetricKind::Gauge => MetricSample::level(metric, value as f64),
                MetricKind::Counter | MetricKind::Histogram => MetricSample::count(metric, value),
            };
            match (label, metric.labels().first()) {
                (Some(label), Some(name)) => measured.with(name, label),
                _ => measured,
            }
        });
        let malformed = ParseError::ALL.iter().map(|reason| {
            MetricSample::count(MetricFamily::SwitchMalformed, self.malformed(*reason))
                .with("reason", reason.name())
        });
        let refused = Refusal::ALL.iter().map(|reason| {
            MetricSample::count(MetricFamily::SwitchRefused, self.refused(*reason))
                .with("reason", reason.name())
        });
        let rejected = RejectReason::ALL.iter().map(|reason| {
            MetricSample::count(MetricFamily::SwitchRejectedFor, self.rejected(*reason))
                .with("reason", rejected_name(*reason).trim_start_matches("rejected_"))
        });
        own.chain(malformed).chain(refused).chain(rejected).collect()
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
