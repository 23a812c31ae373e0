//! The report of a server of many cores, in the form of a worker's report.

use sluice_host::worker::{Lanes, WorkerStats};
use sluice_wire::Nanos;

use super::lane::ServerLane;
use crate::udp::Socket;
use crate::worker::report::{Dropped, Served, WorkerReport, report};

/// The sum over all lanes; `busy` is a share of the cores' time.
pub(super) fn of_server(
    (name, dilation, cores): (&str, u32, usize),
    (ran, drained): (Nanos, bool),
    (served, dropped): (Served, Dropped),
    (machines, lanes): (&Lanes, &[ServerLane]),
    socket: &Socket,
) -> WorkerReport {
    let (stats, ahead) = of_lanes(machines, lanes);
    let of_core = Served {
        busy: Nanos(served.busy.0 / cores as u64),
        batch: Nanos(served.batch.0 / cores as u64),
        ..served
    };
    report((name, dilation), ran, drained, of_core, (stats, ahead), dropped, socket.counts())
}

/// What all lanes counted together, and how many tasks' bytes had been written ahead and were right, or
/// were missed.
pub(super) fn of_lanes(machines: &Lanes, lanes: &[ServerLane]) -> (WorkerStats, (u64, u64)) {
    let stats = machines.iter().map(sluice_host::worker::Worker::stats).fold(WorkerStats::default(), sum);
    let ahead = lanes.iter().map(|lane| (lane.effects.slots.copied, lane.effects.slots.missed));
    (stats, ahead.fold((0, 0), |(copied, missed), lane| (copied + lane.0, missed + lane.1)))
}

fn sum(all: WorkerStats, of: WorkerStats) -> WorkerStats {
    WorkerStats {
        serving: all.serving || of.serving,
        held: all.held + of.held,
        finished: all.finished + of.finished,
        duplicates: all.duplicates + of.duplicates,
        repeated_tasks: all.repeated_tasks + of.repeated_tasks,
        late: all.late + of.late,
        over_budget: all.over_budget + of.over_budget,
        dropped: all.dropped + of.dropped,
        written_off: all.written_off + of.written_off,
        probes: all.probes + of.probes,
        repeated_tokens: all.repeated_tokens + of.repeated_tokens,
        ..all
    }
}
