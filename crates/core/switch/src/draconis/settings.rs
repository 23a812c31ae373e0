//! What the registry asks of Draconis' settings.

use alloc::boxed::Box;

use sluice_wire::tables::{Feed, KINDS_MAX};

use super::asked::{SWAPPING, Settings};
use super::memory::Draconis;
use crate::config::Config;
use crate::front::Scheduler;
use crate::program::Program;
use crate::settings::{About, ProgramSettings};
use crate::traits::{ProgramTraits, TASKS_MAX};

impl ProgramSettings for Settings {
    fn about(&self) -> About {
        About {
            name: Draconis::NAME,
            about: "a queue in the switch that idle workers poll; its pointers run ahead and are fixed by \
                    recirculation",
            arguments: "poll=SPAN, how long an idle worker waits after an empty answer: 0ns (at once) to 4s; \
                        classes=4, so many classes of tasks, 2 or 4, a queue each: a poll looks at one after \
                        the other; labels, tasks go to workers that have what they need, others are swapped \
                        past (not with classes); swaps=16, behind labels: so many a poll at most, 1 to 63; \
                        node=10us, behind labels: how long a task waits for a worker that meets all that it \
                        wishes for; rack=20us, behind labels: how long then for one that meets any; jobs=5, \
                        a submission may have so many tasks, 2 to 5: one enters a pass; as-published, \
                        without what we healed (not with labels)",
            example: "draconis:poll=1us",
        }
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        self.read(argument)?;
        // Swapping needs labels, and excludes classes and `as-published`: the publication does not say how
        // swaps and other passes race.
        let swaps = self.labels || self.swapping == SWAPPING;
        let alone = self.classes == 1 && !self.as_published;
        (swaps && (alone || !self.labels)).then_some(())
    }

    fn traits(&self) -> ProgramTraits {
        let classes = if self.labels { KINDS_MAX as u8 } else { self.classes };
        ProgramTraits {
            fetches: true,
            tasks_max: TASKS_MAX / 2,
            classes,
            kinds: if self.labels { classes } else { 1 },
            jobs: self.jobs,
            // Each class has a queue and pointers of its own, and so a limit of its own. With swapping there
            // is one queue.
            limits_each_class: self.classes > 1,
            queues_per_poll: self.classes,
            carries_waiting: self.labels,
            ..ProgramTraits::new(1, Feed::Polls { every: self.every })
        }
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        Box::new(Draconis::new(*self, config))
    }
}
