//! A controller and its switch, which carries out operations at once; and the settings that all controllers
//! of a run share.

use std::collections::VecDeque;

use sluice_control::{Action, Answer, CallId, Controller, Event, Plan, SlicePlan, Tier};
use sluice_events::Address;
use sluice_events::dice::Dice;
use sluice_switch::Arrival;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Nanos, Term};

use super::scenario::FAULTS_END;
use crate::racks::control::{Control, START};
use crate::racks::effects::SwitchPass;
use crate::racks::watch::TaskObserver;
use crate::racks::world::SimulatedRacks;

/// How often all hosts renew.
pub(super) const RENEW: Nanos = Nanos::from_micros(250);
const LEASE: Nanos = Nanos::from_millis(1);
/// How many of a thousand calls are lost while there are faults.
const LOST: u64 = 100;
const PACKET_LIFETIME: Nanos = Nanos::from_millis(1);

/// The pool's name.
pub(super) const POOL: &str = "pool";

/// The plan of a switch's controller; so many tasks may wait at the switch.
pub(super) fn plan(control: &Control, tier: Tier, at: Address, limit: u32) -> Plan {
    let types = control.types().collect();
    let pool = SlicePlan { name: POOL.to_owned(), types, limit: Some(limit), ..SlicePlan::default() };
    Plan {
        tier,
        lease: LEASE,
        renew_every: RENEW,
        gather_for: Nanos(0),
        retry_after: Nanos::from_micros(100),
        retry_for: control.retry_for(),
        packet_lifetime: PACKET_LIFETIME,
        counters_start: START,
        ..Plan::new(at.endpoint(), vec![pool])
    }
}

/// Whether a call is lost.
pub(super) fn is_lost<O>(dice: &mut Dice, datacenter: &SimulatedRacks<O>) -> bool {
    datacenter.world.now < FAULTS_END && dice.chance(LOST)
}

impl<O: TaskObserver> SimulatedRacks<O> {
    /// Passes an event to the controller of a switch, or lets it do what is due; returns its answers.
    pub(super) fn lead(
        &mut self,
        at: Address,
        controller: &mut Controller,
        event: Option<Event>,
    ) -> Vec<(CallId, Answer)> {
        let (now, mut said) = (self.world.now, Vec::new());
        match event {
            Some(event) => controller.event(now, event, &mut said),
            None => controller.tick(now, &mut said),
        }
        let (mut said, mut answers) = (VecDeque::from(said), Vec::new());
        while let Some(action) = said.pop_front() {
            match action {
                Action::Table(op) => {
                    let Some(answer) = self.perform_op(at, controller.term(), op) else { continue };
                    let mut more = Vec::new();
                    controller.event(now, Event::TableAnswered(answer), &mut more);
                    said.extend(more);
                }
                Action::Answer { call, answer } => answers.push((call, answer)),
                Action::SetDepth { .. } | Action::TellAgent { .. } | Action::Note(_) => {}
            }
        }
        answers
    }

    /// Carries out an operation of a switch's controller; a dead switch gives no answer.
    pub(super) fn perform_op(&mut self, at: Address, by: Term, op: TableOp) -> Option<TableAnswer> {
        let switch = self.switch(at);
        if !switch.lives {
            return None;
        }
        let program = switch.program();
        let obeyed = program.shape().term;
        if !obeyed.obeys(by, &op) {
            return Some(TableAnswer::Superseded(obeyed));
        }
        let answer = program.table(op);
        let told = program.mirrored();
        let pass = SwitchPass { at, pool: 0, tasks: 0 };
        if let Some(told) = told {
            self.tell_spine(&pass, &told);
        }
        if let (TableOp::Inject(sweep), TableAnswer::Done) = (op, answer) {
            self.pass(&pass, Arrival::Control(sweep));
        }
        Some(answer)
    }
}
