//! What the worker takes and gives.

use sluice_wire::{Endpoint, Handle, Nanos, Need, Packet, Payload, Reply, Serial, TaskId, TaskType};

/// What all workers of a driver share. All times scale with dilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerSettings {
    /// The round trip until one was measured.
    pub first_rtt: Nanos,
    /// How many round trips a DISPATCH may be overtaken by later ones before it is written off: no longer
    /// than `probe_max_busy`, or a single round trip.
    pub reorder_rtts: u32,
    /// How many round trips of silence before the first PROBE.
    pub probe_rtts: u32,
    /// The longest time between PROBEs until an answer confirms that all tokens are parked.
    pub probe_max_busy: Nanos,
    /// The time between PROBEs afterwards.
    pub probe_longest: Nanos,
    /// Whether a task may come twice. Only where nothing is lost, duplicated or tried again it may not: then
    /// nothing is kept of finished tasks.
    pub repeats: bool,
    /// How long a finished task's id is kept: long enough that a task is hardly ever older when it comes.
    pub retry_horizon: Nanos,
    /// The longest that the packets which brought a task (SUBMIT and DISPATCH together) may have been on
    /// their way.
    pub transit: Nanos,
    /// How many finished tasks are kept; no tokens are sent while that would be exceeded.
    pub finished_max: usize,
    /// How often a task's missing bytes are asked for before its place is given up.
    pub need_tries: u8,
    /// How many tasks run at once: one, unless there are cores behind the worker ([`super::Lanes`]).
    pub at_once: usize,
    /// How many tasks may be held; a late DISPATCH beyond it is dropped, and one that was pushed.
    pub held_max: usize,
    /// How many replies are kept for repeats. A repeat that comes after its reply was forgotten ends as
    /// Unknown, so they have to last for several timeouts, not for the retry horizon.
    pub replies_max: usize,
    /// How many bytes of replies are kept, those of up to eight bytes apart; the oldest are forgotten first.
    pub reply_bytes_max: usize,
    /// Where the worker's own counters (nonces) start.
    pub counters_start: Serial,
    /// Whether the last token leaves before the running task ends, where that can be told.
    pub early: Option<EarlySettings>,
    /// How many tasks have to wait in the switch, when it sends one here, before more than one may be granted
    /// or held here; zero: none has to.
    pub patience: u8,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            first_rtt: Nanos::from_micros(200),
            reorder_rtts: 4,
            probe_rtts: 3,
            probe_max_busy: Nanos::from_millis(10),
            probe_longest: Nanos::from_millis(100),
            repeats: true,
            retry_horizon: Nanos::from_millis(7_020),
            transit: Nanos::from_millis(2_000),
            finished_max: 1 << 20,
            need_tries: 6,
            at_once: 1,
            held_max: 64,
            replies_max: 1 << 18,
            reply_bytes_max: 64 << 20,
            counters_start: Serial(0),
            early: None,
            patience: 0,
        }
    }
}

/// How a worker sends early tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlySettings {
    /// No token leaves earlier than this before the expected end of the running task, whatever the measured
    /// gap between a token and its task.
    pub lead_max: Nanos,
}

impl Default for EarlySettings {
    fn default() -> Self {
        Self { lead_max: Nanos::from_micros(500) }
    }
}

/// What is known of how long a running task will take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// The service says that this is left.
    Left(Nanos),
    /// The task's size in units of its type's, 1 where tasks of a type are all alike. What a unit takes is
    /// learned.
    Units(u32),
}

/// What the driver does next, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this TOKEN or PROBE to the switch.
    ToSwitch(Packet),
    /// Send this answer to a client. Its handle was given to `finished` and not forgotten since. Of one that
    /// has more bytes than a packet brings, the driver fills in where the rest is to be asked for.
    Reply { to: Endpoint, packet: Reply },
    /// Send this answer to the switch, which passes it on to the client. Its handle as in [`Action::Reply`].
    Report(Reply),
    /// Start the service; `finished` is called with this slot, and until then no more run than may at once.
    Run {
        /// Names this run.
        slot: u64,
        task: TaskId,
        /// What kind of work it is.
        task_type: TaskType,
        /// Its bytes.
        payload: Payload,
    },
    /// Ask a client for bytes. The driver fills in where they go.
    Need { to: Endpoint, packet: Need },
    /// Copy the PART that was handed in to this offset of a task's bytes.
    Place {
        at: Handle,
        /// Where in its bytes.
        offset: u32,
        part: Payload,
    },
    /// Send these bytes of a reply that is kept, in PARTs, to the client that asks.
    Parts {
        /// What it asks for.
        need: Need,
        /// All of the reply's bytes.
        payload: Payload,
    },
    /// Compare a task's bytes with its descriptor, and call `checked`.
    Check {
        task: TaskId,
        /// Its bytes.
        payload: Payload,
    },
    /// A task's bytes are no longer needed. Comes exactly once for each handle of a packet.
    Release(Handle),
    /// A reply's bytes are no longer kept. Comes exactly once for each handle that `finished` was given.
    Forget(Handle),
    /// Ask the controller for the registration at once.
    Renew,
}

/// How a worker stands, and what it has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerStats {
    /// Whether it is registered and may send tokens.
    pub serving: bool,
    /// Tasks held, the running one included.
    pub held: u32,
    /// Tokens sent and not accounted for.
    pub tokens_out: u32,
    /// Finished tasks whose ids are kept.
    pub table: u32,
    /// Replies that are kept.
    pub replies: u32,
    /// Tasks run to their end.
    pub finished: u64,
    /// DISPATCHes that had come before, or came too late to tell.
    pub duplicates: u64,
    /// DISPATCHes of tasks that were held or finished already.
    pub repeated_tasks: u64,
    /// Repeats of finished tasks whose reply was no longer kept.
    pub replies_gone: u64,
    /// DISPATCHes of tasks so old that they may have been run and forgotten; they were not run.
    pub too_old: u64,
    /// Tasks whose bytes had to be asked for.
    pub fetches: u64,
    /// … that were given up.
    pub fetches_failed: u64,
    /// NEEDs for bytes of replies.
    pub needs: u64,
    /// Written-off and older generations' DISPATCHes that came after all and were run.
    pub late: u64,
    /// DISPATCHes that could not be taken: no room for late or pushed ones, or not this worker's.
    pub dropped: u32,
    /// DISPATCHes written off as lost.
    pub written_off: u32,
    /// PROBEs sent.
    pub probes: u32,
    /// TOKENs sent again.
    pub repeated_tokens: u32,
    /// TOKENs sent before the running task ended, beyond the quota.
    pub early_tokens: u64,
    /// The measured gap between a TOKEN and its task, which is how early the next may leave; zero until one
    /// was measured, and without early tokens.
    pub lead: Nanos,
    /// The smoothed round trip; zero until one was measured.
    pub rtt: Nanos,
}
