//! Counts the sweeps under way and the packets that recirculate.
//!
//! A controller sends sweeps without seeing where earlier ones are. So in each slice at most one sweep for
//! tokens and one for tasks is under way. A second sweep of the same sort takes what it finds in its first
//! pass, or nothing, and does not recirculate. The driver's side keeps this state, where sweeps begin and
//! end, as it keeps the tables: no pass reads a register for it.
//!
//! A packet that recirculates is never dropped. So a packet from a port is let in only while fewer packets
//! recirculate than the limit: as many as the queues hold tasks and workers have tokens.

use alloc::boxed::Box;
use alloc::vec;

use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::{Sweep, SweepOf};

use crate::config::Config;

/// The sweeps under way in each slice, one bit for each sort.
#[derive(Debug)]
pub(crate) struct SweepsUnderWay {
    about: Box<[u8]>,
}

impl SweepsUnderWay {
    pub(super) fn new(config: &Config) -> Self {
        Self { about: vec![0; config.slices.into()].into_boxed_slice() }
    }

    pub(super) fn is_about(&self, sweep: &Sweep) -> bool {
        self.about[usize::from(sweep.slice.0)] & bit(sweep.of) != 0
    }

    pub(super) fn set(&mut self, sweep: &Sweep, is_about: bool) {
        let about = &mut self.about[usize::from(sweep.slice.0)];
        *about = if is_about { *about | bit(sweep.of) } else { *about & !bit(sweep.of) };
    }
}

const fn bit(of: SweepOf) -> u8 {
    match of {
        SweepOf::Tokens => 1,
        SweepOf::Tasks => 2,
    }
}

/// How many packets recirculate, and how many may.
#[derive(Debug)]
pub(crate) struct Rounds {
    now: u32,
    most: u32,
}

impl Rounds {
    pub(super) fn new(config: &Config) -> Self {
        let tasks = u32::from(config.slices).saturating_mul(config.tasks_per_slice);
        let tokens = u32::from(config.workers) * u32::from(QUOTA_MAX);
        Self { now: 0, most: tasks.saturating_add(tokens) }
    }

    /// Whether one more packet may recirculate.
    #[inline]
    pub(crate) const fn have_room(&self) -> bool {
        self.now < self.most
    }

    #[inline]
    pub(super) const fn begin(&mut self) {
        self.now += 1;
    }

    #[inline]
    pub(super) const fn end(&mut self) {
        self.now = self.now.saturating_sub(1);
    }
}
