//! Racks' own controllers (Horus §3.2, A.3), each the state machine that runs live. A rack's controller
//! registers the rack's workers, writes the leaf's tables, and tells the controller above how many workers
//! there are.
//!
//! It dies with its leaf, or alone; alone it reads its leaf's tables back when it returns. While it is dead
//! tasks go on. Calls of workers are cut off for longer than a lease, so that the workers are removed while
//! they serve, and register anew. And workers' processes die with all their tasks, and return without any
//! state.

use std::collections::BTreeMap;

use sluice_control::{Answer, CallId, Controller, Event, LeafAction, LeafLine, Tier, WorkerHello};
use sluice_events::dice::Dice;
use sluice_wire::SliceId;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tables::TableOp;

use super::controller_above::{ControllerAbove, rack_name};
use super::scenario::LeadStep;
use super::table_operations::{POOL, is_lost, plan};
use crate::racks::downtime::{FabricSwitch, OutageStep};
use crate::racks::places::{LEAVES, WORKERS};
use crate::racks::watch::TaskObserver;
use crate::racks::world::SimulatedRacks;

struct RackController {
    /// The controller, and its registration with the controller above; `None` while the controller is dead.
    machine: Option<(Controller, LeafLine)>,
    /// What it registers there, while the rack has workers.
    says: Option<WorkerHello>,
    calls: BTreeMap<CallId, usize>,
}

/// The controllers of all racks, and the registrations of workers.
pub(super) struct RackControllers {
    all: Vec<RackController>,
    held: Vec<Option<WorkerRegistration>>,
    /// Workers whose calls are cut off, and workers whose process is dead.
    cut: Vec<bool>,
    gone: Vec<bool>,
    dice: Dice,
    next_call: u64,
}

impl RackControllers {
    /// A controller for each rack, beside its leaf.
    pub(super) fn start<O: TaskObserver>(datacenter: &mut SimulatedRacks<O>, seed: u64) -> Self {
        let (leaves, workers) = (datacenter.leaves.len(), datacenter.control().seats.len());
        let lead = |_| RackController { machine: None, says: None, calls: BTreeMap::new() };
        let mut leads = Self {
            all: (0..leaves).map(lead).collect(),
            held: vec![None; workers],
            cut: vec![false; workers],
            gone: vec![false; workers],
            dice: Dice::named(seed, "racks' controllers", 0),
            next_call: 0,
        };
        (0..leaves).for_each(|leaf| leads.begin(datacenter, leaf));
        leads
    }

    /// A leaf dies with its controller, and returns with a new one.
    pub(super) fn on_outage<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        step: OutageStep,
    ) {
        match step {
            OutageStep::Dies(FabricSwitch::Leaf(leaf)) => self.all[leaf as usize].machine = None,
            OutageStep::Back(FabricSwitch::Leaf(leaf)) => self.begin(datacenter, leaf as usize),
            OutageStep::Dies(_) | OutageStep::Out(_) | OutageStep::Back(_) => {}
        }
    }

    /// Carries out a step about controllers, workers or their calls.
    pub(super) fn on_lead_step<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        step: LeadStep,
    ) {
        match step {
            LeadStep::Dies(leaf) => self.all[leaf].machine = None,
            LeadStep::Back(leaf) if self.all[leaf].machine.is_none() => self.begin(datacenter, leaf),
            LeadStep::Back(_) => {}
            LeadStep::Cut(worker, is_cut) => self.cut[worker] = is_cut,
            LeadStep::WorkerDies(worker) => {
                datacenter.restart_worker(worker);
                (self.gone[worker], self.held[worker]) = (true, None);
            }
            LeadStep::WorkerBack(worker) => self.gone[worker] = false,
        }
    }

    /// All hosts renew: workers in their racks, and racks at the controller above.
    pub(super) fn renew<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        above: &mut ControllerAbove,
    ) {
        for leaf in 0..self.all.len() {
            self.step_controller(datacenter, leaf, None);
            for worker in 0..self.held.len() {
                let is_here = datacenter.control().seats[worker].leaf as usize == leaf;
                let is_silent = self.cut[worker] || self.gone[worker];
                if is_here && !is_silent && !is_lost(&mut self.dice, datacenter) {
                    self.call(datacenter, leaf, worker);
                }
            }
            self.report_workers(datacenter, above, leaf);
            self.renew_above(datacenter, above, leaf);
        }
    }

    /// A controller without state finds its leaf.
    fn begin<O: TaskObserver>(&mut self, datacenter: &mut SimulatedRacks<O>, leaf: usize) {
        if !datacenter.leaves[leaf].lives {
            return;
        }
        let at = LEAVES.at(leaf as u32);
        let plan = plan(datacenter.control(), Tier::Leaf, at, datacenter.control().limit());
        let line = LeafLine::new(rack_name(leaf), plan.switch, self.dice.word(), QUOTA_MAX);
        let controller = Controller::new(plan, self.dice.seed()).expect("the plan is sound");
        self.all[leaf] =
            RackController { machine: Some((controller, line)), says: None, calls: BTreeMap::new() };
        let shape = datacenter.leaves[leaf].program().shape();
        self.step_controller(datacenter, leaf, Some(Event::SwitchUp(shape)));
    }

    fn call<O: TaskObserver>(&mut self, datacenter: &mut SimulatedRacks<O>, leaf: usize, worker: usize) {
        self.next_call += 1;
        let call = CallId(self.next_call);
        let hello = WorkerHello {
            name: format!("worker-{worker}"),
            life: u64::from(datacenter.workers.lives[worker]) << 32 | (worker as u64 + 1),
            at: WORKERS.at(worker as u32).endpoint(),
            slice: POOL.to_owned(),
            types: datacenter.control().types().collect(),
            labels: Vec::new(),
            quota: datacenter.control().quota_of_workers(),
            capacity: 0,
            recent: sluice_control::RecentWork::default(),
            refused_late: 0,
            server: String::new(),
            rejoins: 0,
            workers: 0,
            held: self.held[worker].map(|held| (held.worker, held.key, held.generation)),
        };
        self.all[leaf].calls.insert(call, worker);
        self.step_controller(datacenter, leaf, Some(Event::WorkerHello { call, hello }));
    }

    /// Passes an event to a rack's controller, or lets it do what is due; workers get its answers.
    fn step_controller<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        leaf: usize,
        event: Option<Event>,
    ) {
        let RackController { machine: Some((controller, _)), calls, .. } = &mut self.all[leaf] else {
            return;
        };
        for (call, answer) in datacenter.lead(LEAVES.at(leaf as u32), controller, event) {
            if let (Some(worker), Answer::Worker(grant)) = (calls.remove(&call), answer) {
                self.held[worker] = Some(grant.registration);
                datacenter.grant_worker(worker, grant.registration);
            }
        }
    }

    /// Tells the rack's line how many workers the rack has, and carries out what follows.
    fn report_workers<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        above: &mut ControllerAbove,
        leaf: usize,
    ) {
        let is_lost = is_lost(&mut self.dice, datacenter);
        let RackController { machine: Some((controller, line)), says, .. } = &mut self.all[leaf] else {
            return;
        };
        let mut said = Vec::new();
        line.sized(controller.pool_sizes(), &mut said);
        while let Some(action) = said.pop() {
            match action {
                LeafAction::Say { hello, .. } => *says = Some(hello),
                LeafAction::Leave(pool) => {
                    // A leaf whose call is lost is removed at the end of its lease.
                    if let Some(hello) = says.take().filter(|_| !is_lost) {
                        above.remove_leaf(datacenter, &hello);
                    }
                    line.left(pool, &mut said);
                }
                LeafAction::Link(..) => {}
            }
        }
    }

    /// A rack renews at the controller above, and its leaf learns which spine it is below.
    fn renew_above<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        above: &mut ControllerAbove,
        leaf: usize,
    ) {
        let [call_lost, answer_lost] = [(); 2].map(|()| is_lost(&mut self.dice, datacenter));
        let RackController { machine: Some((controller, line)), says: Some(hello), .. } = &self.all[leaf]
        else {
            return;
        };
        if call_lost {
            return;
        }
        let Some(grant) = above.register_leaf(datacenter, hello).filter(|_| !answer_lost) else { return };
        let mut said = Vec::new();
        line.granted(SliceId(0), &grant, &mut said);
        for action in said {
            if let LeafAction::Link(pool, row) = action {
                datacenter.perform_op(
                    LEAVES.at(leaf as u32),
                    controller.term(),
                    TableOp::SetSpine(pool, row),
                );
            }
        }
    }
}
