//! Racks' own controllers (Horus §3.2, A.3): each is the state machine that runs live. It registers its
//! rack's workers, writes its leaf's tables, and says above how many workers there are.
//!
//! It dies with its leaf, or alone, and then reads its leaf's tables back; while it is dead tasks go on.
//! Workers' calls to it are cut off for longer than a lease, so that they are taken out while they serve, and
//! come in anew; and their processes die with all that they hold, and come back knowing nothing. The datacenter's own controller takes a rack's word for its weight, and takes a rack that is
//! silent for a lease from its spine.

use std::collections::BTreeMap;

use sluice_control::{
    Action, Answer, CallId, Controller, Event, LeafAction, LeafLine, Plan, SlicePlan, Tier, WorkerHello,
};
use sluice_switch::Arrival;
use sluice_wire::Nanos;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tables::{TableAnswer, TableOp};

use super::scenario::{FAULTS_END, LeadStep};
use crate::datacenter::control::{Control, START};
use crate::datacenter::downtime::{FabricSwitch, OutageStep};
use crate::datacenter::places::{LEAVES, WORKERS};
use crate::datacenter::watch::TaskWatch;
use crate::datacenter::world::Datacenter;
use crate::dice::Dice;
use crate::nodes::SwitchSide;

/// How often everybody renews.
pub(super) const RENEW: Nanos = Nanos::from_micros(250);
const LEASE: Nanos = Nanos::from_millis(1);
/// Calls of a thousand that are lost while there are faults.
const LOST: u64 = 100;
const PACKET_LIFETIME: Nanos = Nanos::from_millis(1);

/// A rack's controller, and what is known of its rack above.
struct Lead {
    /// While it lives, with its line upwards.
    machine: Option<(Controller, LeafLine)>,
    /// What its line says, while the rack has workers.
    says: Option<WorkerHello>,
    calls: BTreeMap<CallId, usize>,
    /// Who was heard above last, and when.
    heard: Option<(u64, Nanos)>,
}

/// All of them, and what workers hold.
pub(super) struct Leads {
    all: Vec<Lead>,
    held: Vec<Option<WorkerRegistration>>,
    /// Whose calls do not come through, and whose process is gone.
    cut: Vec<bool>,
    gone: Vec<bool>,
    dice: Dice,
    next_call: u64,
    deadline: Nanos,
}

impl Leads {
    /// One for each rack, beside its leaf.
    pub(super) fn start<O: TaskWatch>(datacenter: &mut Datacenter<O>, seed: u64) -> Self {
        let (leaves, workers) = (datacenter.leaves.len(), datacenter.control.seats.len());
        let lead = |_| Lead { machine: None, says: None, calls: BTreeMap::new(), heard: None };
        let mut leads = Self {
            all: (0..leaves).map(lead).collect(),
            held: vec![None; workers],
            cut: vec![false; workers],
            gone: vec![false; workers],
            dice: Dice::named(seed, "racks' controllers", 0),
            next_call: 0,
            deadline: datacenter.testbed.retries.deadline,
        };
        (0..leaves).for_each(|leaf| leads.begin(datacenter, leaf));
        leads.renew(datacenter);
        leads
    }

    /// A leaf dies with its controller, and comes back with another.
    pub(super) fn follow<O: TaskWatch>(&mut self, datacenter: &mut Datacenter<O>, step: OutageStep) {
        match step {
            OutageStep::Dies(FabricSwitch::Leaf(leaf)) => self.all[leaf as usize].machine = None,
            OutageStep::Back(FabricSwitch::Leaf(leaf)) => {
                self.all[leaf as usize].heard = None;
                self.begin(datacenter, leaf as usize);
            }
            OutageStep::Dies(_) | OutageStep::Out(_) | OutageStep::Back(_) => {}
        }
    }

    /// What happens to controllers, and to workers and their calls.
    pub(super) fn takes<O: TaskWatch>(&mut self, datacenter: &mut Datacenter<O>, step: LeadStep) {
        match step {
            LeadStep::Dies(leaf) => self.all[leaf].machine = None,
            LeadStep::Back(leaf) if self.all[leaf].machine.is_none() => self.begin(datacenter, leaf),
            LeadStep::Back(_) => {}
            LeadStep::Cut(worker, is_cut) => self.cut[worker] = is_cut,
            LeadStep::WorkerDies(worker) => {
                datacenter.worker_dies(worker);
                (self.gone[worker], self.held[worker]) = (true, None);
            }
            LeadStep::WorkerBack(worker) => self.gone[worker] = false,
        }
    }

    /// Everybody renews: workers in their racks, and racks above.
    pub(super) fn renew<O: TaskWatch>(&mut self, datacenter: &mut Datacenter<O>) {
        for leaf in 0..self.all.len() {
            self.tick(datacenter, leaf);
            for worker in 0..self.held.len() {
                let is_here = datacenter.control.seats[worker].leaf as usize == leaf;
                let is_silent = self.cut[worker] || self.gone[worker];
                if is_here && !is_silent && !self.is_lost(datacenter) {
                    self.call(datacenter, leaf, worker);
                }
            }
            self.line_says(leaf);
            self.above_hears(datacenter, leaf);
            // A rack's controller knows no clients, and takes those out that it finds.
            datacenter.control.know_clients(&mut datacenter.leaves[leaf]);
        }
    }

    /// A controller that knows nothing finds its leaf.
    fn begin<O: TaskWatch>(&mut self, datacenter: &mut Datacenter<O>, leaf: usize) {
        let switch = &mut datacenter.leaves[leaf];
        if !switch.lives {
            return;
        }
        let plan = self.plan(&datacenter.control, leaf as u32);
        let shape = switch.program().shape();
        let line = LeafLine::new(format!("rack-{leaf}"), plan.switch, self.dice.word(), QUOTA_MAX);
        let controller = Controller::new(plan, self.dice.seed()).expect("the plan is sound");
        let lead = &mut self.all[leaf];
        (lead.machine, lead.says) = (Some((controller, line)), None);
        lead.calls.clear();
        self.tell(datacenter, leaf, Event::SwitchUp(shape));
    }

    fn plan(&self, control: &Control, leaf: u32) -> Plan {
        let types = control.types().collect();
        let pool = SlicePlan {
            name: "pool".to_owned(),
            types,
            limit: Some(control.limit()),
            ..SlicePlan::default()
        };
        Plan {
            tier: Tier::Leaf,
            lease: LEASE,
            renew_every: RENEW,
            gather_for: Nanos(0),
            retry_after: Nanos::from_micros(100),
            retry_for: self.deadline,
            packet_lifetime: PACKET_LIFETIME,
            counters_start: START,
            ..Plan::new(LEAVES.at(leaf).endpoint(), vec![pool])
        }
    }

    fn call<O: TaskWatch>(&mut self, datacenter: &mut Datacenter<O>, leaf: usize, worker: usize) {
        self.next_call += 1;
        let call = CallId(self.next_call);
        let hello = WorkerHello {
            name: format!("worker-{worker}"),
            life: u64::from(datacenter.workers.lives[worker]) << 32 | (worker as u64 + 1),
            at: WORKERS.at(worker as u32).endpoint(),
            slice: "pool".to_owned(),
            types: datacenter.control.types().collect(),
            labels: Vec::new(),
            quota: datacenter.control.quota_of_workers(),
            capacity: 0,
            server: String::new(),
            rejoins: 0,
            workers: 0,
            held: self.held[worker].map(|held| (held.worker, held.key, held.generation)),
        };
        self.all[leaf].calls.insert(call, worker);
        self.tell(datacenter, leaf, Event::WorkerHello { call, hello });
    }

    fn tell<O: TaskWatch>(&mut self, datacenter: &mut Datacenter<O>, leaf: usize, event: Event) {
        let mut out = Vec::new();
        let Some((controller, _)) = &mut self.all[leaf].machine else { return };
        controller.event(datacenter.world.now, event, &mut out);
        self.act(datacenter, leaf, out);
    }

    fn tick<O: TaskWatch>(&mut self, datacenter: &mut Datacenter<O>, leaf: usize) {
        let mut out = Vec::new();
        let Some((controller, _)) = &mut self.all[leaf].machine else { return };
        controller.tick(datacenter.world.now, &mut out);
        self.act(datacenter, leaf, out);
    }

    /// Its leaf does at once what it is told, and answers in order.
    fn act<O: TaskWatch>(&mut self, datacenter: &mut Datacenter<O>, leaf: usize, said: Vec<Action>) {
        let mut said: std::collections::VecDeque<Action> = said.into();
        while let Some(action) = said.pop_front() {
            match action {
                Action::Table(op) => {
                    let answer = self.table(datacenter, leaf, op);
                    let Some((controller, _)) = &mut self.all[leaf].machine else { return };
                    let mut out = Vec::new();
                    controller.event(datacenter.world.now, Event::TableAnswered(answer), &mut out);
                    said.extend(out);
                }
                Action::Answer { call, answer } => {
                    let asked = self.all[leaf].calls.remove(&call);
                    if let (Some(worker), Answer::Worker(grant)) = (asked, answer) {
                        self.held[worker] = Some(grant.registration);
                        datacenter.grant_worker(worker, grant.registration);
                    }
                }
                Action::SetDepth { .. } | Action::TellAgent { .. } | Action::Note(_) => {}
            }
        }
    }

    fn table<O: TaskWatch>(&self, datacenter: &mut Datacenter<O>, leaf: usize, op: TableOp) -> TableAnswer {
        let at = LEAVES.at(leaf as u32);
        let by = self.all[leaf].machine.as_ref().map(|(controller, _)| controller.term()).unwrap_or_default();
        let program = datacenter.leaves[leaf].program();
        let obeyed = program.shape().term;
        if !obeyed.obeys(by, &op) {
            return TableAnswer::Superseded(obeyed);
        }
        let answer = program.table(op);
        let told = program.mirrored();
        (datacenter.at, datacenter.pool) = (at, 0);
        if let Some(told) = told {
            datacenter.tell(at, &told);
        }
        if let (TableOp::Inject(sweep), TableAnswer::Done) = (op, answer) {
            let Ok(()) = SwitchSide::pass(datacenter, Arrival::Control(sweep), false);
        }
        answer
    }

    /// What the rack's line makes of how many workers it has.
    fn line_says(&mut self, leaf: usize) {
        let Lead { machine: Some((controller, line)), says, .. } = &mut self.all[leaf] else { return };
        let mut said = Vec::new();
        line.sized(controller.pool_sizes(), &mut said);
        // Leaving takes no time, so that whoever left may come in again at once.
        while let Some(action) = said.pop() {
            match action {
                LeafAction::Say { hello, .. } => *says = Some(hello),
                LeafAction::Leave(pool) => {
                    *says = None;
                    line.left(pool, &mut said);
                }
                LeafAction::Link(..) => {}
            }
        }
    }

    /// A rack renews above, or is silent there.
    fn above_hears<O: TaskWatch>(&mut self, datacenter: &mut Datacenter<O>, leaf: usize) {
        let (now, is_lost) = (datacenter.world.now, self.is_lost(datacenter));
        let Lead { machine, says, heard, .. } = &mut self.all[leaf];
        let known = heard.map(|(life, _)| life);
        match (says, machine) {
            (Some(hello), Some(_)) if !is_lost => {
                *heard = Some((hello.life, now));
                let workers = u32::from(hello.workers);
                datacenter.hears_of(leaf as u32, workers, known == Some(hello.life));
            }
            (None, Some(_)) if !is_lost && known.is_some() => {
                *heard = None;
                datacenter.lets_go(leaf as u32);
            }
            _ if heard.is_some_and(|(_, at)| now.since(at) > LEASE) => {
                *heard = None;
                datacenter.lets_go(leaf as u32);
            }
            _ => {}
        }
    }

    fn is_lost<O>(&mut self, datacenter: &Datacenter<O>) -> bool {
        datacenter.world.now < FAULTS_END && self.dice.chance(LOST)
    }
}

impl<O: TaskWatch> Datacenter<O> {
    /// A rack says how many workers it has. One that was not known goes below its spine, or below another one
    /// if that is dead.
    fn hears_of(&mut self, leaf: u32, workers: u32, is_known: bool) {
        let before = self.control.weight(leaf);
        self.control.set_weight(leaf, workers);
        if !is_known {
            let own = self.control.pools[0].racks[leaf as usize].spine;
            let lives = |spine: &usize| self.spines[*spine].lives;
            let spine = Some(own).filter(lives).or_else(|| (0..self.spines.len()).find(lives)).unwrap_or(own);
            self.lets_go_of_rows(leaf);
            self.goes_below(leaf as usize, spine as u32);
        } else if before != workers {
            let spine = self.control.above[leaf as usize];
            self.control.reweigh((0, leaf), &mut self.spines[spine as usize]);
        }
    }

    /// A rack has nobody, or is not heard any more.
    fn lets_go(&mut self, leaf: u32) {
        self.control.set_weight(leaf, 0);
        self.lets_go_of_rows(leaf);
    }

    fn lets_go_of_rows(&mut self, leaf: u32) {
        for spine in &mut self.spines {
            Control::forget(leaf, spine);
        }
    }
}
