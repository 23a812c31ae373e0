//! Which workers of a live rack have which labels, and how many tasks met a worker with theirs.

use sluice_host::client::Outcome as Ending;
use sluice_rpc::Remote;
use sluice_support::controller_caller::ControllerCaller;
use sluice_support::fail::Outcome;
use sluice_testbed::compatibility::LabelCompatibility;
use sluice_testrig::schedule::PlayedTask;
use sluice_wire::serving::Labels;
use sluice_wire::{TaskType, WorkerId};
use sluice_workload::Trace;

/// A rack's labels, and its workers' names and indices.
pub(crate) struct RackLabels {
    suits: LabelCompatibility,
    /// The labels of the switch's workers, which it numbers in order of registration.
    has: Vec<(WorkerId, Labels)>,
}

/// The name of a worker, by its number in the testbed.
pub(crate) fn worker_name(number: u32) -> String {
    format!("hold-{}", number + 1)
}

/// The labels with which a worker registers.
pub(crate) fn labels_of(suits: &LabelCompatibility, number: u32) -> Vec<String> {
    suits.names.of_bits(suits.has[number as usize])
}

impl RackLabels {
    /// Asks the controller which worker has which index in the switch.
    pub(crate) fn ask(suits: LabelCompatibility, controller: Remote) -> Outcome<Self> {
        let workers = ControllerCaller::new(controller)?.status()?.workers;
        let of = |name: &str| (0..).zip(&suits.has).find(|(number, _)| worker_name(*number) == name);
        let known = |name, index| of(name).map(|(_, has)| (WorkerId(index as u16), *has));
        let has = workers.iter().filter_map(|worker| known(&worker.name, worker.worker)).collect();
        Ok(Self { suits, has })
    }

    /// The share of tasks with labels, needed or wished for, whose worker has them.
    pub(crate) fn met(&self, types: &[TaskType], trace: &Trace, played: &[PlayedTask]) -> Option<f64> {
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
