//! What a worker tells its server's agent, and the depth that it hears from it.

use std::path::Path;

use sluice_control::WorkerGrant;
use sluice_host::agent::Sample;
use sluice_wire::Nanos;

use crate::NetError;
use crate::agent::{Line, Seat};

/// A worker's end of the agent's lines.
#[derive(Debug)]
pub(super) struct Telling {
    line: Line,
    /// Since when it has nothing to do.
    free_since: Option<Nanos>,
}

impl Telling {
    /// A line in the agent's file.
    pub(super) fn new(file: &Path, name: &str, now: Nanos) -> Result<Self, NetError> {
        Ok(Self { line: Line::claim(file, name, now)?, free_since: None })
    }

    /// A registration, new or renewed: the depth that holds from now on. A renewed one says only what was heard of this
    /// worker before, and the agent knows better.
    pub(super) fn granted(&mut self, now: Nanos, grant: &WorkerGrant) -> u8 {
        let life = (grant.epoch, grant.generation);
        let known = self.line.seat().filter(|seat| seat.life() == life);
        let depth = known.map_or(grant.quota, |seat| seat.depth);
        let WorkerGrant { worker, slice, epoch, generation, lease, .. } = *grant;
        self.line.serves(now, Seat { worker, slice, epoch, generation, depth }, now + lease);
        if self.free_since.is_none() && known.is_none() {
            self.is_free(now);
        }
        depth
    }

    /// The depth that the agent wants from now on, if it is another.
    pub(super) fn wanted(&mut self) -> Option<u8> {
        let depth = self.line.wanted()?;
        self.line.holds(depth);
        Some(depth)
    }

    /// A task that came at `received` begins.
    pub(super) fn is_taken(&mut self, received: Nanos) {
        if let Some(since) = self.free_since.take() {
            self.line.is_taken(received.since(since));
        }
    }

    /// A task ended.
    pub(super) fn ended(&mut self, at: Nanos, sample: &Sample) {
        self.line.ended(at, sample);
    }

    /// Nothing is left to do.
    pub(super) fn is_free(&mut self, since: Nanos) {
        self.free_since = Some(since);
        self.line.is_free(since);
    }
}
