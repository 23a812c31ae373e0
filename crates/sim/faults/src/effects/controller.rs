//! The events, answers and actions of a run's controllers.

use sluice_control::{Action, Answer, CallId, Controller, Event as Told};
use sluice_nodes::Wakeup;
use sluice_wire::tables::TableAnswer;
use sluice_wire::{Nanos, Term};

use crate::controller::CALL_WAY;
use crate::event::Event;
use crate::hosts::Host;
use crate::inspection::nothing_is_due;
use crate::network::CALLS;
use crate::rack::Rack;
use crate::replay_log::{self, Party};

impl Rack<'_> {
    /// Connects the controller to the switch, if both are up.
    pub(crate) fn connect_controller(&mut self) {
        if self.world.now < self.controllers.cut_until {
            return;
        }
        if let Some(shape) = self.switch.program.as_ref().map(|program| program.shape()) {
            self.new_connection();
            self.on_controller_event(Told::SwitchUp(shape));
        }
    }

    pub(crate) fn disconnect_controller(&mut self) {
        self.new_connection();
        self.on_controller_event(Told::SwitchDown);
    }

    fn new_connection(&mut self) {
        self.controllers.lines += 1;
        self.controllers.present.life = self.controllers.lines;
        self.controllers.present.answers.clear();
        self.controllers.present.wakeup = Wakeup::NONE;
    }

    pub(crate) fn restart_controller(&mut self) {
        self.controllers.present = self.controllers.another();
        self.controllers.stalled_until = Nanos(0);
        self.say(Party::Rack, || "the controller is back".to_owned());
        self.connect_controller();
    }

    /// A host's call goes to the controller, or is lost on its way.
    pub(crate) fn call(&mut self, told: Told) {
        let [at, _] = self.arrivals(CALLS);
        if let Some(at) = at {
            self.remind(at + CALL_WAY, Event::Call(Box::new(told)));
        }
    }

    pub(crate) fn call_arrives(&mut self, told: Told) {
        if self.world.now < self.controllers.stalled_until {
            self.remind(self.controllers.stalled_until, Event::Call(Box::new(told)));
            return;
        }
        if self.is_told() {
            let (who, what) = replay_log::party_and_text(&told);
            self.tell(who, Some(Party::Controller), None, |_| what);
        }
        if self.calls_former() {
            self.as_former(|rack| rack.on_controller_event(told));
        } else {
            self.on_controller_event(told);
        }
    }

    pub(crate) fn call_answered(&mut self, call: CallId, answer: Answer) -> Result<(), String> {
        if let Some((host, life)) = self.controllers.calls.get(&call).copied()
            && self.life_of(host) == life
        {
            let thaws = self.session(host).frozen_until;
            if self.world.now < thaws {
                self.remind(thaws, Event::CallAnswered { call, answer: Box::new(answer) });
                return Ok(());
            }
        }
        match self.controllers.calls.remove(&call) {
            Some((Host::Worker(worker), life)) => self.worker_answered(worker, life, &answer),
            Some((Host::Client(client), life)) => self.client_answered(client, life, answer),
            Some((Host::Server(server), life)) => {
                self.server_answered(server, life, &answer);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The controller hears the switch's oldest answer. While the controller stands still, answers wait, and
    /// stay in order however often it is stopped meanwhile.
    pub(crate) fn table_answered(&mut self, life: u32) {
        if life != self.controllers.present.life {
            return;
        }
        if self.world.now < self.controllers.stalled_until {
            self.remind(self.controllers.stalled_until, Event::OpDone(life));
            return;
        }
        if let Some(answer) = self.controllers.present.answers.pop_front() {
            self.on_controller_event(Told::TableAnswered(answer));
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

    pub(crate) fn on_controller_timer(&mut self, life: u32) -> Result<(), String> {
        if life != self.controllers.present.life || !self.controllers.present.wakeup.fires(self.world.now) {
            return Ok(());
        }
        if self.world.now < self.controllers.stalled_until {
            self.controllers.present.wakeup.wake_by(self.controllers.stalled_until);
            self.remind(self.controllers.stalled_until, Event::ControllerWakes(life));
            return Ok(());
        }
        self.tick_controller()
    }

    /// An operator asks for the whole state, with fresh balances.
    pub(crate) fn show_all(&mut self) -> Result<(), String> {
        if self.world.now < self.controllers.stalled_until {
            self.remind(self.controllers.stalled_until, Event::Look);
            return Ok(());
        }
        self.on_controller_event(Told::Watch);
        self.tick_controller()?;
        if let Some(controller) = self.controllers.present.controller.as_ref().filter(|_| self.is_told()) {
            let view = controller.view(self.world.now);
            self.say(Party::Controller, || format!("is looked at: {view:?}"));
        }
        Ok(())
    }

    fn tick_controller(&mut self) -> Result<(), String> {
        let mut out = Vec::new();
        if let Some(controller) = &mut self.controllers.present.controller {
            controller.tick(self.world.now, &mut out);
            nothing_is_due("the controller", controller.deadline(), self.world.now)?;
        }
        self.perform_controller_actions(out);
        Ok(())
    }

    fn on_controller_event(&mut self, told: Told) {
        let mut out = Vec::new();
        if let Some(controller) = &mut self.controllers.present.controller {
            controller.event(self.world.now, told, &mut out);
        }
        self.perform_controller_actions(out);
    }

    fn perform_controller_actions(&mut self, actions: Vec<Action>) {
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
                    let caller = self.controllers.calls.get(&call).map(|(host, _)| replay_log::host(*host));
                    self.tell(Party::Controller, caller, None, |_| replay_log::answered(&answer));
                    let [at, _] = self.arrivals(CALLS);
                    let asker = self.controllers.calls.get(&call).map(|(host, _)| *host);
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
    }

    fn arm_controller(&mut self) {
        let due = self.controllers.present.controller.as_ref().and_then(Controller::deadline);
        if let Some(due) = due.map(|due| due.max(self.world.now + Nanos(1)))
            && self.controllers.present.wakeup.wake_by(due)
        {
            self.remind(due, Event::ControllerWakes(self.controllers.present.life));
        }
    }
}
