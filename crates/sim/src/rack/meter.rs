//! What a run counts beside its tasks' times: packets, queues, idleness.

use sluice_wire::serving::Labels;
use sluice_wire::{Nanos, TaskType};

use crate::stats::{Counts, Gauges, Level, Mark, Observer, Outcome};
use crate::suits::Suits;

/// Everything that is measured in one run. Counts and averages are of the measured span.
#[derive(Debug)]
pub(super) struct Meter<O> {
    pub(super) observer: O,
    pub(super) counts: Counts,
    /// Tasks in the switch: waiting, or going round.
    pub(super) in_switch: Level,
    /// Tasks at workers, before their service.
    pub(super) at_workers: Level,
    /// Workers that serve.
    pub(super) serving: Level,
    /// Tasks given to workers that need or wish for labels, and those of them whose workers have these.
    pub(super) labelled: u64,
    pub(super) labels_met: u64,
    /// For how long packets that go round have kept their port busy, in picoseconds.
    pub(super) port_busy_ps: u64,
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
    pub(super) fn new(observer: O, workers: u32) -> Self {
        Self {
            observer,
            counts: Counts::default(),
            in_switch: Level::default(),
            at_workers: Level::default(),
            serving: Level::default(),
            labelled: 0,
            labels_met: 0,
            port_busy_ps: 0,
            at_opening: Snapshot::default(),
            closed: None,
            workers: workers.into(),
        }
    }

    /// A task is due.
    #[inline]
    pub(super) fn sent(&mut self, now: Nanos) {
        match self.observer.sent(now) {
            Mark::None => {}
            Mark::Opened => self.open(now),
            Mark::Closed => self.close(now),
        }
    }

    /// A task was given to a worker: does that have what tasks of this type need?
    pub(super) fn given(&mut self, suits: &Suits, worker: u32, task_type: TaskType) {
        let needs = suits.needs_of(task_type);
        if needs == Labels::NONE {
            return;
        }
        self.labelled += 1;
        self.labels_met += u64::from(suits.has[worker as usize].have(needs));
    }

    /// A task ended without a reply.
    pub(super) fn failed(&mut self, intended: Nanos, outcome: Outcome) {
        self.observer.failed(intended, outcome);
    }

    /// Who watched, and what was counted and averaged beside.
    pub(super) fn finish(mut self, now: Nanos) -> (O, Counts, Gauges) {
        if self.closed.is_none() {
            self.close(now);
        }
        let (counts, gauges) = self.closed.unwrap_or_default();
        (self.observer, counts, gauges)
    }

    #[cold]
    fn open(&mut self, now: Nanos) {
        let Self { counts, labelled, labels_met, port_busy_ps, .. } = *self;
        self.at_opening = Snapshot { at: now, counts, labelled, labels_met, port_busy_ps };
        for level in [&mut self.in_switch, &mut self.at_workers, &mut self.serving] {
            level.open(now);
        }
    }

    #[cold]
    fn close(&mut self, now: Nanos) {
        let then = self.at_opening;
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
            labels_met: (labelled > 0).then(|| labels_met / labelled as f64),
            ..Gauges::default()
        };
        self.closed = Some((self.counts.since(&then.counts), gauges));
    }
}
