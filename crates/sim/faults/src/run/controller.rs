//! The events of a run's controllers.

use sluice_control::{Answer, CallId, Contender, Event as Told};
use sluice_wire::Nanos;

use crate::event::Event;
use crate::hosts::Host;
use crate::limits::LEASE;
use crate::rack::Rack;
use crate::replay_log::{self, Party};

impl Rack<'_> {
    pub(crate) fn restart_controller(&mut self) {
        self.controllers.present = self.controllers.another();
        self.controllers.stalled_until = Nanos(0);
        self.say(Party::Rack, || "the controller is back".to_owned());
        let seat = self.controllers.present.seat;
        if let Some(standbys) = &mut self.standbys {
            standbys.contenders[seat] = Contender::new(LEASE);
        }
        if let Some(store) = &mut self.store {
            store.forgets(seat);
        }
        self.looks_soon(seat);
        self.connect_controller();
    }

    pub(crate) fn call_arrives(&mut self, told: Told) {
        match self.seat_called(&told) {
            Some(seat) => self.on_seat(seat, |rack| rack.call_arrives_here(told)),
            None => self.call_arrives_here(told),
        }
    }

    fn call_arrives_here(&mut self, told: Told) {
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
        if let Some((host, life)) = self.controllers.caller(call)
            && self.life_of(host) == life
        {
            let thaws = self.session(host).frozen_until;
            if self.world.now < thaws {
                self.remind(thaws, Event::CallAnswered { call, answer: Box::new(answer) });
                return Ok(());
            }
        }
        if let Some((host, _)) = self.controllers.caller(call) {
            self.note_answer(host, &answer);
        }
        match self.controllers.end_call(call) {
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
}
