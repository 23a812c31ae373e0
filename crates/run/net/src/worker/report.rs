//! A worker's summary.

use std::fmt;

use serde::Serialize;
use sluice_host::worker::WorkerStats;
use sluice_wire::Nanos;

use crate::udp::SocketCounts;

/// A worker's summary, also as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerReport {
    /// The schema that describes the fields.
    pub schema: &'static str,
    pub name: String,
    /// How long the worker ran, in seconds.
    pub ran_s: f64,
    /// The share of that time in which a task was served, including dilation.
    pub busy: f64,
    /// The share of that time in which a server's cores did batch work.
    pub batch: f64,
    /// The factor by which service times were stretched.
    pub dilation: u32,
    /// Whether the worker finished all tasks that it held before it ended.
    pub drained: bool,
    /// Tasks that ran to their end.
    pub finished: u64,
    /// Tasks whose service returned an error.
    pub failed: u64,
    /// Tasks whose service panicked.
    pub panicked: u64,
    /// Repeats of tasks that were held or finished, answered without running again.
    pub repeated: u64,
    /// Tasks that came after they were written off, and were run.
    pub late: u64,
    /// Tasks that were refused because their budget was spent before they could begin.
    pub refused_late: u64,
    /// Tasks written off as lost on the way from the switch.
    pub written_off: u64,
    /// Tokens sent again.
    pub repeated_tokens: u64,
    /// Tokens sent before the running task ended.
    pub early_tokens: u64,
    /// PROBEs sent to the switch.
    pub probes: u64,
    /// Large tasks whose bytes had been written ahead and were right.
    pub copied: u64,
    /// Large tasks whose bytes should have been written ahead but were missing or overwritten.
    pub missed: u64,
    /// Packets that were dropped.
    pub dropped: Dropped,
    pub packets: Packets,
}

/// Packets that changed nothing, by reason.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Dropped {
    /// Not a valid packet, longer than any may be, or its payload did not match its descriptor.
    pub unreadable: u64,
    /// From another address than the switch's.
    pub foreign: u64,
    /// Tasks that the worker has already, and tasks older than its memory.
    pub duplicate: u64,
    /// Tasks for another worker or generation, and late tasks for which the worker has no room.
    pub unwanted: u64,
    /// No room for the payload.
    pub no_room: u64,
}

/// What passed the socket.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Packets {
    /// Datagrams taken.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that could not be sent.
    pub failed: u64,
    /// Datagrams lost by the fault injector, in both directions.
    pub lost_on_purpose: u64,
    /// Datagrams duplicated by the fault injector, in both directions.
    pub doubled_on_purpose: u64,
    /// Datagrams delayed by the fault injector, in both directions.
    pub held_on_purpose: u64,
}

impl From<SocketCounts> for Packets {
    fn from(counts: SocketCounts) -> Self {
        let (inward, outward) = (counts.faults_in, counts.faults_out);
        Self {
            received: counts.received,
            sent: counts.sent,
            failed: counts.failed,
            lost_on_purpose: inward.lost + outward.lost,
            doubled_on_purpose: inward.doubled + outward.doubled,
            held_on_purpose: inward.held + outward.held,
        }
    }
}

impl fmt::Display for WorkerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} tasks in {:.1} s, busy {:.0} %, {} failed, {} repeated",
            self.name,
            self.finished,
            self.ran_s,
            self.busy * 100.0,
            self.failed + self.panicked,
            self.repeated
        )?;
        if self.batch > 0.0 {
            write!(f, ", batch work {:.0} %", self.batch * 100.0)?;
        }
        if self.drained { Ok(()) } else { f.write_str("; ended before it had finished what it held") }
    }
}

/// Service outcomes and times, which the state machine does not count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Served {
    pub(super) tasks: u64,
    pub(super) failed: u64,
    pub(super) panicked: u64,
    pub(super) busy: Nanos,
    pub(super) batch: Nanos,
}

pub(super) fn report(
    options: (&str, u32),
    ran: Nanos,
    drained: bool,
    served: Served,
    (stats, (copied, missed)): (WorkerStats, (u64, u64)),
    dropped: Dropped,
    socket: SocketCounts,
) -> WorkerReport {
    let (name, dilation) = options;
    WorkerReport {
        schema: "sluice.worker.v1",
        name: name.to_owned(),
        ran_s: ran.0 as f64 / 1e9,
        busy: served.busy.0 as f64 / ran.0.max(1) as f64,
        batch: served.batch.0 as f64 / ran.0.max(1) as f64,
        dilation,
        drained,
        finished: stats.finished,
        failed: served.failed,
        panicked: served.panicked,
        repeated: stats.repeated_tasks,
        late: stats.late,
        refused_late: stats.over_budget,
        written_off: stats.written_off.into(),
        repeated_tokens: stats.repeated_tokens.into(),
        early_tokens: stats.early_tokens,
        probes: stats.probes.into(),
        copied,
        missed,
        dropped: Dropped {
            unreadable: dropped.unreadable + socket.oversized,
            duplicate: stats.duplicates,
            unwanted: stats.dropped.into(),
            ..dropped
        },
        packets: socket.into(),
    }
}
