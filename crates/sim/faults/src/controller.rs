//! The controller's process, its connection to the switch, and the calls that hosts make.

use std::collections::{BTreeMap, VecDeque};

use sluice_control::{CallId, Controller, Plan, RdmaPlan, SlicePlan};
use sluice_events::dice::Dice;
use sluice_nodes::Wakeup;
use sluice_nodes::names;
use sluice_wire::registrations::Sizes;
use sluice_wire::tables::TableAnswer;
use sluice_wire::{Generation, Key, Nanos, TaskType, WorkerId};

use super::hosts::{Host, SWITCH};
use super::labels;
use super::limits::{LEASE, PACKET_LIFETIME, RENEW_EVERY, START};
use super::oracle::Life;
use super::pieces::FIRST_BYTES;
use super::scenario::Scenario;
use super::standbys::ControllerSeat;

/// The longest that a task should wait in a queue.
const MAX_WAIT: Nanos = Nanos::from_millis(1);
/// The sizes at which classes of tasks end, if the program has classes.
pub(super) const SIZES: [Nanos; 3] = [Nanos(10_000), Nanos(20_000), Nanos(30_000)];
/// How long workers keep finished tasks: the longest time for which a task is tried, plus the longest wait,
/// plus two packet lifetimes.
pub(super) fn retry_horizon(scenario: &Scenario) -> Nanos {
    scenario.retry_for + MAX_WAIT + TRANSIT
}
/// The longest time that the two packets which bring a task are on their way.
pub(super) const TRANSIT: Nanos = Nanos(2 * PACKET_LIFETIME.0);

/// How much longer a call takes than a packet.
pub(super) const CALL_WAY: Nanos = Nanos::from_micros(20);

/// An open `AwaitChange` of a worker, with the registration that it knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Await {
    pub(super) worker: usize,
    pub(super) life: Life,
    pub(super) row: WorkerId,
    pub(super) known: (Key, Generation),
}

/// A controller and its connection to the switch, without what all controllers of a run share.
pub(super) struct ControllerProcess {
    pub(super) controller: Option<Controller>,
    /// The number of the controller's connection to the switch: answers to an older connection are lost.
    pub(super) life: u32,
    /// When the last operation under way reaches the switch, and when its answer arrives: both stay in
    /// order.
    pub(super) ops_until: Nanos,
    pub(super) answers_until: Nanos,
    /// The answers under way, and those that wait while the controller stands still, oldest first.
    pub(super) answers: VecDeque<TableAnswer>,
    pub(super) wakeup: Wakeup,
    /// Open `AwaitChange` calls of workers.
    pub(super) awaits: Vec<Await>,
    /// The number of the process.
    pub(super) process: u32,
    /// Where it runs, in a rack with standbys.
    pub(super) seat: ControllerSeat,
}

/// The controllers of a run.
pub(super) struct ControllerPair {
    /// The controller that hosts call; it may be down.
    pub(super) present: ControllerProcess,
    /// The former controller, if a standby took over; the other one in a rack with standbys.
    pub(super) former: Option<ControllerProcess>,
    pub(super) stalled_until: Nanos,
    /// Until this time the controller cannot reach the switch.
    pub(super) cut_until: Nanos,
    /// The same times of the other controller, in a rack with standbys.
    others_until: (Nanos, Nanos),
    has_standbys: bool,
    plan: Plan,
    seeds: Dice,
    lines: u32,
    calls: BTreeMap<CallId, (Host, Life)>,
    next_call: u64,
}

impl ControllerPair {
    pub(super) fn new(seed: u64, scenario: &Scenario, has_standbys: bool) -> Self {
        let mut seeds = Dice::new(seed, 4);
        let plan = plan(scenario);
        let present = new_process(1, controller(&plan, &mut seeds, has_standbys));
        let other = has_standbys.then(|| new_process(2, controller(&plan, &mut seeds, true)));
        Self {
            present,
            former: other.map(|other| ControllerProcess { seat: 1, ..other }),
            stalled_until: Nanos(0),
            cut_until: Nanos(0),
            others_until: (Nanos(0), Nanos(0)),
            has_standbys,
            plan,
            seeds,
            lines: 2,
            calls: BTreeMap::new(),
            next_call: 0,
        }
    }

    /// Exchanges the times until which the controllers stand still or are cut off, if each has its own.
    pub(super) fn swap_times(&mut self) {
        if self.has_standbys {
            std::mem::swap(&mut self.stalled_until, &mut self.others_until.0);
            std::mem::swap(&mut self.cut_until, &mut self.others_until.1);
        }
    }

    /// A new controller without state at the present one's seat, with a connection of its own.
    pub(super) fn another(&mut self) -> ControllerProcess {
        self.lines += 1;
        let controller = controller(&self.plan, &mut self.seeds, self.has_standbys);
        ControllerProcess { seat: self.present.seat, ..new_process(self.lines, controller) }
    }

    /// The id of a new call of this host.
    pub(super) fn call(&mut self, host: Host, life: Life) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        self.calls.insert(call, (host, life));
        call
    }

    /// The host and its life that made a call.
    pub(super) fn caller(&self, call: CallId) -> Option<(Host, Life)> {
        self.calls.get(&call).copied()
    }

    /// The same; the call ends.
    pub(super) fn end_call(&mut self, call: CallId) -> Option<(Host, Life)> {
        self.calls.remove(&call)
    }

    /// The present controller gets another connection to the switch.
    pub(super) fn reconnect(&mut self) {
        self.lines += 1;
        self.present.life = self.lines;
        self.present.answers.clear();
        self.present.wakeup = Wakeup::NONE;
    }

    pub(super) fn stop(&mut self) {
        self.present.controller = None;
        self.present.awaits.clear();
    }
}

fn new_process(life: u32, controller: Controller) -> ControllerProcess {
    ControllerProcess {
        controller: Some(controller),
        process: life,
        seat: 0,
        life,
        ops_until: Nanos(0),
        answers_until: Nanos(0),
        answers: VecDeque::new(),
        wakeup: Wakeup::NONE,
        awaits: Vec::new(),
    }
}

fn plan(scenario: &Scenario) -> Plan {
    let slice = |index: usize| SlicePlan {
        name: names::slice(index),
        types: vec![TaskType(index as u16)],
        limit: scenario.limit,
        sizes: Sizes::new(&SIZES).unwrap_or_default(),
        serving: scenario.worker_labels.serving,
        service: None,
        // Every other slice has a target of its own.
        target: scenario.program.traits().target.filter(|_| index % 2 == 1).map(|target| target.times(2)),
    };
    Plan {
        labels: if scenario.program.traits().kinds > 1 { labels::names() } else { Vec::new() },
        needs: scenario.worker_labels.needs.clone(),
        lease: LEASE,
        renew_every: RENEW_EVERY,
        max_wait: MAX_WAIT,
        gather_for: LEASE,
        retry_after: Nanos::from_micros(100),
        retry_for: scenario.retry_for,
        packet_lifetime: PACKET_LIFETIME,
        counters_start: START,
        rdma: RdmaPlan {
            first_bytes: FIRST_BYTES.into(),
            copies: scenario.copies,
            tiny_rings: true,
            ..RdmaPlan::default()
        },
        ..Plan::new(SWITCH.endpoint(), (0..scenario.slices).map(slice).collect())
    }
}

fn controller(plan: &Plan, seeds: &mut Dice, is_standby: bool) -> Controller {
    let make = if is_standby { Controller::standby } else { Controller::new };
    make(plan.clone(), seeds.seed()).expect("the plan is sound")
}
