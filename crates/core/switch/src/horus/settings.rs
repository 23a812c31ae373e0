//! Reads and prints how Horus is asked for: `horus`, `horus:as-published`.

use alloc::boxed::Box;
use core::fmt;

use sluice_units::WholeSpan;
use sluice_wire::tables::Feed;

use super::affinity::read_keeps;
use super::leaf::Horus;
use super::reading::{PolicyParts, Reading};
use crate::config::Config;
use crate::front::Scheduler;
use crate::program::Program;
use crate::settings::{About, ProgramSettings};
use crate::traits::ProgramTraits;

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { as_published, writes, uncounted, parts, affinity } = *self;
        let asked = [
            (writes, "resubmit=writes"),
            (uncounted, "idle=uncounted"),
            (as_published, "as-published"),
            (parts == PolicyParts::IdleOnly, "only=idle"),
            (parts == PolicyParts::LoadsOnly, "only=loads"),
        ];
        for (at, (_, argument)) in asked.iter().filter(|(is_asked, _)| *is_asked).enumerate() {
            write!(f, "{}{argument}", if at == 0 { "" } else { "," })?;
        }
        let Some(keeps) = affinity else { return Ok(()) };
        let is_first = asked.iter().all(|(is_asked, _)| !is_asked);
        write!(f, "{}affinity={}", if is_first { "" } else { "," }, WholeSpan(keeps))
    }
}

impl ProgramSettings for Reading {
    fn about(&self) -> About {
        About {
            name: Horus::NAME,
            about: "each task goes at once to an idle worker, or if there is none to the shorter of two \
                    random queues",
            arguments: "resubmit=adds, a task that goes round adds one to the load that the switch knows; \
                        resubmit=writes, it writes that load anew; idle=counted, a task that an idle worker \
                        gets counts as sent to it; idle=uncounted, it does not; as-published, the list of \
                        idle workers loses some and has some twice, as printed; only=idle, without idle \
                        workers any worker gets the task; only=loads, the lesser of two loads as they were \
                        told last, and nobody looks for idle workers; affinity=SPAN, a task's later tries go \
                        to the worker of the one before, if that was within 66us to 500s, else anywhere",
            example: Horus::NAME,
        }
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        if let Some(keeps) = argument.strip_prefix("affinity=") {
            self.affinity = Some(read_keeps(keeps)?);
            return Some(());
        }
        match argument {
            "resubmit=adds" => self.writes = false,
            "resubmit=writes" => self.writes = true,
            "idle=counted" => self.uncounted = false,
            "idle=uncounted" => self.uncounted = true,
            "as-published" => self.as_published = true,
            "only=idle" => self.parts = PolicyParts::IdleOnly,
            "only=loads" => self.parts = PolicyParts::LoadsOnly,
            _ => return None,
        }
        Some(())
    }

    fn traits(&self) -> ProgramTraits {
        ProgramTraits::new(0, Feed::Pushed { reports: true })
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        Horus::boxed(self.traits().feed, *self, config)
    }
}
