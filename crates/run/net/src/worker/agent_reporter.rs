//! A worker's reports to its server's agent, and the depth that the agent gives it.

use std::path::PathBuf;

use sluice_control::WorkerGrant;
use sluice_host::agent::Sample;
use sluice_wire::Nanos;
use sluice_wire::registrations::WorkerRegistration;

use crate::agent::{Line, LineRegistration};

/// A worker's end of the agent's file.
#[derive(Debug)]
pub(super) struct AgentReporter {
    file: PathBuf,
    name: String,
    /// `None` until the server has created the file.
    line: Option<Line>,
    /// Since when the worker has had nothing to do.
    free_since: Option<Nanos>,
    complained: bool,
}

impl AgentReporter {
    /// Claims a line in the agent's file, once the file exists.
    pub(super) fn new(file: PathBuf, name: String) -> Self {
        Self { file, name, line: None, free_since: None, complained: false }
    }

    /// Takes a registration, new or renewed. Returns the depth that holds from now on. A renewal only
    /// repeats what the controller heard of this worker earlier, so the agent's depth has precedence.
    pub(super) fn granted(&mut self, now: Nanos, grant: &WorkerGrant) -> u8 {
        if self.line.is_none() {
            self.claim(now);
        }
        let Some(line) = &mut self.line else { return grant.quota };
        let WorkerRegistration { worker, slice, epoch, generation, quota, .. } = grant.registration;
        let known = line.registration().filter(|registration| registration.life() == (epoch, generation));
        let depth = known.map_or(quota, |registration| registration.depth);
        line.set_registration(
            now,
            LineRegistration { worker, slice, epoch, generation, depth },
            now + grant.lease,
        );
        depth
    }

    /// The depth that the agent wants, if it differs from the present one.
    pub(super) fn ordered_depth(&mut self) -> Option<u8> {
        let line = self.line.as_mut()?;
        let depth = line.ordered_depth()?;
        line.set_depth(depth);
        Some(depth)
    }

    /// A task that arrived at `received` begins.
    pub(super) fn set_busy(&mut self, received: Nanos) {
        if let Some((since, line)) = self.free_since.take().zip(self.line.as_mut()) {
            line.set_busy(received.since(since));
        }
    }

    /// A task ended.
    pub(super) fn ended(&mut self, at: Nanos, sample: &Sample) {
        if let Some(line) = &mut self.line {
            line.ended(at, sample);
        }
    }

    /// The worker has nothing left to do.
    pub(super) fn set_idle(&mut self, since: Nanos) {
        if let Some(line) = &self.line {
            self.free_since = Some(since);
            line.set_idle(since);
        }
    }

    fn claim(&mut self, now: Nanos) {
        match Line::claim(&self.file, &self.name, now) {
            Ok(line) => {
                self.line = Some(line);
                self.set_idle(now);
            }
            Err(why) if !self.complained => {
                self.complained = true;
                let host = &self.name;
                sluice_log::log!(
                    AgentAbsent,
                    host,
                    %why,
                    "{host}: {why}; the depth stays as it is until then"
                );
            }
            Err(_) => {}
        }
    }
}
