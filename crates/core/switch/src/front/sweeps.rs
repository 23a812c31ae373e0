//! Which sweeps are about, and how much goes round.
//!
//! Whoever controls the switch sends sweeps without seeing where earlier ones are. So no more than one for
//! tokens and one for tasks is about in each slice. Another that comes meanwhile takes what it finds in its
//! first pass, or nothing, and does not go round. This is known where sweeps come from and where they end, as
//! tables are: no pass reads a register for it.
//!
//! What goes round is never dropped. So what comes from a port is let in only while fewer go round than there
//! may be: as many as the queues hold tasks and workers have tokens.

use alloc::boxed::Box;
use alloc::vec;

use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::{Sweep, SweepOf};

use crate::config::Config;

/// The sweeps that are about in each slice, a bit for each sort.
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

/// How much goes round.
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

    /// Whether one more may go round.
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
