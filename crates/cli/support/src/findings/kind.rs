//! All kinds of findings: their codes, how bad they are, when they are found and what to do.
//! `docs/manual/diagnosis.md` shows the same table.

use serde::{Serialize, Serializer};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// A part of the rack does not do its work.
    Wrong,
    /// The rack works, and something needs a look.
    Warning,
}

impl FindingSeverity {
    /// The severity in one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Wrong => "wrong",
            Self::Warning => "warning",
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $severity:ident, $code:literal, $when:literal, $next:literal;)*) => {
        /// A kind of trouble.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FindingKind { $($(#[$doc])* $kind,)* }

        impl FindingKind {
            /// All kinds, in the order in which they are told.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The code, which does not change between versions.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$kind => $code,)* }
            }

            /// How bad it is.
            pub const fn severity(self) -> FindingSeverity {
                match self { $(Self::$kind => FindingSeverity::$severity,)* }
            }

            /// When it is found.
            pub const fn when(self) -> &'static str {
                match self { $(Self::$kind => $when,)* }
            }

            /// What to do.
            pub const fn next(self) -> &'static str {
                match self { $(Self::$kind => $next,)* }
            }
        }
    };
}

kinds! {
    SwitchLost: Wrong, "switch-lost",
        "The controller cannot use its switch for 5 s, or a standby's call to it was not answered.",
        "Look whether the switch's process runs, read its log and the controller's, and start it again. \
         Tasks go on while the switch lives; nobody can join.";
    EtcdLost: Wrong, "etcd-lost",
        "etcd does not answer a controller above spines.",
        "Start etcd, or see that this machine reaches it. Without it nobody leads once the leader's lease is \
         over: tasks go on, and nobody can join.";
    SwitchTooSmall: Wrong, "switch-too-small",
        "The switch has fewer slices or types than the plan needs.",
        "Start the switch with the plan that the controller has.";
    ControllerSuperseded: Wrong, "controller-superseded",
        "The controller that was asked has lost the switch to another one.",
        "Ask the other controller. Stop one of the two, and start this one anew if it is to have the switch.";
    StateFolderFull: Wrong, "state-folder-full",
        "A test file in the switch's state folder finds no room.",
        "Make room on that disk. Until then the switch must not be restarted: it would not start without \
         room, and a controller that was replaced could come back.";
    StateFolderReadOnly: Wrong, "state-folder-read-only",
        "The disk of the switch's state folder is mounted read-only.",
        "See in the kernel's log (dmesg) why, and mount it for writing again. Until then the switch must not \
         be restarted: it would not start.";
    StateFolderUnusable: Wrong, "state-folder-unusable",
        "A test file in the switch's state folder cannot be written for another reason.",
        "Give the switch's user the right to write there, or make the folder again. Until then the switch \
         must not be restarted: it would not start.";
    WorkerStopped: Wrong, "worker-stopped",
        "A worker's lease ended within 5 min, and it has not come back.",
        "Look whether its process runs: if it stands still, let it go on (kill -CONT) or end it; if it is \
         dead, read its log and start it again. `sluice status` forgets it after 5 min.";
    WorkerUnanswered: Wrong, "worker-unanswered",
        "The switch has not answered a worker for 5 s, and the worker still renews its registration.",
        "Look whether UDP goes both ways between the worker and the switch: firewalls, routes, the addresses \
         that both gave. Until then the worker gets no tasks, or loses those that the switch sends.";
    ServerStopped: Wrong, "server-stopped",
        "A server's lease ended within 5 min, and it has not come back.",
        "Look whether its process runs and read its log, then start it again. Until then its workers fetch \
         their tasks from the switch.";
    SliceClosed: Wrong, "slice-closed",
        "A slice has had no worker for 30 s, and refuses its tasks.",
        "Start a worker for it, move one there (sluice move), or map its types elsewhere (sluice map).";
    LabelsUnserved: Wrong, "labels-unserved",
        "Tasks are refused because no worker of the slice has the labels that they need.",
        "Start a worker with these labels.";
    TypeUnmapped: Wrong, "type-unmapped",
        "More than 10 tasks within 1 min have a type that no slice serves.",
        "Map the type to a slice (sluice map), or correct the client.";
    ClientStopped: Warning, "client-stopped",
        "A client's lease ended within 5 min, and it has not come back.",
        "If it was not meant to end, read its log. A client that ends well leaves before.";
    WorkerSlow: Warning, "worker-slow",
        "A worker's services take at least 1.5 times as long as its peers' (the median of those with its \
         slice and labels), its tasks wait 3 times as long, or it gets half as many; by more than chance \
         makes.",
        "Look at its machine: other load, a throttled core, swapping. If nothing helps, stop the worker or \
         move it.";
    TokensLost: Warning, "tokens-lost",
        "More than 1 % of a worker's tokens, and at least 10, were lost over its last 5 s.",
        "Each is sent again, so tasks are late and not lost. Look for drops on the way: `ethtool -S` of both \
         machines, the switches between, and `packets-dropped` here.";
    PacketsDropped: Warning, "packets-dropped",
        "The kernel has dropped packets in front of the switch over 1 min, and still does.",
        "The switch does not keep up: give it a core of its own (`pin` in [switch]), switch in the kernel \
         (--io xdp), or send less.";
    PacketsOtherVersion: Warning, "packets-other-version",
        "More than 10 packets within 1 min have a version that the switch does not read.",
        "A host of another build sends them, or a stranger: tcpdump shows from where. Start it from a build \
         like the switch's.";
    QueueFull: Warning, "queue-full",
        "A slice's queue has been over 80 % of its limit for 1 min, or more than 1 % of the tasks are \
         refused because a queue is full.",
        "The workers do not keep up: add some, or send less. A larger `limit` in [[slice]] makes tasks wait \
         longer.";
    PayloadsFull: Warning, "payloads-full",
        "More than 1 % of the tasks are refused because the switch has no room for their payloads.",
        "Raise `payload_memory` in [switch], let servers hold what waits ([rdma]), or send less.";
    RoundsFull: Warning, "rounds-full",
        "More than 1 % of the tasks meet as many recirculating packets as may be.",
        "The switch searches its queues for too long: give each class of labels enough workers, or send \
         less.";
    TasksRefused: Warning, "tasks-refused",
        "More than 1 % of the tasks are refused for other reasons.",
        "Add workers, or send less. With a `target` or budgets this is how they are kept.";
    ControllerSecond: Warning, "controller-second",
        "A controller that the switch does not obey any more has called it within 3 s.",
        "Stop that controller: hosts that ask it get no answer. If it is to have the switch, start it anew \
         and stop this one.";
    ClockSet: Warning, "clock-set",
        "A process's wall clock was set by at least 0.5 s within 5 min, against the clock since its \
         machine's start.",
        "Scheduling uses another clock and goes on. See who set the clock (chronyc tracking, timedatectl): \
         the times in logs jump, and certificates may end early or late.";
    CallsRefused: Warning, "calls-refused",
        "More than 10 calls within 5 min are refused for the same reason.",
        "Wrong certificates, another version, or somebody tries: the controller's log says who.";
    CertificateEnds: Warning, "certificate-ends",
        "A certificate ends within two weeks, or has ended (then it is wrong).",
        "Put a new one in its place; it is read by itself.";
}

impl Serialize for FindingKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}
