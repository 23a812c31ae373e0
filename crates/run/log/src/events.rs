//! All events that processes log: their names, levels, limits and what they tell, in one table.
//! `docs/manual/logs.md` shows it.

use tracing::Level;

use crate::limit::LineLimit;

macro_rules! events {
    ($($name:ident: $level:ident, $limit:ident, $text:literal, $help:literal;)*) => {
        /// An event that a process logs. Its name is stable; its message is for people and may change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LogEvent {
            $(#[doc = $help] $name,)*
        }

        impl LogEvent {
            /// All events, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in each line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The level of its lines.
            pub const fn level(self) -> Level {
                match self { $(Self::$name => Level::$level,)* }
            }

            /// How many lines of it a process writes.
            pub const fn limit(self) -> LineLimit {
                match self { $(Self::$name => LineLimit::$limit,)* }
            }

            /// What it tells, as a sentence.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => $help,)* }
            }
        }
    };
}

events! {
    WorkerJoined: INFO, Own, "worker-joined", "Controller: a worker takes tasks.";
    WorkerDied: INFO, Own, "worker-died", "Controller: a worker's lease ended without a renewal.";
    WorkerLeft: INFO, Own, "worker-left", "Controller: a worker said that it leaves, and has left.";
    WorkerMoved: INFO, Own, "worker-moved", "Controller: a worker takes tasks of another slice.";
    WorkerLent: INFO, Own, "worker-lent", "Controller: the rule for slices lends a worker.";
    DepthsEvened: INFO, Own, "depths-evened", "Controller: all workers of a slice got the same depth.";
    ClientJoined: INFO, Own, "client-joined", "Controller: a client is registered.";
    ClientLeft: INFO, Own, "client-left", "Controller: a client has left.";
    ClientDied: INFO, Own, "client-died", "Controller: a client's lease ended without a renewal.";
    ClientMoved: INFO, Own, "client-moved", "Controller above spines: a client is at another spine only.";
    ServerJoined: INFO, Own, "server-joined", "Controller: waiting tasks are written into a server's memory.";
    ServerLeft: INFO, Own, "server-left", "Controller: a server said that it leaves, and has left.";
    ServerDied: INFO, Own, "server-died", "Controller: a server's lease ended without a renewal.";
    SliceOpened: INFO, Own, "slice-opened", "Controller: a slice has a worker and takes tasks.";
    SliceClosed: INFO, Own, "slice-closed", "Controller: a slice has no worker and refuses tasks.";
    ClassOpened: INFO, Own, "class-opened", "Controller: a slice serves tasks with these labels again.";
    ClassClosed: INFO, Own, "class-closed", "Controller: a slice refuses tasks with these labels.";
    SwitchUp: INFO, Own, "switch-up", "Controller: the switch can be reached.";
    SwitchRestarted: INFO, Own, "switch-restarted", "Controller: the switch came back empty.";
    SwitchDown: INFO, Own, "switch-down", "Controller: the switch cannot be reached.";
    ReadBack: INFO, Own, "read-back", "Controller: the switch's tables were read back.";
    SwitchConfused: INFO, Own, "switch-confused", "Controller: an answer of the switch fits no question.";
    SwitchTooSmall: INFO, Own, "switch-too-small", "Controller: the switch is too small for the plan.";
    Superseded: INFO, Own, "superseded", "Controller: another controller has taken the switch over.";
    Stalled: INFO, Own, "stalled", "Controller: it was not called for long; all leases were extended.";
    Leads: INFO, Own, "leads", "Controller: it leads the rack.";
    StandsBy: INFO, Own, "stands-by", "Controller: it waits for the lead.";
    StandbyUnfit: WARN, Own, "standby-unfit", "Standby: it has another plan than the leader.";
    LeadUntold: WARN, Own, "lead-untold", "Standby: the switch does not say who leads.";
    LeaseHeld: INFO, Own, "lease-held", "Controller above spines: etcd grants it the lead.";
    LeaseLost: WARN, Own, "lease-lost", "Controller above spines: etcd granted the lead to another one.";
    EtcdLost: WARN, Own, "etcd-lost", "Controller above spines: etcd does not answer; asked on.";
    EtcdUnstored: WARN, Own, "etcd-unstored", "Controller above spines: etcd does not store where hosts are.";
    EtcdBack: INFO, Own, "etcd-back", "Controller above spines: etcd answers again.";
    SwitchLost: WARN, Own, "switch-lost", "Controller: why the switch cannot be reached.";
    AgentJudged: INFO, Own, "agent-judged", "Controller: what an agent found about its server's workers.";
    OperatorAsked: INFO, Own, "operator-asked", "Controller: it did what an operator asked for.";
    OperatorRefused: WARN, Own, "operator-refused", "Controller: it did not do what an operator asked for.";
    SpineUp: INFO, Own, "spine-up", "Controller above spines: a spine is there.";
    SpineDown: WARN, Own, "spine-down", "Controller above spines: a spine is lost.";
    Misanswered: ERROR, Own, "misanswered", "Controller: an answer does not go with its call, a bug.";
    LeafStepFailed: ERROR, Own, "leaf-step-failed", "Leaf: a step towards its spine failed; tried again.";
    CallRefused: WARN, Stranger, "call-refused", "A connection or a call was refused.";
    ConnectionsUntaken: WARN, Stranger, "connections-untaken", "No connections can be taken; tried again.";
    GrpcEnded: ERROR, Own, "grpc-ended", "The gRPC services of a process ended.";
    CertificatesRead: INFO, Own, "certificates-read", "Certificates were read anew.";
    CertificatesUnread: WARN, Own, "certificates-unread", "Certificates cannot be read; the old ones stay.";
    HostUnreachable: WARN, Stranger, "host-unreachable", "Switch on links: a host gets no packets.";
    AttachedGeneric: WARN, Own, "attached-generic", "Switch in the kernel: a link's driver cannot carry it.";
    LinkShared: WARN, Own, "link-shared", "Switch in the kernel: two servers share a link.";
    LinkLost: WARN, Own, "link-lost", "Switch in the kernel: nothing is written ahead over a link.";
    PinsLeft: WARN, Own, "pins-left", "Switch in the kernel: its folder cannot be removed.";
    Bmv2Said: DEBUG, Own, "bmv2-said", "A line that BMv2 wrote.";
    WorkerRegistered: INFO, Own, "worker-registered", "Worker: it has a place in the switch.";
    ServerRegistered: INFO, Own, "server-registered", "Server: its memory has its rings.";
    DrainLimitReached: WARN, Own, "drain-limit-reached", "Worker: it ends with tasks that it holds.";
    EndUnwatched: WARN, Own, "end-unwatched", "Worker: a service that does not return will not be ended.";
    RegistrationWaits: INFO, Own, "registration-waits", "Worker or client: the controller lets it wait.";
    RegistrationDeferred: DEBUG, Own, "registration-deferred", "Host: each answer that lets it wait.";
    RegistrationRefused: WARN, Own, "registration-refused", "Host: the controller refuses it.";
    RegistrationGranted: INFO, Own, "registration-granted", "Host: the controller grants what it refused.";
    ControllerLost: WARN, Own, "controller-lost", "Host: its controller cannot be reached.";
    ControllerBack: INFO, Own, "controller-back", "Host: its controller answers again.";
    ControllerTurned: WARN, Own, "controller-turned", "Host: it turns to another controller.";
    ControllerHome: INFO, Own, "controller-home", "Host: it is back at its own controller.";
    LeaveUnanswered: WARN, Own, "leave-unanswered", "Host: it left without an answer.";
    LeaveRefused: WARN, Own, "leave-refused", "Host: the controller does not know what to end.";
    PairFailed: WARN, Stranger, "pair-failed", "Server: its queue pair failed and is connected anew.";
    RingTooSmall: WARN, Own, "ring-too-small", "Worker: its server's ring is smaller than it should be.";
    RingUnusable: WARN, Own, "ring-unusable", "Worker: its server's ring cannot be opened.";
    AgentAbsent: INFO, Own, "agent-absent", "Worker: its server's agent is not there; its depth stays.";
    AgentUnheard: WARN, Own, "agent-unheard", "Agent: the controller does not take its report.";
    AgentHeard: INFO, Own, "agent-heard", "Agent: the controller takes its reports again.";
    TaskUnplaced: ERROR, Own, "task-unplaced", "Server of many cores: a task found no place, a bug.";
    TaskOverdue: WARN, Own, "task-overdue", "Server of many cores: a task keeps its core without a pause.";
    BatchPanicked: ERROR, Own, "batch-panicked", "Server of many cores: the batch service panicked.";
    CallbackPanicked: ERROR, Own, "callback-panicked", "Client: the callback of a task panicked.";
    ClockSet: WARN, Own, "clock-set", "This machine's wall clock was set.";
    MetricsServed: INFO, Own, "metrics-served", "Where metrics are served.";
    PageChanged: INFO, Own, "page-changed", "Dashboard: it did what a visitor asked for.";
    PageFailed: ERROR, Own, "page-failed", "The dashboard is not served.";
    PageMisread: INFO, Stranger, "page-misread", "Dashboard: a visitor speaks TLS to a page without.";
    VisitorRefused: INFO, Stranger, "visitor-refused", "Dashboard: a visitor was refused.";
    CallerRefused: INFO, Stranger, "caller-refused", "Gateway: a caller was refused.";
    FrameRefused: INFO, Stranger, "frame-refused", "Gateway: a client's bytes were no command.";
    GatewayFull: WARN, Stranger, "gateway-full", "Gateway: it has as many connections as it takes.";
    GatewayFailed: ERROR, Own, "gateway-failed", "Gateway: it does not serve a protocol.";
    MetricsFailed: ERROR, Own, "metrics-failed", "Metrics are not served.";
    TracesUnsent: WARN, Own, "traces-unsent", "The collector takes no spans; tried again.";
    TracesSent: INFO, Own, "traces-sent", "The collector takes spans again.";
    FilterMalformed: WARN, Own, "filter-malformed", "`RUST_LOG` is not understood and has no effect.";
    Said: INFO, Free, "said", "What a command tells people on stderr; with `--log json` only.";
    Panicked: ERROR, Own, "panicked", "A thread panicked, a bug; as this event with `--log json` only.";
    Failed: ERROR, Free, "failed", "Why a command failed; with `--log json` only.";
    Library: INFO, Free, "library", "A line of a library; it has the library's level.";
}
