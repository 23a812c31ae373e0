//! The numbers beside a point's times: its gauges and counts, each defined once.
//!
//! JSON, CSV, pages, statements and what many replications come to together follow these two tables, in
//! their order. A field that is left out of the JSON while it has nothing to say is marked so for serde.

use serde::{Deserialize, Serialize};

use super::numbers::Unit;

/// The properties of a gauge beside its value.
#[derive(Clone, Copy, Debug)]
pub struct GaugeDescriptor {
    /// The gauge's name in files.
    pub name: &'static str,
    /// The unit of the gauge's numbers.
    pub unit: Unit,
    /// The unit of statements about it, if that is another: a mean of whole numbers has decimals there, and
    /// its picture's axis needs none.
    pub stated_in: Option<Unit>,
    /// What stands above its picture; none if it has no picture.
    pub picture: Option<&'static str>,
    /// The heading of its column on a page; `None` if it has no column.
    pub heading: Option<&'static str>,
    /// How a point's value follows from its replications.
    pub over: Aggregate,
    pub get: fn(&Gauges) -> Option<f64>,
    /// The field of the gauge's value.
    pub get_mut: fn(&mut Gauges) -> &mut Option<f64>,
}

/// How a point's gauge follows from its replications.
#[derive(Clone, Copy, Debug)]
pub enum Aggregate {
    /// The mean of all replications; none unless each has a value.
    Mean,
    /// The largest value.
    Most,
    /// Events per task; none unless `told_by` is above zero, since a reference that never has such events
    /// must not show a zero.
    Tasks {
        events: fn(&Counts) -> u64,
        /// A count that is above zero in runs where such events occur.
        told_by: fn(&Counts) -> u64,
    },
}

impl GaugeDescriptor {
    /// A mean of counts that has no place on a page: what a gauge is unless its line says otherwise.
    const fn usual(
        name: &'static str,
        get: fn(&Gauges) -> Option<f64>,
        get_mut: fn(&mut Gauges) -> &mut Option<f64>,
    ) -> Self {
        let (unit, over) = (Unit::Count, Aggregate::Mean);
        Self { name, unit, stated_in: None, picture: None, heading: None, over, get, get_mut }
    }
}

/// What is to be known of a count beside its value.
#[derive(Clone, Copy, Debug)]
pub struct CountDescriptor {
    /// The count's name in files.
    pub name: &'static str,
    /// The heading of its column on a page; `None` if it has no column.
    pub heading: Option<&'static str>,
    pub get: fn(&Counts) -> u64,
}

/// Defines the gauges and their table from the same lines.
macro_rules! gauges {
    ($($(#[$about:meta])* $name:ident: { $($key:ident: $value:expr),* $(,)? })*) => {
        /// Means over time and over the measured tasks of all replications; `None` if not measured.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Gauges {
            $($(#[$about])* pub $name: Option<f64>,)*
        }

        impl Gauges {
            /// All of them.
            pub const ALL: &[GaugeDescriptor] = &[$(GaugeDescriptor {
                $($key: $value,)*
                ..GaugeDescriptor::usual(stringify!($name), |of| of.$name, |of| &mut of.$name)
            },)*];

            /// A copy of these gauges, in which each missing gauge is taken from `other`.
            #[must_use]
            pub fn or(&self, other: &Self) -> Self {
                Self { $($name: self.$name.or(other.$name),)* }
            }
        }
    };
}

gauges! {
    /// Tasks waiting in the switch.
    switch_queue_mean: {
        stated_in: Some(Unit::Ratio),
        picture: Some("tasks waiting in the switch, mean"),
        heading: Some("waiting in the switch"),
    }
    /// The most of them at once.
    switch_queue_max: { heading: Some("at most"), over: Aggregate::Most }
    /// Tasks that wait at a worker, without the one in service.
    worker_queue_mean: {
        stated_in: Some(Unit::Ratio),
        picture: Some("tasks waiting at a worker, mean"),
        heading: Some("waiting at a worker"),
    }
    /// Share of a worker's time without a task.
    idle_share: { unit: Unit::Share, picture: Some("workers' idle share"), heading: Some("idle") }
    /// Share of the cores' time that went into a batch service's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch_share: { unit: Unit::Share, picture: Some("share of the cores' time for the batch service") }
    /// Answers within the latency that is asked for, a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    goodput_per_s: { unit: Unit::PerS, picture: Some("answers in time"), heading: Some("in time") }
    /// Tasks that were refused or held back for good, a second, where goodput is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused_per_s: { unit: Unit::PerS, picture: Some("refused"), heading: Some("refused") }
    /// The p99 of the waits in the switch of what was answered, where goodput is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    switch_wait_p99: { unit: Unit::Ns, picture: Some("wait in the switch, p99"), heading: Some("wait p99") }
    /// Recirculations a task.
    recirculations_per_task: {
        stated_in: Some(Unit::Ratio),
        picture: Some("recirculations a task"),
        heading: Some("recirculations a task"),
        over: Aggregate::Tasks { events: |counts| counts.recirculations, told_by: |counts| counts.passes },
    }
    /// The share of the recirculation bandwidth in use.
    recirculation_utilization: {
        unit: Unit::Share,
        picture: Some("recirculation bandwidth in use"),
        heading: Some("of their bandwidth"),
    }
    /// Packets per task, of all kinds and on all links.
    packets_per_task: {
        stated_in: Some(Unit::Ratio),
        picture: Some("packets a task"),
        heading: Some("packets a task"),
        over: Aggregate::Tasks { events: |counts| counts.packets, told_by: |counts| counts.packets },
    }
    /// Polls without a task, for each task.
    empty_polls_per_task: {
        stated_in: Some(Unit::Ratio),
        picture: Some("empty polls a task"),
        heading: Some("empty polls a task"),
        over: Aggregate::Tasks { events: |counts| counts.empty_polls, told_by: |counts| counts.polls },
    }
    /// Workers' depths, if they are found at run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    depth_mean: { stated_in: Some(Unit::Ratio), picture: Some("workers' depth, mean") }
    /// What the rings of one server take, where tasks are written ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ring_bytes: {}
    /// Of the tasks that need or wish for labels, the share that went to workers that have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    labels_met: { unit: Unit::Share, picture: Some("labels met") }
    /// The least of all clients' replies over the client's max-min fair share of all, where clients differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_share_min: {
        unit: Unit::Ratio,
        picture: Some("least share of a client"),
        heading: Some("least share"),
    }
    /// Flowlets that switches of a fabric saw: flows' first frames, and pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flowlets: { picture: Some("flowlets") }
    /// Of them, flows' first frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flowlet_firsts: {}
    /// Of them, pauses as long as the threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flowlet_expiries: {}
    /// Frames that found their entry of a flowlet table with another flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flowlet_collisions: {}
    /// Frames that hosts held to make a flowlet (HF²T).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holds: { picture: Some("frames held at hosts") }
    /// Pauses that switches asked for (PFC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pauses: { picture: Some("PFC pauses") }
    /// Frames that came before an earlier one of their flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    early_frames: { picture: Some("frames out of order") }
    /// Frames that the receiver had already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frames_again: {}
    /// Frames that were lost for want of room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frames_lost: {}
    /// Answers that told of congestion (CNP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    congestion_notices: {}
    /// Frames of data that hosts sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frames: {}
    /// Times between frames of one flow at its host, the hold included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gaps: {}
    /// Of them, the share of a round trip or longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gaps_from_1_rtt: { unit: Unit::Share }
    /// Of them, the share of two round trips or longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gaps_from_2_rtt: { unit: Unit::Share, picture: Some("gaps of two round trips or longer") }
    /// Of them, the share of three round trips or longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gaps_from_3_rtt: { unit: Unit::Share }
    /// Of the tasks that came with their bytes written ahead over a fabric, those that came before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    writes_late: { unit: Unit::Share, picture: Some("WRITEs that came after their tasks") }
    /// WRITEs that a fabric lost for want of room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    writes_lost: {}
    /// The median, over regular samples, of the longest queue of a pool's workers divided by the mean queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    imbalance_p50: { unit: Unit::Ratio, picture: Some("longest queue over the mean, median") }
    /// The same, 99 in a hundred of the times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    imbalance_p99: { unit: Unit::Ratio, picture: Some("longest queue over the mean, p99") }
}

/// Defines the counts and their table from the same lines.
macro_rules! counts {
    ($($(#[$about:meta])* $name:ident: $heading:expr,)*) => {
        /// Events in the measured span.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Counts {
            $($(#[$about])* pub $name: u64,)*
        }

        impl Counts {
            /// All of them.
            pub const ALL: &[CountDescriptor] = &[$(CountDescriptor {
                name: stringify!($name),
                heading: $heading,
                get: |of| of.$name,
            },)*];

            /// The sum of both counts.
            #[must_use]
            pub const fn and(&self, other: &Self) -> Self {
                Self { $($name: self.$name + other.$name,)* }
            }

            /// The counts since an earlier state.
            #[must_use]
            pub const fn since(&self, then: &Self) -> Self {
                Self { $($name: self.$name - then.$name,)* }
            }
        }
    };
}

counts! {
    /// Tasks that were due.
    sent: Some("sent"),
    /// Tasks that were answered.
    replied: Some("replied"),
    /// Tasks that did not run: no attempt can have run.
    refused: Some("refused"),
    /// Of the refused tasks, those whose budget was spent at their client.
    #[serde(default, skip_serializing_if = "is_zero")]
    late_at_client: Some("late at client"),
    /// Of the refused tasks, those whose budget was spent in the switch.
    #[serde(default, skip_serializing_if = "is_zero")]
    late_in_switch: Some("late in switch"),
    /// Of the refused tasks, those whose budget was spent at a worker.
    #[serde(default, skip_serializing_if = "is_zero")]
    late_at_worker: Some("late at worker"),
    /// Tasks that may have run.
    unknown: Some("unknown"),
    /// Tasks that admission held back at the client.
    pushed_back: Some("pushed back"),
    /// Attempts after a task's first.
    retries: Some("retries"),
    /// Packets that the network lost.
    lost_packets: Some("packets lost"),
    /// Passes through the switch's pipeline.
    passes: Some("passes"),
    /// Passes that were recirculations.
    recirculations: None,
    /// Packets on all links.
    packets: None,
    /// Polls by workers.
    polls: None,
    /// Polls that found nothing.
    empty_polls: None,
    /// Replies to tasks that had waited in the switch.
    #[serde(default, skip_serializing_if = "is_zero")]
    queued: None,
    /// Copies of waiting tasks that were written to servers.
    #[serde(default, skip_serializing_if = "is_zero")]
    writes: None,
    /// Recirculations of tasks in a spine before it chose a rack.
    #[serde(default, skip_serializing_if = "is_zero")]
    spine_rounds: None,
    /// Recirculations of tasks in a leaf before it chose a worker.
    #[serde(default, skip_serializing_if = "is_zero")]
    leaf_rounds: None,
    /// Updates from leaves to spines about their racks' mean queues.
    #[serde(default, skip_serializing_if = "is_zero")]
    load_updates: None,
    /// Updates from leaves to spines that there are idle workers, or none any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    idle_updates: None,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
