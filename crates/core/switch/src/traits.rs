//! What a program asks of workers, clients and the switch, and what it costs.

use sluice_units::Adaptive;
use sluice_wire::Nanos;
use sluice_wire::tables::Feed;

use crate::early::Early;

/// The most tasks that can wait in the chip's memory, and the most tokens that can park.
pub(crate) const TASKS_MAX: u32 = 128 * 1024;
pub(crate) const TOKENS_MAX: u32 = 64 * 1024;

/// What a program asks of workers, clients and the switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramTraits {
    /// How many tasks a worker may have granted or held (N); 0 if tasks are pushed.
    pub quota: u8,
    /// How workers get their tasks.
    pub feed: Feed,
    /// Whether a worker has to fetch from the client those bytes of a task that do not fit the queue entry.
    pub fetches: bool,
    /// Whether the bytes of a large waiting task are written ahead into servers' memory, if there are
    /// servers.
    pub writes_ahead: bool,
    /// Whether the program in the kernel (XDP) does the same with these settings. Depths and early tokens
    /// do not matter: hosts choose them.
    pub runs_in_kernel: bool,
    /// How workers' depths are found at run time, starting with the quota; `None` if depths are fixed.
    pub adaptive: Option<Adaptive>,
    /// Whether hosts choose their workers' depths. Then depths may differ, change while the workers run,
    /// and be one more for a moment (early tokens).
    pub hosts_choose_depth: bool,
    /// How many classes of tasks the program tells apart; 1 if it tells none.
    pub classes: u8,
    /// The most tasks that can wait in the chip's memory, in all slices and classes together: 131,072, or
    /// half as many if more arrays stand before or beside the entries. A stage has map RAM for 48 blocks.
    pub tasks_max: u32,
    /// The most tokens that can park there, in all slices, ranks and kinds together.
    pub tokens_max: u32,
    /// How many rings of tokens each slice has: one for each rank, or for each kind of workers.
    pub token_rings: u8,
    /// How many kinds of workers the program tells apart, by what they serve; 1 if any worker takes any
    /// task of its slice. With several kinds, the classes of tasks follow from what they need.
    pub kinds: u8,
    /// Whether slices may have targets of their own: the longest wait in the switch that is worth having.
    pub takes_targets: bool,
    /// The target of slices without one of their own, if there is one.
    pub target: Option<Nanos>,
    /// The most tasks in one submission; 1 if each task comes alone.
    pub jobs: u8,
    /// Whether each class of a slice has room for C tasks of its own, instead of sharing the room.
    pub limits_each_class: bool,
    /// Whether a worker's poll may carry a waiting task around. A new task may take its place meanwhile, so
    /// as many more tasks may wait as there are workers.
    pub carries_waiting: bool,
    /// How many queues of a slice a poll looks at, one after the other. Each further queue costs a
    /// recirculation, for which the worker waits.
    pub queues_per_poll: u8,
    /// The error of tasks' stated sizes, in percent; simulations draw it.
    pub size_error: u8,
    /// How many tasks have to wait in the switch before a worker sends more than one token; zero: none.
    pub patience: u8,
    /// Whether workers send tokens before their tasks end, and how they know the end.
    pub early: Option<Early>,
    /// The cost in a server's core, if this is a server's program rather than a switch's.
    pub software: Option<Software>,
    /// The chip resources that the program's paper states, if it states any.
    pub published: Option<Published>,
}

impl ProgramTraits {
    /// The traits of a program with this quota and this feed, and with the defaults for all other traits.
    pub const fn new(quota: u8, feed: Feed) -> Self {
        Self {
            quota,
            feed,
            fetches: false,
            writes_ahead: false,
            runs_in_kernel: false,
            adaptive: None,
            hosts_choose_depth: false,
            classes: 1,
            tasks_max: TASKS_MAX,
            tokens_max: TOKENS_MAX,
            token_rings: 1,
            kinds: 1,
            takes_targets: false,
            target: None,
            jobs: 1,
            limits_each_class: false,
            carries_waiting: false,
            queues_per_poll: 1,
            size_error: 0,
            patience: 0,
            early: None,
            software: None,
            published: None,
        }
    }
}

/// The cost of a scheduler that runs in a server and in no switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Software {
    /// The time of the server's one core per decision, in simulations. A task and a token make a decision,
    /// so each packet costs half of it.
    pub decision: Nanos,
    /// Whether the server has its network adapter to itself; simulations only.
    pub bypasses: bool,
}

/// The chip resources of a program, as its paper states them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Pipeline stages.
    pub stages: u32,
    /// The share of the chip's SRAM, 0 to 1.
    pub sram: f64,
    /// Tasks that can wait.
    pub entries: u32,
}
