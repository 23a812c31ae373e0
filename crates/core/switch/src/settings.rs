//! What every program's settings can be asked.

use alloc::boxed::Box;
use core::fmt;

use sluice_units::Adaptive;
use sluice_wire::Nanos;
use sluice_wire::tables::Feed;

use crate::config::Config;
use crate::early::Early;
use crate::program::Program;

/// What every program's settings tell of it; their `Display` is what [`ProgramSettings::take`] takes, or
/// nothing.
pub trait ProgramSettings: fmt::Display {
    /// What people are told of it.
    fn about(&self) -> About;

    /// The program's name.
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Takes one argument, or `None` if it means nothing.
    fn take(&mut self, argument: &str) -> Option<()>;

    /// How many tasks a worker may have granted or held (N); 0 when they are pushed.
    fn quota(&self) -> u8;

    /// How workers get their tasks.
    fn feed(&self) -> Feed;

    /// Whether a worker has to fetch a task's bytes beyond the queue entry from its client.
    fn fetches(&self) -> bool {
        false
    }

    /// Whether the bytes of a large task that waits are written ahead into servers' memory, if there are
    /// servers.
    fn writes_ahead(&self) -> bool {
        false
    }

    /// Whether the program in the kernel (XDP) does the same: depths and early tokens are the hosts'
    /// business.
    fn runs_in_kernel(&self) -> bool {
        false
    }

    /// How depths are found at run time, beginning with the quota; `None` if they are fixed.
    fn adaptive(&self) -> Option<Adaptive> {
        None
    }

    /// Whether workers' depths are their hosts' business: they may differ, change while the workers run, and
    /// be one more for a moment (early tokens).
    fn hosts_choose_depth(&self) -> bool {
        false
    }

    /// How many classes of tasks it tells apart; 1 where all are alike.
    fn classes(&self) -> u8 {
        1
    }

    /// How many kinds of workers it tells apart, by what they serve; 1 where any worker takes any task of its
    /// slice. Then classes are told by what tasks need.
    fn kinds(&self) -> u8 {
        1
    }

    /// The most tasks that it takes in one submission; 1 where each comes alone.
    fn jobs(&self) -> u8 {
        1
    }

    /// Whether each class of a slice has room for C tasks, rather than all together.
    fn limits_each_class(&self) -> bool {
        self.kinds() > 1
    }

    /// Whether a waiting task may be under way with a worker's poll: a newcomer takes its place then, so that
    /// as many more may wait as there are workers.
    fn carries_waiting(&self) -> bool {
        false
    }

    /// How many queues of a slice a poll looks at, one after the other: each further one costs a round, for
    /// which its worker waits.
    fn queues_per_poll(&self) -> u8 {
        1
    }

    /// How far what is said of tasks' sizes is off, in hundredths: what simulations draw.
    fn size_error(&self) -> u8 {
        0
    }

    /// How many tasks have to wait in the switch before a worker sends more than one token; zero: none.
    fn patience(&self) -> u8 {
        0
    }

    /// Whether workers send tokens before their tasks end, and how they know when.
    fn early(&self) -> Option<Early> {
        None
    }

    /// What it takes of a server's core, if it is a server's program rather than a switch's.
    fn software(&self) -> Option<Software> {
        None
    }

    /// What its paper says that it takes of a chip, if it does.
    fn published(&self) -> Option<Published> {
        None
    }

    /// The program with these settings, empty.
    fn build(&self, config: Config) -> Box<dyn Program>;
}

/// A policy for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// How it is written.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// What its arguments may be: how each is written, a comma and what it means, with semicolons between
    /// them; empty if it has none.
    pub arguments: &'static str,
    /// How one asks for it, such as `rain:2`.
    pub example: &'static str,
}

/// A scheduler that is a program of a server: no switch has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Software {
    /// What a decision takes of the server's one core, in simulations: half of it for each packet that comes,
    /// since a task and a token make a decision.
    pub decision: Nanos,
    /// Whether it has its network adapter to itself. That is simulated only.
    pub bypasses: bool,
}

/// What a paper says that its program takes of a chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Pipeline stages.
    pub stages: u32,
    /// The share of the chip's SRAM.
    pub sram: f64,
    /// Tasks that can wait.
    pub entries: u32,
}
