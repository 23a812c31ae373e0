//! What a controller knows, as metrics: the state of its switch, its hosts and slices, read as for a status
//! when it is scraped, and counts of what happened.

use std::time::Duration;

use sluice_control::{LinkState, SliceView, View};
use sluice_metrics::{Collecting, MetricFamily, MetricSample, MetricSource};
use sluice_rpc::v1::LeadRole;
use tokio::time::timeout;

use super::handle::RunnerHandle;
use super::note_counts::NoteCounts;

/// How long a scrape waits for a controller that is busy, or whose switch does not answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads a controller's state when it is scraped.
pub(super) struct ControllerMetrics {
    handle: RunnerHandle,
    notes: NoteCounts,
}

impl ControllerMetrics {
    pub(super) const fn new(handle: RunnerHandle, notes: NoteCounts) -> Self {
        Self { handle, notes }
    }
}

impl MetricSource for ControllerMetrics {
    fn collect(&self) -> Collecting<'_> {
        Box::pin(async {
            let mut values = self.notes.measured();
            // Without an answer in time, the state is left out.
            if let Ok(Ok(sight)) = timeout(PATIENCE, self.handle.look()).await {
                values.extend(of_view(&sight.view, self.handle.standing().read().role()));
            }
            values
        })
    }
}

fn of_view(view: &View, role: LeadRole) -> Vec<MetricSample> {
    let has_switch = matches!(view.link, LinkState::Up | LinkState::Standby);
    let mut values = vec![
        MetricSample::level(MetricFamily::SwitchUp, u8::from(has_switch)),
        MetricSample::level(MetricFamily::Leads, u8::from(role == LeadRole::Leads)),
    ];
    // A standby knows neither hosts nor slices; its leader tells of them.
    if role != LeadRole::Standby {
        values.extend(of_rack(view));
    }
    values
}

fn of_rack(view: &View) -> Vec<MetricSample> {
    let hosts =
        |kind: &str, count: usize| MetricSample::level(MetricFamily::Hosts, count as f64).with("kind", kind);
    let mut values = vec![
        MetricSample::level(MetricFamily::SwitchEpoch, view.epoch.0),
        hosts("worker", view.workers.len()),
        hosts("client", view.clients.len()),
        hosts("server", view.servers.len()),
    ];
    values.extend(view.slices.iter().flat_map(of_slice));
    values
}

fn of_slice(slice: &SliceView) -> Vec<MetricSample> {
    let level = |metric, level: f64| MetricSample::level(metric, level);
    let late =
        |where_: &str, count| MetricSample::count(MetricFamily::SliceLate, count).with("where", where_);
    let mut values = vec![
        level(MetricFamily::SliceOpen, u8::from(slice.open).into()),
        level(MetricFamily::SliceLimit, slice.limit.into()),
        level(MetricFamily::SliceWorkers, slice.workers.into()),
        level(MetricFamily::SliceQuota, slice.quotas.into()),
        level(MetricFamily::SliceStaleTokens, slice.stale_tokens.into()),
        late("worker", slice.late_at_worker),
    ];
    // What the switch knows is left out until it was read: a total that falls to zero looks like a new one.
    if let Some(balance) = slice.balance {
        values.push(MetricSample::count(MetricFamily::SliceBusy, slice.refused_busy));
        values.push(late("switch", slice.late_in_switch));
        values.push(level(MetricFamily::SliceWaiting, balance.min(0).unsigned_abs().into()));
        values.push(level(MetricFamily::SliceParked, balance.max(0).into()));
    }
    if slice.target.0 > 0 {
        values.push(level(MetricFamily::SliceTarget, slice.target.0 as f64 / 1e9));
    }
    values.extend(slice.measured_limit.map(|limit| level(MetricFamily::SliceTargetLimit, limit.into())));
    values.into_iter().map(|value| value.below("slice", slice.name.clone())).collect()
}
