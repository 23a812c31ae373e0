//! The events, answers and actions of a run's controllers.

use sluice_control::{Action, Answer, CallId, Controller, Event as Told};
use sluice_nodes::Wakeup;
use sluice_wire::tables::TableAnswer;
use sluice_wire::{Nanos, Term};

use super::CALL_WAY;
use crate::event::Event;
use crate::hosts::Host;
use crate::inspection::nothing_is_due;
use crate::network::CALLS;
use crate::rack::Rack;
use crate::replay_log::{self, Who};

impl Rack<'_> {
    /// Connects the controller to the switch, if both are up.
    pub(crate) fn connect_brain(&mut self) {
        if self.world.now < self.brain.cut_until {
            return;
        }
        if let Some(shape) = self.switch.program.as_ref().map(|program| program.shape()) {
            self.new_connection();
            self.tell_brain(Told::SwitchUp(shape));
        }
    }

    pub(crate) fn disconnect_brain(&mut self) {
        self.new_connection();
        self.tell_brain(Told::SwitchDown);
    }

    fn new_connection(&mut self) {
        self.brain.lines += 1;
        self.brain.seat.life = self.brain.lines;
        self.brain.seat.answers.clear();
        self.brain.seat.wakeup = Wakeup::NONE;
    }

    pub(crate) fn brain_back(&mut self) {
        self.brain.seat = self.brain.another();
        self.brain.stalled_until = Nanos(0);
        self.say(Who::Rack, || "the controller is back".to_owned());
        self.connect_brain();
    }

    /// A host's call goes to the controller, or is lost on its way.
    pub(crate) fn call(&mut self, told: Told) {
        let [at, _] = self.arrivals(CALLS);
        if let Some(at) = at {
            self.remind(at + CALL_WAY, Event::Call(Box::new(told)));
        }
    }

    pub(crate) fn call_arrives(&mut self, told: Told) {
        if self.world.now < self.brain.stalled_until {
            self.remind(self.brain.stalled_until, Event::Call(Box::new(told)));
            return;
        }
        if self.is_told() {
            let (who, what) = replay_log::told(&told);
            self.tell(who, Some(Who::Controller), None, |_| what);
        }
        if self.meets_former() {
            self.as_former(|rack| rack.tell_brain(told));
        } else {
            self.tell_brain(told);
        }
    }

    pub(crate) fn call_answered(&mut self, call: CallId, answer: Answer) -> Result<(), String> {
        if let Some((host, life)) = self.brain.calls.get(&call).copied()
            && self.life_of(host) == life
        {
            let thaws = self.session(host).frozen_until;
            if self.world.now < thaws {
                self.remind(thaws, Event::CallAnswered { call, answer: Box::new(answer) });
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

    /// The controller hears the switch's oldest answer. While the controller stands still, answers wait, and
    /// stay in order however often it is stopped meanwhile.
    pub(crate) fn table_answered(&mut self, brain: u32) {
        if brain != self.brain.seat.life {
            return;
        }
        if self.world.now < self.brain.stalled_until {
            self.remind(self.brain.stalled_until, Event::OpDone(brain));
            return;
        }
        if let Some(answer) = self.brain.seat.answers.pop_front() {
            self.tell_brain(Told::TableAnswered(answer));
        }
    }

    pub(crate) fn answer_brain(&mut self, brain: u32, answer: TableAnswer) {
        let way = self.dice.span(Nanos(500), Nanos(10_000));
        self.brain.seat.answers_until = self.brain.seat.answers_until.max(self.world.now + way);
        if brain == self.brain.seat.life {
            self.brain.seat.answers.push_back(answer);
            self.remind(self.brain.seat.answers_until, Event::OpDone(brain));
        }
    }

    pub(crate) fn brain_wakes(&mut self, brain: u32) -> Result<(), String> {
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

    /// An operator asks for the whole state, with fresh balances.
    pub(crate) fn show_all(&mut self) -> Result<(), String> {
        if self.world.now < self.brain.stalled_until {
            self.remind(self.brain.stalled_until, Event::Look);
            return Ok(());
        }
        self.tell_brain(Told::Watch);
        self.tick_brain()?;
        if let Some(controller) = self.brain.seat.controller.as_ref().filter(|_| self.is_told()) {
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
                    let op = Event::Op { brain, switch, by, op: Box::new(op) };
                    self.remind(self.brain.seat.ops_until, op);
                }
                Action::Answer { call, answer } => {
                    let caller = self.brain.calls.get(&call).map(|(host, _)| replay_log::host(*host));
                    self.tell(Who::Controller, caller, None, |_| replay_log::answered(&answer));
                    let [at, _] = self.arrivals(CALLS);
                    let asker = self.brain.calls.get(&call).map(|(host, _)| *host);
                    if let Some(at) = at.filter(|_| asker.is_some_and(|host| self.answers_get_through(host)))
                    {
                        self.remind(at + CALL_WAY, Event::CallAnswered { call, answer: Box::new(answer) });
                    }
                }
                Action::SetDepth { worker, depth } => self.set_depth(worker, depth),
                // An agent uses this for the depths of its own workers, which fault runs leave alone.
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
