//! What a controller knows, as metrics: the state of its switch, its hosts and slices, read as for a status
//! when it is scraped, and counts of what happened and of refused calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluice_control::{LinkState, Note, SliceView, View};
use sluice_metrics::{Collecting, Measured, Metric, MetricSource};
use tokio::time::timeout;

use super::handle::RunnerHandle;
use crate::rpc::refused::Refused;

/// How long a scrape waits for a controller that is busy, or whose switch does not answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The kinds of notes.
const KINDS: [&str; 24] = [
    "worker-joined",
    "worker-died",
    "worker-left",
    "worker-moved",
    "worker-lent",
    "depths-evened",
    "client-joined",
    "client-left",
    "client-died",
    "server-joined",
    "server-left",
    "server-died",
    "slice-opened",
    "slice-closed",
    "class-opened",
    "class-closed",
    "switch-up",
    "switch-restarted",
    "switch-down",
    "read-back",
    "switch-confused",
    "switch-too-small",
    "superseded",
    "stalled",
];

/// One word that names a note's kind, for programs.
pub(super) const fn kind(note: &Note) -> &'static str {
    let kind = match note {
        Note::WorkerJoined { .. } => 0,
        Note::WorkerDied { .. } => 1,
        Note::WorkerLeft { .. } => 2,
        Note::WorkerMoved { .. } => 3,
        Note::WorkerLent { .. } => 4,
        Note::DepthsEvened { .. } => 5,
        Note::ClientJoined { .. } => 6,
        Note::ClientLeft { .. } => 7,
        Note::ClientDied { .. } => 8,
        Note::ServerJoined { .. } => 9,
        Note::ServerLeft { .. } => 10,
        Note::ServerDied { .. } => 11,
        Note::SliceOpened { .. } => 12,
        Note::SliceClosed { .. } => 13,
        Note::ClassOpened { .. } => 14,
        Note::ClassClosed { .. } => 15,
        Note::SwitchUp { .. } => 16,
        Note::SwitchRestarted { .. } => 17,
        Note::SwitchDown => 18,
        Note::ReadBack { .. } => 19,
        Note::SwitchConfused => 20,
        Note::SwitchTooSmall => 21,
        Note::Superseded { .. } => 22,
        Note::Stalled { .. } => 23,
    };
    KINDS[kind]
}

/// How often each kind of note was made; clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct NoteCounts(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl NoteCounts {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(KINDS.into_iter().map(|kind| (kind, 0)).collect())))
    }

    pub(super) fn count(&self, note: &Note) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kind(note)).or_default() += 1;
    }

    fn measured(&self) -> Vec<Measured> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let event = |(kind, count): (&&'static str, &u64)| {
            Measured::count(Metric::Events, *count).with("event", *kind)
        };
        counts.iter().map(event).collect()
    }
}

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
                values.extend(of_view(&sight.view));
            }
            values
        })
    }
}

impl MetricSource for Refused {
    fn collect(&self) -> Collecting<'_> {
        let reason = |counter: sluice_rpc::v1::Counter| {
            Measured::count(Metric::CallsRefused, counter.value).with("reason", counter.name)
        };
        Box::pin(std::future::ready(self.counters().into_iter().map(reason).collect()))
    }
}

fn of_view(view: &View) -> Vec<Measured> {
    let hosts = |kind: &str, count: usize| Measured::level(Metric::Hosts, count as f64).with("kind", kind);
    let mut values = vec![
        Measured::level(Metric::SwitchUp, u8::from(view.link == LinkState::Up)),
        Measured::level(Metric::SwitchEpoch, view.epoch.0),
        hosts("worker", view.workers.len()),
        hosts("client", view.clients.len()),
        hosts("server", view.servers.len()),
    ];
    values.extend(view.slices.iter().flat_map(of_slice));
    values
}

fn of_slice(slice: &SliceView) -> Vec<Measured> {
    let level = |metric, level: f64| Measured::level(metric, level);
    let late = |where_: &str, count| Measured::count(Metric::SliceLate, count).with("where", where_);
    let mut values = vec![
        level(Metric::SliceOpen, u8::from(slice.open).into()),
        level(Metric::SliceLimit, slice.limit.into()),
        level(Metric::SliceWorkers, slice.workers.into()),
        level(Metric::SliceQuota, slice.quotas.into()),
        level(Metric::SliceStaleTokens, slice.stale_tokens.into()),
        late("worker", slice.late_at_worker),
    ];
    // What the switch knows is left out until it was read: a total that falls to zero looks like a new one.
    if let Some(balance) = slice.balance {
        values.push(Measured::count(Metric::SliceBusy, slice.refused_busy));
        values.push(late("switch", slice.late_in_switch));
        values.push(level(Metric::SliceWaiting, balance.min(0).unsigned_abs().into()));
        values.push(level(Metric::SliceParked, balance.max(0).into()));
    }
    if slice.target.0 > 0 {
        values.push(level(Metric::SliceTarget, slice.target.0 as f64 / 1e9));
    }
    values.extend(slice.measured_limit.map(|limit| level(Metric::SliceTargetLimit, limit.into())));
    values.into_iter().map(|value| value.below("slice", slice.name.clone())).collect()
}
