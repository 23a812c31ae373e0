//! What a client's machine says (`nodes::client`), carried out.

use std::mem;

use sluice_host::client::{self, Bundle, Client, ClientSettings, Outcome, RefusedWhy};
use sluice_nodes::{ClientEffect, PacketSource, bundled};
use sluice_wire::{Nanos, Packet, Submit, TaskId};

use crate::event::Event;
use crate::hosts::Host;
use crate::limits::SOONEST;
use crate::oracle::{Ending, request};
use crate::pieces::{content, content_of};
use crate::rack::Rack;
use crate::replay_log::{self, Party};

impl Rack<'_> {
    /// Calls a client's machine, and does what it says.
    pub(crate) fn on_client(
        &mut self,
        client: usize,
        call: impl FnOnce(&mut Client, Nanos, &ClientSettings, &mut Vec<client::Action>),
    ) -> Result<(), String> {
        let Self { world, clients, client_settings: settings, client_actions: out, .. } = self;
        call(&mut clients[client].node.machine, world.now, settings, out);
        self.perform_client_actions(client)
    }

    /// Does what a client's machine said.
    pub(crate) fn perform_client_actions(&mut self, client: usize) -> Result<(), String> {
        let node = &self.clients[client].node;
        let (sender, mut bundle) = (node.sender(), Bundle::new(node.machine.jobs()));
        let mut actions = mem::take(&mut self.client_actions);
        for action in &actions {
            match ClientEffect::of(action, sender) {
                ClientEffect::Try(submit) => {
                    self.clients[client].tried = self.world.now;
                    self.tries(sender, submit, &mut bundle)?;
                }
                ClientEffect::Ended { task, attempts, how, .. } => {
                    if attempts == 0 && matches!(how, Outcome::Refused(RefusedWhy::Busy { .. })) {
                        self.refused_unsent(client, task)?;
                    }
                    self.ends(client, task, how)?;
                }
                ClientEffect::Send(to, packet) => self.send(sender.at, to, packet),
                ClientEffect::Keep(action) => self.client_keeps(client, action)?,
            }
        }
        if let Some(packet) = bundle.close() {
            self.send(sender.at, sender.switch, packet);
        }
        actions.clear();
        self.client_actions = actions;
        let (now, node) = (self.world.now, &mut self.clients[client].node);
        if let Some(due) = node.wakes_at(node.machine.deadline(), now + SOONEST) {
            self.remind(due, Event::Wake(Host::Client(client)));
        }
        Ok(())
    }

    /// A try of a task leaves with the bytes that name it.
    fn tries(&mut self, sender: PacketSource, submit: &Submit, bundle: &mut Bundle) -> Result<(), String> {
        self.oracle.tried(self.world.now, submit, self.scenario.retry_for)?;
        let submit = Submit { payload: request(submit.task), ..*submit };
        if bundle.is_off() {
            self.send(sender.at, sender.switch, Packet::Submit(submit));
            return Ok(());
        }
        for packet in bundled(bundle, &submit) {
            self.send(sender.at, sender.switch, packet);
        }
        Ok(())
    }

    /// A client refused a task that it did not send: it must have sent its share just before. The fewest
    /// tasks that a limit of one task stands for are four within one target, and a pace is at least 0.7 of
    /// the share. Tasks of earlier classes may have run ahead of the pace by 16 tasks or two targets.
    fn refused_unsent(&self, client: usize, task: TaskId) -> Result<(), String> {
        let Some(target) = self.scenario.program.traits().target else {
            return Err(format!("promise 10: task {task} was refused unsent in a rack without a target"));
        };
        // Every other slice has twice the target.
        let share = target.times(2 * u64::from(self.scenario.client_rows)).0 * 10 / (4 * 7);
        let ahead =
            if self.scenario.program.traits().classes > 1 { (16 * share).max(target.0 * 4) } else { 0 };
        let idle = self.world.now.since(self.clients[client].tried);
        if idle.0 > share + ahead {
            return Err(format!(
                "promise 10: task {task} was refused unsent, and its client had sent none for {idle:?}"
            ));
        }
        Ok(())
    }

    fn ends(&mut self, client: usize, task: TaskId, how: &Outcome) -> Result<(), String> {
        self.tell(Party::Client(client), None, Some(task), |task| replay_log::outcome(how, task));
        let ending = match how {
            Outcome::Reply(reply) => {
                Ending::Replied(self.clients[client].assembled(reply.payload), reply.status)
            }
            Outcome::Refused(why) => Ending::Refused(*why),
            Outcome::Unknown(why) => Ending::Unknown(*why),
        };
        self.oracle.ended(self.world.now, task, ending)
    }

    /// What concerns bytes beyond packets, and the controller.
    fn client_keeps(&mut self, client: usize, action: &client::Action) -> Result<(), String> {
        let process = &mut self.clients[client];
        match *action {
            client::Action::Parts { need, payload } => {
                process.tasks.find(payload.handle)?;
                let at = process.node.at;
                self.send_parts(at, &need, &request(need.task));
            }
            client::Action::Begin { at, payload, have } => process.begin(at, payload, have)?,
            client::Action::Place { at, offset } => process.place(at, offset)?,
            client::Action::Check { task, at, payload } => {
                let whole = process.replies.get(&at).map(|pieces| content_of(pieces));
                let is_right = whole == Some(content(payload.inline));
                self.on_client(client, |machine, now, settings, out| {
                    machine.checked(now, settings, task, is_right, out);
                })?;
            }
            client::Action::Forget(at) => {
                process.replies.remove(&at).ok_or("promise 6: a reply is forgotten twice")?;
            }
            client::Action::Release(handle) => {
                process.tasks.give_back(handle)?;
            }
            client::Action::Renew => self.renew(Host::Client(client)),
            // Packets to send and tasks that end are effects of their own.
            _ => {}
        }
        Ok(())
    }
}
