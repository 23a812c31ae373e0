//! What a controller does in a run: its operations on the switch, its answers, and its timer.

use sluice_control::{Action, Controller, Event as Told};
use sluice_wire::tables::TableAnswer;
use sluice_wire::{Nanos, Term, WorkerId};

use crate::controller::{Await, CALL_WAY};
use crate::event::Event;
use crate::hosts::Host;
use crate::inspection::nothing_is_due;
use crate::network::CALLS;
use crate::rack::Rack;
use crate::replay_log::{self, Party};
use crate::standbys::changes;

impl Rack<'_> {
    /// Connects the controller to the switch, if both are up.
    pub(crate) fn connect_controller(&mut self) {
        if self.world.now < self.controllers.cut_until {
            return;
        }
        if let Some(shape) = self.switch.program.as_ref().map(|program| program.shape()) {
            self.controllers.reconnect();
            let present = &self.controllers.present;
            if let Some(standbys) = &mut self.standbys {
                standbys.claims.connected(present.life, present.process);
            }
            self.on_controller_event(Told::SwitchUp(shape));
        }
    }

    pub(crate) fn disconnect_controller(&mut self) {
        self.controllers.reconnect();
        self.on_controller_event(Told::SwitchDown);
    }

    pub(crate) fn on_controller_event(&mut self, told: Told) {
        self.stop_leading_in_time();
        let mut out = Vec::new();
        if let Some(controller) = &mut self.controllers.present.controller {
            controller.event(self.world.now, told, &mut out);
        }
        self.perform_controller_actions(out);
    }

    pub(crate) fn tick_controller(&mut self) -> Result<(), String> {
        self.stop_leading_in_time();
        let mut out = Vec::new();
        if let Some(controller) = &mut self.controllers.present.controller {
            controller.tick(self.world.now, &mut out);
            nothing_is_due("the controller", controller.deadline(), self.world.now)?;
        }
        self.perform_controller_actions(out);
        Ok(())
    }

    pub(crate) fn perform_controller_actions(&mut self, actions: Vec<Action>) {
        let writes = actions.iter().any(|action| match action {
            Action::Table(op) => changes(op),
            _ => false,
        });
        for action in actions {
            match action {
                Action::Table(op) => {
                    let way = self.dice.span(Nanos(500), Nanos(10_000));
                    self.controllers.present.ops_until =
                        self.controllers.present.ops_until.max(self.world.now + way);
                    let (life, switch) = (self.controllers.present.life, self.switch.life);
                    let by = self.controllers.present.controller.as_ref().map_or(Term(0), Controller::term);
                    let op = Event::Op { life, switch, by, op: Box::new(op) };
                    self.remind(self.controllers.present.ops_until, op);
                }
                Action::Answer { call, answer } => {
                    let asker = self.controllers.caller(call).map(|(host, _)| host);
                    self.tell(Party::Controller, asker.map(replay_log::host), None, |_| {
                        replay_log::answered(&answer)
                    });
                    let [at, _] = self.arrivals(CALLS);
                    if let Some(at) = at.filter(|_| asker.is_some_and(|host| self.answers_get_through(host)))
                    {
                        self.remind(at + CALL_WAY, Event::CallAnswered { call, answer: Box::new(answer) });
                    }
                }
                Action::SetDepth { worker, depth } => self.set_depth(worker, depth),
                // An agent uses this for the depths of its own workers, which fault runs leave alone.
                Action::TellAgent { .. } => {}
                Action::Note(note) => self.say(Party::Controller, || format!("notes: {note}")),
            }
        }
        self.tell_who_awaits();
        self.arm_controller();
        if writes {
            self.controller_wrote();
        }
    }

    /// An agent gives a worker the depth that the slice step wants.
    fn set_depth(&mut self, id: WorkerId, depth: u8) {
        let holds = |worker: &usize| self.workers[*worker].grant.is_some_and(|grant| grant.worker == id);
        if let Some(worker) = (0..self.workers.len()).find(holds) {
            self.scenario.change_quota(worker, depth);
        }
    }

    /// Tells waiting workers of changes; called after everything that the controller does.
    pub(crate) fn tell_who_awaits(&mut self) {
        let Some(controller) = &self.controllers.present.controller else { return };
        let has_changed = |call: &mut Await| {
            let settled = controller.settled(call.row);
            settled.is_some_and(|settled| settled != call.known)
        };
        let changed: Vec<Await> = self.controllers.present.awaits.extract_if(.., has_changed).collect();
        for Await { worker, life, .. } in changed {
            let [at, _] = self.arrivals(CALLS);
            if let Some(at) = at.filter(|_| self.answers_get_through(Host::Worker(worker))) {
                self.remind(at + CALL_WAY, Event::Changed { worker, life });
            }
        }
    }

    fn arm_controller(&mut self) {
        let due = self.controllers.present.controller.as_ref().and_then(Controller::deadline);
        if let Some(due) = due.map(|due| due.max(self.world.now + Nanos(1)))
            && self.controllers.present.wakeup.wake_by(due)
        {
            self.remind(due, Event::ControllerWakes(self.controllers.present.life));
        }
    }

    pub(crate) fn answer_controller(&mut self, life: u32, answer: TableAnswer) {
        let way = self.dice.span(Nanos(500), Nanos(10_000));
        self.controllers.present.answers_until =
            self.controllers.present.answers_until.max(self.world.now + way);
        if life == self.controllers.present.life {
            self.controllers.present.answers.push_back(answer);
            self.remind(self.controllers.present.answers_until, Event::OpDone(life));
        }
    }
}
