//! The controller's process, its way to the switch, and the calls that hosts make.

use std::collections::HashMap;

use sluice_control::{Action, Answer, CallId, Controller, Event as Told, Plan, RdmaPlan, SlicePlan};
use sluice_wire::registrations::Sizes;
use sluice_wire::tables::TableAnswer;
use sluice_wire::{Nanos, TaskType, Term};

use super::hosts::{Host, SWITCH};
use super::inspection::nothing_is_due;
use super::labels;
use super::large::FIRST_BYTES;
use super::network::CALLS;
use super::oracle::Life;
use super::rack::{Event, Rack};
use super::rivals::Seat;
use super::scenario::{LEASE, PACKET_LIFETIME, RENEW_EVERY, Scenario};
use super::story::{self, Who};
use super::switch::START;
use crate::dice::Dice;
use crate::names;
use crate::nodes::Wakeup;

/// The longest that a task should wait in a queue.
const MAX_WAIT: Nanos = Nanos::from_millis(1);
/// Where classes of tasks end, where the program has any.
pub(super) const SIZES: [Nanos; 3] = [Nanos(10_000), Nanos(20_000), Nanos(30_000)];
/// How long workers keep what they finished: the longest that a task is tried + longest wait + packet
/// lifetime.
pub(super) fn retry_horizon(scenario: &Scenario) -> Nanos {
    scenario.retry_for + MAX_WAIT + TRANSIT
}
/// The longest that the two packets which bring a task are on their way.
pub(super) const TRANSIT: Nanos = Nanos(2 * PACKET_LIFETIME.0);

/// What a call takes beyond a packet's way.
pub(super) const CALL_WAY: Nanos = Nanos::from_micros(20);

/// The controllers of a run.
pub(super) struct Brain {
    /// The one that hosts call; it may be down.
    pub(super) seat: Seat,
    /// The one before, if a standby took over.
    pub(super) former: Option<Seat>,
    pub(super) stalled_until: Nanos,
    /// It cannot reach the switch until then.
    pub(super) cut_until: Nanos,
    plan: Plan,
    seeds: Dice,
    lines: u32,
    calls: HashMap<CallId, (Host, Life)>,
    next_call: u64,
}

impl Brain {
    pub(super) fn new(seed: u64, scenario: &Scenario) -> Self {
        let mut seeds = Dice::new(seed, 4);
        let plan = plan(scenario);
        let seat = new_seat(1, &plan, &mut seeds);
        Self {
            seat,
            former: None,
            stalled_until: Nanos(0),
            cut_until: Nanos(0),
            plan,
            seeds,
            lines: 1,
            calls: HashMap::new(),
            next_call: 0,
        }
    }

    /// A controller that knows nothing yet, with a line of its own.
    pub(super) fn another(&mut self) -> Seat {
        self.lines += 1;
        new_seat(self.lines, &self.plan, &mut self.seeds)
    }

    /// A name for a call of this host.
    pub(super) fn call(&mut self, host: Host, life: Life) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        self.calls.insert(call, (host, life));
        call
    }

    pub(super) fn stop(&mut self) {
        self.seat.controller = None;
        self.seat.awaits.clear();
    }
}

fn new_seat(life: u32, plan: &Plan, seeds: &mut Dice) -> Seat {
    let controller = Some(new_controller(plan, seeds));
    Seat {
        controller,
        life,
        ops_until: Nanos(0),
        answers_until: Nanos(0),
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
        serving: scenario.hands.serving,
    };
    Plan {
        labels: if scenario.program.kinds() > 1 { labels::names() } else { Vec::new() },
        needs: scenario.hands.needs.clone(),
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

fn new_controller(plan: &Plan, seeds: &mut Dice) -> Controller {
    Controller::new(plan.clone(), seeds.seed()).expect("the plan is sound")
}

impl Rack<'_> {
    /// The controller finds the switch, if both are there.
    pub(super) fn connect_brain(&mut self) {
        if self.world.now < self.brain.cut_until {
            return;
        }
        if let Some(shape) = self.switch.program.as_ref().map(|program| program.shape()) {
            self.new_connection();
            self.tell_brain(Told::SwitchUp(shape));
        }
    }

    pub(super) fn disconnect_brain(&mut self) {
        self.new_connection();
        self.tell_brain(Told::SwitchDown);
    }

    fn new_connection(&mut self) {
        self.brain.lines += 1;
        self.brain.seat.life = self.brain.lines;
        self.brain.seat.wakeup = Wakeup::NONE;
    }

    pub(super) fn brain_back(&mut self) {
        self.brain.seat = self.brain.another();
        self.brain.stalled_until = Nanos(0);
        self.say(Who::Rack, || "the controller is back".to_owned());
        self.connect_brain();
    }

    /// A host's call goes to the controller, or is lost on its way.
    pub(super) fn call(&mut self, told: Told) {
        let [at, _] = self.arrivals(CALLS);
        if let Some(at) = at {
            self.remind(at + CALL_WAY, Event::Call(told));
        }
    }

    pub(super) fn call_arrives(&mut self, told: Told) {
        if self.world.now < self.brain.stalled_until {
            self.remind(self.brain.stalled_until, Event::Call(told));
            return;
        }
        if self.is_told() {
            let (who, what) = story::told(&told);
            self.tell(who, Some(Who::Controller), None, |_| what);
        }
        if self.meets_former() {
            self.as_former(|rack| rack.tell_brain(told));
        } else {
            self.tell_brain(told);
        }
    }

    pub(super) fn call_answered(&mut self, call: CallId, answer: Answer) -> Result<(), String> {
        if let Some((host, life)) = self.brain.calls.get(&call).copied()
            && self.life_of(host) == life
        {
            let thaws = self.dealings(host).frozen_until;
            if self.world.now < thaws {
                self.remind(thaws, Event::CallAnswered { call, answer });
                return Ok(());
            }
        }
        match self.brain.calls.remove(&call) {
            Some((Host::Worker(worker), life)) => self.worker_answered(worker, life, &answer),
            Some((Host::Client(client), life)) => self.client_answered(client, life, answer),
            Some((Host::Server(server), life)) => {
                self.server_answered(server, life, &answer);
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(super) fn table_answered(&mut self, brain: u32, answer: TableAnswer) {
        if brain != self.brain.seat.life {
            return;
        }
        if self.world.now < self.brain.stalled_until {
            self.remind(self.brain.stalled_until, Event::OpDone { brain, answer });
            return;
        }
        self.tell_brain(Told::TableAnswered(answer));
    }

    pub(super) fn answer_brain(&mut self, brain: u32, answer: TableAnswer) {
        let way = self.dice.span(Nanos(500), Nanos(10_000));
        self.brain.seat.answers_until = self.brain.seat.answers_until.max(self.world.now + way);
        self.remind(self.brain.seat.answers_until, Event::OpDone { brain, answer });
    }

    pub(super) fn brain_wakes(&mut self, brain: u32) -> Result<(), String> {
        if brain != self.brain.seat.life || !self.brain.seat.wakeup.comes(self.world.now) {
            return Ok(());
        }
        if self.world.now < self.brain.stalled_until {
            self.brain.seat.wakeup.by(self.brain.stalled_until);
            self.remind(self.brain.stalled_until, Event::BrainWakes(brain));
            return Ok(());
        }
        self.tick_brain()
    }

    /// Someone wants to see everything, with balances read now.
    pub(super) fn show_all(&mut self) -> Result<(), String> {
        if self.world.now < self.brain.stalled_until {
            self.remind(self.brain.stalled_until, Event::Look);
            return Ok(());
        }
        self.tell_brain(Told::Watch);
        self.tick_brain()?;
        if let Some(controller) = &self.brain.seat.controller {
            let view = controller.view(self.world.now);
            self.say(Who::Controller, || format!("is looked at: {view:?}"));
        }
        Ok(())
    }

    fn tick_brain(&mut self) -> Result<(), String> {
        let mut out = Vec::new();
        if let Some(controller) = &mut self.brain.seat.controller {
            controller.tick(self.world.now, &mut out);
            nothing_is_due("the controller", controller.deadline(), self.world.now)?;
        }
        self.brain_acts(out);
        Ok(())
    }

    fn tell_brain(&mut self, told: Told) {
        let mut out = Vec::new();
        if let Some(controller) = &mut self.brain.seat.controller {
            controller.event(self.world.now, told, &mut out);
        }
        self.brain_acts(out);
    }

    fn brain_acts(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Table(op) => {
                    let way = self.dice.span(Nanos(500), Nanos(10_000));
                    self.brain.seat.ops_until = self.brain.seat.ops_until.max(self.world.now + way);
                    let (brain, switch) = (self.brain.seat.life, self.switch.life);
                    let by = self.brain.seat.controller.as_ref().map_or(Term(0), Controller::term);
                    self.remind(self.brain.seat.ops_until, Event::Op { brain, switch, by, op });
                }
                Action::Answer { call, answer } => {
                    let caller = self.brain.calls.get(&call).map(|(host, _)| story::host(*host));
                    self.tell(Who::Controller, caller, None, |_| story::answered(&answer));
                    let [at, _] = self.arrivals(CALLS);
                    let asker = self.brain.calls.get(&call).map(|(host, _)| *host);
                    if let Some(at) = at.filter(|_| asker.is_some_and(|host| self.answers_get_through(host)))
                    {
                        self.remind(at + CALL_WAY, Event::CallAnswered { call, answer });
                    }
                }
                Action::SetDepth { worker, depth } => self.set_depth(worker, depth),
                // What agents make of it concerns their own depths only.
                Action::TellAgent { .. } => {}
                Action::Note(note) => self.say(Who::Controller, || format!("notes: {note}")),
            }
        }
        self.tell_who_awaits();
        self.arm_brain();
    }

    fn arm_brain(&mut self) {
        let due = self.brain.seat.controller.as_ref().and_then(Controller::deadline);
        if let Some(due) = due.map(|due| due.max(self.world.now + Nanos(1)))
            && self.brain.seat.wakeup.by(due)
        {
            self.remind(due, Event::BrainWakes(self.brain.seat.life));
        }
    }
}
