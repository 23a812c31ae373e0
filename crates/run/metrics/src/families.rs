//! All metrics: their names, kinds, labels and what they tell, in one table. `docs/manual/metrics.md` shows
//! it.
//!
//! Names are as Prometheus asks: base units last, nothing that a label says. A label has few values, all of
//! them known from the code or the plan.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a metric's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A total that only grows while its process lives.
    Counter,
    /// A level that rises and falls.
    Gauge,
    /// Counts of spans by length ([`SpanTally`](crate::SpanTally)).
    Histogram,
}

impl MetricKind {
    /// The kind's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Units that a name may end with.
const UNITS: [&str; 2] = ["seconds", "bytes"];

macro_rules! families {
    ($($name:ident: $kind:ident, $text:literal, [$($label:literal),*], $help:literal;)*) => {
        /// A metric. Values of one metric differ in their labels only.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum MetricFamily {
            $(#[doc = $help] $name,)*
        }

        impl MetricFamily {
            /// All metrics, in the order in which they are served.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name without what its kind adds to it.
            const fn base(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What its values are.
            pub const fn kind(self) -> MetricKind {
                match self { $(Self::$name => MetricKind::$kind,)* }
            }

            /// The names of its labels; `process` and `spine` may stand before them.
            pub const fn labels(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($label),*],)* }
            }

            /// What it tells, as a sentence.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => $help,)* }
            }
        }
    };
}

families! {
    ProcessUp: Gauge, "sluice_process_up", [],
        "Whether a process of the rack gave its values to `sluice up`: 1 or 0.";
    ProcessBuild: Gauge, "sluice_process_version", ["build"],
        "Which build a process is: always 1.";
    ProcessSpans: Counter, "sluice_process_spans", ["outcome"],
        "Spans of traced tasks that a collector took, or that were dropped; only with `--trace-one-in`.";

    SwitchReceived: Counter, "sluice_switch_packets_received", [],
        "Datagrams that the switch received.";
    SwitchSent: Counter, "sluice_switch_packets_sent", [],
        "Datagrams that the switch sent.";
    SwitchSendFailed: Counter, "sluice_switch_packets_unsent", [],
        "Datagrams that the switch could not send.";
    SwitchSubmits: Counter, "sluice_switch_submits", [],
        "SUBMITs that the switch received, before any check.";
    SwitchTokens: Counter, "sluice_switch_tokens", [],
        "TOKENs that the switch received, before any check.";
    SwitchDispatched: Counter, "sluice_switch_tasks_dispatched", [],
        "Tasks that the switch sent to a worker.";
    SwitchRejected: Counter, "sluice_switch_tasks_rejected", [],
        "Tasks that the switch refused with a REJECT.";
    SwitchRejectedFor: Counter, "sluice_switch_tasks_rejected_for", ["reason"],
        "The same by reason; only a switch on a socket knows them.";
    SwitchWrittenAhead: Counter, "sluice_switch_tasks_written_ahead", [],
        "Copies of waiting tasks that the switch wrote into servers' memory.";
    SwitchRecirculated: Counter, "sluice_switch_passes_recirculated", [],
        "Passes that were followed by another pass of the same packet.";
    SwitchBatches: Counter, "sluice_switch_batches", [],
        "Batches of datagrams that the switch took.";
    SwitchPayloadsWaiting: Gauge, "sluice_switch_payloads_waiting", [],
        "Payloads that wait in the switch's memory.";
    SwitchDropped: Counter, "sluice_switch_packets_dropped", ["reason"],
        "Datagrams that the switch dropped before it read them.";
    SwitchMalformed: Counter, "sluice_switch_packets_malformed", ["reason"],
        "Datagrams that were no valid packet.";
    SwitchRefused: Counter, "sluice_switch_packets_refused", ["reason"],
        "Packets that the scheduler refused.";
    SwitchFaults: Counter, "sluice_switch_faults_injected", ["fault"],
        "Datagrams that the switch's fault injector lost, doubled or held.";
    SwitchSuperseded: Counter, "sluice_switch_steps_superseded", [],
        "Steps of a controller that another controller had superseded.";
    LeafHandedDown: Counter, "sluice_leaf_tasks_handed_down", [],
        "Tasks that a leaf's spine handed down, before any check.";
    LeafToldAbove: Counter, "sluice_leaf_packets_told_above", [],
        "Packets that a leaf sent to tell its spine something.";

    SwitchUp: Gauge, "sluice_controller_switch_up", [],
        "Whether the controller has its switch, or a standby reaches it: 1 or 0; 0 while tables are read.";
    Leads: Gauge, "sluice_controller_leads", [],
        "Whether the controller leads its rack: 1, or 0 for a standby and for one that was superseded.";
    SwitchEpoch: Gauge, "sluice_controller_switch_epoch", [],
        "The switch's life, as the controller knows it; each start of a switch has another.";
    Hosts: Gauge, "sluice_controller_hosts", ["kind"],
        "Registered workers, clients and servers.";
    Events: Counter, "sluice_controller_events", ["event"],
        "What happened: hosts joined, left, died or were moved, slices opened, a switch came back.";
    CallsRefused: Counter, "sluice_controller_calls_refused", ["reason"],
        "Calls and connections that were refused because of who made them or what they said.";
    SliceOpen: Gauge, "sluice_slice_open", ["slice"],
        "Whether a slice takes tasks: 1 or 0.";
    SliceWaiting: Gauge, "sluice_slice_tasks_waiting", ["slice"],
        "Tasks that wait in a slice.";
    SliceParked: Gauge, "sluice_slice_tokens_parked", ["slice"],
        "Workers' tokens that wait for tasks in a slice.";
    SliceLimit: Gauge, "sluice_slice_tasks_waiting_limit", ["slice"],
        "Tasks that may wait in a slice.";
    SliceTargetLimit: Gauge, "sluice_slice_tasks_target_limit", ["slice"],
        "Tasks that may wait in a slice by what was measured for its target.";
    SliceTarget: Gauge, "sluice_slice_target_seconds", ["slice"],
        "The longest wait in the switch that is worth having, for slices that have one.";
    SliceWorkers: Gauge, "sluice_slice_workers", ["slice"],
        "Workers that a slice feeds.";
    SliceQuota: Gauge, "sluice_slice_quota_tasks", ["slice"],
        "Tasks that may be at the workers of a slice at once.";
    SliceStaleTokens: Gauge, "sluice_slice_tokens_stale", ["slice"],
        "The most tokens of dead or moved workers that may still be in a slice's ring.";
    SliceBusy: Counter, "sluice_slice_tasks_refused_busy", ["slice"],
        "Tasks that were refused because they would have waited for longer than the target.";
    SliceLate: Counter, "sluice_slice_tasks_refused_late", ["slice", "where"],
        "Tasks that were refused because their budget was spent, in the switch or at a worker.";

    WorkerServed: Counter, "sluice_worker_tasks_served", ["outcome"],
        "Tasks whose service ended: done, failed with an error, or panicked.";
    WorkerRefusedLate: Counter, "sluice_worker_tasks_refused_late", [],
        "Tasks that a worker refused because their budget was spent before it could begin them.";
    WorkerRepeated: Counter, "sluice_worker_tasks_repeated", [],
        "Repeats of tasks that a worker held or had finished, answered without running again.";
    WorkerWrittenOff: Counter, "sluice_worker_tasks_written_off", [],
        "Tasks that were lost on their way from the switch to a worker.";
    WorkerTokensLost: Counter, "sluice_worker_tokens_lost", [],
        "TOKENs that were lost on their way from a worker to the switch, and sent again.";
    WorkerHeld: Gauge, "sluice_worker_tasks_held", [],
        "Tasks at a worker, the running one included.";
    WorkerRegistered: Gauge, "sluice_worker_registered", [],
        "Whether a worker is registered with its controller: 1 or 0.";
    WorkerCopied: Counter, "sluice_worker_tasks_copied", [],
        "Large tasks whose bytes had been written ahead and were right.";
    WorkerMissed: Counter, "sluice_worker_tasks_missed", [],
        "Large tasks whose bytes should have been written ahead but were missing or overwritten.";
    WorkerReceived: Counter, "sluice_worker_packets_received", [],
        "Datagrams that a worker received.";
    WorkerSent: Counter, "sluice_worker_packets_sent", [],
        "Datagrams that a worker sent.";
    WorkerDropped: Counter, "sluice_worker_packets_dropped", ["reason"],
        "Packets that changed nothing at a worker.";
    WorkerService: Histogram, "sluice_worker_service_seconds", [],
        "How long a task's service took, stretched as the rack's times are.";
    WorkerWait: Histogram, "sluice_worker_wait_seconds", [],
        "How long a task waited at its worker, from its packet's arrival to its service.";

    ServerWrites: Counter, "sluice_server_writes", [],
        "WRITEs whose bytes a server stored.";
    ServerWritten: Counter, "sluice_server_written_bytes", [],
        "Bytes that WRITEs stored in a server's memory.";
    ServerResynchronised: Counter, "sluice_server_writes_resynchronised", [],
        "WRITEs that were taken although they were not the next ones.";
    ServerReconnected: Counter, "sluice_server_pairs_reconnected", [],
        "Times that a server's queue pair failed and was connected anew.";
    ServerRefused: Counter, "sluice_server_packets_refused", ["reason"],
        "RDMA packets that a server refused.";
    ServerRings: Gauge, "sluice_server_rings", [],
        "Rings in a server's memory.";
    ServerMemory: Gauge, "sluice_server_memory_bytes", [],
        "The memory of a server's rings.";

    ClientSubmitted: Counter, "sluice_client_tasks_submitted", [],
        "Tasks that a client took.";
    ClientEnded: Counter, "sluice_client_tasks_ended", ["outcome"],
        "Tasks that ended in a reply, refused, or unknown.";
    ClientOutstanding: Gauge, "sluice_client_tasks_outstanding", [],
        "Tasks that a client sent and that have no outcome yet.";
    ClientWaiting: Gauge, "sluice_client_tasks_unsent", [],
        "Tasks that wait at a client to be sent.";
    ClientAttempts: Counter, "sluice_client_attempts", [],
        "Attempts that a client sent, first ones and retries.";
    ClientRetries: Counter, "sluice_client_retries", ["kind"],
        "Retries: paid from the budget, free of it, or probing after a doubled timeout.";
    ClientTimeouts: Counter, "sluice_client_timeouts", [],
        "Attempts that were not answered within their timeout.";
    ClientRejects: Counter, "sluice_client_rejects", [],
        "REJECTs that counted.";
    ClientReceived: Counter, "sluice_client_packets_received", [],
        "Datagrams that a client received.";
    ClientSent: Counter, "sluice_client_packets_sent", [],
        "Datagrams that a client sent.";
    ClientLatency: Histogram, "sluice_client_latency_seconds", [],
        "How long a task with a reply took, from its submission to the reply's arrival.";
    ClientSwitchWait: Histogram, "sluice_client_switch_wait_seconds", [],
        "How long a task with a reply waited in the switch.";
    ClientService: Histogram, "sluice_client_service_seconds", [],
        "How long the service of a task with a reply took, as its worker said.";

    GatewayConnections: Gauge, "sluice_gateway_connections", ["protocol"],
        "Connections that a gateway serves.";
    GatewayAccepted: Counter, "sluice_gateway_connections_accepted", ["protocol"],
        "Connections that a gateway let in.";
    GatewayTurnedAway: Counter, "sluice_gateway_connections_refused", ["reason"],
        "Connections that a gateway turned away, or ended because nobody read.";
    GatewayCommands: Counter, "sluice_gateway_commands", ["protocol", "outcome"],
        "Commands and requests that a gateway answered; `answered` and `malformed` ones without the rack.";
    GatewayFrames: Counter, "sluice_gateway_frames_refused", ["reason"],
        "Connections that a gateway ended because bytes were no command of RESP.";
    GatewayUnread: Gauge, "sluice_gateway_unread_bytes", [],
        "Replies of RESP that wait in a gateway for clients to read them.";
    GatewayLatency: Histogram, "sluice_gateway_latency_seconds", [],
        "How long a command or request took in a gateway, the rack included.";
}

impl MetricFamily {
    /// The name of its samples; those of a histogram have endings of their own.
    pub fn name(self) -> String {
        let total = if self.kind() == MetricKind::Counter { "_total" } else { "" };
        format!("{}{total}", self.base())
    }

    /// The family's name without its unit, and the unit.
    pub(crate) fn name_and_unit(self) -> (&'static str, Option<&'static str>) {
        let unit = UNITS.iter().find_map(|unit| {
            let name = self.base().strip_suffix(unit)?.strip_suffix('_')?;
            Some((name, *unit))
        });
        unit.map_or((self.base(), None), |(name, unit)| (name, Some(unit)))
    }
}

impl Serialize for MetricFamily {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.base())
    }
}

impl<'de> Deserialize<'de> for MetricFamily {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let known = Self::ALL.iter().find(|metric| metric.base() == name);
        known.copied().ok_or_else(|| D::Error::custom("another version's metric"))
    }
}
