//! The counts of a run beside its tasks' times: packets, queues, idleness.

use sluice_stats::{Counts, Distribution, Gauges, Level, Mark, Observer, Outcome, float};
use sluice_testbed::compatibility::LabelCompatibility;
use sluice_wire::serving::Labels;
use sluice_wire::{Nanos, TaskType};

use super::fairness::ClientTally;

/// All measurements of one run. Counts and averages cover the measured span.
#[derive(Debug)]
pub(crate) struct Meter<O> {
    pub(crate) observer: O,
    pub(crate) counts: Counts,
    /// Tasks in the switch: waiting, or recirculating.
    pub(crate) in_switch: Level,
    /// Tasks at workers, before their service.
    pub(crate) at_workers: Level,
    /// Workers that serve.
    pub(crate) serving: Level,
    /// How many dispatched tasks need or wish for labels, and how many of these went to workers that have
    /// the labels.
    pub(crate) labelled: u64,
    pub(crate) labels_met: u64,
    /// For how long recirculating packets have kept their port busy, in picoseconds.
    pub(crate) port_busy_ps: u64,
    /// Whether the measured span has begun and not ended.
    pub(crate) is_open: bool,
    /// Whether tasks that wait while workers are idle mean a mistake: any worker serves any task, and no
    /// worker is missing.
    pub(crate) sees_waits: bool,
    /// The waits in the switch of what is answered in the measured span, if anybody asks.
    pub(crate) switch_waits: Option<Distribution>,
    /// What each client offers and gets, if clients differ.
    pub(super) clients: Option<ClientTally>,
    at_opening: Snapshot,
    closed: Option<(Counts, Gauges)>,
    workers: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Snapshot {
    at: Nanos,
    counts: Counts,
    labelled: u64,
    labels_met: u64,
    port_busy_ps: u64,
}

impl<O: Observer> Meter<O> {
    pub(crate) fn new(observer: O, workers: u32) -> Self {
        Self {
            observer,
            counts: Counts::default(),
            in_switch: Level::default(),
            at_workers: Level::default(),
            serving: Level::default(),
            labelled: 0,
            labels_met: 0,
            port_busy_ps: 0,
            is_open: false,
            sees_waits: true,
            switch_waits: None,
            clients: None,
            at_opening: Snapshot::default(),
            closed: None,
            workers: workers.into(),
        }
    }

    /// A task is due.
    #[inline]
    pub(crate) fn sent(&mut self, now: Nanos) {
        if self.sees_waits {
            let idle = (1.0 - float(self.serving.now()) / self.workers).max(0.0);
            self.observer.passed_over(float(self.in_switch.now() + self.at_workers.now()) * idle);
        }
        match self.observer.sent(now) {
            Mark::None => {}
            Mark::Opened => self.open(now),
            Mark::Closed => self.close(now),
        }
    }

    /// A task was dispatched to a worker: counts whether the worker has the labels of the task's type.
    pub(crate) fn on_dispatch(&mut self, suits: &LabelCompatibility, worker: u32, task_type: TaskType) {
        let needs = suits.needs_of(task_type);
        if needs == Labels::NONE {
            return;
        }
        self.labelled += 1;
        self.labels_met += u64::from(suits.has[worker as usize].have(needs));
    }

    /// A reply came to a task that waited in the switch for so long.
    #[inline]
    pub(crate) fn waited_in_switch(&mut self, wait_ns: u32) {
        if let Some(waits) = &mut self.switch_waits
            && self.is_open
        {
            waits.record(wait_ns.into());
        }
    }

    /// The clients' counts, if clients differ and the measured span is open.
    #[inline]
    pub(super) fn open_clients(&mut self) -> Option<&mut ClientTally> {
        self.clients.as_mut().filter(|_| self.is_open)
    }

    /// A task ended without a reply.
    pub(crate) fn failed(&mut self, intended: Nanos, outcome: Outcome) {
        self.observer.failed(intended, outcome);
    }

    /// The observer, with counts and averages.
    pub(crate) fn finish(mut self, now: Nanos) -> (O, Counts, Gauges) {
        if self.closed.is_none() {
            self.close(now);
        }
        let (counts, gauges) = self.closed.unwrap_or_default();
        (self.observer, counts, gauges)
    }

    #[cold]
    fn open(&mut self, now: Nanos) {
        let Self { counts, labelled, labels_met, port_busy_ps, .. } = *self;
        self.is_open = true;
        self.at_opening = Snapshot { at: now, counts, labelled, labels_met, port_busy_ps };
        for level in [&mut self.in_switch, &mut self.at_workers, &mut self.serving] {
            level.open(now);
        }
    }

    #[cold]
    fn close(&mut self, now: Nanos) {
        let then = self.at_opening;
        self.is_open = false;
        let span_ps = now.since(then.at).0 as f64 * 1e3;
        let port_busy_ps = (self.port_busy_ps - then.port_busy_ps) as f64;
        let labelled = self.labelled - then.labelled;
        let labels_met = (self.labels_met - then.labels_met) as f64;
        let gauges = Gauges {
            switch_queue_mean: Some(self.in_switch.mean(now)),
            switch_queue_max: Some(self.in_switch.max() as f64),
            worker_queue_mean: Some(self.at_workers.mean(now) / self.workers),
            idle_share: Some(1.0 - self.serving.mean(now) / self.workers),
            recirculation_utilization: (port_busy_ps > 0.0).then(|| port_busy_ps / span_ps),
            switch_wait_p99: self.switch_waits.as_ref().map(|waits| waits.quantile(0.99) as f64),
            client_share_min: self.clients.as_ref().and_then(ClientTally::share_min),
            labels_met: (labelled > 0).then(|| labels_met / labelled as f64),
            ..Gauges::default()
        };
        self.closed = Some((self.counts.since(&then.counts), gauges));
    }
}
