//! The worker's inputs and outputs: settings, actions and counters.

use sluice_wire::{Endpoint, Handle, Nanos, Need, Packet, Payload, Reply, Serial, TaskId, TaskType};

/// Settings that all workers of a driver share. All times scale with dilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerSettings {
    /// The assumed round trip before one was measured.
    pub first_rtt: Nanos,
    /// For how many round trips later DISPATCHes may overtake a DISPATCH before it is written off. The time
    /// is limited to `probe_max_busy`, but is at least one round trip.
    pub reorder_rtts: u32,
    /// The silence before the first PROBE, in round trips.
    pub probe_rtts: u32,
    /// The longest time between PROBEs while no answer has confirmed that all tokens are parked.
    pub probe_max_busy: Nanos,
    /// The time between PROBEs once all tokens are parked.
    pub probe_longest: Nanos,
    /// Whether a task may come twice. False only if no packet is lost, duplicated or retried: then nothing
    /// is kept of finished tasks.
    pub repeats: bool,
    /// How long a finished task's id is kept. It should be so long that hardly any task is older when it
    /// comes.
    pub retry_horizon: Nanos,
    /// The longest time for which the packets that bring a task (SUBMIT and DISPATCH together) may travel.
    pub transit: Nanos,
    /// How many finished tasks are kept; the worker sends no token that could exceed this.
    pub finished_max: usize,
    /// How often a task's missing bytes are asked for before the task gives up its place.
    pub need_tries: u8,
    /// How many tasks run at once: one, unless the worker has several cores ([`super::Lanes`]).
    pub at_once: usize,
    /// How many tasks may be held. Beyond this, late and pushed DISPATCHes are dropped.
    pub held_max: usize,
    /// How many replies are kept for repeats. If a repeat comes after its reply was dropped, the task ends
    /// as Unknown. So replies should last for several timeouts, but need not last for the retry horizon.
    pub replies_max: usize,
    /// How many bytes of replies are kept, not counting replies of up to eight bytes; the oldest are
    /// dropped first.
    pub reply_bytes_max: usize,
    /// The first value of the worker's own counters (nonces).
    pub counters_start: Serial,
    /// Early tokens: whether the last token may leave before the running task ends, if that end can be
    /// predicted.
    pub early: Option<EarlySettings>,
    /// How many tasks must wait in the switch before this worker may have more than one task granted or
    /// held; zero for no such condition.
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
    /// The longest lead: no token leaves earlier before the expected end of the running task, whatever time
    /// from a token to its task was measured.
    pub lead_max: Nanos,
}

impl Default for EarlySettings {
    fn default() -> Self {
        Self { lead_max: Nanos::from_micros(500) }
    }
}

/// What is known about the time that a running task will take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemainingTime {
    /// The service states the remaining time.
    Left(Nanos),
    /// The task's size in units of its type; 1 if all tasks of a type are alike. The worker learns the time
    /// of a unit.
    Units(u32),
}

/// What the driver has to do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this TOKEN or PROBE to the switch.
    ToSwitch(Packet),
    /// Send this answer to a client. Its handle was passed to `finished`, and no [`Action::Forget`] named
    /// it since. If the reply is longer than a packet, the driver fills in the address at which the client
    /// asks for the rest.
    Reply { to: Endpoint, packet: Reply },
    /// Send this answer to the switch, which passes it on to the client. For the handle see
    /// [`Action::Reply`].
    Report(Reply),
    /// Start the service. The driver calls `finished` with this slot at its end; until then no more runs
    /// start than may run at once.
    Run {
        /// Names this run.
        slot: u64,
        task: TaskId,
        task_type: TaskType,
        /// The task's bytes.
        payload: Payload,
    },
    /// Ask a client for bytes of a task. The driver fills in the address to which the client sends them.
    Need { to: Endpoint, packet: Need },
    /// Copy the PART that was handed in to this offset in a task's bytes.
    Place {
        at: Handle,
        /// The offset in the task's bytes.
        offset: u32,
        part: Payload,
    },
    /// Send these bytes of a kept reply, in PARTs, to the client that asked.
    Parts {
        /// The client's request.
        need: Need,
        /// All of the reply's bytes.
        payload: Payload,
    },
    /// Compare a task's bytes with its descriptor, and call [`Worker::checked`](super::Worker::checked).
    Check {
        task: TaskId,
        /// The task's bytes.
        payload: Payload,
    },
    /// A task's bytes are no longer needed. Comes exactly once for each handle in a packet.
    Release(Handle),
    /// A reply's bytes are no longer kept. Comes exactly once for each handle passed to `finished`.
    Forget(Handle),
    /// Ask the controller for the registration at once.
    Renew,
}

/// A worker's state, and its counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerStats {
    /// Whether it is registered and may send tokens.
    pub serving: bool,
    /// Tasks held, the running one included.
    pub held: u32,
    /// Tokens that were sent and whose tasks neither came nor were written off.
    pub tokens_out: u32,
    /// Finished tasks whose ids are kept.
    pub table: u32,
    /// Replies that are kept.
    pub replies: u32,
    /// Tasks that ran to their end.
    pub finished: u64,
    /// DISPATCHes that had come before, or that came too late to tell.
    pub duplicates: u64,
    /// DISPATCHes of tasks that were held or finished already.
    pub repeated_tasks: u64,
    /// Repeats of finished tasks whose reply was no longer kept.
    pub replies_gone: u64,
    /// DISPATCHes of tasks so old that the worker may have run and forgotten them. They were not run.
    pub too_old: u64,
    /// Tasks whose bytes had to be asked for.
    pub fetches: u64,
    /// Tasks that gave up their place since their bytes could not be had.
    pub fetches_failed: u64,
    /// NEEDs for bytes of replies.
    pub needs: u64,
    /// DISPATCHes that came after they were written off or in a newer generation, and were run.
    pub late: u64,
    /// Tasks that were not run because their budget was spent before they could begin.
    pub over_budget: u64,
    /// DISPATCHes that were dropped: not for this worker, or no room for a late or pushed task.
    pub dropped: u32,
    /// DISPATCHes written off as lost.
    pub written_off: u32,
    /// PROBEs sent.
    pub probes: u32,
    /// TOKENs sent again.
    pub repeated_tokens: u32,
    /// TOKENs sent before the running task ended, beyond the quota.
    pub early_tokens: u64,
    /// The lead: the measured time from a TOKEN to its task. Zero before the first measurement, and without
    /// early tokens.
    pub lead: Nanos,
    /// The smoothed round trip; zero before the first measurement.
    pub rtt: Nanos,
}
