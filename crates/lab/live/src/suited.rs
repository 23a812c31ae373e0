//! Who has what tasks need in a live rack, and how many of its tasks met it.

use sluice_host::client::Outcome as Ending;
use sluice_rpc::Remote;
use sluice_support::ask::Asker;
use sluice_support::fail::Outcome;
use sluice_testbed::suits::Suits;
use sluice_testrig::schedule::Played;
use sluice_wire::serving::Labels;
use sluice_wire::{TaskType, WorkerId};
use sluice_workload::Trace;

/// A rack's labels, and who is who.
pub(crate) struct Suited {
    suits: Suits,
    /// What the switch's workers have: it numbers them as they come.
    has: Vec<(WorkerId, Labels)>,
}

/// What a worker is called, by its number in the testbed.
pub(crate) fn worker_name(number: u32) -> String {
    format!("hold-{}", number + 1)
}

/// What it has, as it says so itself.
pub(crate) fn labels_of(suits: &Suits, number: u32) -> Vec<String> {
    suits.names.of_bits(suits.has[number as usize])
}

impl Suited {
    /// Asks the controller who got which number in the switch.
    pub(crate) fn ask(suits: Suits, controller: Remote) -> Outcome<Self> {
        let workers = Asker::new(controller)?.status()?.workers;
        let of = |name: &str| (0..).zip(&suits.has).find(|(number, _)| worker_name(*number) == name);
        let known = |name, index| of(name).map(|(_, has)| (WorkerId(index as u16), *has));
        let has = workers.iter().filter_map(|worker| known(&worker.name, worker.worker)).collect();
        Ok(Self { suits, has })
    }

    /// Of the tasks that need or wish for labels, the share whose workers have them.
    pub(crate) fn met(&self, types: &[TaskType], trace: &Trace, played: &[Played]) -> Option<f64> {
        let (mut all, mut met) = (0_u64, 0_u64);
        for (task, played) in trace.tasks().iter().zip(played) {
            let needs = self.suits.needs_of(types[usize::from(task.class)]);
            if let (false, Ending::Reply(reply)) = (needs == Labels::NONE, &played.outcome) {
                all += 1;
                met += u64::from(self.labels_of(reply.worker).have(needs));
            }
        }
        (all > 0).then(|| met as f64 / all as f64)
    }

    fn labels_of(&self, worker: WorkerId) -> Labels {
        self.has.iter().find(|(known, _)| *known == worker).map_or(Labels::NONE, |(_, has)| *has)
    }
}
